"""What the walls did not let through, read from what a failed command printed: programs say it in their own words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from wolo.guard.protected import RUNS_CODE, fold
from wolo.guard.sandbox.names import AGENTS_FILE

PREFIX = "sandbox denied:"
_MOST_CHARS = 40_000
"""Of the end of the output: that is where a failure is told."""

_READ_ONLY = re.compile(r"read-only file ?system|\bEROFS\b", re.IGNORECASE)
_REFUSED = re.compile(r"permission denied|\bEACCES\b|operation not permitted|\bEPERM\b|device or resource busy", re.IGNORECASE)
_NETWORK = re.compile(
    r"network is unreachable|connection refused|\bECONNREFUSED\b|"
    r"temporary failure in name resolution|could ?n[o']t resolve (?:host|proxy|address)|"
    r"name or service not known|failed to lookup address|unable to resolve host|no address associated with hostname|"
    r"nodename nor servname|NameResolutionError|\bEAI_AGAIN\b|\bENOTFOUND\b|\bENETUNREACH\b|getaddrinfo failed|"
    r"dial (?:tcp|udp)[^\n]*(?:lookup|unreachable)|curl: \((?:6|7)\)|\bcannot connect to the docker daemon|"
    r"could not connect to server: no such file",
    re.IGNORECASE,
)
_SOCKET = re.compile(
    r"\bsockets?\b[^\n]*(?:permission denied|not permitted)|(?:permission denied|not permitted)[^\n]*\bsockets?\b", re.I
)
_SYSTEM = re.compile(
    r"\b(?:unshare|ptrace|strace|gdb|mount|umount|namespaces?|bpf|perf(?:_event_open)?|keyctl|io_uring|setns|chroot)\b"
    r"[^\n]*not permitted|not permitted[^\n]*\b(?:ptrace|namespaces?|mount|io_uring)\b",
    re.IGNORECASE,
)
_NOT_PUT_UP = re.compile(r"^(?:bwrap: |The sandbox cannot be put up)[^\n]*", re.MULTILINE)
_PATH = re.compile(r"(?:^|[\s'\"`‘(=:])(~?/[^\s'\"`’:,;()]+|\.\./[^\s'\"`’:,;()]*)")
_WORD = re.compile(r"[^\s'\"`’‘:,;()/]+")
_PROTECTED = RUNS_CODE | {fold(AGENTS_FILE)}


def what_was_denied(output: str, roots: Sequence[str]) -> str:
    """A line for the result, beginning with `sandbox denied:`; empty when the failure says nothing of the walls.

    `roots` are the directories a command may write to.
    """
    for line in output[:2000].splitlines():
        if line.startswith(PREFIX):
            return line  # the walls could not be put up, and said why
    if failure := _NOT_PUT_UP.match(output):
        return f"{PREFIX} it cannot be put up here ({failure[0]}), so the command was not run."
    ending = output[-_MOST_CHARS:]
    found = [about for about, is_told in _LOOKED_FOR if is_told(ending, roots)]
    if not found:
        return ""
    return f"{PREFIX} inside the sandbox {' and '.join(found)}. Do without it if you can; otherwise tell the user what you need."


def _wrote_elsewhere(output: str, roots: Sequence[str]) -> bool:
    return any(
        _READ_ONLY.search(line) or (_REFUSED.search(line) and _names_something_held(line, roots)) for line in output.splitlines()
    )


def _names_something_held(line: str, roots: Sequence[str]) -> bool:
    paths = [found[1] for found in _PATH.finditer(line)]
    if any(fold(word[0]) in _PROTECTED for word in _WORD.finditer(line)):
        return True
    return any(
        not path.startswith(_TOOLS) and not any(path == root or path.startswith(f"{root}/") for root in roots) for path in paths
    )


_TOOLS = ("/bin/", "/usr/bin/", "/proc/", "/dev/fd/")
"""Named as whoever speaks (`/usr/bin/bash: ./x: Permission denied`), or about itself."""
_LOOKED_FOR = (
    ("only the workspace can be written, and protected names in it cannot", _wrote_elsewhere),
    (
        "there is no network, nor a socket of this machine",
        lambda output, roots: bool(_NETWORK.search(output) or _SOCKET.search(output)),
    ),
    ("some system calls are closed (tracing, mounting, namespaces)", lambda output, roots: bool(_SYSTEM.search(output))),
)
