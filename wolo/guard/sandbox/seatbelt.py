"""Confines commands with macOS Seatbelt. In a profile of `sandbox-exec` the last matching rule wins."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from wolo.guard.protected_paths import AT_THE_TOP, RUNS_CODE
from wolo.guard.sandbox.backend import NO_DOMAINS, Backend, cannot_apply
from wolo.guard.sandbox.mounts import is_below
from wolo.guard.sandbox.profile import SandboxProfile
from wolo.guard.sandbox_contract import SandboxedCommand

BINARY = "/usr/bin/sandbox-exec"
COVERS = ("writing outside the workspace", "protected names", "secrets", "network", "host sockets", "signals to other processes")
NOT_COVERED = (
    "visibility of other processes",
    "macOS services",
    "reading other files, including secrets of other projects",
    "files in the workspace",
    NO_DOMAINS,
)
_DEVICES = ("null", "zero", "random", "urandom", "tty", "ptmx")
_LAUNCHING = (
    "com.apple.coreservices.launchservicesd",
    "com.apple.coreservices.appleevents",
    "com.apple.lsd.open",
    "com.apple.pasteboard.1",
    "com.apple.securityd.xpc",
    "com.apple.SecurityServer",
)
"""Services that start programs outside or reveal secrets."""


class Seatbelt(Backend):
    backend = "seatbelt"
    covers: tuple[str, ...] = COVERS
    not_covered: tuple[str, ...] = NOT_COVERED

    def hides(self, path: str) -> bool:
        return any(is_below(path, each) for each in (*self._profile.hidden, *self._profile.own))

    def wrap(
        self, argv: Sequence[str], cwd: Path, *, only_reads: bool = False, in_background: bool = False, proxy_fd: int = -1
    ) -> SandboxedCommand:
        assert proxy_fd < 0  # without `has_proxy`
        try:
            tmp = str(self._scratch.tmp)
            names = self._names()
        except OSError as error:
            raise cannot_apply(error) from error
        present = [path for each in names.values() for path in each.present]
        held = {} if only_reads or in_background else names
        ending = self._begin(held, self._hard_links(held), mounted=present if held else ())
        variables = (f"{name}={value}" for name, value in self._environment(tmp).items())
        return SandboxedCommand(
            (BINARY, "-p", profile_text(self._profile, present, tmp), "/usr/bin/env", *variables, *argv), cleanup=ending
        )


def profile_text(profile: SandboxProfile, present: Iterable[str], tmp: str) -> str:
    """`present` are existing protected names; names at the top of a directory are protected even if missing."""
    missing = [f"{root}/{name}" for root in profile.writable for name in sorted(RUNS_CODE.union(AT_THE_TOP))]
    patterns = [f"^{_literal(root)}/[^/]*[.]code-workspace$" for root in profile.writable]
    rules = (
        "(version 1)",
        "(allow default)",
        "(deny network*)",
        "(deny appleevent-send)",
        f"(deny mach-lookup {' '.join(f'(global-name {_quote(name)})' for name in _LAUNCHING)})",
        "(deny signal)",
        "(allow signal (target same-sandbox))",
        "(deny file-write*)",
        _rule("allow", "file-write*", "subpath", (*profile.writable, os.path.realpath(tmp))),
        _rule("allow", "file-write*", "literal", (f"/dev/{name}" for name in _DEVICES)),
        _rule("deny", "file-write*", "subpath", dict.fromkeys((*present, *missing, *profile.own, *profile.kept))),
        _rule("deny", "file-write*", "regex", patterns),
        _rule("deny", "file-read*", "subpath", (*profile.hidden, *profile.own)),
        _rule("allow", "file-read*", "subpath", (*profile.shown, os.path.realpath(tmp))),
        _rule("allow", "file-write*", "subpath", (os.path.realpath(tmp),)),
        "(deny file-write-setugid)",
    )
    return "\n".join(filter(None, rules)) + "\n"


def _rule(decision: str, what: str, kind: str, paths: Iterable[str]) -> str:
    named = "".join(f" ({kind} {_quote(path)})" for path in paths)
    return f"({decision} {what}{named})" if named else ""


def _literal(path: str) -> str:
    """The path as a regular expression: all but plain characters stand in brackets."""
    return re.sub(r"[][^$.*+?(){}|\\]", lambda found: f"[{found[0]}]" if found[0] not in "^\\" else f"\\{found[0]}", path)


def _quote(text: str) -> str:
    """Escapes quotes, so that a name cannot end the string."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
