"""What the walls did not let through, read from what a failed command printed: programs say it in their own words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from wolo.guard.protected import RUNS_CODE, fold

PREFIX = "sandbox denied:"
ADVICE = " Do without it if you can; otherwise tell the user what you need."
"""To the model; a person who is asked does not need it."""
_MOST_CHARS = 40_000
"""Of the end of the output: that is where a failure is told."""

# Plain text: `re` keeps what it has made of it, and most conversations need none.
_READ_ONLY = r"(?i)read-only file ?system|\bEROFS\b"
_REFUSED = r"(?i)permission denied|\bEACCES\b|operation not permitted|\bEPERM\b|device or resource busy|\bEBUSY\b"
_COVERED = r"(?i)is a directory|\bEISDIR\b"
"""What stands for a protected file that is missing is a directory."""
_NETWORK = (
    r"(?i)network is unreachable|connection refused|\bECONNREFUSED\b|"
    r"temporary failure in name resolution|could ?n[o']t resolve (?:host|proxy|address)|"
    r"name or service not known|failed to lookup address|unable to resolve host|no address associated with hostname|"
    r"nodename nor servname|NameResolutionError|\bEAI_AGAIN\b|\bENOTFOUND\b|\bENETUNREACH\b|getaddrinfo failed|"
    r"dial (?:tcp|udp)[^\n]*(?:lookup|unreachable)|curl: \((?:6|7)\)|\bcannot connect to the docker daemon|"
    r"could not connect to server: no such file"
)
_SOCKET = r"(?i)\bsockets?\b[^\n]*(?:permission denied|not permitted)|(?:permission denied|not permitted)[^\n]*\bsockets?\b"
_SYSTEM = (
    r"(?i)\b(?:unshare|ptrace|strace|gdb|mount|umount|namespaces?|bpf|perf(?:_event_open)?|keyctl|io_uring|setns|chroot)\b"
    r"[^\n]*not permitted|not permitted[^\n]*\b(?:ptrace|namespaces?|mount|io_uring)\b"
)
_NOT_PUT_UP = ("bwrap: ", "The sandbox cannot be put up")
_PATH = r"(?:^|[\s'\"`‘(=:])(~?/[^\s'\"`’:,;()]+|\.\./[^\s'\"`’:,;()]*)"
_WORD = r"[^\s'\"`’‘:,;()/]+"


def what_was_denied(output: str, roots: Sequence[str]) -> str:
    """A line for the result, beginning with `sandbox denied:`; empty when the failure says nothing of the walls.

    `roots` are the directories a command may write to. Nothing of the output is in the line: a person will read it.
    """
    if output.startswith(_NOT_PUT_UP):
        return f"{PREFIX} the sandbox cannot be put up for this command, so it was not run."
    ending = output[-_MOST_CHARS:]
    found = [about for about, is_told in _LOOKED_FOR if is_told(ending, roots)]
    if not found:
        return ""
    return f"{PREFIX} inside the sandbox {' and '.join(found)}.{ADVICE}"


def _wrote_elsewhere(output: str, roots: Sequence[str]) -> bool:
    return any(_is_about_writing(line, roots) for line in output.splitlines())


def _is_about_writing(line: str, roots: Sequence[str]) -> bool:
    if re.search(_READ_ONLY, line):
        return True
    if re.search(_COVERED, line):
        return _names_protected(line)
    return re.search(_REFUSED, line) is not None and (_names_protected(line) or _names_elsewhere(line, roots))


def _names_protected(line: str) -> bool:
    return any(fold(word[0]) in RUNS_CODE for word in re.finditer(_WORD, line))


def _names_elsewhere(line: str, roots: Sequence[str]) -> bool:
    paths = [found[1] for found in re.finditer(_PATH, line) if not found[1].startswith(_TOOLS)]
    return any(not any(path == root or path.startswith(f"{root}/") for root in roots) for path in paths)


def _reached_out(output: str, roots: Sequence[str]) -> bool:
    return re.search(_NETWORK, output) is not None or re.search(_SOCKET, output) is not None


def _asked_the_system(output: str, roots: Sequence[str]) -> bool:
    return re.search(_SYSTEM, output) is not None


_TOOLS = ("/bin/", "/usr/bin/", "/proc/", "/dev/fd/")
"""Named as whoever speaks (`/usr/bin/bash: ./x: Permission denied`), or about itself."""
_LOOKED_FOR = (
    ("only the workspace can be written, and protected names in it cannot", _wrote_elsewhere),
    ("there is no network, nor a socket of this machine", _reached_out),
    ("some system calls are closed (tracing, mounting, namespaces)", _asked_the_system),
)
