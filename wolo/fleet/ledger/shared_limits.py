"""Limits of one provider key that all workers of a run share."""

from __future__ import annotations

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wolo.fleet.ledger.hosts import Host
from wolo.fleet.ledger.ledger_store import Execute, LedgerStore

WINDOW_S = 60.0
SLACK_S = 6.0
"""How far a key may be ahead of an even pace; the pace is slower by as much, so that no minute holds more than the limit."""
_LEAST_FOR_SLACK = 13
"""Requests a minute from which on the gaps are shorter than the slack."""
_FREE_PACE = 600.0
"""A pace that was learned and has grown to this many requests a minute no longer counts."""


class Limit(Struct, frozen=True):
    """State of one key. Times are those of the ledger's clock."""

    requests: float | None = None
    """A minute, as the settings or the provider say; None: unknown."""
    tokens: float | None = None
    pace: float | None = None
    """Requests a minute, learned from rate limits; None: there were none."""
    not_before: float = 0.0
    requests_at: float = 0.0
    """When the requests so far would have been sent at an even pace."""
    tokens_at: float = 0.0
    minute: float = 0.0
    """Start of the minute that is counted."""
    count: int = 0
    before: int = 0
    """Requests in that minute, and in the one before."""


class SharedLimits:
    """Works for any number of processes; each call is one transaction of the ledger."""

    def __init__(self, store: LedgerStore, host: Host, *, requests: float | None = None, tokens: float | None = None) -> None:
        """`requests`, `tokens`: a minute with each key, as far as the user knows."""
        self._store, self._known = store, (requests, tokens)
        self._prefix = f"{host.boot}/" if store.one_host else ""  # the clock of one machine starts anew with it

    def acquire(self, key: str, tokens: int = 0) -> float:
        """Takes a request of about so many tokens and returns 0; or takes nothing and returns the seconds to wait."""

        def work(execute: Execute) -> float:
            limit, now = self._read(execute, key), self._store.now(execute)
            wait_s = _wait_s(limit, tokens, now)
            if wait_s <= 0:
                minute, count, before = _count(limit, now)
                even = _even(limit)
                self._write(
                    execute,
                    key,
                    replace(
                        limit,
                        requests_at=max(limit.requests_at, now) + even[0] if even else now,
                        tokens_at=max(limit.tokens_at, now) + (tokens * _seconds_each(limit.tokens) if limit.tokens else 0.0),
                        minute=minute,
                        count=count + 1,
                        before=before,
                    ),
                )
            return wait_s

        return self._store.transaction(work)

    def note_answer(self, key: str, *, more_tokens: int = 0, requests: float | None = None, tokens: float | None = None) -> None:
        """Notes an answer. `more_tokens`: used beyond those that were acquired; `requests`, `tokens`: limits that it named."""

        def work(execute: Execute) -> None:
            limit = _adjust(self._read(execute, key), requests, tokens)
            if limit.pace is not None:
                limit = replace(limit, pace=limit.pace + 1 if limit.pace < _FREE_PACE else None)
            if limit.tokens:
                limit = replace(limit, tokens_at=limit.tokens_at + more_tokens * _seconds_each(limit.tokens))
            self._write(execute, key, limit)

        self._store.transaction(work)

    def note_refusal(self, key: str, wait_s: float, *, requests: float | None = None, tokens: float | None = None) -> None:
        """Notes a rate limit: everybody waits as long as the request that met it, then at half of the pace."""

        def work(execute: Execute) -> None:
            limit, now = _adjust(self._read(execute, key), requests, tokens), self._store.now(execute)
            if now >= limit.not_before:  # one refusal counts, not each of those that were under way
                # Requests of about the last minute
                minute, count, before = _count(limit, now)
                limit = replace(limit, pace=max((count + before * (1 - (now - minute) / WINDOW_S)) / 2, 1.0))
            self._write(execute, key, replace(limit, not_before=max(limit.not_before, now + wait_s)))

        self._store.transaction(work)

    def sleep(self, key: str, wait_s: float) -> None:
        """Notes the end of a key's quota: everybody waits, then goes on at the same pace."""

        def work(execute: Execute) -> None:
            limit, now = self._read(execute, key), self._store.now(execute)
            self._write(execute, key, replace(limit, not_before=max(limit.not_before, now + wait_s)))

        self._store.transaction(work)

    def _read(self, execute: Execute, key: str) -> Limit:
        name = self._prefix + key
        execute("INSERT INTO limits (key, state) VALUES (?, '{}') ON CONFLICT (key) DO NOTHING", (name,))
        rows = execute(f"SELECT state FROM limits WHERE key = ?{self._store.lock_row}", (name,))
        limit = msgspec.json.decode(rows[0][0], type=Limit)
        requests, tokens = self._known
        return replace(limit, requests=_least(limit.requests, requests), tokens=_least(limit.tokens, tokens))

    def _write(self, execute: Execute, key: str, limit: Limit) -> None:
        execute("UPDATE limits SET state = ? WHERE key = ?", (msgspec.json.encode(limit).decode(), self._prefix + key))


def _wait_s(limit: Limit, tokens: int, now: float) -> float:
    wait_s = limit.not_before - now
    if even := _even(limit):
        wait_s = max(wait_s, limit.requests_at - now - even[1])
    if limit.tokens:
        takes_s = tokens * _seconds_each(limit.tokens)
        wait_s = max(wait_s, limit.tokens_at + takes_s - now - max(SLACK_S, takes_s))
    return max(wait_s, 0.0)


def _even(limit: Limit) -> tuple[float, float] | None:
    """Seconds between two requests, and how far they may be ahead of that; None: no limit is known."""
    known = [each for each in (limit.requests, limit.pace) if each]
    if not known:
        return None
    most = min(known)
    # With the slack s and the gap g, a window w holds (w + s) / g + 1 requests.
    return ((WINDOW_S + SLACK_S) / (most - 1), SLACK_S) if most >= _LEAST_FOR_SLACK else (WINDOW_S / most, 0.0)


def _seconds_each(tokens_a_minute: float) -> float:
    return (WINDOW_S + SLACK_S) / tokens_a_minute


def _least(one: float | None, other: float | None) -> float | None:
    given = [each for each in (one, other) if each]
    return min(given) if given else None


def _adjust(limit: Limit, requests: float | None, tokens: float | None) -> Limit:
    return replace(limit, requests=requests or limit.requests, tokens=tokens or limit.tokens)


def _count(limit: Limit, now: float) -> tuple[float, int, int]:
    """The minute, its requests and those of the one before, as of now."""
    passed = int((now - limit.minute) // WINDOW_S)
    if passed == 0:
        return limit.minute, limit.count, limit.before
    return (limit.minute + WINDOW_S, 0, limit.count) if passed == 1 else (now, 0, 0)
