"""Waits until wolo has gone, however it went, and takes placeholders away that it could not: `cleanup RECORD…`.

Its text is handed to a bare Python as it was when wolo started, so it stands alone.
"""

import contextlib
import fcntl
import os
import sys
import time

TRIES, PAUSE_S = 40, 0.05


def sweep(record: int) -> None:
    fcntl.flock(record, fcntl.LOCK_EX | fcntl.LOCK_NB)  # another wolo has commands there: that one will sweep
    for path in os.pread(record, os.fstat(record).st_size, 0).split(b"\0")[:-1]:
        with contextlib.suppress(OSError):  # gone already, or no longer empty: then it is somebody's
            os.rmdir(path)  # noqa: PTH106  # names are bytes here
    os.ftruncate(record, 0)


def main() -> None:
    while os.read(0, 4096):
        pass
    for record in sys.argv[1:]:
        with contextlib.suppress(OSError):
            sweep_soon(os.open(record, os.O_RDWR | os.O_CLOEXEC))


def sweep_soon(record: int) -> None:
    """A wolo that is killed closes its files one by one: the pipe may end before the lock is let go."""
    for _ in range(TRIES):
        try:
            sweep(record)
        except BlockingIOError:
            time.sleep(PAUSE_S)
        else:
            return


if __name__ == "__main__":
    main()
