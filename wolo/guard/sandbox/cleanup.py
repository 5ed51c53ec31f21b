"""Removes placeholders after wolo has ended in any way: `cleanup RECORD…`.

A bare Python runs its text as it was when wolo started, so it imports nothing of wolo.
"""

import contextlib
import fcntl
import os
import sys
import time

TRIES, PAUSE_S = 40, 0.05


def sweep(record: int) -> None:
    fcntl.flock(record, fcntl.LOCK_EX | fcntl.LOCK_NB)  # another wolo runs commands there and will sweep
    for path in os.pread(record, os.fstat(record).st_size, 0).split(b"\0")[:-1]:
        with contextlib.suppress(OSError):  # already removed, or no longer empty
            os.rmdir(path)  # noqa: PTH106  # names are bytes here
    os.ftruncate(record, 0)


def main() -> None:
    while os.read(0, 4096):
        pass
    for record in sys.argv[1:]:
        with contextlib.suppress(OSError):
            sweep_soon(os.open(record, os.O_RDWR | os.O_CLOEXEC))


def sweep_soon(record: int) -> None:
    """Retries, because a killed wolo closes its files one by one: the pipe may end before the lock is released."""
    for _ in range(TRIES):
        try:
            sweep(record)
        except BlockingIOError:
            time.sleep(PAUSE_S)
        else:
            return


if __name__ == "__main__":
    main()
