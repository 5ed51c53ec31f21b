"""Builds a conversation from the records of another agent's session."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from wolo.errors import SessionError
from wolo.messages import media
from wolo.messages.call_arguments import Unreadable, read_arguments
from wolo.messages.media import audio_type, image_type
from wolo.messages.message import NUDGE, FinishReason, Message, Producer, Role, Usage
from wolo.messages.parts import (
    AnyPart,
    AudioPart,
    Blob,
    FilePart,
    ImagePart,
    MediaPart,
    Outcome,
    TextPart,
    ThinkingPart,
    ToolPart,
    new_id,
)
from wolo.messages.unicode import whole, whole_throughout
from wolo.sessions.exchange.json_diff import complete
from wolo.sessions.exchange.json_files import Imported, Record, number

OWN = "wolo_message"
"""The key under which an export puts what the other agent's records cannot hold."""
NUDGE_SOURCE = "foreign"
"""Value of `NUDGE` in the metadata of what the other program said in the user's name."""

KNOWN: Mapping[str, tuple[str, str]] = {
    "anthropic": ("anthropic", "anthropic"),
    "openai": ("openai", "openai-responses"),
    "google": ("gemini", "gemini"),
    "zai": ("zai", "openai-chat"),
    "zai-coding-plan": ("zai-coding", "openai-chat"),
    "zhipuai": ("zhipuai", "openai-chat"),
    "moonshotai": ("moonshot", "openai-chat"),
    "deepseek": ("deepseek", "openai-chat"),
    "openrouter": ("openrouter", "openai-chat"),
    "groq": ("groq", "openai-chat"),
    "cerebras": ("cerebras", "openai-chat"),
    "xai": ("xai", "openai-chat"),
    "mistral": ("mistral", "openai-chat"),
    "togetherai": ("together", "openai-chat"),
    "fireworks-ai": ("fireworks", "openai-chat"),
    "minimax": ("minimax", "anthropic"),
    "nvidia": ("nvidia", "openai-chat"),
    "ollama": ("ollama", "ollama"),
    "lmstudio": ("lmstudio", "openai-chat"),
    "github-models": ("github-models", "openai-chat"),
}
"""Provider name of other agents → wolo's name and format."""

_REMINDER = re.compile(r"\s*<system-reminder>.*</system-reminder>\s*", re.DOTALL)


class OwnData(Struct, frozen=True, omit_defaults=True):
    """The value under `OWN`, in the first record of a message."""

    change: dict[str, Any]
    """Difference between what an importer reads from the records and the message."""
    before: tuple[Message, ...] = ()
    """Preceding messages that have no form in the other agent's records."""
    after: tuple[Message, ...] = ()
    """Such messages after the last one."""


class Draft(Struct, eq=False):
    """A message that may still grow."""

    role: Role
    parts: list[AnyPart] = field(default_factory=list)
    timestamp: float = 0.0
    producer: Producer | None = None
    usage: Usage | None = None
    finish_reason: FinishReason = ""
    error: str = ""
    custom_type: str = ""
    is_prompt: bool = True
    """For role user: written by the user, not by the other program."""
    id: str = field(default_factory=lambda: new_id("msg"))
    own: OwnData | None = None


class ImportedResult(Struct, frozen=True):
    output: str = ""
    outcome: Outcome = "ok"
    media: tuple[MediaPart, ...] = ()
    at: float = 0.0


class ConversationBuilder:
    """Collects messages while records are read. `skipped` counts records that made no sense."""

    def __init__(self) -> None:
        self.drafts: list[Draft] = []
        self.skipped = 0
        self._answers: dict[str, Draft] = {}
        self._waiting: dict[str, list[tuple[Draft, int]]] = {}
        self._left_out: set[str] = set()
        self._own: OwnData | None = None

    def begin_record(self, record: Mapping[str, Any]) -> None:
        """Starts a record: the next message added gets the `OWN` data in it."""
        self._own = None
        if (value := record.get(OWN)) is not None:
            with suppress(msgspec.ValidationError, RecursionError):
                self._own = msgspec.convert(value, OwnData)

    @property
    def is_own(self) -> bool:
        """The current record starts a message that wolo wrote."""
        return self._own is not None

    def add(self, draft: Draft) -> Draft:
        draft.own, self._own = self._own, None
        self.drafts.append(draft)
        return draft

    def add_spoken(
        self, role: Role, parts: list[AnyPart], at: float, *, is_prompt: bool = True, custom_type: str = ""
    ) -> Draft | None:
        """None, and nothing added, without parts."""
        draft = Draft(role, parts, timestamp=at, is_prompt=is_prompt, custom_type=custom_type)
        return self.add(draft) if parts else None

    def answer(self, key: str, *, at: float = 0.0, producer: Producer | None = None) -> Draft:
        """Returns the answer with this key, adding it when it is new."""
        if (draft := self._answers.get(key)) is None:
            draft = self._answers[key] = self.add(Draft("assistant", timestamp=at, producer=producer))
        return draft

    def add_call(self, draft: Draft, part: ToolPart) -> None:
        draft.parts.append(part)
        self._waiting.setdefault(part.call_id, []).append((draft, len(draft.parts) - 1))

    def add_result(self, call_id: str, result: ImportedResult) -> bool:
        """False, and counted as skipped, when no such call is waiting."""
        if not (places := self._waiting.get(call_id)):
            self.skipped += 1
            return False
        draft, at = places.pop(0)
        part = draft.parts[at]
        assert isinstance(part, ToolPart)  # only calls wait
        draft.parts[at] = _with_result(part, result)
        return True

    def interrupt(self) -> None:
        """Marks the last answer as stopped by the user or by the end of the program."""
        for draft in reversed(self.drafts):
            if draft.role == "assistant":
                draft.finish_reason = "interrupted"
                return

    def undo_prompts(self, num_prompts: int) -> int:
        """Removes the last prompts and what follows them; returns the number of removed messages."""
        at = len(self.drafts)
        while num_prompts > 0 and at > 0:
            at -= 1
            num_prompts -= self.drafts[at].role == "user" and self.drafts[at].is_prompt
        gone = set(map(id, self.drafts[at:]))
        del self.drafts[at:]
        self._answers = {key: draft for key, draft in self._answers.items() if id(draft) not in gone}
        for places in self._waiting.values():
            places[:] = [place for place in places if id(place[0]) not in gone]
        return len(gone)

    def summarise(self, summary: str, *, at: float, kept: Collection[str] = ()) -> None:
        """Adds a summary in place of all messages but those with the ids in `kept`."""
        self.leave_out(kept)
        self.add(Draft("compaction_summary", [TextPart(text=summary)], timestamp=at))

    def summarise_before(self, first: Draft | None, summary: str, *, at: float) -> None:
        """Inserts a summary of all messages before `first`; of all messages when it is None."""
        begin = next((index for index, each in enumerate(self.drafts) if each is first), len(self.drafts))
        kept = {draft.id for draft in self.drafts[begin:]}
        self.leave_out(kept)
        self.drafts.insert(begin, Draft("compaction_summary", [TextPart(text=summary)], timestamp=at))

    def leave_out(self, kept: Collection[str] = ()) -> None:
        """Marks all messages but those with the ids in `kept` as no longer sent."""
        self._left_out.update(draft.id for draft in self.drafts if draft.id not in kept)

    def sent_drafts(self) -> list[Draft]:
        return [draft for draft in self.drafts if draft.id not in self._left_out and draft.role != "custom"]

    def messages(self) -> tuple[Message, ...]:
        return tuple(message for _, message in self._build())

    def to_imported(
        self,
        source: Path,
        agent: str,
        home: str,
        *,
        title: str,
        cwd: str,
        created_at: float,
        notices: Iterable[str],
        skipped: int = 0,
    ) -> Imported:
        """Raises SessionError when there is no message. `home` is where `agent` stores its sessions."""
        built = list(self._build())
        messages = tuple(message for _, message in built)
        wrote = next((each.producer for each in reversed(messages) if each.producer and each.producer.model), None)
        if not messages:
            raise SessionError(f"{source} holds no conversation of {agent}.", hint=f"Its sessions are in {home}.")
        return Imported(
            title=" ".join(title.split()),
            cwd=cwd,
            created=created_at or next((message.timestamp for message in messages if message.timestamp), 0.0),
            model=f"{wrote.provider}/{wrote.model}" if wrote and wrote.format else "",
            messages=messages,
            left_out=tuple(message.id for draft, message in built if draft.id in self._left_out),
            skipped=self.skipped + skipped,
            notices=tuple(notices),
        )

    def _build(self) -> Iterator[tuple[Draft, Message]]:
        now = 0.0
        for draft in self.drafts:
            now = draft.timestamp or now
            if draft.own is not None:
                read = complete(_message(draft, draft.timestamp), draft.own.change)
                yield from ((draft, message) for message in (*draft.own.before, read, *draft.own.after))
            elif draft.parts or draft.error:
                yield draft, _message(draft, now)


class RecordReader(Protocol):
    """Reads the records of one agent."""

    builder: ConversationBuilder

    def add(self, record: Any) -> None: ...

    def read(self, records: Iterable[Any]) -> ConversationBuilder:
        for record in records:
            self.add(record)
        return self.builder


def producer(provider: str, model: str) -> Producer:
    """The producer in wolo's names. An unknown provider has no format, so opaque data is never sent to it."""
    name, format = KNOWN.get(provider, (provider, ""))
    return Producer(provider=name, format=format, model=model)


def token_usage(counts: Record, fresh: str, output: str, cache_read: str, cache_write: str) -> Usage | None:
    """Usage from the fields of these names; None for an empty record."""
    if not counts:
        return None
    return Usage(
        input_tokens=number(counts, fresh),
        output_tokens=number(counts, output),
        cache_read_tokens=number(counts, cache_read),
        cache_write_tokens=number(counts, cache_write),
    )


def is_reminder(text: str) -> bool:
    """Tells the reminders that several agents send to their model in the user's name."""
    return _REMINDER.fullmatch(text) is not None


def tool_part(tool: str, arguments: object, call_id: str, *, item_id: str = "", at: float = 0.0) -> ToolPart:
    """`arguments` is an object or its JSON. Text that is not JSON is stored as `raw_input`."""
    raw = arguments if isinstance(arguments, str) else ""
    written = raw
    if not isinstance(arguments, str):
        with suppress(ValueError, RecursionError):
            written = json.dumps(whole_throughout(arguments) if arguments is not None else {}, ensure_ascii=False)
    try:
        values = read_arguments(written)
    except Unreadable:
        values, raw = {}, written
    name = whole(tool) or "unknown"
    return ToolPart(tool=name, input=values, raw_input=whole(raw), call_id=whole(call_id), item_id=item_id, start_time=at)


def medium(source: str, media_type: str = "", name: str = "") -> MediaPart | TextPart:
    """A media part from a URL, a data URL or base64; otherwise a note. Never opens a file."""
    if source.startswith(media.ADDRESSES):
        return ImagePart(url=source) if not media_type or media_type.startswith("image/") else missing_note(name or source)
    stated, _, packed = source.rpartition(",") if source.startswith("data:") else ("", "", source)
    kind = media_type or stated.removeprefix("data:").partition(";")[0] or "image/png"
    try:
        data = base64.b64decode("".join(packed.split()), validate=True)
    except ValueError:
        data = b""
    if not data:
        return missing_note(name or kind)
    if kind.startswith("audio/"):
        return AudioPart(media_type=audio_type(data[: media.HEAD_BYTES]) or kind, data=data)
    if kind.startswith("image/"):
        return ImagePart(media_type=image_type(data[: media.HEAD_BYTES]) or kind, data=data)
    return FilePart(name=name, media_type=kind, data=data)


def missing_note(name: str) -> TextPart:
    return TextPart(text=f"[{name} was attached here; the session file does not contain it.]")


def outcome_of(output: str, words: Mapping[str, Outcome], *, otherwise: Outcome) -> Outcome:
    """The outcome of a call, from the phrases at the beginning of its result."""
    begin = output.lstrip()[:400].lower()
    return next((outcome for phrase, outcome in words.items() if phrase in begin), otherwise)


def text_part(text: str) -> TextPart | None:
    return TextPart(text=text) if text.strip() else None


def thinking_part(thought: str, kind: str, sealed: str, *, field: str = "reasoning_content") -> ThinkingPart | None:
    """Thinking with opaque data of this kind; None without either."""
    blobs = (Blob(kind, sealed),) if sealed else ()
    return ThinkingPart(text=thought, field=field, blobs=blobs) if thought or blobs else None


def user_command(command: str, output: str, ending: str = "") -> str:
    """Reports a command that the user ran, in the user's name."""
    return f"I ran this command myself:\n{command}\n\nIt printed:\n{output or '(no output)'}{ending}"


def words_of(parts: Iterable[AnyPart]) -> str:
    return "".join(part.text for part in parts if isinstance(part, TextPart))


def text_and_media(blocks: Iterable[AnyPart]) -> tuple[str, tuple[MediaPart, ...]]:
    parts = list(blocks)
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    return "\n".join(texts), tuple(part for part in parts if isinstance(part, MediaPart))


def count_notice(num_left_out: int, one: str, many: str) -> list[str]:
    """A notice, unless the count is 0; `{}` in `many` is the count."""
    return [] if not num_left_out else [one if num_left_out == 1 else many.format(num_left_out)]


def _with_result(part: ToolPart, result: ImportedResult) -> ToolPart:
    status: Any = "completed" if result.outcome == "ok" else "failed"
    end = max(result.at, part.start_time)
    return replace(part, status=status, outcome=result.outcome, output=result.output, output_parts=result.media, end_time=end)


def _message(draft: Draft, now: float) -> Message:
    parts = list(draft.parts)
    for at, part in enumerate(parts):
        if isinstance(part, ToolPart) and part.status in ("pending", "running"):
            parts[at] = _with_result(part, ImportedResult(outcome="interrupted"))  # it may have had effects
    reason = draft.finish_reason
    if draft.role == "assistant" and not reason:
        reason = "error" if draft.error else "tool_calls" if any(isinstance(part, ToolPart) for part in parts) else "stop"
    return Message(
        id=draft.id,
        role=draft.role,
        parts=parts,
        timestamp=now,
        finished=reason not in ("interrupted", "error"),
        finish_reason=reason,
        usage=draft.usage,
        producer=draft.producer,
        error=draft.error,
        custom_type=draft.custom_type,
        metadata={} if draft.is_prompt else {NUDGE: NUDGE_SOURCE},
    )
