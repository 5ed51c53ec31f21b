"""Runs one attempt in a Ray worker, and returns its folder as an archive."""

from __future__ import annotations

import asyncio
import io
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from wolo import __version__
from wolo.fleet.agent_run import AgentSettings, Allowance
from wolo.fleet.attempts import AttemptRunner, AttemptView
from wolo.fleet.engines.limit_relay import LimitAddress, at_node
from wolo.fleet.ledger.outcomes import AttemptOutcome, Lease
from wolo.fleet.run_folder import RunFolder
from wolo.operating_system import LOCK_EX, LOCK_NB, flock

_PREFIX = "wolo-attempt-"
_LOCK = "lock"


class SentAttempt(Struct, frozen=True, kw_only=True):
    """All that a worker knows: nothing is kept in the cluster."""

    version: str
    lease: Lease
    settings: AgentSettings
    allowance: Allowance
    environment: dict[str, str]
    limits: LimitAddress | None


class ReturnedAttempt(Struct, frozen=True, kw_only=True):
    outcome: AttemptOutcome | None = None
    archive: bytes = b""
    """The attempt's folder, as a compressed tar."""
    refusal: str = ""
    """The reason why no attempt can run on this node."""


def run_attempt(sent: bytes) -> bytes:
    """Takes and returns JSON, so that a node with another version can say so."""
    version = msgspec.json.decode(sent, type=dict[str, object]).get("version")
    if version != __version__:
        return msgspec.json.encode(ReturnedAttempt(refusal=f"the node has wolo {__version__}, and the run needs {version}"))
    attempt = msgspec.json.decode(sent, type=SentAttempt)
    os.environ.update(attempt.environment)
    with _scratch() as folder:
        outcome = asyncio.run(_run(attempt, RunFolder(folder)))
        archive = _pack(folder / attempt.lease.folder)
    return msgspec.json.encode(ReturnedAttempt(outcome=outcome, archive=archive))


async def _run(attempt: SentAttempt, folder: RunFolder) -> AttemptOutcome:
    folder.make()
    runner = AttemptRunner(folder, attempt.settings, "ray")
    try:
        async with at_node(attempt.limits) as runner.limiter:
            return await runner.run(attempt.lease, attempt.allowance, AttemptView(attempt.lease))
    finally:
        runner.close()


@contextmanager
def _scratch() -> Iterator[Path]:
    """A folder for one attempt; also removes those of workers that were killed."""
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError), (left / _LOCK).open("ab") as lock:
            flock(lock.fileno(), LOCK_EX | LOCK_NB)
            shutil.rmtree(left, ignore_errors=True)
    place = Path(tempfile.mkdtemp(prefix=_PREFIX))
    with (place / _LOCK).open("ab") as lock:
        flock(lock.fileno(), LOCK_EX)
        try:
            yield place / "run"
        finally:
            shutil.rmtree(place, ignore_errors=True)


def _pack(folder: Path) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz", compresslevel=1) as archive:
        archive.add(folder, arcname=".")
    return data.getvalue()


def unpack(data: bytes, place: Path) -> None:
    """Puts the folder of an attempt in its place. Raises OSError, tarfile.TarError."""
    private = place.with_name(f".{place.name}.part")
    shutil.rmtree(private, ignore_errors=True)
    private.mkdir(parents=True, mode=0o700)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        archive.extractall(private, filter="data")
    private.rename(place)
