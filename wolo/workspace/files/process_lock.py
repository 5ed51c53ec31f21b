"""A lock that one process of a user holds at a time, such as while it refreshes a token."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from wolo.operating_system import LOCK_EX, LOCK_NB, flock, os
from wolo.places import make_private

_LONGEST_WAIT_S: Final = 60.0
_POLL_S: Final = 0.05


@asynccontextmanager
async def hold_process_lock(folder: Path, key: str) -> AsyncIterator[None]:
    """Outlives no process; after a minute it is no longer waited for."""
    make_private(folder)
    name = hashlib.sha256(key.encode()).hexdigest()[:32]
    handle = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + _LONGEST_WAIT_S
        while not _try_lock(handle) and time.monotonic() < deadline:  # noqa: ASYNC110  # another process releases it
            await asyncio.sleep(_POLL_S)
        yield
    finally:
        os.close(handle)


def _try_lock(handle: int) -> bool:
    try:
        flock(handle, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        return False
    return True
