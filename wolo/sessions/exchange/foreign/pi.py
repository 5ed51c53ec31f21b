"""Reads and writes sessions of pi: a header, then JSON lines in a tree; the path to the last line is the conversation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from wolo.formats.anthropic.decode import FIELD
from wolo.formats.anthropic.encode import REDACTED, SIGNATURE
from wolo.formats.encoding.attachments import base64_text
from wolo.formats.encoding.wire_forms import IdPolicy
from wolo.formats.gemini.encode import THOUGHT_SIGNATURE
from wolo.messages.message import FinishReason, Producer, Usage, UsageCost
from wolo.messages.parts import AnyPart, Blob, ImagePart, MediaPart, Outcome, TextPart, ThinkingPart, ToolPart, blob_of
from wolo.messages.roles import AssistantMessage, ToolMessage
from wolo.sessions.exchange import json_files
from wolo.sessions.exchange.foreign import builder, discovery, record_writer, responses_items
from wolo.sessions.exchange.json_files import FilePreview, Imported, JsonLines, Record, amount, content, record, text, unix_time

FORMATS: Mapping[str, str] = {
    "openai-completions": "openai-chat",
    "openai-responses": "openai-responses",
    "anthropic-messages": "anthropic",
    "google-generative-ai": "gemini",
}
"""Wire format of pi → of wolo; others are unknown."""
FINISHED: Mapping[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "toolUse": "tool_calls",
    "error": "error",
    "aborted": "interrupted",
}
REFUSALS: Mapping[str, Outcome] = {
    "blocked by user": "denied_by_person",
    "denied by user": "denied_by_person",
    "operation aborted": "interrupted",
    "command aborted": "interrupted",
}


class PiNode(NamedTuple):
    place: int
    parent: str
    is_message: bool


def matches(preview: FilePreview) -> bool:
    return any(each.get("type") == "session" and {"id", "cwd"} & each.keys() for each in preview.records[:1])


def read(source: Path) -> Imported:
    """Raises SessionError without a conversation."""
    lines = JsonLines(source)
    header: Record = {}
    nodes: dict[str, PiNode] = {}
    before = title = ""
    for place, each in lines.with_offsets():
        if each.get("type") == "session":
            header = header or each
            continue
        title = text(each, "name") or title if each.get("type") == "session_info" else title
        # The oldest files have no ids; a line after a damaged one follows the line before that.
        id, parent = text(each, "id") or f"at {place}", text(each, "parentId")
        is_lost = parent not in nodes if parent else "id" not in each
        nodes.setdefault(id, PiNode(place, before if is_lost else parent, each.get("type") in ("message", "custom_message")))
        before = id
    way: dict[str, None] = {}
    """The path from the last message to the first."""
    at = next(reversed(nodes), "")
    while at in nodes and at not in way:
        way[at] = None
        at = nodes[at].parent
    left = sum(node.is_message for id, node in nodes.items() if id not in way)
    return (
        PiReader()
        .read(lines.at_offsets([nodes[id].place for id in reversed(way)]))
        .to_imported(
            source,
            "pi",
            "~/.pi/agent/sessions",
            title=title,
            cwd=text(header, "cwd"),
            created_at=unix_time(header.get("timestamp")),
            skipped=lines.skipped,
            notices=builder.count_notice(
                left, "One message of another branch was left out.", "{} messages of other branches were left out."
            ),
        )
    )


def find_sessions(cwd: Path, environ: Mapping[str, str]) -> list[discovery.FoundSession]:
    home = discovery.home_of(".pi/agent", environ, "PI_CODING_AGENT_DIR")
    folder = f"--{str(cwd).lstrip('/').replace('/', '-').replace(':', '-')}--"
    sessions = []
    for path in discovery.children(home / "sessions", f"{folder}/*.jsonl"):
        begin = discovery.head(path)
        header = next((each for each in begin if each.get("type") == "session"), {})
        if discovery.same_directory(text(header, "cwd"), cwd):
            names = [text(each, "name") for each in [*begin, *discovery.tail(path)] if each.get("type") == "session_info"]
            title = next(filter(None, reversed(names)), "") or next(_prompts(begin), "")
            sessions.append(discovery.FoundSession(path, text(header, "id") or path.stem, title, discovery.last_change_at(path)))
    return discovery.newest_first(sessions)


def _prompts(begin: list[Record]) -> Iterator[str]:
    for each in begin:
        message = record(each, "message")
        if message.get("role") == "user" and (words := " ".join(text(block, "text") for block in content(message))).strip():
            yield words.strip()


class PiReader(builder.RecordReader):
    def __init__(self) -> None:
        self.builder = builder.ConversationBuilder()
        self._by_id: dict[str, builder.Draft] = {}
        self._in_order: list[builder.Draft] = []

    def add(self, line: Record) -> None:
        self.builder.begin_record(line)
        at = unix_time(line.get("timestamp"))
        count = len(self.builder.drafts)
        match line.get("type"):
            case "message":
                message = record(line, "message")
                at = unix_time(message.get("timestamp")) or at
                match message.get("role"):
                    case "user":
                        self.builder.add_spoken("user", _message_parts(message), at)
                    case "assistant":
                        self._answer(message, at)
                    case "toolResult":
                        output, media = builder.text_and_media(_message_parts(message))
                        outcome = builder.outcome_of(output, REFUSALS, otherwise="error") if message.get("isError") else "ok"
                        call_id = text(message, "toolCallId").partition("|")[0]
                        self.builder.add_result(call_id, builder.ImportedResult(output, outcome, media, at))
                    case "bashExecution":
                        # A command run by the user; a private one is not sent to the model.
                        code = message.get("exitCode")
                        ending = "\nIt was stopped." if message.get("cancelled") else f"\nExit status {code}." if code else ""
                        words = builder.user_command(text(message, "command"), text(message, "output").strip(), ending)
                        spoken: list[AnyPart] = [TextPart(text=words)]
                        if message.get("excludeFromContext"):
                            self.builder.add_spoken("custom", spoken, at, is_prompt=False, custom_type="pi.command")
                        else:
                            self.builder.add_spoken("user", spoken, at, is_prompt=False)
                    case "custom" | "hookMessage":
                        self.builder.add_spoken("user", _message_parts(message), at, is_prompt=False)
                    case "branchSummary" | "compactionSummary":
                        self.builder.add_spoken("branch_summary", [TextPart(text=text(message, "summary"))], at)
                    case _:
                        self.builder.skipped += 1
            case "custom_message":
                self.builder.add_spoken("user", _message_parts(line), at, is_prompt=False)
            case "branch_summary" if text(line, "summary"):
                self.builder.add_spoken("branch_summary", [TextPart(text=text(line, "summary"))], at)
            case "compaction":
                self.builder.summarise_before(self._by_id.get(text(line, "firstKeptEntryId")), text(line, "summary"), at=at)
        if len(self.builder.drafts) > count and line.get("type") != "compaction":
            self._in_order.append(self.builder.drafts[-1])
        if self._in_order:
            self._by_id[text(line, "id")] = self._in_order[-1]

    def _answer(self, message: Record, at: float) -> None:
        wrote = builder.producer(text(message, "provider"), text(message, "model"))
        format = FORMATS.get(text(message, "api"), "") if wrote.format else ""
        draft = self.builder.add(builder.Draft("assistant", timestamp=at, usage=_usage(message)))
        draft.producer = Producer(provider=wrote.provider, format=format, model=wrote.model)
        draft.finish_reason = FINISHED.get(text(message, "stopReason"), "")
        draft.error = text(message, "errorMessage") if draft.finish_reason in ("error", "interrupted") else ""
        for block in content(message):
            if block.get("type") == "toolCall":
                call_id, _, item_id = text(block, "id").partition("|")
                call = builder.tool_part(text(block, "name"), block.get("arguments"), call_id, item_id=item_id, at=at)
                if signature := text(block, "thoughtSignature"):
                    call = replace(call, blobs=(Blob(THOUGHT_SIGNATURE, signature),))
                self.builder.add_call(draft, call)
                if draft.finish_reason in ("error", "interrupted"):
                    self.builder.add_result(call.call_id, builder.ImportedResult(outcome="never_started", at=at))
            elif (part := _part(block, format)) is not None:
                draft.parts.append(part)


def _message_parts(message: Record) -> list[AnyPart]:
    return [part for block in content(message) if (part := _part(block, "")) is not None]


def _part(block: Record, format: str) -> AnyPart | None:
    match block.get("type"):
        case "text":
            words = text(block, "text")
            item_id = text(block, "textSignature") if format == "openai-responses" else ""
            return TextPart(text=words, item_id=item_id if item_id.startswith("msg") else "") if words.strip() else None
        case "thinking":
            # The meaning of the signature depends on the wire format
            thought, signature = text(block, "thinking"), text(block, "thinkingSignature")
            if not thought and not signature:
                return None
            match format:
                case "anthropic" if block.get("redacted"):
                    return builder.thinking_part("", REDACTED, signature, field=FIELD)
                case "anthropic":
                    return builder.thinking_part(thought, SIGNATURE, signature, field=FIELD)
                case "gemini":
                    return builder.thinking_part(thought, THOUGHT_SIGNATURE, signature)
                case "openai-responses":  # the whole item, as JSON
                    return responses_items.reasoning(json_files.parse_object(signature.encode("utf-8", "replace")) or {}, thought)
                case "openai-chat" if signature:
                    return ThinkingPart(text=thought, field=signature)
            return ThinkingPart(text=thought)
        case "image":
            return builder.medium(text(block, "data"), text(block, "mimeType"))
    return None


def _usage(message: Record) -> Usage | None:
    counts = record(message, "usage")
    usage, cost = builder.token_usage(counts, "input", "output", "cacheRead", "cacheWrite"), record(counts, "cost")
    if usage is None or not amount(cost, "total"):
        return usage
    names = {"input": "input", "output": "output", "cache_read": "cacheRead", "cache_write": "cacheWrite", "total": "total"}
    return replace(usage, cost=UsageCost(**{ours: amount(cost, theirs) for ours, theirs in names.items()}))


APIS = {format: api for api, format in FORMATS.items()}
STOPS = {"stop": "stop", "length": "length", "tool_calls": "toolUse"}


class _PiWriter:
    id_policy: IdPolicy = "openai"

    def __init__(self) -> None:
        self._tools: dict[str, str] = {}
        """Tool names by call id."""

    def user(self, parts: Sequence[TextPart | MediaPart], at: float) -> list[Record]:
        return [_entry({"role": "user", "content": [_block(part) for part in parts]}, at)]

    def results(self, message: ToolMessage) -> list[Record]:
        lines: list[Record] = []
        for result in message.contents:
            content = [record_writer.text_block(result.content), *map(_block, result.media)]
            about = {"role": "toolResult", "toolCallId": result.id, "toolName": self._tools.get(result.id, "")}
            lines.append(_entry({**about, "content": content, "isError": result.is_error}, message.timestamp))
        return lines

    def answer(self, message: AssistantMessage) -> list[Record]:
        content = [block for part in message.contents for block in self._answer_blocks(part)]
        if not content:
            return []
        producer = message.producer
        has_calls = any(block["type"] == "toolCall" for block in content)
        usage = message.usage or Usage()
        cost = usage.cost or UsageCost()
        counts = {
            "input": usage.input_tokens,
            "output": usage.output_tokens,
            "cacheRead": usage.cache_read_tokens,
            "cacheWrite": usage.cache_write_tokens,
        }
        prices = {"input": cost.input, "output": cost.output, "cacheRead": cost.cache_read, "cacheWrite": cost.cache_write}
        body = {
            "role": "assistant",
            "content": content,
            "api": APIS.get(producer.format, "openai-completions") if producer else "openai-completions",
            "provider": record_writer.provider_name(producer.provider) if producer else "",
            "model": producer.model if producer else "",
            "usage": {**counts, "totalTokens": usage.context_tokens, "cost": {**prices, "total": cost.total}},
            "stopReason": "toolUse" if has_calls else STOPS.get(message.stop_reason, "stop"),
        }
        return [_entry(body, message.timestamp)]

    def frame(self, records: Iterable[Record], header: record_writer.SessionHeader) -> Iterator[Record]:
        yield {
            "type": "session",
            "version": 3,
            "id": record_writer.stable_uuid(header.id),
            "timestamp": record_writer.iso(header.created),
            "cwd": header.cwd,
        }
        parent: str | None = None
        for number, each in enumerate(records, 1):
            id = f"{number:08x}"
            yield {**each, "id": id, "parentId": parent}
            parent = id
        if header.title:
            at = record_writer.iso(header.updated)
            yield {"type": "session_info", "id": "ffffffff", "parentId": parent, "timestamp": at, "name": header.title}

    def _answer_blocks(self, part: AnyPart) -> Iterator[Record]:
        if isinstance(part, ToolPart):
            self._tools[part.call_id] = part.tool
            yield {"type": "toolCall", "id": part.call_id, "name": part.tool, "arguments": part.input}
        elif isinstance(part, ThinkingPart):
            signature = blob_of(part.blobs, SIGNATURE) or blob_of(part.blobs, THOUGHT_SIGNATURE)
            signed = {"thinkingSignature": signature} if signature else {}
            if part.text.strip() and not blob_of(part.blobs, REDACTED):
                yield {"type": "thinking", "thinking": part.text, **signed}
        elif not record_writer.is_blank(part):
            yield _block(part)


def _entry(message: Record, at: float) -> Record:
    return {
        "type": "message",
        "timestamp": record_writer.iso(at),
        "message": {**message, "timestamp": record_writer.milliseconds(at)},
    }


def _block(part: TextPart | MediaPart) -> Record:
    if isinstance(part, TextPart):
        return record_writer.text_block(part.text)
    if isinstance(part, ImagePart) and part.data:
        return {"type": "image", "data": base64_text(part.data), "mimeType": part.media_type or "image/png"}
    return record_writer.text_block(f"[{part.type} {part.media_type}]")


write = record_writer.line_export(_PiWriter, PiReader)
