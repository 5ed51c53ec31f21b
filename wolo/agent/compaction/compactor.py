"""Makes the history fit the context window: shortens old outputs, then summarizes old messages, then omits the oldest.

The saved history never changes. A cut stays until the next overflow, so requests keep their prefix in between, and each cut goes
down to `KEEP_SHARE` of the window, so that the next one is far away.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from wolo.agent.compaction.history_cut import Cut, turn_under_way
from wolo.agent.events import Compacted, CompactionReason
from wolo.errors import ContextOverflow
from wolo.formats.format import ToolSpec
from wolo.messages.message import Message, Usage
from wolo.models.provider import Price
from wolo.models.tokens import TokenEstimate, estimate_message

if TYPE_CHECKING:
    from wolo.agent.compaction.masking import Masking

Positive = Annotated[int, Meta(ge=1)]
KEEP_SHARE = 0.6
"""Share of the window that remains after a cut."""
ASKED_SHARE = 0.3
"""The same for `/compact`."""
RESTORED_SHARE = 0.95
"""Share of the window that `/uncompact` fills."""
FEWEST_MASKED = 12
"""Messages of a conversation whose outputs may be masked before the window is full."""
OVERFLOWS = 3
"""Consecutive overflows after which the turn fails."""
OVERFLOW_SHARES = (0.6, 0.3, 0.1)
"""Shares of the first overflowing size that remain after each overflow, when the window is unknown."""
SUMMARY_ROOM_TOKENS = 6_000
"""Minimum room for messages; below it a summary costs more than it saves."""
WORTH_IT_TOKENS = 500
"""Minimum size of messages that are summarized."""
LEAST_WINDOW_TOKENS = 8_000
"""Lower bound for the window of a model that can summarize."""
TASK_CHARS = 2_000
"""Length of the current prompt in a summary request."""
SUMMARY_SHARE, SUMMARY_TOKENS = 0.15, (400, 6_000)
"""Length of a summary as a share of the target size, and its bounds."""
WORDS_SHARE, WORDS_TOKENS = 0.1, (100, 6_000)
"""The same for the user's own messages."""


TOO_LARGE = 413
"""HTTP status of a server that limits bytes; attachments are the cause then."""


RESERVE_SHARE = 0.1
RESERVE_TOKENS = 16_384
"""Room reserved for the answer without a setting: a share of the window, at most this many tokens."""
COARSE_TOKENS = 1_000
"""Smaller requests do not correct the estimates."""
MOST_SCALE = 4.0

_LIMITS = (
    r"(?:maximum|limit|context (?:length|window|size)|prompt length)\D{0,40}?(\d[\d,_]{2,9})(?!\d)",
    r">=?\s*(\d[\d,_]{2,9})(?!\d)",
    r"(\d[\d,_]{2,9}) (?:tokens? )?maximum",
)


class CompactionSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """`compaction.*` of the settings."""

    auto: bool = True
    """Compact when the conversation no longer fits the context window; false: fail, and leave `/compact` to the user."""
    at_tokens: Annotated[int, Meta(ge=0)] | None = None
    """Size of a request above which old outputs are masked in batches; 0: never before the window is full; none: when the smaller
    requests pay for the broken prompt cache, by the prices of the model."""
    keep_turns: Positive = 2
    """Latest turns whose outputs are shortened last."""
    summary: bool = True
    """Let the model summarize omitted messages; false: only shorten and omit."""
    protected_tools: tuple[str, ...] = ("skill", "todo", "ask", "present_plan")
    """Tools whose outputs are not shortened in the first step."""
    timeout_s: Positive = 120
    """Seconds until a summary is given up."""


class SummaryRequest(Struct, frozen=True, kw_only=True):
    """Request for one summary."""

    pieces: tuple[str, ...]
    """The conversation, one request per piece."""
    so_far: str
    """Summary of earlier messages; empty: none."""
    task: str
    """The current prompt, or its beginning."""
    most_tokens: int
    """Maximum length of the summary."""
    reason: CompactionReason
    tokens: int
    """Estimated size of the request that must become smaller."""


Summarize = Callable[[SummaryRequest], Awaitable[str]]
"""Returns an empty string when there is no summary."""


class _Goal(Struct, frozen=True, kw_only=True):
    reason: CompactionReason
    target: float
    room: float
    """Maximum size of a summary request."""


class Context(Struct, frozen=True, forbid_unknown_fields=True):
    """`context.*` of the settings."""

    window: Positive | None = None
    """Maximum tokens, if the model would take more; none: the model's window."""
    reserve: Positive | None = None
    """Tokens reserved for the answer; none: a tenth of the window, at most 16,384."""
    local: bool = True
    """Send the date, the branch, changed files, last commits and installed runtimes with the first prompt."""

    def window_of(self, known: int | None) -> int | None:
        """Returns the smaller of the setting and the model's window; None: unknown."""
        return min(filter(None, (self.window, known)), default=None)


class Fixed(Struct, frozen=True):
    """The parts of every request besides the messages."""

    system: str
    tools: tuple[ToolSpec, ...]
    window: int | None
    """Window of the current model; None: unknown."""
    price: Price | None = None
    """None: unknown."""


class Window:
    """Belongs to one conversation."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._estimate = TokenEstimate()
        self.scale = 1.0
        """Provider's tokens per estimated token, at least 1: some servers do not count everything."""
        self._learned: float | None = None
        """Smallest size that was refused."""

    def most(self, fixed: Fixed) -> float | None:
        """Returns the maximum size of a request; None: unknown."""
        if (window := self._context.window_of(fixed.window)) is not None:
            reserve = self._context.reserve or min(int(window * RESERVE_SHARE), RESERVE_TOKENS)
            window -= min(reserve, window // 2)
        return min(filter(None, (window, self._learned)), default=None)

    def whole(self, fixed: Fixed) -> float | None:
        """Returns the window including the room for the answer; None: unknown."""
        return min(filter(None, (self._context.window_of(fixed.window), self._learned)), default=None)

    def size(self, shown: Sequence[Message], fixed: Fixed) -> float:
        return self._estimate.request(shown, system=fixed.system, tools=fixed.tools) * self.scale

    def learn_refusal(self, size: float) -> None:
        """Records that a request of this size was too large."""
        self._learned = min(self._learned or size, size)

    def learn_usage(self, shown: Sequence[Message], fixed: Fixed, usage: Usage) -> None:
        """Corrects the scale by the provider's count."""
        ours = self._estimate.request(shown, system=fixed.system, tools=fixed.tools)
        theirs = usage.prompt_tokens
        if ours >= COARSE_TOKENS and theirs:
            self.scale = min(max(theirs / ours, 1.0), MOST_SCALE)


def stated_limit(message: str) -> int | None:
    """Returns the smallest number that a refusal calls a limit."""
    found = [int(re.sub("[,_]", "", number)) for pattern in _LIMITS for number in re.findall(pattern, message, re.IGNORECASE)]
    return min(found, default=None)


class Compactor:
    """Belongs to one conversation. Call `fit` before a request that does not fit, then `counted` or `overflowed`."""

    def __init__(
        self, context: Context | None = None, settings: CompactionSettings | None = None, cut: Cut | None = None
    ) -> None:
        self.settings = settings or CompactionSettings()
        self.window = Window(context or Context())
        self.cut = cut or Cut()
        """The current cut; a resumed session brings its own."""
        self.is_asked = False
        """Set to compact before the next request, although it fits."""
        self._asked_goal: _Goal | None = None
        self._masking: Masking | None = None
        """None: too early for one."""
        self._overflows = 0
        self._first_overflow = 0.0
        self._no_summary = False
        """Set after a failed summary; cleared by the next good answer."""

    def apply_cut(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Returns the messages that are sent."""
        return tuple(messages) if self.cut.is_empty else self.cut.apply(messages)

    def fits(self, messages: Sequence[Message], fixed: Fixed) -> bool:
        """False when a request with these messages must become smaller first."""
        self._asked_goal = self._goal_for_request(messages, fixed) if self.is_asked else None
        self.is_asked = False
        return self._asked_goal is None and self._goal(messages, fixed) is None and self._mask(messages, fixed) is None

    async def fit(self, messages: Sequence[Message], fixed: Fixed, summarize: Summarize | None = None) -> Compacted | None:
        """Returns the compaction that was needed; None when the messages fit or nothing may be changed."""
        goal = self._goal(messages, fixed) or self._asked_goal
        self._asked_goal = None
        if goal is None:
            mask = self._mask(messages, fixed)
            return self._set(messages, fixed, mask, "masked") if mask else None
        return await self._shrink(messages, fixed, goal, summarize)

    def view(self, messages: Sequence[Message], fixed: Fixed) -> tuple[tuple[Message, ...], Compacted | None]:
        """Returns the messages that would be sent without a summary, and the compaction needed for that."""
        goal = self._goal(messages, fixed)
        compacted = None
        if goal is not None:
            cut = self._deeper(messages, fixed, goal, self._prune(messages, fixed, goal))
            compacted = self._apply(messages, fixed, goal, cut)
        elif mask := self._mask(messages, fixed):
            compacted = self._set(messages, fixed, mask, "masked")
        return self.apply_cut(messages), compacted

    async def fit_after_overflow(
        self, messages: Sequence[Message], fixed: Fixed, error: ContextOverflow | None, summarize: Summarize | None = None
    ) -> Compacted | None:
        """Returns the compaction after a refused request; None: nothing can or may be done."""
        self._overflows += 1
        if not self.settings.auto or self._overflows > OVERFLOWS:
            return None
        size = self.window.size(self.apply_cut(messages), fixed)
        if self._overflows == 1:
            self._first_overflow = size
        target = min(self._first_overflow * OVERFLOW_SHARES[self._overflows - 1], size * KEEP_SHARE)
        if self._overflows == 1 and (stated := stated_limit(error.message if error else "")):
            target = min(target, stated * KEEP_SHARE)
        self.window.learn_refusal(size)
        if error is not None and error.status == TOO_LARGE:
            goal = _Goal(reason="overflow", target=target, room=target)
            if without_media := self._apply(messages, fixed, goal, self.cut.without_media(messages)):
                return without_media
        return await self._shrink(messages, fixed, _Goal(reason="overflow", target=target, room=target), summarize)

    async def compact(self, messages: Sequence[Message], fixed: Fixed, summarize: Summarize | None) -> Compacted | None:
        """Compacts on the user's request. Without a summary it omits nothing, because everything fits."""
        goal = self._goal_for_request(messages, fixed)
        before = self.cut
        cut = self._prune(messages, fixed, goal)
        order = self._order(messages, fixed, goal, cut)
        if order and summarize and (summary := await summarize(order)):
            cut = self._smaller(messages, fixed, cut, self._apply_summary(messages, fixed, goal, cut, summary))
        return self._apply(messages, fixed, goal, cut) if cut is not before else None

    def preview(self, messages: Sequence[Message], fixed: Fixed, *, may_ask: bool) -> tuple[Cut, SummaryRequest | None]:
        """Returns the cut and the summary request that `compact` would use."""
        goal = self._goal_for_request(messages, fixed)
        cut = self._prune(messages, fixed, goal)
        order = self._order(messages, fixed, goal, cut) if may_ask else None
        if order is not None:
            cut = self._apply_summary(messages, fixed, goal, cut, "")
        return cut, order

    def restore(self, messages: Sequence[Message], fixed: Fixed) -> Compacted | None:
        """Restores what fits, newest first; None when nothing does."""
        most = self.window.most(fixed)
        before, after = self.cut, Cut(is_restored=True)
        if most is not None and self.window.size(messages, fixed) > most:
            room = (most * RESTORED_SHARE - self.window.size(self.apply_cut(messages), fixed)) / self.window.scale
            words = _share(most, WORDS_SHARE, WORDS_TOKENS)
            after = before.restore(messages, room, words)
            while (size := self.window.size(after.apply(messages), fixed)) > most and after.left_out != before.left_out:
                room -= (size - most * RESTORED_SHARE) / self.window.scale  # the new lead may be longer than the old one
                after = before.restore(messages, room, words)
        if (after.shortened, after.left_out) == (before.shortened, before.left_out):
            return None
        return self._set(messages, fixed, after, "restored")

    def learn_usage(self, shown: Sequence[Message], fixed: Fixed, usage: Usage | None) -> None:
        """Corrects the estimates by the provider's token count."""
        self._overflows = 0
        self._no_summary = False
        if usage is not None and not usage.estimated:
            self.window.learn_usage(shown, fixed, usage)

    def check(self, messages: Sequence[Message], fixed: Fixed) -> None:
        """Raises ContextOverflow when the messages exceed the window and nothing may be omitted."""
        window = self.window.whole(fixed)
        if self.settings.auto or window is None:
            return
        if (size := self.window.size(self.apply_cut(messages), fixed)) > window:
            raise ContextOverflow(
                f"The conversation (about {size:,.0f} tokens) is larger than the model's window of {window:,.0f} tokens, and "
                "compaction.auto is off: nothing was sent.",
                hint=self.hint(),
            )

    def hint(self) -> str:
        """Returns advice for the user when nothing more can be done."""
        if not self.settings.auto:
            return "Turn on compaction.auto, run /compact, or start a new session."
        return "What must be sent exceeds the context window: shorten the prompt, start a new session, or switch models."

    def _goal(self, messages: Sequence[Message], fixed: Fixed) -> _Goal | None:
        most = self.window.most(fixed)
        if not self.settings.auto or most is None or self.window.size(self.apply_cut(messages), fixed) <= most:
            return None
        return _Goal(reason="window", target=most * KEEP_SHARE, room=most)

    def _mask(self, messages: Sequence[Message], fixed: Fixed) -> Cut | None:
        """The cut that masks old outputs although everything fits; None: not now."""
        at_tokens = self.settings.at_tokens
        has_reason = fixed.price is not None if at_tokens is None else at_tokens > 0
        if not self.settings.auto or not has_reason or self.cut.is_restored or len(messages) < FEWEST_MASKED:
            return None
        if self._masking is None:
            from wolo.agent.compaction.masking import Masking  # noqa: PLC0415  # most conversations are short

            self._masking = Masking(self.settings.protected_tools, at_tokens)
        size = self.window.size(self.apply_cut(messages), fixed)
        return self._masking.next_cut(self.cut, messages, size, self.window.scale, fixed.price)

    def _goal_for_request(self, messages: Sequence[Message], fixed: Fixed) -> _Goal:
        size = self.window.size(self.apply_cut(messages), fixed)
        room = self.window.most(fixed) or max(size, LEAST_WINDOW_TOKENS)
        return _Goal(reason="manual", target=min(size, room) * ASKED_SHARE, room=room)

    # Steps

    async def _shrink(
        self, messages: Sequence[Message], fixed: Fixed, goal: _Goal, summarize: Summarize | None
    ) -> Compacted | None:
        """Returns None and changes nothing when nothing could be made smaller."""
        cut = self._prune(messages, fixed, goal)
        if self._excess(messages, fixed, goal, cut) > 0 and summarize is not None and not self._no_summary:
            order = self._order(messages, fixed, goal, cut)
            if order is not None:
                summary = await summarize(order)
                self._no_summary = not summary
                if summary:
                    cut = self._smaller(messages, fixed, cut, self._apply_summary(messages, fixed, goal, cut, summary))
        return self._apply(messages, fixed, goal, self._deeper(messages, fixed, goal, cut))

    def _prune(self, messages: Sequence[Message], fixed: Fixed, goal: _Goal) -> Cut:
        excess = self._excess(messages, fixed, goal, self.cut)
        pruned = self.cut.prune(messages, excess, self.settings.keep_turns, self.settings.protected_tools)
        return self._smaller(messages, fixed, self.cut, pruned)

    def _order(self, messages: Sequence[Message], fixed: Fixed, goal: _Goal, cut: Cut) -> SummaryRequest | None:
        """Returns None when a summary is not worth it."""
        from wolo.agent.compaction.summary_text import pieces, summary_in  # noqa: PLC0415  # most turns fit as they are

        room = (goal.room - self.window.size((), fixed)) / self.window.scale
        gone = self._omit(messages, fixed, goal, cut)
        is_worth_it = self.settings.summary and room >= SUMMARY_ROOM_TOKENS
        sizes = accumulate(estimate_message(message) for message in cut.apply(messages) if message.id in gone)
        is_much = any(size >= WORTH_IT_TOKENS for size in sizes)
        if not (is_worth_it or goal.reason == "manual") or not is_much:
            return None
        so_far, until = summary_in(cut.lead)
        covered = next((at + 1 for at, message in enumerate(messages) if message.id == until), 0) if so_far else 0
        left_out = cut.left_out | gone
        covered_messages = [message for message in messages[covered:] if message.id in left_out and message.role != "system"]
        most = _share(goal.target / self.window.scale, SUMMARY_SHARE, SUMMARY_TOKENS)
        free = goal.room / self.window.scale * 0.9 - 2 * most - 1_500
        if free < most or not covered_messages:
            return None
        size = self.window.size(self.apply_cut(messages), fixed)
        return SummaryRequest(
            pieces=tuple(pieces(covered_messages, int(free))),
            so_far=so_far,
            task=messages[turn_under_way(messages)].text.strip()[:TASK_CHARS],
            most_tokens=most,
            reason=goal.reason,
            tokens=round(size),
        )

    def _omit(self, messages: Sequence[Message], fixed: Fixed, goal: _Goal, cut: Cut) -> frozenset[str]:
        """Selects all messages except the newest that fit, the current prompt, and system messages."""
        kept = [message for message in cut.apply(messages) if message is not cut.lead]
        if not kept:
            return frozenset()
        current = turn_under_way(kept)
        target = goal.target / self.window.scale
        room = target - self.window.size((), fixed) / self.window.scale - estimate_message(kept[current])
        room -= _share(target, SUMMARY_SHARE, SUMMARY_TOKENS) + _share(target, WORDS_SHARE, WORDS_TOKENS)
        begin = len(kept)
        while begin > 0 and (begin - 1 == current or (room := room - estimate_message(kept[begin - 1])) >= 0):
            begin -= 1
        begin = min(begin, len(kept) - 1)
        return frozenset(message.id for at, message in enumerate(kept[:begin]) if at != current and message.role != "system")

    def _apply_summary(self, messages: Sequence[Message], fixed: Fixed, goal: _Goal, cut: Cut, summary: str) -> Cut:
        words = _share(goal.target / self.window.scale, WORDS_SHARE, WORDS_TOKENS)
        return cut.summarize(messages, self._omit(messages, fixed, goal, cut), summary, words)

    def _deeper(self, messages: Sequence[Message], fixed: Fixed, goal: _Goal, cut: Cut) -> Cut:
        """Cuts deep enough for the note about omitted messages as well; drops the user's words from it when they are too long."""
        if (excess := self._excess(messages, fixed, goal, cut)) <= 0:
            return cut
        words = _share(goal.target / self.window.scale, WORDS_SHARE, WORDS_TOKENS)
        deeper = cut
        for words_tokens in (words, 0):
            deeper = cut.deeper(messages, excess + words_tokens, self.settings.keep_turns, words_tokens)
            if self._excess(messages, fixed, goal, deeper) <= 0:
                break
        return self._smaller(messages, fixed, cut, deeper)

    def _excess(self, messages: Sequence[Message], fixed: Fixed, goal: _Goal, cut: Cut) -> float:
        return (self.window.size(cut.apply(messages), fixed) - goal.target) / self.window.scale

    def _smaller(self, messages: Sequence[Message], fixed: Fixed, before: Cut, after: Cut) -> Cut:
        smaller = self.window.size(after.apply(messages), fixed) < self.window.size(before.apply(messages), fixed)
        return after if smaller else before

    def _apply(self, messages: Sequence[Message], fixed: Fixed, goal: _Goal, cut: Cut) -> Compacted | None:
        if self._smaller(messages, fixed, self.cut, cut) is self.cut:
            return None
        return self._set(messages, fixed, cut, goal.reason)

    def _set(self, messages: Sequence[Message], fixed: Fixed, cut: Cut, reason: CompactionReason) -> Compacted:
        from wolo.agent.compaction.summary_text import summary_in  # noqa: PLC0415  # most turns fit as they are

        before, self.cut = self.cut, cut
        oldest_sent = next((message.id for message in messages if message.id not in cut.left_out), "")
        return Compacted(
            reason=reason,
            tokens_before=round(self.window.size(before.apply(messages), fixed)),
            tokens_after=round(self.window.size(cut.apply(messages), fixed)),
            outputs_shortened=len(cut.shortened - before.shortened),
            messages_left_out=len(cut.left_out - before.left_out),
            is_summarised=summary_in(cut.lead) != summary_in(before.lead) and bool(summary_in(cut.lead)[0]),
            summary=cut.lead,
            shortened=tuple(sorted(cut.shortened)),
            left_out=tuple(sorted(cut.left_out)),
            sent_from=oldest_sent if cut.left_out else "",
        )


def _share(of: float, share: float, bounds: tuple[int, int]) -> int:
    least, most = bounds
    return int(min(max(of * share, least), most))
