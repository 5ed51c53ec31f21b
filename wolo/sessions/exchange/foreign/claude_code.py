"""Reads and writes sessions of Claude Code: JSON lines, each linked to its parent.

An answer is spread over several lines, results are user lines, and a rewind starts a branch. So the file is read twice: for the
links, then for the lines on the path to the last message.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from wolo.formats.anthropic.decode import FIELD
from wolo.formats.anthropic.encode import REDACTED, SIGNATURE
from wolo.formats.encoding.attachments import base64_text
from wolo.formats.encoding.wire_forms import IdPolicy
from wolo.messages.message import FinishReason, Usage
from wolo.messages.parts import AnyPart, ImagePart, MediaPart, Outcome, TextPart, ThinkingPart, ToolPart, blob_of
from wolo.messages.roles import AssistantMessage, ToolMessage
from wolo.sessions.exchange.foreign import builder, discovery, record_writer
from wolo.sessions.exchange.json_files import FilePreview, Imported, JsonLines, Record, content, record, text, unix_time

TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
"""Line type → field of the title, by preference; the last line of a type counts."""
STOPPED = "[Request interrupted by user"
SYNTHETIC = "<synthetic>"
FOUND = "The provider ran this itself; its result is encrypted."
USAGE_FIELDS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")

FINISHED: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "refusal": "refused",
    "pause_turn": "paused",
    "model_context_window_exceeded": "overflow",
}
REFUSALS: Mapping[str, Outcome] = {
    "doesn't want to proceed with this tool use": "denied_by_person",
    "doesn't want to take this action": "denied_by_person",
    "haven't granted it yet": "denied_by_rule",
    "has been denied": "denied_by_rule",
    "request interrupted by user": "interrupted",
    "cancelled: parallel tool call": "never_started",
}
"""Phrases in results of calls that did not run to the end."""
_COMMAND = re.compile(r"\s*(?:<(?:local-command-[a-z]+|command-name|command-message)>|Caveat: The messages below)")
"""Output of Claude Code's own commands, in user messages."""
_FORBIDDEN = re.compile(r"[^a-zA-Z0-9]")
FOLDER_CHARACTERS = 200


class ClaudeNode(Struct, frozen=True):
    place: int
    parent: str
    is_message: bool
    is_sidechain: bool
    answer: str
    """Message id of the answer it is a piece of."""
    calls: tuple[str, ...]
    results: tuple[str, ...]


class TreeIndex(Struct):
    nodes: dict[str, ClaudeNode] = field(default_factory=dict)
    titles: list[Record] = field(default_factory=list)
    cwd: str = ""
    skipped: int = 0


def matches(preview: FilePreview) -> bool:
    return any({"sessionId", "type"} <= each.keys() or {"uuid", "parentUuid"} <= each.keys() for each in preview.records)


def read(source: Path) -> Imported:
    """Raises SessionError without a conversation."""
    lines = JsonLines(source)
    index = _index(lines)
    asides = {uuid for uuid, node in index.nodes.items() if node.is_sidechain}
    is_subagent = bool(asides) and all(node.is_sidechain for node in index.nodes.values() if node.is_message)
    if not is_subagent:
        index.nodes = {uuid: node for uuid, node in index.nodes.items() if uuid not in asides}
    chosen = _chosen_lines(index.nodes)
    left = sum(node.is_message for uuid, node in index.nodes.items() if uuid not in chosen)
    said_aside = 0 if is_subagent else len(asides)
    return (
        ClaudeReader()
        .read(lines.at_offsets(sorted(index.nodes[uuid].place for uuid in chosen)))
        .to_imported(
            source,
            "Claude Code",
            "~/.claude/projects",
            title=_title(index.titles, index.nodes),
            cwd=index.cwd,
            created_at=0.0,
            skipped=index.skipped,
            notices=[
                *builder.count_notice(said_aside, "One line of a subagent was left out.", "{} lines of subagents were left out."),
                *builder.count_notice(
                    left, "One line of an abandoned branch was left out.", "{} lines of abandoned branches were left out."
                ),
            ],
        )
    )


def find_sessions(cwd: Path, environ: Mapping[str, str]) -> list[discovery.FoundSession]:
    folder = _FORBIDDEN.sub("-", str(cwd))
    pattern = f"{folder[:FOLDER_CHARACTERS]}*" if len(folder) > FOLDER_CHARACTERS else folder
    home = discovery.home_of(".claude", environ, "CLAUDE_CONFIG_DIR")
    sessions = []
    for path in discovery.children(home / "projects", f"{pattern}/*.jsonl"):
        records = discovery.head(path)
        about = next((where for each in records if (where := text(each, "cwd"))), "")
        if not path.stem.startswith("agent-") and discovery.same_directory(about, cwd):
            looked_at = [*records, *discovery.tail(path)]
            title = _title(looked_at, {text(each, "uuid") for each in looked_at}) or next(_prompts(records), "")
            sessions.append(discovery.FoundSession(path, path.stem, title, discovery.last_change_at(path)))
    return discovery.newest_first(sessions)


def _title(records: Sequence[Record], uuids: Container[str]) -> str:
    """Older versions copied summaries of other sessions into a new file; those are ignored."""
    for kind, name in TITLES.items():
        for each in reversed(records):
            is_own = "leafUuid" not in each or text(each, "leafUuid") in uuids
            if each.get("type") == kind and text(each, name) and is_own:
                return text(each, name)
    return ""


def _prompts(records: list[Record]) -> Iterator[str]:
    for each in records:
        if each.get("type") == "user" and not each.get("isMeta") and not each.get("isSidechain"):
            said = " ".join(text(block, "text") for block in content(record(each, "message")))
            if said.strip() and not _COMMAND.match(said) and not each.get("isCompactSummary"):
                yield said.strip()


def _index(lines: JsonLines) -> TreeIndex:
    index = TreeIndex()
    before = before_aside = ""
    for place, each in lines.with_offsets():
        kind, uuid = text(each, "type"), text(each, "uuid")
        index.titles += [each] if kind in TITLES else []
        index.cwd = index.cwd or text(each, "cwd")
        if not uuid:
            # Irrelevant, unless it has content but no place in the tree.
            index.skipped += kind in ("user", "assistant")
            continue
        is_sidechain = bool(each.get("isSidechain"))
        parent = text(each, "parentUuid") or text(each, "logicalParentUuid")
        is_lost = parent not in index.nodes if parent else kind != "user" or each.get("isCompactSummary")
        if is_lost:
            # The parent is damaged, in another file, or was summarised: the preceding line is the best guess.
            parent = before_aside if is_sidechain else before
        if uuid not in index.nodes:
            message, is_message = record(each, "message"), kind in ("user", "assistant")
            blocks = content(message) if is_message else []
            index.nodes[uuid] = ClaudeNode(
                place=place,
                parent=parent,
                is_message=is_message,
                is_sidechain=is_sidechain,
                answer=text(message, "id") if kind == "assistant" else "",
                calls=tuple(text(block, "id") for block in blocks if block.get("type") == "tool_use"),
                results=tuple(text(block, "tool_use_id") for block in blocks if block.get("type") == "tool_result"),
            )
        if is_sidechain:
            before_aside = uuid
        else:
            before = uuid
    index.skipped += lines.skipped
    return index


def _chosen_lines(nodes: dict[str, ClaudeNode]) -> set[str]:
    """The path to the last message, with all pieces of its answers and the results of their calls.

    Parallel calls hang on different lines of an answer, so the path alone misses some.
    """
    at = next((uuid for uuid in reversed(nodes) if nodes[uuid].is_message), "")
    way: set[str] = set()
    while at in nodes and at not in way:
        way.add(at)
        at = nodes[at].parent
    answers = {nodes[uuid].answer for uuid in way} - {""}
    chosen = way | {uuid for uuid, node in nodes.items() if node.answer in answers}
    calls = {call for uuid in chosen for call in nodes[uuid].calls}
    return chosen | {uuid for uuid, node in nodes.items() if calls.intersection(node.results)}


class ClaudeReader(builder.RecordReader):
    """Reads the chosen lines in file order."""

    def __init__(self) -> None:
        self.builder = builder.ConversationBuilder()
        self._by_uuid: dict[str, builder.Draft] = {}
        self._first_kept = ""

    def add(self, line: Record) -> None:
        self.builder.begin_record(line)
        match line.get("type"):
            case "assistant":
                self._answer(line)
            case "user":
                message, at = record(line, "message"), unix_time(line.get("timestamp"))
                if "content" not in message:
                    self.builder.skipped += 1
                    return
                parts: list[AnyPart] = []
                for block in content(message):
                    if block.get("type") == "tool_result":
                        self._result(line, block, at)
                    elif not builder.is_reminder(text(block, "text")) and (part := _part(block)) is not None:
                        parts.append(part)
                words = builder.words_of(parts)
                if not parts:
                    return
                if line.get("isCompactSummary"):
                    # With a preserved segment, the summary is inserted before the messages that remain.
                    self.builder.summarise_before(self._by_uuid.get(self._first_kept), words, at=at)
                    self._first_kept = ""
                elif words.startswith(STOPPED):
                    self.builder.interrupt()
                else:
                    role: Any = "custom" if _COMMAND.match(words) else "user"
                    kind = "claude-code.command" if role == "custom" else ""
                    draft = builder.Draft(role, parts, timestamp=at, is_prompt=not line.get("isMeta"), custom_type=kind)
                    self._by_uuid[text(line, "uuid")] = self.builder.add(draft)
            case "attachment":
                # A message that the user queued while the model was working.
                attached = record(line, "attachment")
                if attached.get("type") == "queued_command" and attached.get("commandMode", "prompt") == "prompt":
                    parts = [part for block in content(attached, "prompt") if (part := _part(block)) is not None]
                    self.builder.add_spoken("user", parts, unix_time(line.get("timestamp")))
            case "system" if line.get("subtype") == "compact_boundary":
                self._first_kept = text(record(record(line, "compactMetadata"), "preservedSegment"), "headUuid")

    def _answer(self, line: Record) -> None:
        message, at = record(line, "message"), unix_time(line.get("timestamp"))
        model = text(message, "model")
        blocks = content(message)
        if model == SYNTHETIC or line.get("isApiErrorMessage"):
            if line.get("isApiErrorMessage"):
                said = " ".join(text(block, "text") for block in blocks)
                self.builder.add(builder.Draft("assistant", timestamp=at, error=said or "The provider failed."))
            return
        if "content" not in message:
            self.builder.skipped += 1
            return
        # Claude Code can use other models and hosts; only Anthropic's model names count as Anthropic.
        provider = "anthropic" if re.fullmatch(r"claude-[a-z0-9.-]+", model) else "claude-code"
        key = text(message, "id") or text(line, "uuid")
        draft = self.builder.answer(key, at=at, producer=builder.producer(provider, model))
        self._by_uuid[text(line, "uuid")] = draft
        draft.usage = builder.token_usage(record(message, "usage"), *USAGE_FIELDS) or draft.usage
        draft.finish_reason = FINISHED.get(text(message, "stop_reason"), "") or draft.finish_reason
        for block in blocks:
            if block.get("type") in ("tool_use", "server_tool_use"):
                self.builder.add_call(draft, builder.tool_part(text(block, "name"), block.get("input"), text(block, "id"), at=at))
            elif text(block, "type").endswith("_tool_result"):
                # Of the provider's own tools: titles and URLs of pages; the rest is encrypted.
                failed = text(record(block, "content"), "error_code")
                pages = [f"{text(each, 'title')} {text(each, 'url')}".strip() for each in content(block)]
                output = failed or "\n".join(filter(None, pages)) or FOUND
                result = builder.ImportedResult(output, "error" if failed else "ok", at=at)
                self.builder.add_result(text(block, "tool_use_id"), result)
            elif (part := _part(block)) is not None:
                draft.parts.append(part)

    def _result(self, line: Record, block: Record, at: float) -> None:
        parts = [part for each in content(block) if (part := _part(each)) is not None]
        output, media = builder.text_and_media(parts)
        came = record(line, "toolUseResult")
        outcome: Outcome = "ok"
        if block.get("is_error"):
            outcome = builder.outcome_of(output, REFUSALS, otherwise="error")
        elif came.get("interrupted") is True:
            outcome = "interrupted"
        self.builder.add_result(text(block, "tool_use_id"), builder.ImportedResult(output, outcome, media, at))


def _part(block: Record) -> AnyPart | None:
    match block.get("type"):
        case "text":
            return builder.text_part(text(block, "text"))
        case "thinking":
            return builder.thinking_part(text(block, "thinking"), SIGNATURE, text(block, "signature"), field=FIELD)
        case "redacted_thinking":
            return builder.thinking_part("", REDACTED, text(block, "data"), field=FIELD)
        case "image" | "document" as kind:
            source = record(block, "source")
            if source.get("type") == "text":
                return TextPart(text=text(source, "data"))
            given = text(source, "data") or text(source, "url")
            return (
                builder.medium(given, text(source, "media_type"), text(block, "title"))
                if given
                else builder.missing_note(f"an {kind}")
            )
    return None


VERSION = "2.1.40"
"""The Claude Code version whose files these resemble."""
STOPS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "refused": "refusal", "paused": "pause_turn"}


class _ClaudeWriter:
    id_policy: IdPolicy = "anthropic"

    def user(self, parts: Sequence[TextPart | MediaPart], at: float) -> list[Record]:
        return [_line("user", {"role": "user", "content": [_block(part) for part in parts]}, at)]

    def results(self, message: ToolMessage) -> list[Record]:
        blocks: list[Record] = []
        for result in message.contents:
            content = [record_writer.text_block(result.content), *map(_block, result.media)]
            block = {"type": "tool_result", "tool_use_id": result.id, "content": content if result.media else result.content}
            blocks.append(block | ({"is_error": True} if result.is_error else {}))
        return [_line("user", {"role": "user", "content": blocks}, message.timestamp)] if blocks else []

    def answer(self, message: AssistantMessage) -> list[Record]:
        blocks = [block for part in message.contents for block in _answer_blocks(part)]
        if not blocks:
            return []
        usage = message.usage or Usage()
        body = {
            "id": f"msg_{record_writer.stable_uuid(message.id).replace('-', '')[:24]}",
            "type": "message",
            "role": "assistant",
            "model": message.producer.model if message.producer else "",
            "content": blocks,
            "stop_reason": STOPS.get(message.stop_reason, "end_turn"),
            "stop_sequence": None,
            "usage": {
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
                "cache_read_input_tokens": usage.cache_read_tokens,
                "cache_creation_input_tokens": usage.cache_write_tokens,
            },
        }
        return [_line("assistant", body, message.timestamp)]

    def frame(self, records: Iterable[Record], header: record_writer.SessionHeader) -> Iterator[Record]:
        session = record_writer.stable_uuid(header.id)
        parent: str | None = None
        for number, each in enumerate(records):
            uuid = record_writer.stable_uuid(header.id, str(number))
            yield {
                "parentUuid": parent,
                "isSidechain": False,
                "userType": "external",
                "cwd": header.cwd,
                "sessionId": session,
                "version": VERSION,
                "gitBranch": "",
                "uuid": uuid,
                **each,
            }
            parent = uuid
        if header.title:
            yield {"type": "custom-title", "customTitle": header.title, "sessionId": session}


def _line(type: str, message: Record, at: float) -> Record:
    return {"type": type, "message": message, "timestamp": record_writer.iso(at)}


def _answer_blocks(part: AnyPart) -> Iterator[Record]:
    """Thinking without a signature is left out: it could not be sent again."""
    if isinstance(part, ToolPart):
        yield {"type": "tool_use", "id": part.call_id, "name": part.tool, "input": part.input}
    elif isinstance(part, ThinkingPart):
        if redacted := blob_of(part.blobs, REDACTED):
            yield {"type": "redacted_thinking", "data": redacted}
        elif signature := blob_of(part.blobs, SIGNATURE):
            yield {"type": "thinking", "thinking": part.text, "signature": signature}
    elif not record_writer.is_blank(part):
        yield _block(part)


def _block(part: TextPart | MediaPart) -> Record:
    if isinstance(part, TextPart):
        return record_writer.text_block(part.text)
    source: Record = {"type": "base64", "media_type": part.media_type or "image/png", "data": base64_text(part.data)}
    if isinstance(part, ImagePart) and not part.data:
        source = {"type": "url", "url": part.url}
    return {"type": "image" if isinstance(part, ImagePart) else "document", "source": source}


write = record_writer.line_export(_ClaudeWriter, ClaudeReader)
