"""A session as one page that needs nothing else: no script, no network, everything that was said escaped."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from wolo.formats.encoding.attachments import data_url
from wolo.formats.encoding.pairing import arguments_object
from wolo.messages.message import Message
from wolo.messages.parts import MediaPart, TextPart, ThinkingPart, ToolPart
from wolo.sessions.exchange import text_export
from wolo.sessions.exchange.html_style import HEAD, STYLE
from wolo.sessions.exchange.jsonl import Write
from wolo.sessions.exchange.message_stream import Said
from wolo.sessions.exchange.redaction import Redactor
from wolo.sessions.listing import SessionInfo
from wolo.sessions.store import Store

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

FORMAT = "html"
RENDERED_CHARACTERS = 20_000
"""A longer text is shown as it was written: what Markdown could mean takes time with the square of its length."""


def write(store: Store, info: SessionInfo, out: Write, redactor: Redactor | None) -> None:
    for piece in _page(info, Said(store, info.id, redactor), redactor):
        out(piece.encode("utf-8", "replace"))


def escaped(text: str) -> str:
    return html.escape(text_export.plain(text), quote=True)


def _page(info: SessionInfo, said: Said, redactor: Redactor | None) -> Iterator[str]:
    def clean(text: str) -> str:
        return escaped(redactor.text(text) if redactor else text)

    title = clean(text_export.title(info))
    yield HEAD.format(title=title, style=STYLE)
    facts = (info.id, info.cwd, info.model, text_export.when(info.created))
    yield f"<header><h1>{title}</h1><p>{' · '.join(clean(fact) for fact in facts if fact)}</p></header>\n<main>\n"
    markdown = _renderer()
    for message in filter(text_export.is_for_readers, said):
        yield from _message(message, markdown)
    yield "</main>\n</body>\n</html>\n"


def _renderer() -> MarkdownIt:
    """HTML in the text stays text, addresses of scripts are no links, and pictures from elsewhere are not fetched."""
    from markdown_it import MarkdownIt  # noqa: PLC0415  # for this shape only

    return MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")


def _message(message: Message, markdown: MarkdownIt) -> Iterator[str]:
    time = text_export.when(message.timestamp)
    yield f'<article class="{message.role}">\n<h2>{text_export.SPEAKERS[message.role]}'
    yield f" <small>{time}</small></h2>\n" if time else "</h2>\n"
    for part in message.parts:
        if isinstance(part, TextPart):
            yield _text(part.text, markdown if message.role == "assistant" else None)
        elif isinstance(part, ThinkingPart):
            yield _folded("thinking", "Thinking", f"<div class=text>{escaped(part.text)}</div>") if part.text.strip() else ""
        elif isinstance(part, ToolPart):
            yield _call(part)
        else:
            yield _attached(part)
    if message.error:
        yield f"<p class=bad>{escaped(message.error)}</p>\n"
    yield "</article>\n"


def _text(text: str, markdown: MarkdownIt | None) -> str:
    if not text.strip():
        return ""
    if markdown is None or len(text) > RENDERED_CHARACTERS:
        return f"<div class=text>{escaped(text)}</div>\n"
    return f"<div class=answer>{markdown.render(text_export.plain(text))}</div>\n"


def _call(call: ToolPart) -> str:
    outcome, subject = text_export.outcome(call), escaped(text_export.subject(call))
    label = f"<b>{escaped(call.tool)}</b> <code>{subject}</code>" if subject else f"<b>{escaped(call.tool)}</b>"
    if outcome:
        label += f" <em class=bad>{escaped(outcome)}</em>"
    arguments = msgspec.json.format(msgspec.json.encode(arguments_object(call)), indent=2).decode()
    body = f"<pre class=arguments>{escaped(arguments)}</pre><pre>{escaped(text_export.result(call))}</pre>"
    return _folded("call", label, body) + "".join(map(_attached, call.output_parts))


def _folded(kind: str, label: str, body: str) -> str:
    return f"<details class={kind}><summary>{label}</summary>{body}</details>\n"


def _attached(part: MediaPart) -> str:
    note = escaped(text_export.described(part))
    if text_export.is_picture(part):
        return f'<img alt="{note}" src="{html.escape(data_url(part.media_type, part.data), quote=True)}">\n'
    if part.type == "audio" and part.media_type.startswith("audio/"):
        return f'<audio controls src="{html.escape(data_url(part.media_type, part.data), quote=True)}">{note}</audio>\n'
    return f"<p class=attached>{note}</p>\n"
