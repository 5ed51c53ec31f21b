"""Needs of test suites beside files work in a sandbox of namespaces; Landlock's refusal is recognised."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import unprivileged
from tests.guard.sandbox_setup import Ground, land, put_up
from tests.guard.test_sandbox_contract import USERS, need, with_mounts
from wolo.guard.denial_detection import refuses_shared

NEEDS = {
    "a server on the loopback": """
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=lambda: server.accept()[0].sendall(b"fine")).start()
print(socket.create_connection(server.getsockname()).recv(9).decode())
""",
    "the same by name, or over IPv6 where there is some": """
import os, socket, threading
has_six = os.path.exists("/proc/net/if_inet6")
server = socket.create_server(("::1" if has_six else "localhost", 0), family=socket.AF_INET6 if has_six else socket.AF_INET)
threading.Thread(target=lambda: server.accept()[0].sendall(b"fine")).start()
print(socket.create_connection(server.getsockname()[:2]).recv(9).decode())
""",
    "datagrams": """
import socket
one, two = socket.socket(2, 2), socket.socket(2, 2)
one.bind(("127.0.0.1", 0))
two.sendto(b"fine", one.getsockname())
print(one.recv(9).decode())
""",
    "a socket in the temporary folder": """
import os, socket, tempfile, threading
place = os.path.join(tempfile.mkdtemp(), "s")
server = socket.socket(1)
server.bind(place)
server.listen()
threading.Thread(target=lambda: server.accept()[0].sendall(b"fine")).start()
caller = socket.socket(1)
caller.connect(place)
print(caller.recv(9).decode())
""",
    "a pool of processes": """
import multiprocessing
if __name__ == "__main__":
    for way in ("fork", "spawn"):
        with multiprocessing.get_context(way).Pool(2) as pool:
            assert pool.map(abs, [-1, -2, 3]) == [1, 2, 3]
    print("fine")
""",
    "a manager of processes": """
import multiprocessing
if __name__ == "__main__":
    with multiprocessing.Manager() as manager:
        kept = manager.dict(said="fine")
        print(kept["said"])
""",
    "shared memory": """
from multiprocessing.shared_memory import SharedMemory
memory = SharedMemory(create=True, size=4096)
memory.buf[:4] = b"fine"
other = SharedMemory(memory.name)
print(bytes(other.buf[:4]).decode())
other.close()
memory.close()
memory.unlink()
""",
    "shared memory by number": """
import ctypes
system = ctypes.CDLL(None, use_errno=True)
print("fine" if system.shmget(7, 4096, 0o1600) >= 0 else "refused: Permission denied to shmget")
""",
    "a file in /dev/shm": """
open("/dev/shm/x", "w").write("fine")
print(open("/dev/shm/x").read())
""",
    "a terminal": """
import os, pty
main, other = pty.openpty()
os.write(other, b"fine\\n")
print(os.read(main, 9).decode().strip())
""",
}


def tried(folder: Path, backend: str, name: str) -> str:
    with Ground(folder) as ground:
        (ground.work / "need.py").write_text(NEEDS[name])
        walls = put_up(backend, ground.profile)
        try:
            done = ground.run('"$PYTHON" need.py', walls)
            return done.stdout + done.stderr
        finally:
            walls.close()


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("name", NEEDS)
@with_mounts
@pytest.mark.parametrize("user", USERS)
def test_it_works_in_namespaces(name: str, backend: str, user: str) -> None:
    need(backend)
    with land(user) as folder:
        assert USERS[user](tried, folder, backend, name) == "fine\n"


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("name", sorted(NEEDS.keys() - {"a terminal"}))
def test_with_landlock_its_refusal_is_recognised(name: str) -> None:
    need("landlock")
    with land() as folder:
        said = unprivileged.call(tried, folder, "landlock", name)
    assert not said.startswith("fine")
    assert refuses_shared(said), said
