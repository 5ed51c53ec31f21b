"""Imports sessions of Kimi Code, the successor of Kimi CLI: an event log, `agents/main/wire.jsonl`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from wolo.messages.message import FinishReason, Producer
from wolo.messages.parts import AnyPart, ImagePart, Outcome, ToolPart
from wolo.sessions.exchange import json_files
from wolo.sessions.exchange.foreign import builder, discovery
from wolo.sessions.exchange.json_files import Imported, JsonLines, Record, content, number, read_object, record, text, unix_time

MAIN = Path("agents", "main", "wire.jsonl")
ENCRYPTED = "kimi.encrypted"
"""Blob kind; the log does not name its model, so it is never sent."""
SUBJECTS = frozenset({"context", "turn", "config"})
"""Prefixes of its record types; Kimi CLI's log has none of them."""
PEOPLE = ("", "user")
"""Origins of user messages."""
OWN = ("injection", "compaction_summary")
"""Origins of Kimi's own messages; others, such as a skill's, belong to the conversation."""
FINISHED: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "filtered": "refused",
    "interrupted": "interrupted",
}
USAGE_FIELDS = ("inputOther", "output", "inputCacheRead", "inputCacheCreation")
REFUSALS: Mapping[str, Outcome] = {
    "rejected by the user": "denied_by_person",
    "user rejected": "denied_by_person",
    "denied by": "denied_by_rule",
    "interrupted": "interrupted",
    "aborted": "interrupted",
    "cancelled": "interrupted",
}
_REFERENCE = re.compile(r"blobref:([\w./+-]+);([0-9a-f]{16,64})")
"""Reference to an attachment stored in a file."""


def wire_of(source: Path) -> Path | None:
    """The log of a session given by its folder or the log itself; None for other files."""
    if source.is_dir():
        return source / MAIN if (source / MAIN).is_file() else None
    is_one = source.name == MAIN.name and any(text(each, "type").partition(".")[0] in SUBJECTS for each in discovery.head(source))
    return source if is_one else None


def read(source: Path) -> Imported:
    """Raises SessionError without a conversation."""
    lines = JsonLines(source)
    reader = KimiCodeReader(source.parent / "blobs")
    reader.read(lines)
    agents = source.absolute().parent.parent
    state = read_object(agents.parent / "state.json")
    aside = sum(path != source.absolute() for path in discovery.children(agents, "*/wire.jsonl"))
    return reader.builder.to_imported(
        source,
        "Kimi Code",
        "~/.kimi-code/sessions",
        title=text(state, "customTitle") or text(state, "title"),
        cwd=text(state, "workDir") or text(record(state, "custom"), "cwd") or reader.cwd,
        created_at=reader.created,
        skipped=lines.skipped,
        notices=[
            *builder.count_notice(
                aside, "The conversation of a subagent was left out.", "The conversations of {} subagents were left out."
            ),
            *builder.count_notice(reader.undone, "One undone message was left out.", "{} undone messages were left out."),
        ],
    )


def find_sessions(cwd: Path, environ: Mapping[str, str]) -> list[discovery.FoundSession]:
    home = discovery.home_of(".kimi-code", environ, "KIMI_CODE_HOME")
    # The folder is named by a digest; its directory is in its state or in the index of sessions.
    indexed = {text(each, "sessionId"): text(each, "workDir") for each in discovery.records_of(home / "session_index.jsonl")}
    sessions = []
    for path in discovery.children(home / "sessions", f"*/*/{MAIN}"):
        folder = path.parents[2]
        state = read_object(folder / "state.json")
        about = text(state, "workDir") or text(record(state, "custom"), "cwd") or indexed.get(folder.name, "")
        if discovery.same_directory(about, cwd):
            title = text(state, "customTitle") or text(state, "title") or text(state, "lastPrompt")
            sessions.append(discovery.FoundSession(folder, folder.name, title, discovery.last_change_at(path)))
    return discovery.newest_first(sessions)


class KimiCodeReader(builder.RecordReader):
    def __init__(self, blobs: Path) -> None:
        self.builder = builder.ConversationBuilder()
        self.created = 0.0
        self.cwd = ""
        self.undone = 0
        self._blobs = blobs
        self._model = self._step = ""
        self._deferred: list[builder.Draft] = []
        self._open_calls: set[str] = set()
        """Calls without a result; messages that arrive meanwhile are added after the results."""

    def add(self, line: Record) -> None:
        at = unix_time(line.get("time")) or unix_time(line.get("created_at"))
        self.created = self.created or at
        match line.get("type"):
            case "config.update":
                self.cwd = text(line, "cwd") or self.cwd
                self._model = text(line, "modelAlias") or text(line, "model") or self._model
            case "usage.record":
                self._model = text(line, "model") or self._model
            case "context.append_message":
                message = record(line, "message")
                origin = text(record(message, "origin"), "kind")
                match message.get("role"):
                    case "user" if origin in OWN:
                        return
                    case "user" | "system":
                        draft = builder.Draft("user", self._parts(content(message)), timestamp=at, is_prompt=origin in PEOPLE)
                        self._deferred += [draft] if draft.parts else []
                        if not self._open_calls:
                            self._flush_deferred()
                    case "assistant":
                        draft = self.builder.add(
                            builder.Draft("assistant", self._parts(content(message)), timestamp=at, producer=self._producer())
                        )
                        for each in json_files.records(message, "toolCalls"):
                            function = record(each, "function") or each
                            self._call(draft, text(each, "id"), text(function, "name"), function.get("arguments"), at)
                    case "tool":
                        self._end_call(text(message, "toolCallId"), content(message), message.get("isError") is True, at)
                    case _:
                        self.builder.skipped += 1
            case "context.append_loop_event":
                self._event(record(line, "event"), at)
            case "context.apply_compaction":
                self._compact(line, at)
            case "context.clear":
                self._flush_deferred()
                self.builder.leave_out()
            case "context.undo":
                self._flush_deferred()
                self.undone += self.builder.undo_prompts(number(line, "count"))
            case "turn.cancel":
                self.builder.interrupt()

    def _event(self, event: Record, at: float) -> None:
        self._step = text(event, "uuid") if event.get("type") == "step.begin" else self._step
        step = text(event, "stepUuid") or self._step
        match event.get("type"):
            case "step.begin":
                self.builder.answer(step, at=at, producer=self._producer())
            case "content.part":
                self.builder.answer(step, at=at, producer=self._producer()).parts += self._parts([record(event, "part")])
            case "tool.call":
                draft = self.builder.answer(step, at=at, producer=self._producer())
                self._call(draft, text(event, "toolCallId"), text(event, "name"), event.get("args"), at)
            case "tool.result":
                result = record(event, "result")
                self._end_call(text(event, "toolCallId"), content(result, "output"), result.get("isError") is True, at)
            case "step.end":
                draft = self.builder.answer(step, at=at, producer=self._producer())
                draft.usage = builder.token_usage(record(event, "usage"), *USAGE_FIELDS) or draft.usage
                draft.finish_reason = FINISHED.get(text(event, "finishReason"), "") or draft.finish_reason

    def _call(self, draft: builder.Draft, call_id: str, tool: str, arguments: object, at: float) -> None:
        self.builder.add_call(draft, builder.tool_part(tool, arguments, call_id, at=at))
        self._open_calls.add(call_id)

    def _end_call(self, call_id: str, blocks: list[Record], is_error: bool, at: float) -> None:
        output, media_parts = builder.text_and_media(self._parts(blocks))
        outcome = builder.outcome_of(output, REFUSALS, otherwise="error") if is_error else "ok"
        self.builder.add_result(call_id, builder.ImportedResult(output, outcome, media_parts, at))
        self._open_calls.discard(call_id)
        if not self._open_calls:
            self._flush_deferred()

    def _flush_deferred(self) -> None:
        self.builder.drafts += self._deferred
        self._deferred = []
        self._open_calls.clear()

    def _compact(self, line: Record, at: float) -> None:
        """Older versions keep everything after so many messages; newer ones a number of user messages."""
        self._flush_deferred()
        summary = text(line, "contextSummary") or text(line, "summary")
        summary = summary or " ".join(text(block, "text") for block in content(record(line, "summary")))
        if not summary.strip():
            self.builder.skipped += 1
            return
        view = self.builder.sent_drafts()
        if "keptUserMessageCount" in line:
            said = [draft for draft in view if draft.role == "user" and draft.is_prompt]
            kept = {draft.id for draft in said[len(said) - min(number(line, "keptUserMessageCount"), len(said)) :]}
            self.builder.summarise(summary, at=at, kept=kept)
        else:
            left = number(line, "compactedCount")
            first = None
            for draft in view:
                if left <= 0:
                    first = draft
                    break
                # As Kimi Code counts: each result is a message.
                left -= 1 + sum(isinstance(part, ToolPart) and part.outcome is not None for part in draft.parts)
            self.builder.summarise_before(first, summary, at=at)

    def _parts(self, blocks: Iterable[Record]) -> list[AnyPart]:
        return [part for block in blocks if (part := self._part(block)) is not None]

    def _part(self, block: Record) -> AnyPart | None:
        match block.get("type"):
            case "text":
                return builder.text_part(text(block, "text"))
            case "think":
                return builder.thinking_part(text(block, "think"), ENCRYPTED, text(block, "encrypted"))
            case "image_url" | "audio_url":
                holder = record(block, "imageUrl") or record(block, "audioUrl") or record(block, "image_url")
                address = text(holder, "url")
                if (reference := _REFERENCE.fullmatch(address)) is None:
                    return builder.medium(address) if address else builder.missing_note("an image")
                try:
                    return ImagePart.from_file(self._blobs / reference[2])
                except OSError:
                    return builder.missing_note(reference[1])
            case "video_url":
                return builder.missing_note("a video")
        return None

    def _producer(self) -> Producer:
        return builder.producer("kimi-code", self._model)
