"""Appends to a session of its own and says so: `appender.py DATA_DIR TEXT COUNT`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from wolo.messages.message import user
from wolo.sessions.entries import MessageEntry
from wolo.sessions.store import Store


def main() -> None:
    data, text, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    with Store.open(data) as store:
        session = store.create("/")
        acknowledge(session.id)
        for number in range(1, count + 1):
            store.append(session.id, [MessageEntry(message=user(f"{text} {number} {'x' * (number * 37 % 3000)}"))])
            acknowledge(str(number))
            if number == 7:
                store.checkpoint()


def acknowledge(line: str) -> None:
    """In one system call, so that a killed writer leaves whole lines."""
    os.write(1, f"{line}\n".encode())


if __name__ == "__main__":
    main()
