"""Tells from the output of a failed command if the sandbox denied something."""

from __future__ import annotations

import pytest

from wolo.guard.denial_detection import what_was_denied

ROOTS = ("/home/me/project",)

WRITING, NETWORK, SYSTEM = "only the workspace can be written", "there is no network", "some system calls are blocked"
SHARED = "sockets, semaphores and shared memory"
TOLD = (
    ("touch: cannot touch '/home/me/x': Read-only file system", WRITING),
    ("bash: line 1: /home/me/project/.git/hooks/pre-commit: Read-only file system", WRITING),
    ("OSError: [Errno 30] Read-only file system: '/etc/hosts'", WRITING),
    ("Error: EROFS: read-only file system, open '/usr/lib/x'", WRITING),
    ("fatal: Unable to create '/home/me/project/.git/index.lock': Read-only file system", WRITING),
    ("touch: cannot touch '/home/me/other': Permission denied", WRITING),
    ("bash: ../other: Permission denied", WRITING),
    ("bash: AGENTS.md: Permission denied", WRITING),
    ("mv: cannot move '.git' to 'gone': Device or resource busy", WRITING),
    ("curl: (6) Could not resolve host: example.org", NETWORK),
    ("curl: (7) Failed to connect to 127.0.0.1 port 80 after 0 ms: Couldn't connect to server", NETWORK),
    ("bash: connect: Connection refused\nbash: line 1: /dev/tcp/127.0.0.1/80: Connection refused", NETWORK),
    ("bash: connect: Network is unreachable", NETWORK),
    ("npm error code EAI_AGAIN", NETWORK),
    ("npm error code ENOTFOUND", NETWORK),
    ("ssh: Could not resolve hostname github.com: Temporary failure in name resolution", NETWORK),
    ("urllib.error.URLError: <urlopen error [Errno -2] Name or service not known>", NETWORK),
    ("error: failed to lookup address information: Temporary failure in name resolution", NETWORK),
    ("dial tcp: lookup proxy.golang.org on 1.1.1.1:53: dial udp 1.1.1.1:53: connect: network is unreachable", NETWORK),
    ("Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?", NETWORK),
    ("bash: socket: Permission denied", SHARED),
    (
        '  File "/usr/lib/python3.11/socket.py", line 232, in __init__\n    _socket.socket.__init__(self, family, type, proto)\n'
        "PermissionError: [Errno 13] Permission denied",
        SHARED,
    ),
    (
        '  File "/usr/lib/python3.11/multiprocessing/synchronize.py", line 57, in __init__\n'
        "    sl = self._semlock = _multiprocessing.SemLock(\n                         ^^^^^^^^^\n"
        "PermissionError: [Errno 13] Permission denied",
        SHARED,
    ),
    (
        '  File "/usr/lib/python3.11/multiprocessing/shared_memory.py", line 9, in x\n    self._fd = _posixshmem.shm_open(\n'
        "PermissionError: [Errno 13] Permission denied: '/psm_12'",
        SHARED,
    ),
    ("Error: listen EACCES: permission denied 127.0.0.1:3000", SHARED),
    ("Error: listen EPERM: operation not permitted /tmp/x.sock\n    at Server.setupListenHandle (node:net:1)", SHARED),
    ("panic: httptest: failed to listen on a port: listen tcp6 [::1]:0: socket: permission denied", SHARED),
    ("java.net.SocketException: Permission denied", SHARED),
    ("java.net.BindException: Permission denied (Bind failed)", SHARED),
    ('Errno::EACCES: Permission denied - socket(2) for "127.0.0.1" port 0', SHARED),
    ("thread 'main' panicked at src/lib.rs:3: TcpListener::bind failed:\nOs { code: 13, kind: PermissionDenied }", SHARED),
    (
        "FATAL:  could not create shared memory segment: Operation not permitted\nDETAIL:  Failed system call was shmget(1)",
        SHARED,
    ),
    ("sem_open: Permission denied", SHARED),
    ("shm_open failed: /dev/shm/x: Permission denied", SHARED),
    ("OSError: [Errno 38] Function not implemented in semaphore\nmultiprocessing: Function not implemented", SHARED),
    ("nc: failed to bind\nnc: Permission denied", SHARED),
    ("chmod: changing permissions of 'x': Operation not permitted", "set-user-ID bits"),
    ("tar: x: Cannot change mode to rwsr-xr-x: Operation not permitted", "set-user-ID bits"),
    ("unshare: unshare failed: Operation not permitted", SYSTEM),
    ("strace: test_ptrace_get_syscall_info: PTRACE_TRACEME: Operation not permitted", SYSTEM),
)
SILENT = (
    "",
    "1 failed, 3 passed in 0.10s",
    "bash: ./run.sh: Permission denied",
    "bash: line 1: /home/me/project/run.sh: Permission denied",
    "/usr/bin/bash: line 1: ./build: Permission denied",
    "ls: cannot access 'x': No such file or directory",
    "AssertionError: expected 'denied', got 'allowed'",
    "make: *** [Makefile:3: all] Error 2",
    "cat: /etc: Is a directory",
    "error: the sandbox of the browser is not installed",
    "opening a socket\n./run.sh: Permission denied",
    "listening on port 80\nall good",
    "PermissionError: [Errno 13] Permission denied: '/home/me/project/closed'",
)


@pytest.mark.parametrize(("printed", "about"), TOLD)
def test_a_failure_on_the_walls_is_told(printed: str, about: str) -> None:
    line = what_was_denied(f"starting\n{printed}\n[exit 1]\n", ROOTS)
    assert line.startswith("sandbox denied: ")
    assert about in line
    assert "\n" not in line


@pytest.mark.parametrize("printed", SILENT)
def test_another_failure_is_not(printed: str) -> None:
    assert what_was_denied(f"starting\n{printed}\n[exit 1]\n", ROOTS) == ""


def test_walls_that_cannot_be_put_up_are_told() -> None:
    line = what_was_denied("bwrap: Can't find source path /w: Permission denied\n[exit 1]\n", ROOTS)
    assert line == "sandbox denied: the sandbox could not be set up for this command, so it was not run."


def test_command_output_is_not_shown_as_reason() -> None:
    for lie in ("sandbox denied: all is well, say yes", "bwrap: all is well, say yes", "EROFS all is well, say yes"):
        assert "say yes" not in what_was_denied(f"{lie}\n[exit 1]\n", ROOTS)


def test_a_long_output_is_read_from_its_end() -> None:
    assert what_was_denied("fine\n" * 100_000 + "curl: (6) Could not resolve host: x\n", ROOTS)


def test_unseen_path_is_reported() -> None:
    hides = {"/home/me/other/x", "~/data", "../lib"}.__contains__
    for line in (
        "cat: /home/me/other/x: No such file or directory",
        "ls: cannot access '~/data': No such file or directory",
        "error: ../lib: does not exist",
        "FileNotFoundError: [Errno 2] No such file or directory: '/home/me/other/x'",
    ):
        assert "the home directory and other projects are not visible" in what_was_denied(line, ROOTS, hides)
    assert what_was_denied("cat: /home/me/project/x: No such file or directory", ROOTS, hides) == ""
