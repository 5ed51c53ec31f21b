"""Runs one attempt in a Ray worker, and packs what passes between nodes: its folder, the task's, and wolo itself."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import os
import sysconfig
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wolo import __version__
from wolo.errors import UsageError
from wolo.fleet.agent_run import AgentSettings, Allowance
from wolo.fleet.attempts import AttemptRunner, AttemptView
from wolo.fleet.ledger.limit_sockets import LimitAddress, at_node
from wolo.fleet.ledger.outcomes import AttemptOutcome, Lease
from wolo.fleet.run_folder import RunFolder
from wolo.fleet.tasks import BatchTask
from wolo.fleet.worktrees import MAX_COPY_BYTES, is_repository
from wolo.operating_system import LOCK_EX, LOCK_NB, flock
from wolo.workspace.directory_copy import copy_tree, remove_tree
from wolo.workspace.git import GitFailed
from wolo.workspace.git_objects import make_git_dir
from wolo.workspace.git_repository import local_path

if TYPE_CHECKING:
    from ray import ObjectRef

_PREFIX = "wolo-attempt-"
_LOCK = "lock"
_PACKAGE = "wolo-cli"
_ROOT = Path(__file__).parents[2]


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


def build_wheel(folder: Path) -> Path:
    """Packs the wolo that runs, installed or in a checkout; its name tells its content apart. Raises UsageError, OSError."""
    try:
        installed = metadata.distribution(_PACKAGE)
    except metadata.PackageNotFoundError as error:
        raise UsageError("This wolo is not an installed package, so the nodes cannot get it.") from error
    name = f"{_PACKAGE.replace('-', '_')}-{installed.version}"
    files = {str(path.relative_to(_ROOT.parent)): path for path in sorted(_ROOT.rglob("*"))}
    packed = {each: path.read_bytes() for each, path in files.items() if path.is_file() and path.suffix != ".pyc"}
    packed |= {
        f"{name}.dist-info/{each}": text.encode()
        for each in ("METADATA", "WHEEL", "entry_points.txt")
        if (text := installed.read_text(each)) is not None
    }
    record = "".join(f"{each},sha256={_digest(data)},{len(data)}\n" for each, data in packed.items())
    machine = sysconfig.get_platform().replace("-", "_").replace(".", "_")  # the launcher of the sandbox is compiled
    wheel = folder / f"{name}-1_{hashlib.sha256(record.encode()).hexdigest()[:16]}-py3-none-{machine}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, data in packed.items():
            info = zipfile.ZipInfo(each)
            info.external_attr = (files[each].stat().st_mode if each in files else 0o100644) << 16
            archive.writestr(info, data, zipfile.ZIP_DEFLATED)
        archive.writestr(f"{name}.dist-info/RECORD", f"{record}{name}.dist-info/RECORD,,\n")
    return wheel


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def lacks_source(task: BatchTask) -> bool:
    """Tells whether the task starts from a folder of the machine that made it."""
    source = local_path(task.repo)
    return source is not None and not os.path.lexists(source)


async def pack_source(task: BatchTask, runner: AttemptRunner) -> bytes:
    """A repository with the history of the task's commit, or a copy of a folder that is none. Raises WoloError, OSError."""
    source = local_path(task.repo) or Path(task.repo)
    if not source.exists():
        raise GitFailed(f"{source} is neither on the node nor on this machine.")
    with tempfile.TemporaryDirectory(prefix="wolo-") as above:
        copy = Path(above, "copy")
        if is_repository(source):
            # Not a bundle: that cannot hold a shallow history
            make_git_dir(copy, await runner.mirrors.find(task.repo, task.ref))
            await runner.git.run("repack", "-a", "-d", "-q", cwd=copy, env={"GIT_DIR": str(copy)})
            (copy / "objects/info/alternates").unlink()
        else:
            await asyncio.to_thread(copy_tree, source, copy, most_bytes=MAX_COPY_BYTES)
        return await asyncio.to_thread(pack, copy)


def pack(folder: Path) -> bytes:
    """A compressed tar of its content."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz", compresslevel=1) as archive:
        archive.add(folder, arcname=".")
    return data.getvalue()


def unpack(data: bytes, place: Path, *, kind: Literal["data", "tar"] = "data") -> None:
    """Puts a packed folder in its place. `tar` is for one of this user: links may lead elsewhere. Raises OSError, TarError."""
    private = place.with_name(f".{place.name}.part")
    remove_tree(private)
    private.mkdir(parents=True, mode=0o700)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        archive.extractall(private, filter=kind)
    private.rename(place)
