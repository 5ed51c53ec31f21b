"""A cut of the history: which messages are shortened or omitted in requests, and how to deepen or undo it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from msgspec.structs import replace

from wolo.messages.call_arguments import as_json
from wolo.messages.message import Message, common_prefix_length
from wolo.messages.parts import AnyPart, ToolPart
from wolo.models.tokens import estimate_message
from wolo.sessions.entries import CompactionEntry

SHORT_CHARS = 400
"""Length of a shortened output, half from its start and half from its end."""
NEWEST_ANSWERS = 2
"""Answers of the current turn that are changed last."""
WHOLE_ANSWERS = 4
"""Answers of the current turn whose outputs do not count as old."""

LONG_ARGUMENTS_CHARS = 10_000
"""Arguments of a call with more characters are shortened with its output."""
HUGE_ARGUMENTS_CHARS = 100_000
"""The same before anything else, also in the newest answer: older messages say more than the middle of such a call."""
LARGE_BYTES = 100_000
"""Minimum size of attachments that are removed."""

SHORTENED = "\n[… {count:,} characters of this old output were left out to save space …]\n"
SHORT_ARGUMENT = '[… {count:,} characters of this argument were left out to save space: expand_message with id "{id}" …]'
SHORT_HINT = '\n\nmessage_id "{id}"\nUse expand_message to see the full content'
MEDIA_LEFT_OUT = "\n[… what was attached to this old output was left out to save space; the session keeps it …]"


class Move(NamedTuple):
    """A step that makes the request smaller."""

    message: Message
    does: Literal["shorten", "leave out"]


class Cut:
    """Refers to messages by id, so that it also holds for longer histories. Immutable: methods return new cuts."""

    def __init__(
        self,
        shortened: Iterable[str] = (),
        left_out: Iterable[str] = (),
        lead: Message | None = None,
        *,
        is_restored: bool = False,
    ) -> None:
        """`is_restored`: the user had messages sent again, so that none is masked before the window is full."""
        self.shortened = frozenset(shortened)
        self.left_out = frozenset(left_out)
        self.lead = lead
        self.is_restored = is_restored
        """Message that replaces those left out; placed before all others except system messages."""
        self.is_empty = not self.left_out and not self.shortened
        self._short: dict[str, tuple[Message, Message]] = {}
        """Cached, because formats recognize encoded messages by identity."""
        self._applied: tuple[tuple[Message, ...], list[Message]] = ((), [])
        """The last messages, and which of them are sent."""

    def apply(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Returns the messages to send."""
        if self.is_empty:
            return tuple(messages)
        before, shown = self._applied
        if common_prefix_length(before, messages) < len(before):
            before, shown = (), []
        shown = [*shown]
        for message in messages[len(before) :]:
            if message.id in self.shortened and message.id not in self.left_out:
                known = self._short.get(message.id)
                if known is None or known[0] is not message:
                    known = self._short[message.id] = (message, shorten(message))
                shown.append(known[1])
            elif message.id not in self.left_out:
                shown.append(message)
        self._applied = (tuple(messages), [*shown])
        if self.lead is not None:
            opening = next((at for at, message in enumerate(shown) if message.role != "system"), len(shown))
            shown.insert(opening, self.lead)
        return tuple(shown)

    def prune(self, messages: Sequence[Message], excess_tokens: float, keep_turns: int, protected: Collection[str] = ()) -> Cut:
        """Shortens huge arguments, then old outputs except those of the newest turns and of protected tools."""
        shortened = set(self.shortened)
        remaining = self._remaining(messages)
        huge = [message for message in remaining if any(len(part.raw_input) >= HUGE_ARGUMENTS_CHARS for part in message.calls)]
        recent, current = _recent(remaining, keep_turns)
        answers = [message for message in remaining[current + 1 :] if message.role == "assistant"]
        old = (*remaining[:recent], *answers[:-WHOLE_ANSWERS])  # a long turn's own old answers come last
        old = tuple(message for message in old if not any(part.tool in protected for part in message.calls))
        for message in (*huge, *old):
            if excess_tokens <= 0:
                break
            if message.id in shortened:
                continue
            short = shorten(message)
            if short is not message and (gain := estimate_message(message) - estimate_message(short)) > 0:
                shortened.add(message.id)
                excess_tokens -= gain
        return Cut(shortened, self.left_out, self.lead)

    def without_media(self, messages: Sequence[Message]) -> Cut:
        """Removes large attachments of outputs, including the newest."""
        large = (
            message.id
            for message in self._remaining(messages)
            if any(sum(len(each.data) for each in part.output_parts) >= LARGE_BYTES for part in message.calls)
        )
        return Cut(self.shortened.union(large), self.left_out, self.lead)

    def summarize(self, messages: Sequence[Message], gone: Collection[str], summary: str, words_tokens: int) -> Cut:
        """Omits the messages `gone` as well; `summary` covers all omitted messages."""
        left_out = self.left_out | set(gone)
        until = next((message.id for message in reversed(messages) if message.id in left_out), "")
        lead = self._lead(messages, left_out, (summary, until), words_tokens)
        return Cut(self.shortened - left_out, left_out, lead)

    def deeper(self, messages: Sequence[Message], excess_tokens: float, keep_turns: int, words_tokens: int = 0) -> Cut:
        """Frees at least this many more tokens, or as many as possible, without a model."""
        shortened, left_out = set(self.shortened), set(self.left_out)
        freed = 0
        for message, does in _moves(self._remaining(messages), keep_turns):
            if freed >= excess_tokens:
                break
            now = shorten(message) if message.id in shortened else message
            if does == "leave out":
                left_out.add(message.id)
                freed += estimate_message(now)
            elif (gain := estimate_message(now) - estimate_message(shorten(now))) > 0:
                shortened.add(message.id)
                freed += gain
        if left_out == self.left_out:
            return Cut(shortened, left_out, self.lead)
        lead = self._lead(messages, left_out, _summary_in(self.lead), words_tokens)
        return Cut(shortened - left_out, left_out, lead)

    def restore(self, messages: Sequence[Message], room_tokens: float, words_tokens: int = 0) -> Cut:
        """Restores up to this many tokens, newest first."""
        shortened, left_out = set(self.shortened), set(self.left_out)
        for message in reversed(messages):
            whole = estimate_message(message)
            room_tokens -= whole if message.id in left_out else 0
            room_tokens -= whole - estimate_message(shorten(message)) if message.id in shortened else 0
            if room_tokens < 0:
                break
            shortened.discard(message.id)
            left_out.discard(message.id)
        if left_out == self.left_out:
            return Cut(shortened, left_out, self.lead, is_restored=True)
        lead = Cut()._lead(messages, left_out, _summary_in(self.lead), words_tokens) if left_out else None
        return Cut(shortened, left_out, lead, is_restored=True)

    def _lead(
        self, messages: Sequence[Message], left_out: Collection[str], summed_up: tuple[str, str], words_tokens: int
    ) -> Message:
        """Builds the lead of a deeper cut; it keeps this cut's summary."""
        from wolo.agent.compaction.summary_text import facts_in, lead_for  # noqa: PLC0415  # most turns fit as they are

        gone = (message for message in messages if message.id in left_out and message.id not in self.left_out)
        facts = facts_in(self.lead).with_more(gone)
        summary, until = summed_up
        return lead_for(left_out, facts, summary=summary, until=until, words_tokens=words_tokens)

    def _remaining(self, messages: Sequence[Message]) -> list[Message]:
        return [message for message in messages if message.id not in self.left_out]


def cut_of(kept: CompactionEntry | None) -> Cut:
    """Reads the cut that a session saved last."""
    if kept is None:
        return Cut()
    return Cut(kept.shortened, kept.left_out, kept.summary, is_restored=kept.reason == "restored")


def _summary_in(lead: Message | None) -> tuple[str, str]:
    from wolo.agent.compaction.summary_text import summary_in  # noqa: PLC0415  # most turns fit as they are

    return summary_in(lead)


def shorten(message: Message) -> Message:
    """Shortens the outputs of a message's calls, and long arguments, to their start and end."""
    parts: list[AnyPart] = []
    for part in message.parts:
        if not isinstance(part, ToolPart):
            parts.append(part)
            continue
        part = _shorten_arguments(part, message.id)
        output, end = part.output, SHORT_CHARS // 2
        is_long = len(output) > SHORT_CHARS + len(SHORTENED + MEDIA_LEFT_OUT + SHORT_HINT) + len(part.id) + 10
        if is_long:
            output = output[:end] + SHORTENED.format(count=len(output) - SHORT_CHARS) + output[-end:]
        if part.output_parts:
            output += MEDIA_LEFT_OUT
        if is_long:
            output += SHORT_HINT.format(id=part.id)
        parts.append(part if output == part.output else replace(part, output=output, output_parts=()))
    is_same = all(a is b for a, b in zip(parts, message.parts, strict=True))
    return message if is_same else replace(message, parts=tuple(parts))


def _shorten_arguments(part: ToolPart, message_id: str) -> ToolPart:
    """Keeps the names of arguments and short values; the others become text."""

    def short(text: str) -> str:
        left_out = SHORT_ARGUMENT.format(count=len(text) - SHORT_CHARS, id=message_id)
        return text[: SHORT_CHARS // 2] + left_out + text[-SHORT_CHARS // 2 :]

    size = len(part.raw_input) or len(as_json(part.input))
    if size <= LONG_ARGUMENTS_CHARS:
        return part
    if not part.input:  # unreadable
        return replace(part, raw_input=short(part.raw_input))
    arguments = {}
    for name, value in part.input.items():
        text = value if isinstance(value, str) else as_json(value)
        arguments[name] = value if len(text) <= 2 * SHORT_CHARS else short(text)
    if len(as_json(arguments)) > LONG_ARGUMENTS_CHARS:  # too many of them
        arguments = {"arguments": short(as_json(arguments))}
    return replace(part, input=arguments, raw_input="")


def turn_under_way(messages: Sequence[Message]) -> int:
    """Returns the position of its prompt."""
    return next((at for at in range(len(messages) - 1, -1, -1) if messages[at].is_prompt), 0)


def _moves(messages: Sequence[Message], keep_turns: int) -> Iterator[Move]:
    """Least destructive first. System messages, prompts of the current turn and the last message are not touched.

    A call and its result are parts of one message, so they are omitted together.
    """
    recent, current = _recent(messages, keep_turns)
    answers = [at for at in range(current + 1, len(messages)) if messages[at].role == "assistant"]
    newest = answers[-min(NEWEST_ANSWERS, len(answers))] if answers else len(messages)
    for begin, end in ((0, recent), (recent, current), (current + 1, newest), (newest, len(messages))):
        touched = [message for message in messages[begin:end] if message.role != "system"]
        yield from (Move(message, "shorten") for message in touched)
        yield from (Move(message, "leave out") for message in touched if message is not messages[-1])


def _recent(messages: Sequence[Message], keep_turns: int) -> tuple[int, int]:
    prompts = [at for at, message in enumerate(messages) if message.is_prompt] or [0]
    return prompts[-min(keep_turns, len(prompts))], prompts[-1]
