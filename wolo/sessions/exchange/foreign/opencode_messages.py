"""Reads OpenCode's messages and parts, of old and new versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from wolo.formats.anthropic.decode import FIELD
from wolo.formats.anthropic.encode import REDACTED, SIGNATURE
from wolo.formats.gemini.encode import THOUGHT_SIGNATURE
from wolo.formats.openai_responses.encode import ENCRYPTED, SUMMARY
from wolo.messages.message import FinishReason, Producer, Usage, UsageCost
from wolo.messages.parts import AnyPart, Blob, MediaPart, Outcome, TextPart, ThinkingPart
from wolo.sessions.exchange.foreign import builder
from wolo.sessions.exchange.json_files import Record, amount, content, number, record, records, text, unix_time

FINISHED: Mapping[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "tool-calls": "tool_calls",
    "content-filter": "refused",
    "error": "error",
}
REFUSALS: Mapping[str, Outcome] = {
    "user rejected permission": "denied_by_person",
    "user dismissed": "denied_by_person",
    "user has specified a rule": "denied_by_rule",
    "tool execution aborted": "interrupted",
    "tool execution was interrupted": "interrupted",
}
NOT_CARRIED = ("text/plain", "application/x-directory")
"""Files of these types are already part of the text."""


class MessageRow(Struct):
    info: Record
    parts: list[Record]


def gather(rows: Iterable[MessageRow], reverted: str) -> tuple[builder.ConversationBuilder, int]:
    """Reads messages up to the one with id `reverted`; returns the builder and the number of undone messages."""
    reader, undone = OpenCodeReader(), 0
    for each in rows:
        if undone or (reverted and text(each.info, "id") == reverted):
            undone += 1
        else:
            reader.add(each)
    return reader.builder, undone


class OpenCodeReader(builder.RecordReader):
    def __init__(self) -> None:
        self.builder = builder.ConversationBuilder()
        self._by_id: dict[str, builder.Draft] = {}
        self._tail = ""

    def add(self, row: MessageRow) -> None:
        self.builder.begin_record(row.info)
        at = unix_time(record(row.info, "time").get("created"))
        if row.info.get("role") == "user":
            parts: list[AnyPart] = []
            is_prompt = False
            for part in row.parts:
                kind = part.get("type")
                if kind == "text" and text(part, "text").strip() and not part.get("ignored"):
                    parts.append(TextPart(text=text(part, "text")))
                    is_prompt = is_prompt or not part.get("synthetic")
                elif kind == "file" and text(part, "mime") not in NOT_CARRIED:
                    parts.append(_file(part))
                    is_prompt = True
                elif kind == "compaction":
                    self._tail = text(part, "tail_start_id")
                elif kind == "subtask":
                    parts.append(TextPart(text=f"Task for the agent {text(part, 'agent')}: {text(part, 'prompt')}"))
            if parts:
                self._by_id[text(row.info, "id")] = self.builder.add(
                    builder.Draft("user", parts, timestamp=at, is_prompt=is_prompt)
                )
        elif row.info.get("role") == "assistant":
            if row.info.get("summary") is True:
                words = "\n\n".join(text(part, "text") for part in row.parts if part.get("type") == "text").strip()
                if words:  # otherwise an aborted summary
                    self.builder.summarise_before(self._by_id.get(self._tail), words, at=at)
                    self._tail = ""
                return
            author = builder.producer(text(row.info, "providerID"), text(row.info, "modelID"))
            drafts = [builder.Draft("assistant", timestamp=at, producer=author)]
            for part in row.parts:
                if part.get("type") == "step-start" and drafts[-1].parts:
                    drafts.append(builder.Draft("assistant", timestamp=at, producer=author))
                elif part.get("type") == "step-finish":
                    drafts[-1].usage = _usage(part)
                    drafts[-1].finish_reason = FINISHED.get(text(part, "reason"), "")
                elif part.get("type") == "tool":
                    self._call(drafts[-1], part, at, author)
                elif (read := _part_of(part, author)) is not None:
                    drafts[-1].parts.append(read)
            if len(drafts) == 1:
                drafts[0].usage = _usage(row.info) or drafts[0].usage
            drafts[-1].finish_reason = FINISHED.get(text(row.info, "finish"), "") or drafts[-1].finish_reason
            if error := record(row.info, "error"):
                is_stopped = text(error, "name") == "MessageAbortedError"
                reason = text(record(error, "data"), "message") or text(error, "name") or "It failed."
                drafts[-1].finish_reason = "interrupted" if is_stopped else "error"
                drafts[-1].error = "" if is_stopped else reason
            for draft in drafts:
                self.builder.add(draft)
            self._by_id[text(row.info, "id")] = drafts[0]
        else:
            self.builder.skipped += 1

    def _call(self, draft: builder.Draft, part: Record, at: float, author: Producer) -> None:
        state, call_id = record(part, "state"), text(part, "callID") or text(part, "id")
        times = record(state, "time")
        call = builder.tool_part(text(part, "tool"), state.get("input"), call_id, at=unix_time(times.get("start")) or at)
        signature = text(record(record(part, "metadata"), "google"), "thoughtSignature")
        item_id = text(record(record(part, "metadata"), "openai"), "itemId")
        if signature and author.format == "gemini":
            call = replace(call, blobs=(Blob(THOUGHT_SIGNATURE, signature),))
        self.builder.add_call(draft, replace(call, item_id=item_id))
        ended_at = unix_time(times.get("end"))
        if state.get("status") == "completed":
            media = [_file(each) for each in records(state, "attachments") if text(each, "mime") not in NOT_CARRIED]
            attached = tuple(each for each in media if isinstance(each, MediaPart))
            self.builder.add_result(call_id, builder.ImportedResult(text(state, "output"), "ok", attached, ended_at))
        elif state.get("status") == "error":
            said = record(state, "metadata")
            is_stopped = said.get("interrupted") is True
            output = text(said, "output") if is_stopped and text(said, "output") else text(state, "error")
            outcome = "interrupted" if is_stopped else builder.outcome_of(output, REFUSALS, otherwise="error")
            self.builder.add_result(call_id, builder.ImportedResult(output, outcome, (), ended_at))
        else:
            self.builder.add_result(call_id, builder.ImportedResult(outcome="interrupted", at=ended_at))


def _part_of(part: Record, author: Producer) -> AnyPart | None:
    match part.get("type"):
        case "text" if text(part, "text").strip():
            item_id = text(record(record(part, "metadata"), "openai"), "itemId")
            return TextPart(text=text(part, "text"), item_id=item_id)
        case "reasoning":
            # Signatures are stored under the provider's name
            thought, of = text(part, "text"), record(part, "metadata")
            anthropic, openai, google = record(of, "anthropic"), record(of, "openai"), record(of, "google")
            named = {
                SIGNATURE: text(anthropic, "signature") if author.format == "anthropic" else "",
                REDACTED: text(anthropic, "redactedData") if author.format == "anthropic" else "",
                ENCRYPTED: text(openai, "reasoningEncryptedContent") if author.format == "openai-responses" else "",
                THOUGHT_SIGNATURE: text(google, "thoughtSignature") if author.format == "gemini" else "",
            }
            blobs = tuple(Blob(kind, data) for kind, data in named.items() if data)
            if not thought.strip() and not blobs:
                return None
            field = {"anthropic": FIELD, "openai-responses": SUMMARY}.get(author.format, "reasoning_content")
            return ThinkingPart(text=thought, field=field, item_id=text(openai, "itemId"), blobs=blobs)
        case "file":
            return _file(part)
    return None


def _file(part: Record) -> MediaPart | TextPart:
    return builder.medium(text(part, "url"), text(part, "mime"), text(part, "filename"))


def _usage(of: Record) -> Usage | None:
    """Newer versions count reasoning separately from the output, which only the total shows."""
    tokens = record(of, "tokens")
    counts = [number(tokens, "input"), number(tokens, "output"), number(tokens, "reasoning")]
    cached = [number(record(tokens, "cache"), "read"), number(record(tokens, "cache"), "write")]
    if not any((*counts, *cached)):
        return None
    is_beside = number(tokens, "total") == sum((*counts, *cached)) or counts[2] > counts[1]
    cost = amount(of, "cost")
    return Usage(
        input_tokens=counts[0],
        output_tokens=counts[1] + (counts[2] if is_beside else 0),
        cache_read_tokens=cached[0],
        cache_write_tokens=cached[1],
        reasoning_tokens=counts[2],
        cost=UsageCost(total=cost) if cost else None,
    )


def convert_row(kind: str, data: Record) -> MessageRow | None:
    """Converts a row of a newer version; None for one that is no message."""
    match kind:
        case "user":
            said = [{"type": "text", "text": text(data, "text")}]
            files = [
                {**each, "type": "file", "url": _address(each), "filename": text(each, "name")} for each in records(data, "files")
            ]
            return MessageRow({**data, "role": "user"}, [*said, *files])
        case "synthetic" | "system" | "skill":
            return MessageRow({**data, "role": "user"}, [{"type": "text", "text": text(data, "text"), "synthetic": True}])
        case "shell":
            result = record(data, "output")
            printed = text(result, "output") or text(result, "text") or text(data, "output")
            ran = builder.user_command(text(data, "command"), printed)
            return MessageRow({**data, "role": "user"}, [{"type": "text", "text": ran, "synthetic": True}])
        case "assistant":
            return _answer(data)
        case "compaction" if data.get("status", "completed") == "completed":
            words = "\n\n".join(filter(None, (text(data, "summary"), text(data, "recent"))))
            return MessageRow({**data, "role": "assistant", "summary": True}, [{"type": "text", "text": words}])
    return None


def _answer(data: Record) -> MessageRow:
    model, failed = record(data, "model"), record(data, "error")
    kind = text(failed, "type") or text(failed, "name")
    name = "MessageAbortedError" if "abort" in kind.lower() or "interrupt" in kind.lower() else kind
    error = {"name": name, "data": {"message": text(failed, "message")}} if failed else {}
    info = {**data, "role": "assistant", "providerID": text(model, "providerID"), "modelID": text(model, "id"), "error": error}
    return MessageRow(info, [_part(each) for each in content(data)])


def _part(each: Record) -> Record:
    of = record(each, "native") or record(each, "providerState") or record(each, "state")
    if each.get("type") != "tool":
        return {**each, "metadata": of}
    state, times = record(each, "state"), record(each, "time")
    blocks = content(state)
    ended = {
        **state,
        "output": "\n".join(text(block, "text") for block in blocks if block.get("type") == "text"),
        "error": text(record(state, "error"), "message"),
        "attachments": [{**block, "url": _address(block)} for block in blocks if block.get("type") == "file"],
        "time": {"start": times.get("ran") or times.get("created"), "end": times.get("completed")},
    }
    metadata = record(each, "native") or record(each, "providerState")
    return {"type": "tool", "tool": text(each, "name"), "callID": text(each, "id"), "state": ended, "metadata": metadata}


def _address(file: Record) -> str:
    return text(file, "uri") or text(file, "url") or text(record(file, "source"), "uri") or text(file, "data")
