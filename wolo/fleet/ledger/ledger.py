"""The ledger of a batch: hands out tasks by lease, takes their outcomes, and knows the state of each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from wolo.fleet.ledger.hosts import Host, boot_of, utc_now
from wolo.fleet.ledger.ledger_store import Execute, LedgerError, LedgerStore
from wolo.fleet.ledger.outcomes import ACCOUNT_FAULTS, AttemptOutcome, Ended, Failure, Lease, Owner, Spent
from wolo.fleet.ledger.results_file import ResultsFile, write_summary
from wolo.fleet.ledger.run_rows import Added, BatchTotals, Beat, Meta, Refusals, Row
from wolo.fleet.ledger.shared_limits import SharedLimits
from wolo.fleet.tasks import BatchTask, is_folder_name
from wolo.workspace.files.sqlite_connection import placeholders

T = TypeVar("T")
_ROWS_AT_ONCE = 500
_NOTE_CHARS = 500
NEXT = "SELECT key, attempt, task, seq FROM tasks WHERE state = 'queued' ORDER BY retries, seq LIMIT 1"
ELSEWHERE = """SELECT 1 FROM tasks WHERE state = 'leased' AND started < ?
    UNION ALL SELECT 1 FROM tasks WHERE state = 'leased' AND started >= ? LIMIT 1"""
_LEASE = """UPDATE tasks SET state = 'leased', attempt = ?, fence = ?, host = ?, pid = ?, started = ?, expires = ?, cancelling = 0
    WHERE seq = ?"""
_BEGIN = "INSERT INTO attempts (fence, seq, key, attempt, state, host, began) VALUES (?, ?, ?, ?, 'leased', ?, ?)"
_END = """INSERT INTO attempts (fence, seq, key, attempt, state, host, began, outcome, number)
    VALUES (?, ?, ?, ?, 'cancelled', ?, '', ?, ?)"""
_ROWS = """SELECT t.seq, t.task, t.key, t.state, t.attempt, t.fence, a.host, a.began, a.note, a.tokens, a.cost_usd, a.outcome
    FROM tasks t LEFT JOIN attempts a ON a.fence = t.fence"""


class Ledger:
    """Used by any thread and by any number of processes at once. Calls block; all raise LedgerError."""

    def __init__(self, store: LedgerStore, folder: Path, host: Host) -> None:
        self._store, self._host = store, host
        self._results = ResultsFile(folder, store)
        self._folder = folder
        self._seen: dict[int, tuple[float, float]] = {}
        """Leases of other boots: their expiry as read, and the time on our clock at which it was first read."""
        self._rival = ""
        """Another machine that is at work on a ledger made for one."""

    def on_outage(self, say: Callable[[str], None]) -> None:
        self._store.say = say

    @property
    def folder(self) -> Path:
        return self._folder

    def close(self) -> None:
        self._store.close()

    def limits(self, *, requests: float | None = None, tokens: float | None = None) -> SharedLimits:
        """Limits of provider keys that all workers share; `requests` and `tokens` a minute, where the user knows them."""
        return SharedLimits(self._store, self._host, requests=requests, tokens=tokens)

    def meta(self) -> Meta:
        return self._store.transaction(_run_of)[0]

    def limit(self, *, max_cost_usd: float | None, max_tokens: int | None, max_errors: int | None = None) -> None:
        """Changes the limits of the whole run."""

        def change(execute: Execute) -> None:
            limits = {"max_cost_usd": max_cost_usd, "max_tokens": max_tokens, "max_errors": max_errors}
            meta = msgspec.structs.replace(_run_of(execute)[0], **limits)
            execute("UPDATE run SET meta = ?", (_text(meta),))

        self._store.transaction(change)

    def add(self, tasks: Iterable[tuple[BatchTask, str]], provider_of: Callable[[BatchTask], str] = lambda task: "") -> Added:
        """Queues tasks with their keys. A known key is left as it is; another key for a known id queues that task again."""
        new = list(tasks)

        def work(execute: Execute) -> Added:
            execute(f"SELECT 1 FROM run{self._store.lock_row}", ())
            rows = execute("SELECT id, key, state, seq FROM tasks", ())
            known = {row[0]: row[1:] for row in rows}
            fresh = [each for each in new if each[0].id not in known]
            changed = [each for each in new if each[0].id in known and known[each[0].id][0] != each[1]]
            for task, key in changed:
                if known[task.id][1] == "leased":
                    raise LedgerError(f"Task {task.id} has changed while it runs.", hint="Let it end, or cancel it first.")
                again = "state = 'queued', retries = 0, cancelling = 0"
                values = (key, _text(task), provider_of(task), task.id)
                execute(f"UPDATE tasks SET key = ?, task = ?, provider = ?, {again} WHERE id = ?", values)
            last = max((row[3] for row in rows), default=0)
            for some in _parts(list(enumerate(fresh, last + 1))):
                rows = [(seq, task.id, key, _text(task), provider_of(task), "queued") for seq, (task, key) in some]
                marks = ", ".join(["(?, ?, ?, ?, ?, ?)"] * len(some))
                execute(
                    f"INSERT INTO tasks (seq, id, key, task, provider, state) VALUES {marks}",
                    [each for row in rows for each in row],
                )
            return Added(len(fresh), len(new) - len(fresh) - len(changed), len(changed))

        return self._store.transaction(work)

    def lease(self, owner: Owner) -> Lease | None:
        """None: nothing is queued that may be handed out, see `is_held`."""
        if self._rival:
            raise LedgerError(
                f"{self._rival} is at work on this run too, and its ledger is a file for the workers of one machine.",
                hint="For several machines: wolo batch run … --store postgresql://…",
            )
        return self._store.transaction(lambda execute: self._lease(execute, owner))

    def _lease(self, execute: Execute, owner: Owner) -> Lease | None:
        meta, totals = _run_of(execute)
        if _used_up(meta, totals) or (self._store.one_host and self._is_elsewhere(execute)):
            return None
        found = self._next(execute)
        if not found:
            return None
        key, attempt, task, seq = found[0]
        attempt = _number(attempt)
        fence = self._fence(execute)
        expires = self._store.now(execute) + meta.lease_s
        execute(_LEASE, (attempt + 1, fence, owner.host, owner.pid, owner.started, expires, seq))
        execute(_BEGIN, (fence, seq, key, attempt + 1, owner.host, utc_now()))
        return Lease(_task(task), key, attempt + 1, fence, owner)

    def _next(self, execute: Execute) -> list[tuple[Any, ...]]:
        """The task that is next, if there is one that no refusal is about."""
        refusals = _refusals_of(execute)
        if refusals.too_many:
            return []
        names = list(refusals.providers)
        others = f"provider NOT IN ({placeholders(names)}) ORDER BY"
        return execute((NEXT.replace("ORDER BY", f"AND {others}") if names else NEXT) + self._store.skip_locked, names)

    def _is_elsewhere(self, execute: Execute) -> bool:
        boot = self._host.boot
        return bool(execute(ELSEWHERE, (f"{boot}/", f"{boot}0")))  # 0 comes after the slash

    def heartbeat(self, lease: Lease, spent: Spent | None = None, note: str = "") -> Beat:
        """Keeps the lease. `spent`: by the attempt so far; `note`: one line for those who watch."""

        def work(execute: Execute) -> Beat:
            meta, _ = _run_of(execute)
            held = execute(
                "UPDATE tasks SET expires = ? WHERE id = ? AND fence = ? AND state = 'leased' RETURNING cancelling",
                (self._store.now(execute) + meta.lease_s, lease.task.id, lease.fence),
            )
            if not held:
                return "lost"
            if spent is not None:
                _spend(execute, lease.fence, spent)
            if note:
                execute("UPDATE attempts SET note = ? WHERE fence = ?", (note.replace("\0", "")[:_NOTE_CHARS], lease.fence))
            if held[0][0]:
                return "cancelled"
            return "budget" if _used_up(*_run_of(execute)) else "held"

        return self._store.transaction(work)

    def publish(self, lease: Lease, outcome: AttemptOutcome) -> bool:
        """Ends the attempt; False, and nothing is written, when another worker has the task.

        A retryable outcome queues the task again while it has retries left. It may be called again with the same outcome.
        """
        published = self._store.transaction(lambda execute: self._publish(execute, lease.task.id, lease.fence, outcome))
        if published:
            self._results.complete()
        return published

    def _publish(
        self, execute: Execute, task_id: str, fence: int, outcome: AttemptOutcome, *, expires_at: float | None = None
    ) -> bool:
        """With `expires`: only if the lease still ends then."""
        more, values = (" AND expires = ?", (expires_at,)) if expires_at is not None else ("", ())
        held = execute(
            f"UPDATE tasks SET state = ? WHERE id = ? AND fence = ? AND state = 'leased'{more} RETURNING retries, cancelling",
            (outcome.state, task_id, fence, *values),
        )
        if not held:
            return execute("SELECT outcome FROM attempts WHERE fence = ?", (fence,)) == [(_text(outcome),)]
        retries, cancelling = held[0]
        _spend(execute, fence, outcome.usage)
        if outcome.usage.tokens or outcome.usage.cost_usd is None:
            kind = "unpriced" if outcome.usage.cost_usd is None else "priced"
            execute(f"UPDATE run SET {kind} = {kind} + 1", ())
        number = None
        if (
            not cancelling
            and outcome.retryable
            and outcome.state in ("errored", "lost")
            and retries < _run_of(execute)[0].retries
        ):
            execute("UPDATE tasks SET state = 'queued', retries = retries + 1 WHERE id = ?", (task_id,))
        else:
            number = _next_number(execute)
            if outcome.state == "errored":
                # Notes an error; the row of the run is locked.
                failure = outcome.error or Failure("", "it is not known why")
                before, most = _refusals_of(execute), _run_of(execute)[0].max_errors
                errors, providers, too_many = before.errors + 1, dict(before.providers), before.too_many
                if failure.kind in ACCOUNT_FAULTS:
                    ((provider,),) = execute("SELECT provider FROM tasks WHERE id = ?", (task_id,))
                    providers.setdefault(provider, failure.message[:_NOTE_CHARS])
                if most is not None and errors >= most:
                    too_many = too_many or failure.message[:_NOTE_CHARS] or failure.kind
                execute("UPDATE run SET refusals = ?", (_text(Refusals(providers, errors, too_many)),))
        ended = "UPDATE attempts SET state = ?, outcome = ?, number = ? WHERE fence = ?"
        execute(ended, (outcome.state, _text(outcome), number, fence))
        return True

    def expire(self) -> int:
        """Takes tasks from dead owners: of this machine at once, others when their lease has run out. Returns how many."""
        since_s = self._store.since_outage_s()
        if since_s is not None and since_s < self.meta().lease_s:
            return 0  # the other workers are not back yet, or have just written that they are
        leased = "SELECT id, fence, host, pid, started, expires, cancelling FROM tasks WHERE state = 'leased'"
        now, rows = self._store.transaction(lambda execute: (self._store.now(execute), execute(leased, ())))
        self._seen = {fence: seen for fence, seen in self._seen.items() if fence in {row[1] for row in rows}}
        count = 0
        for task_id, fence, host, pid, started, expires, cancelling in rows:
            if self._has_expired(Owner(host, pid, started), fence, expires, now):
                count += self._lose(task_id, fence, host, expires, cancelled=bool(cancelling))
        if count:
            self._results.complete()
        return count

    def _has_expired(self, owner: Owner, fence: int, expires_at: float, now: float) -> bool:
        if self._host.is_dead(owner):
            return True
        if not self._store.one_host or boot_of(owner) == self._host.boot:
            return expires_at <= now
        if self._host.was_restarted_since(owner):
            return True
        read, since = self._seen.setdefault(fence, (expires_at, now))
        if read != expires_at:
            self._rival = owner.host
        return now - since >= self.meta().lease_s

    def _lose(self, task_id: str, fence: int, host: str, expires_at: float, *, cancelled: bool) -> bool:
        def work(execute: Execute) -> bool:
            began, input_tokens, cost = execute("SELECT began, tokens, cost_usd FROM attempts WHERE fence = ?", (fence,))[0]
            outcome = AttemptOutcome(
                state="cancelled" if cancelled else "lost",
                usage=Spent(input_tokens=input_tokens, cost_usd=None if input_tokens and not cost else cost),
                started=began,
                ended=utc_now(),
                host=host,
                engine="",
                error=Failure("lost", "Its worker ended or no longer answers."),
                retryable=True,
            )
            return self._publish(execute, task_id, fence, outcome, expires_at=expires_at)

        return self._store.transaction(work)

    def release(self, lease: Lease) -> None:
        """Gives back a task that was not begun; the attempt is forgotten."""

        def work(execute: Execute) -> None:
            held = "id = ? AND fence = ? AND state = 'leased'"
            back = f"UPDATE tasks SET state = 'queued', attempt = attempt - 1 WHERE {held} RETURNING 1"
            if execute(back, (lease.task.id, lease.fence)):
                execute("DELETE FROM attempts WHERE fence = ?", (lease.fence,))

        self._store.transaction(work)

    def cancel(self, ids: Collection[str] | None = None) -> int:
        """Ends queued tasks and tells the workers of running ones. None: all. Returns how many."""
        count = 0
        for some in self._choose(("leased",), ids):
            asked = f"UPDATE tasks SET cancelling = 1 WHERE state = 'leased' AND id IN ({placeholders(some)}) RETURNING 1"
            count += len(self._run(asked, some))
        for some in self._choose(("queued",), ids):
            count += self._store.transaction(partial(self._cancel_queued, some))
        self._results.complete()
        return count

    def _cancel_queued(self, ids: Sequence[str], execute: Execute) -> int:
        execute("UPDATE run SET published = published", ())  # first, so that two of these do not wait for each other
        ended = f"UPDATE tasks SET state = 'cancelled' WHERE state = 'queued' AND id IN ({placeholders(ids)})"
        rows = execute(f"{ended} RETURNING seq, key, attempt", ids)
        now = utc_now()
        outcome = _text(AttemptOutcome(state="cancelled", started=now, ended=now, host=self._host.name, engine=""))
        for seq, key, attempt in sorted(rows):
            fence = self._fence(execute)
            execute("UPDATE tasks SET fence = ? WHERE seq = ?", (fence, seq))
            execute(_END, (fence, seq, key, attempt, self._host.name, outcome, _next_number(execute)))
        return len(rows)

    def retry(self, states: Collection[Ended], ids: Collection[str] | None = None) -> int:
        """Queues ended tasks again, with all their retries, and forgets refusals. Returns how many."""
        self.forget_refusals()
        count = 0
        for some in self._choose(tuple(states), ids):
            again = (
                "UPDATE tasks SET state = 'queued', retries = 0, cancelling = 0 "
                f"WHERE state IN ({placeholders(states)}) AND id IN ({placeholders(some)}) RETURNING 1"
            )
            count += len(self._run(again, (*states, *some)))
        return count

    def _choose(self, states: Sequence[str], ids: Collection[str] | None) -> Iterator[list[str]]:
        if not states:
            return
        query = f"SELECT id FROM tasks WHERE state IN ({placeholders(states)}) ORDER BY seq"
        found = [row[0] for row in self._run(query, states)]
        yield from _parts([each for each in found if ids is None or each in ids])

    def rows(self, states: Collection[str] = (), task_id: str = "") -> list[Row]:
        """Tasks in the order of their file. No states: all."""
        where = [f"t.state IN ({placeholders(states)})"] if states else []
        where += ["t.id = ?"] if task_id else []
        query = f"{_ROWS} {'WHERE ' + ' AND '.join(where) if where else ''} ORDER BY t.seq"
        values = (*states, *((task_id,) if task_id else ()))
        return [_row(*row) for _, *row in self._run(query, values)]

    def each_row(self) -> Iterator[Row]:
        """All tasks in the order of their file, in memory only a part at a time."""
        last, query = 0, f"{_ROWS} WHERE t.seq > ? ORDER BY t.seq LIMIT {_ROWS_AT_ONCE}"
        while some := self._run(query, (last,)):
            yield from (_row(*row) for _, *row in some)
            last = some[-1][0]

    def counts(self) -> dict[str, int]:
        """Tasks by state; only states that some task has."""
        return dict(self._run("SELECT state, count(*) FROM tasks GROUP BY state"))

    def is_finished(self) -> bool:
        """Tells whether every task has ended; fast, unlike `counts`."""
        left = " OR ".join(f"EXISTS (SELECT 1 FROM tasks WHERE state = '{state}')" for state in ("queued", "leased"))
        return not self._run(f"SELECT 1 WHERE {left}")

    def totals(self) -> BatchTotals:
        return self._store.transaction(_run_of)[1]

    def is_held(self) -> bool:
        """Tells whether the run's budget or refusals keep all tasks in the queue that are there."""
        return self._store.transaction(lambda execute: _used_up(*_run_of(execute)) or not self._next(execute))

    def refusals(self) -> Refusals:
        return self._store.transaction(_refusals_of)

    def forget_refusals(self) -> None:
        self._run("UPDATE run SET refusals = '{}'")

    def attempts(self) -> dict[str, int]:
        """Attempts by state, also those that were repeated."""
        return dict(self._run("SELECT state, count(*) FROM attempts GROUP BY state"))

    def complete_files(self) -> None:
        """Adds to results.jsonl what a crash left out, and writes summary.json."""
        self._results.complete()
        write_summary(self._folder, self.meta(), self.counts(), self.attempts(), self.totals(), self.refusals(), utc_now())

    def changed_result(self) -> int | None:
        """Number of the first line of results.jsonl that another program has changed."""
        return self._results.changed_line()

    def restore_results(self) -> int | None:
        """Writes results.jsonl again from the first line that another program has changed; returns its number."""
        return self._results.restore()

    def _run(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        return self._store.transaction(lambda execute: execute(statement, values))

    def _fence(self, execute: Execute) -> int:
        return int(execute(self._store.next_fence, ())[0][0])


def _run_of(execute: Execute) -> tuple[Meta, BatchTotals]:
    meta, tokens, counted, priced, unpriced = execute("SELECT meta, tokens, cost_usd, priced, unpriced FROM run", ())[0]
    cost = None if unpriced or (tokens and not priced) else counted
    return msgspec.json.decode(meta, type=Meta), BatchTotals(tokens, cost, counted)


def _used_up(meta: Meta, totals: BatchTotals) -> bool:
    over_cost = meta.max_cost_usd is not None and totals.counted_usd >= meta.max_cost_usd
    return over_cost or (meta.max_tokens is not None and totals.tokens >= meta.max_tokens)


def _refusals_of(execute: Execute) -> Refusals:
    return msgspec.json.decode(execute("SELECT refusals FROM run", ())[0][0], type=Refusals)


def _spend(execute: Execute, fence: int, spent: Spent) -> None:
    tokens, cost = execute("SELECT tokens, cost_usd FROM attempts WHERE fence = ?", (fence,))[0]
    more, dearer = max(spent.tokens - tokens, 0), max((spent.cost_usd or 0.0) - cost, 0.0)
    if more or dearer:
        execute("UPDATE attempts SET tokens = tokens + ?, cost_usd = cost_usd + ? WHERE fence = ?", (more, dearer, fence))
        execute("UPDATE run SET tokens = tokens + ?, cost_usd = cost_usd + ?", (more, dearer))


def _next_number(execute: Execute) -> int:
    return int(execute("UPDATE run SET published = published + 1 RETURNING published", ())[0][0])


def _row(task: str, key: str, state: Any, attempt: int, fence: int, *newest: Any) -> Row:
    host, began, note, tokens, cost, outcome = newest
    return Row(
        task=_task(task),
        key=key,
        state=state,
        attempt=_number(attempt),
        fence=_number(fence),
        host=host or "",
        began=began or "",
        note=note or "",
        tokens=tokens or 0,
        cost_usd=cost or 0.0,
        outcome=msgspec.json.decode(outcome, type=AttemptOutcome) if outcome else None,
    )


def _task(text: str) -> BatchTask:
    """Raises LedgerError, also for an id that leads out of the run's folder: the ledger may come from others."""
    try:
        task = msgspec.json.decode(text, type=BatchTask)
    except msgspec.MsgspecError as error:
        raise LedgerError(f"A task of the ledger cannot be read: {error}.") from error
    if not is_folder_name(task.id):
        raise LedgerError(
            f"The ledger has a task {task.id!r}, which cannot be the name of a folder.", hint="It was changed by hand."
        )
    return task


def _number(value: object) -> int:
    """A column of SQLite holds any type. Raises LedgerError."""
    if not isinstance(value, int):
        raise LedgerError(f"The ledger has {value!r} where a number belongs.", hint="It was changed by hand.")
    return value


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _parts(values: list[T]) -> Iterator[list[T]]:
    for at in range(0, len(values), _ROWS_AT_ONCE):
        yield values[at : at + _ROWS_AT_ONCE]
