"""Writes a session as a Markdown document that no content can break out of."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from wolo.formats.encoding.wire_forms import arguments_object, result_text
from wolo.messages.parts import TextPart, ThinkingPart, ToolPart
from wolo.sessions.exchange import export_stream, redaction, text_export
from wolo.sessions.listing import SessionInfo
from wolo.sessions.store import Store

FORMAT = "markdown"

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)")
_HIGH = re.compile(r" {0,3}(?P<marks>#{1,2})(?=\s|$)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)\s*")
"""Turns the preceding line into a heading."""
_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~])")


def write(store: Store, info: SessionInfo, out: export_stream.Write, redactor: redaction.Redactor | None) -> None:
    for piece in _document(info, export_stream.MessageStream(store, info.id, redactor), redactor):
        out(piece.encode("utf-8", "replace"))


def fence_block(text: str, language: str = "") -> str:
    """Uses a longer fence than any in the text."""
    runs = re.findall(r"`{3,}", text)
    fence = "`" * max(3, *(len(run) + 1 for run in runs)) if runs else "```"
    return f"{fence}{language}\n{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{fence}\n"


def quote(text: str) -> str:
    """A quotation ends any block begun inside it."""
    return "".join(f"> {line}".rstrip() + "\n" for line in text.split("\n"))


def contain(text: str) -> str:
    """Closes an open fence and neutralises HTML and top-level headings in an answer."""
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        match = _FENCE.match(line)
        if fence:
            if match and match[1].startswith(fence) and not match[2].strip():
                fence = ""
        elif match and ("`" not in match[2] or match[1][0] == "~"):
            fence = match[1]
        elif high := _HIGH.match(line):  # a heading of the speakers' level
            line = f"###{line[high.end('marks') :]}"
        elif _UNDERLINE.fullmatch(line) or line.lstrip().startswith("<"):
            line = f"\\{line.lstrip()}"
        lines.append(line)
    if fence:
        lines.append(fence)
    return "\n".join(lines).strip("\n") + "\n"


def escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


def _document(info: SessionInfo, messages: export_stream.MessageStream, redactor: redaction.Redactor | None) -> Iterator[str]:
    def clean(text: str) -> str:
        return redactor.text(text) if redactor else text

    yield f"# {escape(clean(text_export.title(info)))}\n\n"
    facts = {"Session": info.id, "Directory": info.cwd, "Model": info.model, "Begun": text_export.when(info.created)}
    for name, fact in facts.items():
        shown = clean(text_export.plain(fact)).replace("`", "ˋ")
        yield f"- {name}: `{shown}`\n" if shown else ""
    for message in filter(text_export.is_for_readers, messages):
        time = text_export.when(message.timestamp)
        yield f"\n## {text_export.SPEAKERS[message.role]}{f' · {time}' if time else ''}\n"
        is_answer = message.role == "assistant"
        for part in message.parts:
            if isinstance(part, TextPart):
                if text := text_export.plain(part.text).strip():
                    yield "\n" + (contain(text) if is_answer else quote(text))
            elif isinstance(part, ThinkingPart):
                if text := text_export.plain(part.text).strip():
                    yield "\n" + quote(f"*Thinking*\n\n{text}")
            elif isinstance(part, ToolPart):
                yield from _call(part)
            else:
                yield f"\n{escape(text_export.describe(part))}\n"
        if message.error:
            yield "\n" + quote(f"**Error:** {text_export.plain(message.error)}")


def _call(call: ToolPart) -> Iterator[str]:
    outcome = text_export.outcome(call)
    name = escape(text_export.plain(call.tool))
    yield f"\n**{name}**{f' — {outcome}' if outcome else ''}\n\n"
    arguments = arguments_object(call)
    match arguments:
        case {"command": str(command)} if len(arguments) == 1:
            yield fence_block(text_export.plain(command), "sh")
        case _:
            yield fence_block(text_export.plain(msgspec.json.format(msgspec.json.encode(arguments), indent=2).decode()), "json")
    yield "\n" + fence_block(text_export.plain(result_text(call)))
    for part in call.output_parts:
        yield f"\n{escape(text_export.describe(part))}\n"
