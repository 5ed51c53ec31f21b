"""Imports sessions of pi: a header, then JSON lines that form a tree; the conversation is the path to the last line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from wolo.formats.anthropic import decode, encode
from wolo.formats.gemini.encode import THOUGHT_SIGNATURE
from wolo.messages.message import FinishReason, Producer, Usage, UsageCost
from wolo.messages.parts import AnyPart, Blob, Outcome, TextPart, ThinkingPart
from wolo.sessions.exchange import json_files
from wolo.sessions.exchange.importers import builder, discovery, responses_items
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
    reader = PiReader()
    for each in lines.at_offsets([nodes[id].place for id in reversed(way)]):
        reader.add(each)
    left = sum(node.is_message for id, node in nodes.items() if id not in way)
    return reader.builder.to_imported(
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


class PiReader:
    def __init__(self) -> None:
        self.builder = builder.ConversationBuilder()
        self._by_id: dict[str, builder.Draft] = {}
        self._in_order: list[builder.Draft] = []

    def finish(self) -> builder.ConversationBuilder:
        return self.builder

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
                        self.builder.add_spoken(builder.Draft("user", _message_parts(message), timestamp=at))
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
                        is_private = bool(message.get("excludeFromContext"))
                        draft = builder.Draft(
                            "custom" if is_private else "user", [TextPart(text=words)], timestamp=at, is_prompt=False
                        )
                        draft.custom_type = "pi.command" if is_private else ""
                        self.builder.add_spoken(draft)
                    case "custom" | "hookMessage":
                        self._extension_message(message, at)
                    case "branchSummary" | "compactionSummary":
                        self.builder.add_spoken(
                            builder.Draft("branch_summary", [TextPart(text=text(message, "summary"))], timestamp=at)
                        )
                    case _:
                        self.builder.skipped += 1
            case "custom_message":
                self._extension_message(line, at)
            case "branch_summary" if text(line, "summary"):
                self.builder.add(builder.Draft("branch_summary", [TextPart(text=text(line, "summary"))], timestamp=at))
            case "compaction":
                self.builder.summarise_before(self._by_id.get(text(line, "firstKeptEntryId")), text(line, "summary"), at=at)
        if len(self.builder.drafts) > count and line.get("type") != "compaction":
            self._in_order.append(self.builder.drafts[-1])
        if self._in_order:
            self._by_id[text(line, "id")] = self._in_order[-1]

    def _extension_message(self, message: Record, at: float) -> None:
        self.builder.add_spoken(builder.Draft("user", _message_parts(message), timestamp=at, is_prompt=False))

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
                    return builder.thinking_part("", encode.REDACTED, signature, field=decode.FIELD)
                case "anthropic":
                    return builder.thinking_part(thought, encode.SIGNATURE, signature, field=decode.FIELD)
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
