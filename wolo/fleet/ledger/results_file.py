"""Writes results.jsonl, one line for each published result, and summary.json."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from msgspec import Struct

from wolo.errors import SessionError
from wolo.fleet.ledger.ledger_store import LedgerError, LedgerStore
from wolo.fleet.ledger.outcomes import AttemptOutcome, Provenance, place_in
from wolo.fleet.ledger.run_rows import BatchTotals, Meta, Refusals
from wolo.operating_system import os
from wolo.sessions.locks import LockHeld, acquire
from wolo.workspace.files.unfinished import write_whole

RESULTS, SUMMARY = "results.jsonl", "summary.json"
_LOCK = "results.lock"
_LOCK_S = 60.0
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
"""The folder of a run may come from others, with links to elsewhere."""
_FIELDS = (
    *("state", "session_id", "exit_code", "patch", "verify", "usage", "cost_usd"),
    *("started", "ended", "host", "engine", "error"),
)
"""Of the outcome, as a line has them."""
_LINES_AT_ONCE = 1000
_SELECT = "SELECT t.task, a.key, a.attempt, a.outcome FROM attempts a JOIN tasks t ON t.seq = a.seq WHERE a.number "


class ResultsFile:
    """Grows only; line n is the result that the ledger numbered n. A torn or foreign end is written again."""

    def __init__(self, folder: Path, store: LedgerStore) -> None:
        self._path, self._store = folder / RESULTS, store
        self._lock = folder / _LOCK
        self._bytes = self._lines = 0
        """As far as this process has read; others may have written the file again since."""

    def complete(self) -> None:
        """Appends the results that it lacks. Raises LedgerError; the ledger has them in any case."""
        with self._hold_lock():
            self._append()

    def restore(self) -> int | None:
        """Compares all lines with the ledger; from the first that differs, whose number is returned, they are written again."""
        with self._hold_lock():
            with os.fdopen(os.open(self._path, _FLAGS, 0o600), "rb+") as file:
                differs = self._compare(file)
                file.truncate(self._bytes)
            number = self._lines + 1
            self._append()
        return number if differs else None

    def changed_line(self) -> int | None:
        """Number of the first line that differs from the ledger; changes nothing. Raises LedgerError."""
        try:
            read = place_in(self._path.parent, RESULTS).read_bytes()  # before the ledger, which then has all its lines
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LedgerError(f"Cannot read {self._path}: {(error.strerror or str(error)).lower()}.") from error
        differs, number = self._compare(io.BytesIO(read)), self._lines + 1
        self._bytes = self._lines = 0
        return number if differs else None

    @contextmanager
    def _hold_lock(self) -> Iterator[None]:
        try:
            lock = acquire(self._lock, _LOCK_S)
        except LockHeld as other:
            raise LedgerError(
                f"Another wolo has locked {self._lock} and does not answer.", hint="Quit it and try again."
            ) from other
        except SessionError as error:
            cause = error.__cause__
            raise _explain(cause if isinstance(cause, OSError) else OSError("it cannot be locked"), self._lock) from error
        except OSError as error:
            raise _explain(error, self._lock) from error
        try:
            yield
        except OSError as error:
            raise _explain(error, self._path) from error
        finally:
            os.close(lock)

    def _append(self) -> None:
        descriptor = os.open(self._path, _FLAGS, 0o600)
        try:
            self._read_on(descriptor)
            while lines := self._unwritten(descriptor):
                data = b"".join(lines)
                at = self._bytes
                rest = memoryview(data)
                while rest:
                    count = os.pwrite(descriptor, rest, at)
                    at, rest = at + count, rest[count:]
                self._bytes += len(data)
                self._lines += len(lines)
        finally:
            os.close(descriptor)

    def _compare(self, file: BinaryIO) -> bool:
        """Reads on to the first line that differs; a torn or missing end is no difference."""
        self._bytes = self._lines = 0
        while expected := self._rows_from(self._lines + 1):
            for line in expected:
                if (read := file.readline()) != line:
                    return not line.startswith(read)
                self._bytes += len(line)
                self._lines += 1
        return file.readline().endswith(b"\n")

    def _read_on(self, descriptor: int) -> None:
        """Counts the lines that others added, and removes a torn one."""
        size = os.fstat(descriptor).st_size
        if size < self._bytes:
            self._bytes = self._lines = 0
        while data := os.pread(descriptor, 1 << 20, self._bytes):
            whole = data.rfind(b"\n") + 1
            if not whole and len(data) == 1 << 20 and size > self._bytes + len(data):
                data = os.pread(descriptor, size - self._bytes, self._bytes)
                whole = data.find(b"\n") + 1
            if not whole:
                os.ftruncate(descriptor, self._bytes)
                return
            self._lines += data.count(b"\n", 0, whole)
            self._bytes += whole

    def _unwritten(self, descriptor: int) -> list[bytes]:
        """Lines to append; the whole file is written again if it does not end with the line of its number."""
        if self._lines:
            last, *lines = self._rows_from(self._lines) or [b""]
            if last and os.pread(descriptor, len(last), max(self._bytes - len(last), 0)) == last:
                return lines
            os.ftruncate(descriptor, 0)
            self._bytes = self._lines = 0
        return self._rows_from(self._lines + 1)

    def _rows_from(self, number: int) -> list[bytes]:
        query = f"{_SELECT} >= ? ORDER BY a.number LIMIT {_LINES_AT_ONCE}"
        return [_line(*row) for row in self._store.transaction(lambda execute: execute(query, (number,)))]


class _Name(Struct):
    """Of a task in the ledger."""

    id: str
    task: str = ""
    try_number: int = 1


def _line(task: str, key: str, attempt: int, outcome: str) -> bytes:
    ended = msgspec.json.decode(outcome, type=AttemptOutcome)
    name = msgspec.json.decode(task, type=_Name)
    return msgspec.json.encode(result_fields(name.task or name.id, name.try_number, key, attempt, ended)) + b"\n"


def result_fields(id: str, try_number: int, key: str, attempt: int, ended: AttemptOutcome) -> dict[str, Any]:
    """The fields of a line, in their order."""
    of_task = {"id": id, "try": try_number, "key": key, "attempt": attempt}
    return {**of_task, **{name: getattr(ended, name) for name in _FIELDS}, **provenance_of(ended)}


def provenance_of(outcome: AttemptOutcome | None) -> dict[str, Any]:
    made = outcome.provenance if outcome else Provenance()
    return {name: getattr(made, name) or None for name in Provenance.__struct_fields__}


def write_summary(
    folder: Path,
    meta: Meta,
    counts: Mapping[str, int],
    attempts: Mapping[str, int],
    totals: BatchTotals,
    refusals: Refusals,
    now: str,
) -> None:
    """Replaces summary.json: counts by state, totals."""
    summary = {
        "version": meta.version,
        "written": now,
        "tasks": sum(counts.values()),
        "states": dict(sorted(counts.items())),
        "attempts": sum(attempts.values()),
        "attempts_lost": attempts.get("lost", 0),
        "tokens": totals.tokens,
        "cost_usd": None if totals.cost_usd is None else round(totals.cost_usd, 6),
        "max_cost_usd": meta.max_cost_usd,
        "max_tokens": meta.max_tokens,
        "max_errors": meta.max_errors,
        "stopped": refusals.reasons,
    }
    try:
        write_whole(folder / SUMMARY, msgspec.json.format(msgspec.json.encode(summary), indent=2) + b"\n", mode=0o666)
    except OSError as error:
        raise _explain(error, folder / SUMMARY) from error


def _explain(error: OSError, path: Path) -> LedgerError:
    reason = (error.strerror or str(error)).lower()
    hint = f"Nothing is lost: the ledger has every result, and `wolo batch resume {path.parent}` completes the file."
    return LedgerError(f"Cannot write {path}: {reason}.", hint=hint)
