"""Detects from the output of a command what the sandbox denied."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from wolo.guard.protected_paths import RUNS_CODE, fold

PREFIX = "sandbox denied:"
ADVICE = " Work without it if you can; otherwise tell the user what you need."
"""For the model only."""
_MOST_CHARS = 40_000
"""Only the end of the output is searched, where failures are reported."""

# Not compiled at import: most conversations need none of them.
_READ_ONLY = r"(?i)read-only file ?system|\bEROFS\b"
_REFUSED = r"(?i)permission denied|\bEACCES\b|operation not permitted|\bEPERM\b|device or resource busy|\bEBUSY\b"
_MISSING = r"(?i)no such file or directory|\bENOENT\b|does not exist|not found|cannot find|can't find|could not find"
_NETWORK = (
    r"(?i)network is unreachable|connection refused|\bECONNREFUSED\b|"
    r"temporary failure in name resolution|could ?n[o']t resolve (?:host|proxy|address)|"
    r"name or service not known|failed to lookup address|unable to resolve host|no address associated with hostname|"
    r"nodename nor servname|NameResolutionError|\bEAI_AGAIN\b|\bENOTFOUND\b|\bENETUNREACH\b|getaddrinfo failed|"
    r"dial (?:tcp|udp)[^\n]*(?:lookup|unreachable)|curl: \((?:6|7)\)|\bcannot connect to the docker daemon|"
    r"could not connect to server: no such file"
)
_SHARED = (
    r"(?i)\bsockets?\b|\bsocketpair\b|\blisten(?:ing|er)?\b|\bbind(?:ing)?\b|\b(?:Tcp|Unix|Udp)(?:Listener|Stream|Socket)\b|"
    r"\b(?:Server)?Socket(?:Exception)?\b|\bBindException\b|\bsem_?lock\b|\bsem_(?:open|init)\b|\bsemaphores?\b|"
    r"\b(?:shm|sem|msg)get\b|\bshm_(?:open|unlink)\b|\bshared[ _-]?memory\b|\bmultiprocessing\b|\bmq_open\b|/dev/shm\b"
)
"""Resources that test suites open: sockets, semaphores, shared memory."""
_REFUSED_AT_END = (
    r"(?i)^[^/]*(?:permission ?denied|operation not permitted|function not implemented|\bEACCES\b|\bEPERM\b|\bENOSYS\b)"
    r"[^\w'\"/]*(?:\(os error \d+\)|'/[\w.-]+')?[^\w'\"/]*$"
)
"""A refusal without a file name (except shared memory): an earlier line says what was refused."""
_LINES_BEFORE = 4
_SET_ID = (
    r"(?i)(?:changing permissions of|cannot change (?:mode|permissions)|\bchmod\b|\bsetuid\b|\bset-user-id\b)[^\n]*not permitted|"
    r"not permitted[^\n]*\bchmod\b"
)
_SYSTEM = (
    r"(?i)\b(?:unshare|ptrace|strace|gdb|mount|umount|namespaces?|bpf|perf(?:_event_open)?|keyctl|io_uring|setns|chroot)\b"
    r"[^\n]*not permitted|not permitted[^\n]*\b(?:ptrace|namespaces?|mount|io_uring)\b"
)
_TOOLS = ("/bin/", "/usr/bin/", "/proc/", "/dev/fd/")
"""Paths that name the reporting program itself (`/usr/bin/bash: ./x: Permission denied`)."""
_NOT_SET_UP = ("bwrap: ", "Cannot set up the sandbox")
_PATH = r"(?:^|[\s'\"`‘(=:])(~?/[^\s'\"`’:,;()]+|\.\./[^\s'\"`’:,;()]*)"
_WORD = r"[^\s'\"`’‘:,;()/]+"


def what_was_denied(
    output: str, roots: Sequence[str], hides: Callable[[str], bool] = lambda path: False, *, of_network: bool = True
) -> str:
    """A line for the result, starting with `sandbox denied:`; empty if the sandbox did not cause the failure.

    `roots` are the writable directories; `hides` tells what the command cannot see; without `of_network` its connections are
    known better. The line contains nothing of the output,
    because the user reads it.
    """
    if output.startswith(_NOT_SET_UP):
        return f"{PREFIX} the sandbox could not be set up for this command, so it was not run."
    ending = output[-_MOST_CHARS:]
    lines = ending.splitlines()
    refusals = [line for line in lines if re.search(_REFUSED, line)]
    is_outside = any(not any(path == root or path.startswith(f"{root}/") for root in roots) for path in _paths_in(refusals))
    names_protected = any(fold(word[0]) in RUNS_CODE for line in refusals for word in re.finditer(_WORD, line))
    denied = []
    if is_outside or names_protected or any(re.search(_READ_ONLY, line) for line in lines):
        denied.append("only the workspace can be written, and protected names in it cannot")
    if of_network and re.search(_NETWORK, ending):
        denied.append("there is no network, and no connection to programs outside")
    if refuses_shared(ending):
        denied.append("sockets, semaphores and shared memory are blocked or private")
    if re.search(_SET_ID, ending):
        denied.append("no file gets set-user-ID bits")
    if re.search(_SYSTEM, ending):
        denied.append("some system calls are blocked (tracing, mounting, namespaces)")
    if any(map(hides, _paths_in(line for line in lines if re.search(_MISSING, line) or re.search(_REFUSED, line)))):
        denied.append("the home directory and other projects are not visible, except for tools")
    return f"{PREFIX} inside the sandbox {' and '.join(denied)}.{ADVICE}" if denied else ""


def _paths_in(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield from (match[1] for match in re.finditer(_PATH, line) if not match[1].startswith(_TOOLS))


def refuses_shared(output: str) -> bool:
    """Tells whether sockets, semaphores or shared memory were refused, even across the lines of a traceback."""
    lines = output[-_MOST_CHARS:].splitlines()
    for number, line in enumerate(lines):
        if re.search(_REFUSED, line) is None and re.search(_REFUSED_AT_END, line) is None:
            continue
        before = lines[max(number - _LINES_BEFORE, 0) : number] if re.search(_REFUSED_AT_END, line) else ()
        if any(re.search(_SHARED, each) for each in (line, *before)):
            return True
    return False
