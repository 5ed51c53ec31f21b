"""Replaces a self-contained folder of wolo by the newest release, whose hash, and signature where a key is known, was checked."""

from __future__ import annotations

import hashlib
import platform
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from wolo.errors import ConfigError, ExtensionError, SessionError, Unavailable
from wolo.extensions.sources.http_download import load_file

MARK: Final = "lib/self-contained"
"""The file that `make dist` puts there: the name of the folder, the address of its releases, and the key that signs them."""
SIGNER: Final = "wolo"
"""Name and namespace in signatures."""
SILENCE_S: Final = 30.0
MAX_SUMS_BYTES: Final = 1 << 20
MAX_ARCHIVE_BYTES: Final = 1 << 30


class Release(Struct, frozen=True):
    name: str
    """Of the archive, without `.tar.gz`: the release and the machine."""
    address: str
    sha256: str


def find_release(folder: Path, signers: Sequence[str] = ()) -> Release | None:
    """The newest release for this machine; None: the folder is of it. Raises ConfigError and Unavailable.

    With `signers`, or a key of the folder, its checksums must be signed.
    """
    own, address, *keys = [*(folder / MARK).read_text(encoding="utf-8").splitlines(), ""]
    if not address:
        raise ConfigError(
            "This folder does not name the place of its releases, so wolo cannot update it.",
            hint="Unpack a newer archive and replace the folder.",
        )
    data = _load(f"{address}/SHA256SUMS", MAX_SUMS_BYTES)
    if keys := [key for key in signers or keys if key]:
        _check_signature(data, address, keys)
    sums = data.decode(errors="replace")
    pattern = rf"^([0-9a-f]{{64}})  (wolo-[\w.+-]+-linux-{re.escape(platform.machine())})\.tar\.gz$"
    if (match := re.search(pattern, sums, re.MULTILINE)) is None:
        raise Unavailable(f"{address}/SHA256SUMS names no archive for {platform.machine()}; nothing was changed.")
    sha256, name = match.groups()
    return None if name == own else Release(name, f"{address}/{name}.tar.gz", sha256)


def _check_signature(sums: bytes, address: str, keys: Sequence[str]) -> None:
    """Raises Unavailable, also for a release without a signature: whoever changed it could leave that out."""
    try:
        signature = _load(f"{address}/SHA256SUMS.sig", MAX_SUMS_BYTES)
    except Unavailable as error:
        raise Unavailable(f"Only a signed release is installed here. {error.message}", hint=error.hint) from error
    with tempfile.TemporaryDirectory() as scratch:
        signed, signers = Path(scratch, "signature"), Path(scratch, "signers")
        signed.write_bytes(signature)
        signers.write_text("".join(f"{SIGNER} {key}\n" for key in keys), encoding="utf-8")
        verify: list[str | Path] = ["ssh-keygen", "-Y", "verify", "-f", signers, "-I", SIGNER, "-n", SIGNER, "-s", signed]
        try:
            is_signed = subprocess.run(verify, input=sums, capture_output=True, timeout=SILENCE_S, check=False).returncode == 0
        except (OSError, subprocess.SubprocessError) as error:
            raise Unavailable(
                f"The signature of the release cannot be checked: ssh-keygen: {error}. Nothing was changed.",
                hint="Install OpenSSH (Debian: openssh-client).",
            ) from error
    if not is_signed:
        raise Unavailable(f"{address}/SHA256SUMS is not signed by a key that is known here; nothing was changed.")


def replace_folder(folder: Path, release: Release) -> None:
    """Leaves the folder as it is when anything fails. Raises Unavailable and SessionError.

    A wolo that runs in it may find no more of its files and should be ended soon.
    """
    data = _load(release.address, MAX_ARCHIVE_BYTES)
    if hashlib.sha256(data).hexdigest() != release.sha256:
        raise Unavailable(f"{release.address} has another hash than SHA256SUMS says; nothing was changed.")
    try:
        with tempfile.TemporaryDirectory(prefix=".wolo-update-", dir=folder.parent) as scratch:
            archive = Path(scratch, "archive")
            archive.write_bytes(data)
            with tarfile.open(archive, "r:gz") as packed:
                packed.extractall(scratch, filter="data")
            new, old = Path(scratch, release.name), Path(scratch, "old")
            start = subprocess.run([new / "bin" / "wolo", "--version"], capture_output=True, timeout=SILENCE_S, check=False)
            if start.returncode != 0:
                raise Unavailable(f"{release.name} does not start on this machine; nothing was changed.")
            folder.rename(old)
            try:
                new.rename(folder)
            except OSError:
                old.rename(folder)
                raise
            shutil.rmtree(old, ignore_errors=True)
    except (OSError, tarfile.TarError, subprocess.SubprocessError) as error:
        raise SessionError(f"{folder} cannot be replaced: {error}. It is as it was.") from error


def _load(address: str, most_bytes: int) -> bytes:
    try:
        return load_file(address, most_bytes=most_bytes)
    except ExtensionError as error:
        hint = error.hint or "Try again when this machine is online."
        raise Unavailable(f"{error.message} Nothing was changed.", hint=hint) from error
