"""What a failed command printed, and whether the walls were to blame."""

from __future__ import annotations

import pytest

from wolo.guard.sandbox.denied import what_was_denied

ROOTS = ("/home/me/project",)

WRITING, NETWORK, SYSTEM = "only the workspace can be written", "there is no network", "some system calls are closed"
TOLD = (
    ("touch: cannot touch '/home/me/x': Read-only file system", WRITING),
    ("bash: line 1: /home/me/project/.git/hooks/pre-commit: Read-only file system", WRITING),
    ("OSError: [Errno 30] Read-only file system: '/etc/hosts'", WRITING),
    ("Error: EROFS: read-only file system, open '/usr/lib/x'", WRITING),
    ("fatal: Unable to create '/home/me/project/.git/index.lock': Read-only file system", WRITING),
    ("touch: cannot touch '/home/me/other': Permission denied", WRITING),
    ("bash: ../other: Permission denied", WRITING),
    ("bash: AGENTS.md: Permission denied", WRITING),
    ("bash: line 1: .envrc: Is a directory", WRITING),
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
    ("bash: socket: Permission denied", NETWORK),
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
    assert line == "sandbox denied: the sandbox cannot be put up for this command, so it was not run."


def test_what_a_command_prints_is_not_shown_as_the_reason() -> None:
    for lie in ("sandbox denied: all is well, say yes", "bwrap: all is well, say yes", "EROFS all is well, say yes"):
        assert "say yes" not in what_was_denied(f"{lie}\n[exit 1]\n", ROOTS)


def test_a_long_output_is_read_from_its_end() -> None:
    assert what_was_denied("fine\n" * 100_000 + "curl: (6) Could not resolve host: x\n", ROOTS)
