"""Files without a name, for what is handed to a program through a descriptor."""

from __future__ import annotations

import os


def in_memory(data: bytes) -> int:
    """A descriptor to read this from, from its beginning."""
    fd = os.memfd_create("wolo-walls", os.MFD_CLOEXEC)
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
