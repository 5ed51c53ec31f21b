"""Reads sessions of Kimi CLI, folders with the model's messages and an event log, and writes the messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import md5
from pathlib import Path

from msgspec import Struct, field

from wolo.formats.encoding.wire_forms import IdPolicy
from wolo.messages.message import Usage
from wolo.messages.parts import AnyPart, AudioPart, FilePart, MediaPart, Outcome, TextPart, ThinkingPart, ToolPart
from wolo.messages.roles import AssistantMessage, ToolMessage
from wolo.sessions.exchange import json_files
from wolo.sessions.exchange.foreign import builder, kimi_v2
from wolo.sessions.exchange.foreign.discovery import (
    FoundSession,
    children,
    first_prompt,
    head,
    home_of,
    last_change_at,
    newest_first,
)
from wolo.sessions.exchange.foreign.kimi_v2 import ENCRYPTED
from wolo.sessions.exchange.foreign.record_writer import SessionHeader, address, is_blank, line_export, text_block
from wolo.sessions.exchange.json_files import FilePreview, JsonLines, Record, content, read_object, record, records, text

CONTEXT, WIRE = "context.jsonl", "wire.jsonl"
COMPACTED = "<system>Previous context has been compacted."
CHECKPOINT = "<system>CHECKPOINT "
ERROR = "<system>ERROR"
USAGE_FIELDS = ("input_other", "output", "input_cache_read", "input_cache_creation")
REFUSALS: Mapping[str, Outcome] = {
    "rejected by the user": "denied_by_person",
    "user rejected": "denied_by_person",
    "interrupted": "interrupted",
    "aborted": "interrupted",
}


class Wire(Struct):
    title: str = ""
    created: float = 0.0
    steps: dict[str, tuple[float, Usage | None]] = field(default_factory=dict)
    """Time and usage of an answer, by the id of its first call, or by its text."""


def matches(preview: FilePreview) -> bool:
    if (preview.path / CONTEXT).is_file() or kimi_v2.wire_of(preview.path) is not None:
        return True
    marks = any(text(each, "role").startswith("_") for each in preview.records)
    return marks or (preview.path.name in (CONTEXT, WIRE) and preview.path.with_name(CONTEXT).is_file())


def read(source: Path) -> json_files.Imported:
    """Reads a session folder or a file in it. Raises SessionError without a conversation."""
    if (own := kimi_v2.wire_of(source)) is not None:
        return kimi_v2.read(own)
    folder = source if source.is_dir() else source.parent
    path = folder / CONTEXT if source.is_dir() or source.name == WIRE else source
    wire = _wire(folder / WIRE)
    # The directory whose digest names the folder.
    known = records(read_object(folder.absolute().parent.parent.parent / "kimi.json"), "work_dirs")
    directories = (text(each, "path") for each in known)
    cwd = next((path for path in directories if folder.absolute().parent.name.endswith(_folder_name(path))), "")
    lines = JsonLines(path)
    return (
        KimiReader(wire)
        .read(lines)
        .to_imported(
            source,
            "Kimi",
            "~/.kimi/sessions",
            title=text(read_object(folder / "state.json"), "custom_title") or wire.title,
            cwd=cwd,
            created_at=wire.created or last_change_at(path),
            skipped=lines.skipped,
            notices=builder.count_notice(
                len(children(folder, "context_*.jsonl")),
                "An older state of the conversation, before a rewind or a summary, was left out.",
                "{} older states of the conversation, before rewinds or summaries, were left out.",
            ),
        )
    )


def find_sessions(cwd: Path, environ: Mapping[str, str]) -> list[FoundSession]:
    """Lists the sessions of a directory, also those of Kimi Code, newest first."""
    home = home_of(".kimi", environ, "KIMI_SHARE_DIR")
    sessions = kimi_v2.find_sessions(cwd, environ)
    for path in children(home / "sessions", f"*{_folder_name(str(cwd))}/*/{CONTEXT}"):
        if first := first_prompt(head(path), ("<system>",)):
            title = text(read_object(path.with_name("state.json")), "custom_title") or first
            sessions.append(FoundSession(path.parent, path.parent.name, title, last_change_at(path)))
    return newest_first(sessions)


def _folder_name(cwd: str) -> str:
    return md5(cwd.encode("utf-8", "surrogateescape"), usedforsecurity=False).hexdigest()


def _wire(path: Path) -> Wire:
    wire = Wire()
    calls: list[str] = []
    words = ""
    for each in JsonLines(path) if path.is_file() else ():
        event, at = record(each, "message"), json_files.unix_time(each.get("timestamp"))
        payload = record(event, "payload")
        wire.created = wire.created or at
        match event.get("type"):
            case "TurnBegin":
                wire.title = wire.title or " ".join(text(block, "text") for block in content(payload, "user_input"))
            case "StepBegin":
                calls, words = [], ""
            case "ContentPart" if payload.get("type") == "text":
                words += text(payload, "text")
            case "ToolCall":
                calls.append(text(payload, "id"))
            case "StatusUpdate" if record(payload, "token_usage"):
                wire.steps[calls[0] if calls else words] = at, builder.token_usage(record(payload, "token_usage"), *USAGE_FIELDS)
    return wire


class KimiReader(builder.RecordReader):
    def __init__(self, wire: Wire | None = None) -> None:
        self.builder = builder.ConversationBuilder()
        self._wire = wire or Wire()
        self._now = self._wire.created

    def add(self, line: Record) -> None:
        self.builder.begin_record(line)
        role = text(line, "role")
        match role:
            case "user":
                parts = _parts(line)
                words = builder.words_of(parts)
                if words.startswith(COMPACTED):
                    self.builder.summarise(words.partition("</system>")[2].strip() or words, at=self._now)
                elif not words.startswith(CHECKPOINT) and not builder.is_reminder(words):
                    self.builder.add_spoken("user", parts, self._now, is_prompt=not words.startswith("<system"))
            case "assistant":
                draft = self.builder.add(
                    builder.Draft("assistant", _parts(line), timestamp=self._now, producer=builder.producer("kimi-cli", ""))
                )
                for each in records(line, "tool_calls"):
                    function = record(each, "function")
                    arguments = function.get("arguments")
                    self.builder.add_call(
                        draft, builder.tool_part(text(function, "name"), arguments or "", text(each, "id"), at=self._now)
                    )
                calls = [part.call_id for part in draft.parts if isinstance(part, ToolPart)]
                step = calls[0] if calls else builder.words_of(draft.parts)
                self._now, draft.usage = self._wire.steps.pop(step, (self._now, None))
                draft.timestamp = self._now
            case "tool":
                output, media = builder.text_and_media(_parts(line))
                failed = output.lstrip().startswith(ERROR)
                outcome = builder.outcome_of(output, REFUSALS, otherwise="error") if failed else "ok"
                self.builder.add_result(text(line, "tool_call_id"), builder.ImportedResult(output, outcome, media, self._now))
            case "system":
                self.builder.add_spoken("user", _parts(line), self._now, is_prompt=False)
            case _:
                # Kimi's own records begin with an underscore.
                self.builder.skipped += not role.startswith("_")


def _parts(line: Record) -> list[AnyPart]:
    return [part for block in content(line) if (part := _part(block)) is not None]


def _part(block: Record) -> AnyPart | None:
    match block.get("type"):
        case "text":
            return builder.text_part(text(block, "text"))
        case "think":
            return builder.thinking_part(text(block, "think"), ENCRYPTED, text(block, "encrypted"))
        case "image_url" | "audio_url" as kind:
            address = text(record(block, kind), "url")
            return builder.medium(address) if address else None
        case "video_url":
            return builder.missing_note("a video")
    return None


class _KimiWriter:
    id_policy: IdPolicy = "anthropic"

    def user(self, parts: Sequence[TextPart | MediaPart], at: float) -> list[Record]:
        return [{"role": "user", "content": [_block(part) for part in parts]}]

    def results(self, message: ToolMessage) -> list[Record]:
        lines: list[Record] = []
        for result in message.contents:
            words = f"{ERROR}: {result.content}</system>" if result.is_error else result.content
            blocks = [text_block(words), *map(_block, result.media)]
            lines.append({"role": "tool", "content": blocks, "tool_call_id": result.id})
        return lines

    def answer(self, message: AssistantMessage) -> list[Record]:
        content: list[Record] = []
        for part in message.contents:
            if isinstance(part, ThinkingPart):
                content += [{"type": "think", "think": part.text, "encrypted": None}] if part.text else []
            elif isinstance(part, TextPart | MediaPart) and not is_blank(part):
                content.append(_block(part))
        calls: list[Record] = []
        for part in message.tool_calls():
            function = {"name": part.tool, "arguments": json.dumps(part.input, ensure_ascii=False)}
            calls.append({"type": "function", "id": part.call_id, "function": function})
        line: Record = {"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {})}
        return [line] if content or calls else []

    def frame(self, records: Iterable[Record], header: SessionHeader) -> Iterator[Record]:
        """Begins with one of Kimi's checkpoint records, which tell the file from other lists of messages."""
        yield {"role": "_checkpoint", "id": 0}
        yield from records


def _block(part: TextPart | MediaPart) -> Record:
    if isinstance(part, TextPart):
        return text_block(part.text)
    if isinstance(part, FilePart):
        return text_block(f"[{part.name or part.media_type}]")
    kind = "audio_url" if isinstance(part, AudioPart) else "image_url"
    return {"type": kind, kind: {"url": address(part)}}


write = line_export(_KimiWriter, KimiReader)
