"""Packs what a node of a cluster may lack: this wolo as a wheel, and the folder that a task starts from."""

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
from importlib import metadata
from pathlib import Path
from typing import Literal

from wolo.errors import UsageError
from wolo.fleet.attempts import AttemptRunner
from wolo.fleet.tasks import BatchTask
from wolo.fleet.worktrees import MAX_COPY_BYTES, is_repository
from wolo.workspace.directory_copy import copy_tree, remove_tree
from wolo.workspace.git import GitFailed
from wolo.workspace.git_objects import make_git_dir
from wolo.workspace.git_repository import local_path

_PACKAGE = "wolo-cli"
_ROOT = Path(__file__).parents[2]


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
