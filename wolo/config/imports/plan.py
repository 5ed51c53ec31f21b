"""Compares the findings with the user's settings, and applies those that are new."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wolo.config.files import lock_folder, open_document, read_own, replace_file
from wolo.config.layers import check_user_file
from wolo.config.translation.findings import SettingFinding
from wolo.errors import ConfigError
from wolo.foreign_places import USERS_FILES
from wolo.places import Notices, Places, find_home

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

_MODES = ("plan", "ask", "edit", "auto")
"""The strictest first."""
Outcome = Literal["add", "same", "yours", "present", "skip"]
_SIGNS: dict[Outcome, str] = {"add": "+", "same": "=", "present": "=", "yours": "~", "skip": "-"}


class Step(Struct, frozen=True):
    finding: SettingFinding
    outcome: Outcome
    text: str

    def __str__(self) -> str:
        return f"{_SIGNS[self.outcome]} {self.text}"


class ImportPlan:
    """What an import would change. Nothing is written before `apply`."""

    def __init__(self, places: Places, root: Path) -> None:
        """Raises ConfigError if the user's settings cannot be read."""
        self.steps: list[Step] = []
        self._root = root
        self._own = places.config / "config.toml"
        self._memory = places.config / "AGENTS.md"
        self._documents = {self._own: open_document(self._own)}
        self._before = {self._own: self._documents[self._own].as_string()}
        self._servers_file = root / ".wolo" / "mcp.json"
        self._servers: dict[str, Any] | None = None
        self._lines: list[str] = []
        self._files: dict[Path, str] = {}
        self._imported: dict[str, SettingFinding] = {}
        """Settings that this plan sets."""
        self._memory_text = (read_own(self._memory, Notices()) or b"").decode("utf-8", "replace")

    @property
    def is_empty(self) -> bool:
        return not any(step.outcome == "add" for step in self.steps)

    def add(self, finding: SettingFinding) -> None:
        if finding.kind in ("skip", "present"):
            outcome: Outcome = "skip" if finding.kind == "skip" else "present"
            self.steps.append(Step(finding, outcome, f"{finding.what}: {finding.why}"))
            return
        try:
            outcome, text = self._add(finding)
            text += f": {finding.why}" if finding.why else ""
        except ConfigError as error:
            outcome, text = "skip", f"{finding.what}: {error.message}"
        self.steps.append(Step(finding, outcome, text))

    def _add(self, finding: SettingFinding) -> tuple[Outcome, str]:
        match finding.kind:
            case "memory":
                # The user's own file replaces those of other agents, so it has to import them
                line = finding.what
                if line in self._memory_text.splitlines():
                    return "same", f"instructions: {line} in {self._memory}"
                home = find_home()
                in_place = next((name for name in USERS_FILES if (home / name).is_file()), "")
                if not self._memory.exists() and not self._lines and line == f"@~/{in_place}":
                    return "present", f"instructions: read from ~/{in_place}"
                first = f"@~/{in_place}"
                self._lines += (
                    [first] if in_place and not self._memory.exists() and first not in self._lines and first != line else []
                )
                self._lines.append(line)
                return "add", f"instructions: {line} in {self._memory}"
            case "file":
                return self._add_file(finding)
            case "server" if finding.is_projects:
                return self._add_project_server(finding)
        path = self._root / ".wolo" / "config.toml" if finding.is_projects else self._own
        other = self._imported.get(f"{path} {finding.what}") if finding.kind == "setting" else None
        if other is not None and other.value != finding.value:
            return (
                "yours",
                f"{finding.what} = {json.dumps(finding.value)}: {json.dumps(other.value)} is taken from {other.source}",
            )
        if path not in self._documents:
            self._check_inside(path)
            self._documents[path] = open_document(path)
            self._before[path] = self._documents[path].as_string()
        import tomlkit  # noqa: PLC0415  # 30 ms, for writing only

        before = self._documents[path].as_string()
        try:
            outcome, text = _put(self._documents[path], finding, path)
            check_user_file(self._documents[path].as_string().encode(), path)
        except ConfigError:
            self._documents[path] = tomlkit.parse(before)
            raise
        if outcome == "add" and finding.kind == "setting":
            self._imported[f"{path} {finding.what}"] = finding
        return outcome, text

    def _check_inside(self, path: Path) -> None:
        """A link of a checkout must not lead the writer elsewhere."""
        if os.path.realpath(path) != str(path):
            raise ConfigError(f"{path} is or contains a link, so it is not written.")

    def _add_project_server(self, finding: SettingFinding) -> tuple[Outcome, str]:
        self._check_inside(self._servers_file)
        if self._servers is None:
            try:
                self._servers = msgspec.json.decode(self._servers_file.read_bytes(), type=dict[str, Any])
            except FileNotFoundError:
                self._servers = {}
            except (OSError, msgspec.MsgspecError) as error:
                raise ConfigError(f"{self._servers_file} cannot be read: {error}.") from error
        outcome, text = _put_server(self._servers.setdefault("mcpServers", {}), finding)
        return outcome, f"{text} in {self._servers_file}, for your consent" if outcome == "add" else text

    def _add_file(self, finding: SettingFinding) -> tuple[Outcome, str]:
        name, text = finding.value
        path = self._own.parent / name
        there = self._files.get(path) or (read_own(path, Notices()) or b"").decode("utf-8", "replace")
        if there or os.path.lexists(path):
            return ("same", finding.what) if there == text else ("yours", f"{finding.what}: {path} stays")
        self._files[path] = text
        return "add", f"{finding.what} in {path}"

    def apply(self, places: Places) -> list[Path]:
        """Writes the changed files, readable by the user only, and returns them. Raises ConfigError."""
        written: list[Path] = []
        with lock_folder(places.config):
            for path, document in self._documents.items():
                if (text := document.as_string()) == self._before[path]:
                    continue
                if open_document(path).as_string() != self._before[path]:
                    raise ConfigError(f"{path} was changed by another program.", hint="Run the command again.")
                path.parent.mkdir(mode=0o700, exist_ok=True)
                replace_file(path, text)
                written.append(path)
            if self._servers is not None and any(
                (step.outcome == "add" and step.finding.kind == "server" and step.finding.is_projects) for step in self.steps
            ):
                self._servers_file.parent.mkdir(mode=0o700, exist_ok=True)
                replace_file(self._servers_file, json.dumps(self._servers, indent=2, ensure_ascii=False) + "\n")
                written.append(self._servers_file)
            for path, text in self._files.items():
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                replace_file(path, text)
                written.append(path)
            if self._lines:
                text = f"{self._memory_text.rstrip()}\n" if self._memory_text.strip() else ""
                replace_file(self._memory, text + "\n".join(self._lines) + "\n")
                written.append(self._memory)
        return written


def make_plan(places: Places, root: Path, findings: Iterable[SettingFinding]) -> ImportPlan:
    """Raises ConfigError if the user's settings cannot be read."""
    plan, found = ImportPlan(places, root), [*findings]
    wanted = [each.value for each in found if _is_mode(each)]
    strictest = min(wanted, key=_MODES.index, default="")
    for finding in found:
        if _is_mode(finding) and finding.value != strictest:
            finding = replace(finding, kind="skip", what=f"mode {finding.value}", why=f"another agent asks more: {strictest}")
        plan.add(finding)
    return plan


def _is_mode(finding: SettingFinding) -> bool:
    return finding.kind == "setting" and finding.what == "mode" and not finding.is_projects


def _put(document: TOMLDocument, finding: SettingFinding, path: Path) -> tuple[Outcome, str]:
    """Changes the document unless the user has a value. Raises ConfigError."""
    where = f" in {path}" if finding.is_projects else ""
    match finding.kind:
        case "rule":
            decision, rule = finding.value
            rules = _table(document, "permissions").setdefault(decision, [])
            if any(rule == (each.get("rule") if isinstance(each, dict) else each) for each in rules):
                return "same", finding.what
            rules.append(rule)
            return "add", finding.what + where
        case "hook":
            event, hook = finding.value
            hooks = _table(document, "hooks").setdefault(event, [])
            if _encode(hook) in [dict(each) for each in hooks]:
                return "same", f"hook {finding.what}"
            hooks.append(_encode(hook))
            return "add", f"hook {finding.what}"
        case "server":
            return _put_server(_table(document, "mcp_servers"), finding)
    *groups, name = finding.what.split(".")
    table: Any = document
    for group in groups:
        table = _table(table, group)
    shown = json.dumps(finding.value, ensure_ascii=False)
    if name not in table:
        table[name] = finding.value
        return "add", f"{finding.what} = {shown}{where}"
    if table[name] == finding.value:
        return "same", f"{finding.what} = {shown}"
    return "yours", f"{finding.what}: yours stays ({json.dumps(table[name], default=str)}); theirs is {shown}"


def _put_server(servers: Any, finding: SettingFinding) -> tuple[Outcome, str]:
    written, text = _encode(finding.value), f"MCP server {finding.what}"
    if finding.what not in servers:
        servers[finding.what] = written
        return "add", text
    is_same = json.dumps(servers[finding.what], sort_keys=True) == json.dumps(written, sort_keys=True)
    return ("same", text) if is_same else ("yours", f"{text}: yours stays")


def _table(within: Any, name: str) -> Any:
    table = within.setdefault(name, {})
    if not isinstance(table, dict):
        raise ConfigError(f"{name} is not a table in your settings.")
    return table


def _encode(value: Struct) -> dict[str, Any]:
    defaults = msgspec.to_builtins(type(value)())
    fields: dict[str, Any] = msgspec.to_builtins(value)
    return {name: each for name, each in fields.items() if each != defaults.get(name) and each is not None}
