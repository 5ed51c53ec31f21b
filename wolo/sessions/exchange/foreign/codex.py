"""Reads and writes sessions of Codex: rollouts of Responses API items and events as JSON lines.

Messages occur two or three times: as an item, as an event, in newer files also as a completed item. Many user items were added by
Codex itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from wolo.errors import SessionError
from wolo.formats.encoding.wire_forms import IdPolicy
from wolo.formats.openai_responses.encode import ENCRYPTED
from wolo.formats.tolerant_json import list_at
from wolo.messages.message import Usage
from wolo.messages.parts import AnyPart, AudioPart, FilePart, MediaPart, TextPart, ThinkingPart, blob_of
from wolo.messages.roles import AssistantMessage, ToolMessage
from wolo.sessions.exchange import json_files
from wolo.sessions.exchange.foreign import builder, discovery, record_writer
from wolo.sessions.exchange.foreign.responses_items import HOSTED, call, hosted_result, parts_of, reasoning, result
from wolo.sessions.exchange.json_files import FilePreview, Imported, JsonLines, Record, content, number, record, text, unix_time

LINES = ("session_meta", "turn_context", "response_item", "event_msg", "compacted")
REMEMBERED = 32
"""Number of recent messages compared to find repetitions."""
_INJECTED = re.compile(r"\s*(?:<([a-zA-Z_ -]+)>.*</\1>\s*$|# AGENTS\.md instructions\b|<image\b)", re.DOTALL)
"""User messages that Codex adds."""
_STAMPED = re.compile(r"rollout-[\dT-]{19}-(.+)")

Source = Literal["item", "event", "completed"]


class SeenMessage(Struct):
    """A message, and the kinds of records that contained it."""

    role: str
    words: str
    sources: set[Source]
    draft: builder.Draft


def matches(preview: FilePreview) -> bool:
    if preview.path.name.startswith("rollout-"):
        return True
    return any(isinstance(each.get("payload"), dict) and each.get("type") in LINES for each in preview.records)


def read(source: Path) -> Imported:
    """Raises SessionError without a conversation."""
    if source.suffix == ".zst":
        raise SessionError(f"{source} is compressed.", hint=f"Unpack it with `zstd -d {source.name}` and import the result.")
    lines = JsonLines(source)
    reader = CodexReader()
    conversation = reader.read(lines)
    # The name may be in the index of the folder that the file is in.
    home = next((folder.parent for folder in source.absolute().parents if folder.name.endswith("sessions")), None)
    stamped = _STAMPED.fullmatch(source.stem)
    named = _names(home).get(reader.id or (stamped[1] if stamped else ""), "") if home and not reader.title else ""
    return conversation.to_imported(
        source,
        "Codex",
        "~/.codex/sessions",
        title=reader.title or named,
        cwd=reader.cwd,
        created_at=reader.created,
        skipped=lines.skipped,
        notices=reader.notices,
    )


def find_sessions(cwd: Path, environ: Mapping[str, str]) -> list[discovery.FoundSession]:
    home = discovery.home_of(".codex", environ, "CODEX_HOME")
    names = _names(home)
    sessions = []
    for path in discovery.children(home / "sessions", "**/rollout-*.jsonl"):
        meta = record(discovery.first(path), "payload")
        if discovery.same_directory(text(meta, "cwd"), cwd) and not isinstance(meta.get("source"), dict):
            id = text(meta, "id") or path.stem
            given = (text(record(each, "payload"), "thread_name") for each in reversed(discovery.tail(path)))
            title = next(filter(None, given), "") or names.get(id) or next(_prompts(discovery.head(path)), "")
            sessions.append(discovery.FoundSession(path, id, title, discovery.last_change_at(path)))
    return discovery.newest_first(sessions)


def _prompts(there: Iterable[Record]) -> Iterator[str]:
    for each in there:
        payload = record(each, "payload")
        if payload.get("type") == "user_message" and text(payload, "message").strip():
            yield text(payload, "message")
        elif payload.get("type") == "message" and payload.get("role") == "user":
            words = builder.words_of(parts_of(payload)).strip()
            if words and not _INJECTED.match(words):
                yield words


def _names(home: Path) -> dict[str, str]:
    return {text(each, "id"): text(each, "thread_name") for each in discovery.records_of(home / "session_index.jsonl")}


class CodexReader(builder.RecordReader):
    def __init__(self) -> None:
        self.id = self.title = self.cwd = ""
        self.created = 0.0
        self.notices: list[str] = []
        self.builder = builder.ConversationBuilder()
        self._recent: list[SeenMessage] = []
        self._model = ""
        self._provider = "openai"
        self._answers = 0
        self._is_answering = False
        self._tokens: Record = {}

    def add(self, line: Record) -> None:
        self.builder.begin_record(line)
        self._is_answering = self._is_answering and not self.builder.is_own
        kind, payload, at = text(line, "type"), record(line, "payload"), unix_time(line.get("timestamp"))
        if "payload" not in line:
            # The oldest rollouts have no envelopes.
            if kind:
                self._item(line, at)
            elif text(line, "id") and not self.id:
                self._meta(line, at)
            return
        match kind:
            case "session_meta":
                self._meta(payload, at)
            case "turn_context":
                self._model = text(payload, "model") or self._model
                self.cwd = self.cwd or text(payload, "cwd")
            case "response_item":
                self._item(payload, at)
            case "event_msg":
                match payload.get("type"):
                    case "user_message":
                        self._add_message("user", "event", _prompt(payload), at)
                    case "agent_message":
                        self._add_message("assistant", "event", _text(text(payload, "message")), at, phase=text(payload, "phase"))
                    case "item_completed":
                        item = record(payload, "item")
                        role = {"UserMessage": "user", "AgentMessage": "assistant"}.get(text(item, "type"), "")
                        if role:
                            blocks = [{**block, "type": "text"} for block in content(item) if "text" in block]
                            self._add_message(role, "completed", parts_of({"content": blocks}), at)
                    case "token_count":
                        self._add_usage(record(payload, "info"))
                    case "turn_aborted":
                        self._is_answering = False
                        self.builder.interrupt()
                    case "thread_rolled_back":
                        self._is_answering = False
                        gone = self.builder.undo_prompts(number(payload, "num_turns"))
                        self.notices += builder.count_notice(
                            gone, "One undone message was left out.", "{} undone messages were left out."
                        )
                    case "thread_name_updated":
                        self.title = text(payload, "thread_name") or self.title
            case "compacted":
                # Only the summary, and the user messages it names, are still sent
                self._is_answering = False
                replacement = json_files.records(payload, "replacement_history")
                summary = text(payload, "message")
                named = {builder.words_of(parts_of(item)).strip() for item in replacement if item.get("role") == "user"}
                if summary.strip():
                    drafts = (draft for draft in self.builder.drafts if draft.role == "user")
                    kept = {draft.id for draft in drafts if builder.words_of(draft.parts).strip() in named}
                    self.builder.summarise(summary, at=at, kept=kept)
                else:
                    self.notices.append("An encrypted summary was left out; the messages it replaced are sent instead.")

    def read(self, records: Iterable[Record]) -> builder.ConversationBuilder:
        """Drops what looks added by Codex and occurs in no other kind of record."""
        super().read(records)
        self.builder.drafts = [draft for draft in self.builder.drafts if draft.is_prompt or draft.own is not None]
        return self.builder

    def _meta(self, meta: Record, at: float) -> None:
        if self.id:
            return  # of the session this one was forked from
        self.id = text(meta, "id") or "unknown"
        self.cwd = text(meta, "cwd") or self.cwd
        self.created = unix_time(meta.get("timestamp")) or at
        self._provider = text(meta, "model_provider") or self._provider

    def _item(self, item: Record, at: float) -> None:
        if (kind := text(item, "type")) == "message":
            if (role := text(item, "role")) in ("user", "assistant"):
                self._add_message(role, "item", parts_of(item), at, text(item, "id"), text(item, "phase"))
            elif role not in ("developer", "system"):
                self.builder.skipped += 1
        elif kind == "reasoning":
            if (thought := reasoning(item)) is not None:
                self._answer(at).parts.append(thought)
        elif kind.endswith("_output"):
            self._is_answering = False
            self.builder.add_result(text(item, "call_id"), result(item, at))
        elif kind.endswith("_call"):
            self._call(item, at)

    def _call(self, item: Record, at: float) -> None:
        if (part := call(item, at, otherwise_id=f"call-{len(self.builder.drafts)}-{at}")) is None:
            self.builder.skipped += 1
            return
        self.builder.add_call(self._answer(at), part)
        if item.get("type") in HOSTED:
            self.builder.add_result(part.call_id, hosted_result(item, at))

    def _add_usage(self, info: Record) -> None:
        """An unchanged total is no further answer."""
        total, last = record(info, "total_token_usage"), record(info, "last_token_usage")
        if not last or (total and total == self._tokens):
            return
        self._tokens = total
        self._is_answering = False
        answer = next((draft for draft in reversed(self.builder.drafts) if draft.role == "assistant"), None)
        if answer is not None and answer.usage is None:
            cached = min(number(last, "cached_input_tokens"), number(last, "input_tokens"))
            answer.usage = Usage(
                input_tokens=number(last, "input_tokens") - cached,
                output_tokens=number(last, "output_tokens"),
                cache_read_tokens=cached,
                reasoning_tokens=number(last, "reasoning_output_tokens"),
            )

    def _add_message(
        self, role: str, source: Source, parts: list[AnyPart], at: float, item_id: str = "", phase: str = ""
    ) -> None:
        words = builder.words_of(parts).strip()
        seen = None if self.builder.is_own else self._find_repetition(role, source, words)
        if seen is not None:
            seen.sources.add(source)
            seen.draft.is_prompt = True
            return
        if not parts:
            return
        if role == "user":
            self._is_answering = False
            is_own = source == "item" and _INJECTED.match(words) is not None
            draft = self.builder.add(builder.Draft("user", parts, timestamp=at, is_prompt=not is_own))
        else:
            draft = self._answer(at)
            known: Any = phase if phase in ("commentary", "final_answer") else ""
            draft.parts += [
                TextPart(text=part.text, item_id=item_id, phase=known) for part in parts if isinstance(part, TextPart)
            ]
        self._recent = [*self._recent[-REMEMBERED:], SeenMessage(role, words, {source}, draft)]

    def _find_repetition(self, role: str, source: Source, text: str) -> SeenMessage | None:
        """Finds the same message from another kind of record, which may contain only part of it."""
        others = [each for each in reversed(self._recent) if each.role == role and source not in each.sources]
        same = next((each for each in others if each.words == text), None)
        if same is not None or not text or _INJECTED.match(text):  # messages added by Codex may quote anything
            return same
        quoted = (each for each in others if each.words and (each.words in text or text in each.words))
        return next((each for each in quoted if not _INJECTED.match(each.words)), None)

    def _answer(self, at: float) -> builder.Draft:
        self._answers += not self._is_answering
        self._is_answering = True
        return self.builder.answer(str(self._answers), at=at, producer=builder.producer(self._provider, self._model))


def _prompt(event: Record) -> list[AnyPart]:
    return [*_text(text(event, "message")), *map(builder.medium, list_at(event, "images", str))]


def _text(value: str) -> list[AnyPart]:
    return [part] if (part := builder.text_part(value)) else []


VERSION = "0.128.0"
"""The Codex version whose files these resemble."""


class _CodexWriter:
    id_policy: IdPolicy = "responses"

    def __init__(self) -> None:
        self._total_tokens = 0

    def user(self, parts: Sequence[TextPart | MediaPart], at: float) -> list[Record]:
        content = [_input(part) for part in parts]
        words = builder.words_of(parts_of({"content": content})).strip()
        shown = [_line("event_msg", {"type": "user_message", "message": words, "kind": "plain"}, at)] if words else []
        return [_line("response_item", {"type": "message", "role": "user", "content": content}, at), *shown]

    def results(self, message: ToolMessage) -> list[Record]:
        lines: list[Record] = []
        for each in message.contents:
            blocks = [_input(TextPart(text=each.content)), *map(_input, each.media)]
            payload = {"type": "function_call_output", "call_id": each.id, "output": blocks if each.media else each.content}
            lines.append(_line("response_item", payload, message.timestamp))
        return lines

    def answer(self, message: AssistantMessage) -> list[Record]:
        at = message.timestamp
        thoughts = [_line("response_item", _reasoning(part), at) for part in message.thinking() if part.text.strip()]
        texts = [part.text for part in message.contents if isinstance(part, TextPart) and not record_writer.is_blank(part)]
        content = [{"type": "output_text", "text": text} for text in texts]
        words = [_line("response_item", {"type": "message", "role": "assistant", "content": content}, at)] if texts else []
        shown = [_line("event_msg", {"type": "agent_message", "message": "".join(texts).strip()}, at)] if texts else []
        lines = [*thoughts, *words, *shown]
        for part in message.tool_calls():
            arguments = json.dumps(part.input, ensure_ascii=False)
            call = {"type": "function_call", "name": part.tool, "arguments": arguments, "call_id": part.call_id}
            lines.append(_line("response_item", call, at))
        usage = message.usage
        if not lines or usage is None or not usage.context_tokens:
            return lines
        self._total_tokens += usage.context_tokens
        last = {
            "input_tokens": usage.prompt_tokens,
            "cached_input_tokens": usage.cache_read_tokens,
            "output_tokens": usage.output_tokens,
            "reasoning_output_tokens": usage.reasoning_tokens,
            "total_tokens": usage.context_tokens,
        }
        totals = {"total_token_usage": {**last, "total_tokens": self._total_tokens}, "last_token_usage": last}
        return [*lines, _line("event_msg", {"type": "token_count", "info": totals}, at)]

    def frame(self, records: Iterable[Record], header: record_writer.SessionHeader) -> Iterator[Record]:
        provider, _, model = header.model.partition("/")
        meta = {
            "id": record_writer.stable_uuid(header.id),
            "timestamp": record_writer.iso(header.created),
            "cwd": header.cwd,
            "originator": "codex_cli_rs",
            "cli_version": VERSION,
            "source": "cli",
            "model_provider": record_writer.provider_name(provider),
        }
        yield _line("session_meta", meta, header.created)
        turn = {
            "cwd": header.cwd,
            "approval_policy": "on-request",
            "sandbox_policy": {"type": "workspace-write"},
            "model": model,
            "summary": "auto",
        }
        yield _line("turn_context", turn, header.created)
        yield from records
        if header.title:
            yield _line("event_msg", {"type": "thread_name_updated", "thread_name": header.title}, header.updated)


def _line(type: str, payload: Record, at: float) -> Record:
    return {"timestamp": record_writer.iso(at), "type": type, "payload": payload}


def _reasoning(part: ThinkingPart) -> Record:
    sealed = blob_of(part.blobs, ENCRYPTED)
    return {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": part.text}],
        **({"encrypted_content": sealed} if sealed else {}),
    }


def _input(part: TextPart | MediaPart) -> Record:
    if isinstance(part, TextPart):
        return {"type": "input_text", "text": part.text}
    if isinstance(part, AudioPart | FilePart):
        return {"type": "input_text", "text": f"[{part.type} {part.media_type}]"}
    return {"type": "input_image", "image_url": record_writer.address(part)}


write = record_writer.line_export(_CodexWriter, CodexReader)
