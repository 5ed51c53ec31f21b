"""Runs one attempt in a Ray worker, and returns its folder as an archive."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wolo import __version__
from wolo.fleet.agent_run import AgentSettings, Allowance
from wolo.fleet.attempts import AttemptRunner, AttemptView
from wolo.fleet.engines.limit_relay import LimitAddress, at_node
from wolo.fleet.engines.node_supplies import lacks_source, pack, unpack
from wolo.fleet.ledger.outcomes import AttemptOutcome, Lease
from wolo.fleet.run_folder import RunFolder
from wolo.fleet.tasks import BatchTask
from wolo.fleet.worktrees import is_repository
from wolo.operating_system import LOCK_EX, LOCK_NB, flock
from wolo.workspace.directory_copy import remove_tree

if TYPE_CHECKING:
    from ray import ObjectRef

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
    """The attempt's folder, as `pack` makes it."""
    lacks_source: bool = False
    """The folder that the task starts from is not on this node: it is to be sent along."""
    refusal: str = ""
    """The reason why no attempt can run on this node."""


def run_attempt(sent: bytes, sources: Sequence[ObjectRef[bytes]]) -> bytes:
    """Takes and returns JSON, so that a node with another version can say so. `sources` has the packed one, if it was lacking."""
    version = msgspec.json.decode(sent, type=dict[str, object]).get("version")
    if version != __version__:
        return msgspec.json.encode(ReturnedAttempt(refusal=f"the node has wolo {__version__}, and the run needs {version}"))
    attempt = msgspec.json.decode(sent, type=SentAttempt)
    task = attempt.lease.task
    is_lacking = lacks_source(task)
    if is_lacking and not sources:
        return msgspec.json.encode(ReturnedAttempt(lacks_source=True))
    os.environ.update(attempt.environment)
    with scratch_folder() as folder:
        if is_lacking:
            task = _unpack_source(task, sources[0], folder.with_name("source"))
            attempt = replace(attempt, lease=replace(attempt.lease, task=task))
        outcome = asyncio.run(_run(attempt, RunFolder(folder)))
        archive = pack(folder / attempt.lease.folder)
    return msgspec.json.encode(ReturnedAttempt(outcome=outcome, archive=archive))


def _unpack_source(task: BatchTask, packed: ObjectRef[bytes], folder: Path) -> BatchTask:
    """The task as one that starts from there; its commit is the one that is checked out."""
    import ray  # noqa: PLC0415  # an extra

    source = folder / Path(task.repo).name
    unpack(ray.get(packed), source, kind="tar")
    return replace(task, repo=str(source), ref="" if is_repository(source) else task.ref)


async def _run(attempt: SentAttempt, folder: RunFolder) -> AttemptOutcome:
    folder.make()
    runner = AttemptRunner(folder, attempt.settings, "ray")
    try:
        async with at_node(attempt.limits) as runner.limiter:
            return await runner.run(attempt.lease, attempt.allowance, AttemptView(attempt.lease))
    finally:
        runner.close()


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for one attempt; also removes those of workers that were killed."""
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError), (left / _LOCK).open("ab") as lock:
            flock(lock.fileno(), LOCK_EX | LOCK_NB)
            remove_tree(left)
    place = Path(tempfile.mkdtemp(prefix=_PREFIX))
    with (place / _LOCK).open("ab") as lock:
        flock(lock.fileno(), LOCK_EX)
        try:
            yield place / "run"
        finally:
            remove_tree(place)
