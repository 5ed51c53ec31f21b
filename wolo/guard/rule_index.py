"""All rules of a conversation, ready to be asked which of them meets a part of a call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from wolo.guard.matching import Ground, Host, HostPattern, PathPattern, ShellPattern, TargetPattern
from wolo.guard.rules import Decision, Rule, RuleTool
from wolo.guard.shell.parser import Command, Line


class Paths(NamedTuple):
    """The spellings of one file: a deny or an ask may know it by either, an allow only by where it really is."""

    real: str
    written: str


class Target(NamedTuple):
    name: str
    """`SERVER/TOOL` or an agent's name."""


Subject = Paths | Command | Line | Host | Target


class Rulebook:
    def __init__(self, rules: Iterable[Rule], ground: Ground) -> None:
        self.rules = tuple(rules)
        self._matchers: dict[tuple[Decision, RuleTool], list[tuple[Rule, Callable[[Subject], bool]]]] = {}
        for rule in self.rules:
            self._matchers.setdefault((rule.decision, rule.tool), []).append((rule, _matcher(rule, ground)))

    def find(self, decision: Decision, tool: RuleTool, subject: Subject) -> Rule | None:
        """The first rule of this decision that meets the subject."""
        for rule, matches in self._matchers.get((decision, tool), ()):
            if matches(subject):
                return rule
        return None

    def has(self, decision: Decision, tool: RuleTool) -> bool:
        return (decision, tool) in self._matchers


def _matcher(rule: Rule, ground: Ground) -> Callable[[Subject], bool]:
    wide = rule.decision != "allow"
    match rule.tool:
        case "read" | "write":
            path = PathPattern(rule.pattern, ground, wide=wide)
            return lambda subject: (
                isinstance(subject, Paths) and (path.matches(subject.real) or (wide and path.matches(subject.written)))
            )
        case "shell":
            shell = ShellPattern(rule.pattern)
            if wide:
                return lambda subject: isinstance(subject, Command | Line) and shell.forbids(subject)
            return lambda subject: isinstance(subject, Command) and shell.allows(subject)
        case "fetch":
            host = HostPattern(rule.pattern, wide=wide)
            return lambda subject: isinstance(subject, Host) and host.matches(subject)
        case "mcp" | "task":
            target = TargetPattern(rule.tool, rule.pattern, wide=wide)
            return lambda subject: isinstance(subject, Target) and target.matches(subject.name)
