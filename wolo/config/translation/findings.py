"""Describes what was found in the settings of another agent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

Kind = Literal["setting", "rule", "server", "hook", "memory", "file", "present", "skip"]


class SettingFinding(Struct, frozen=True, kw_only=True):
    source: Path
    kind: Kind
    what: str
    """A setting, a rule `deny shell:rm *`, the name of a server, the event of a hook; as the user reads it."""
    value: Any = None
    why: str = ""
    """For `skip` the reason, for `present` where it is read; otherwise a remark."""
    is_projects: bool = False
    """From a file of the project: it may only tighten, and is saved in the project."""


class Reading:
    """Collects the findings of one file."""

    def __init__(self, source: Path, *, is_projects: bool = False, anchor: str = "") -> None:
        """`anchor`: for a project's file the folder that its paths are relative to, from the root, with a final slash."""
        self.source, self.anchor, self.is_projects = source, anchor, is_projects
        self.findings: list[SettingFinding] = []

    def add(self, kind: Kind, what: str, value: Any = None, why: str = "") -> None:
        self.findings.append(
            SettingFinding(source=self.source, kind=kind, what=what, value=value, why=why, is_projects=self.is_projects)
        )

    def skip(self, what: str, why: str) -> None:
        self.add("skip", what, why=why)

    def setting(self, key: str, value: Any) -> None:
        if self.is_projects:
            self.skip(f"{key} = {value}", "a project does not set this for you")
        else:
            self.add("setting", key, value)

    def rest(self, table: dict[str, Any], known: set[str]) -> None:
        """Names the settings that nothing was said about."""
        if names := sorted(str(name) for name in table if name not in known and not str(name).startswith("$")):
            self.skip(", ".join(names), "no equivalent in wolo")


def part(table: Mapping[str, Any], key: str) -> dict[str, Any]:
    found = table.get(key)
    return found if isinstance(found, dict) else {}


def items(table: Mapping[str, Any], key: str) -> list[Any]:
    """A list within a table; a single value counts as one."""
    found = table.get(key)
    return found if isinstance(found, list) else [] if found in (None, {}) else [found]
