"""Ends an answer that grows without end, streams nothing, or does not stop after its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wolo.errors import BadAnswer, Unavailable
from wolo.messages.deltas import CallDelta, Delta, size_of
from wolo.models.http.http_body import PATIENCE

MOST_BYTES = 4_000_000
MOST_CALLS = 2_000
"""In one answer."""
KEEP_ALIVES = (b'"ping"', b'"keepalive"')
"""Events by which a server says that it still works: they may come for as long as comments may."""
_KIND_BYTES = 80
"""So early in an event stands what it is."""


class StreamLimits:
    """Follows one answer. Only text, reasoning and calls count: an event that carries none of them is silence."""

    def __init__(self, max_bytes: int, idle_s: float, clock: Callable[[], float]) -> None:
        """`idle_s` 0: silence may last."""
        self._max_bytes = max_bytes
        self._idle_s = idle_s
        self._clock = clock
        self._told_bytes = 0
        self._slots: set[int] = set()
        self._size_bytes = 0
        self._grown = clock()
        """When something came last."""
        self._ended: float | None = None

    def since_end_s(self) -> float:
        """How long the answer has been complete and has not grown; asked from its end on."""
        if self._ended is None:
            self._ended = self._clock()
        return self._clock() - max(self._ended, self._grown)

    def take(self, payloads: Sequence[bytes], deltas: Sequence[Delta], held_chars: int) -> None:
        """Raises BadAnswer when the answer is too long or makes too many calls, Unavailable when nothing came for too long."""
        self._told_bytes += size_of(deltas)
        size_bytes = self._told_bytes + held_chars
        if size_bytes > self._max_bytes:
            raise BadAnswer(
                f"The answer is longer than {self._max_bytes:,} bytes; it was stopped.",
                hint="Ask for less at a time, or raise limits.max_answer_bytes.",
            )
        self._slots.update(delta.slot for delta in deltas if isinstance(delta, CallDelta))
        if len(self._slots) > MOST_CALLS:
            raise BadAnswer(f"The answer makes more than {MOST_CALLS:,} calls; it was stopped.", hint="Ask for less at a time.")
        if size_bytes != self._size_bytes:
            self._size_bytes, self._grown = size_bytes, self._clock()
        elif self._idle_s and (silence_s := self._clock() - self._grown) > self._limit_s(payloads):
            raise Unavailable(f"The model sent nothing but empty events for {silence_s:.0f} s.")

    def _limit_s(self, payloads: Sequence[bytes]) -> float:
        is_kept_alive = any(mark in payload[:_KIND_BYTES] for payload in payloads for mark in KEEP_ALIVES)
        return self._idle_s * PATIENCE if is_kept_alive else self._idle_s
