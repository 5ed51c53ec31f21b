"""Decides on one part of a call, in a fixed order of rules, mode and the user's answers.

deny rules → the mode's ceiling → answers of this session → ask rules → allow rules → limits of an agent → safe commands
→ the mode's default
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from wolo.guard.intents import Intent
from wolo.guard.modes import Mode
from wolo.guard.rule_patterns import HostAddress, HostPattern, PathBase, PathPattern, ShellPattern, TargetPattern
from wolo.guard.rules import Decision, Rule, RuleTool, Verdict
from wolo.guard.shell.parser import ParsedLine, PlainCommand

SAFE = "safe list"
"""Source of a verdict."""


class Subject(NamedTuple):
    """A part of a call to decide on."""

    tool: RuleTool
    value: RuleInput
    about: str
    """Start of the sentence that states the reason."""
    default: Decision
    """The mode's decision."""
    is_safe: bool = False
    """A command that only reads what anyone may read here: allowed in every mode."""


class Precedence:
    def __init__(
        self, mode: Mode, book: Rulebook, grants: Grants, base: PathBase, limits: Mapping[RuleTool, Verdict] | None = None
    ) -> None:
        """`limits`: verdicts of an agent file where no rule applies; answers do not lift a denial."""
        self.mode, self.book, self.grants = mode, book, grants
        self.trace: list[str] | None = None
        """Collects every step if set."""
        self._base = base
        self._limits = limits or {}
        self._granted = Rulebook((), base)

    def decide(self, subject: Subject, extra: Rulebook | None) -> Verdict:
        """`extra` contains allow rules on trial."""
        for step, verdict in self._steps(subject, extra):
            if self.trace is not None:
                self.trace.append(f"  {step}: {verdict.reason if verdict else 'no'}")
            if verdict:
                return verdict
        raise AssertionError("the mode always has an answer")

    def _steps(self, subject: Subject, extra: Rulebook | None) -> Iterator[tuple[str, Verdict | None]]:
        tool, value, about, default, is_safe = subject
        mode = f"mode {self.mode.name}"
        rule = self.book.find("deny", tool, value)
        yield "deny rules", _by_rule(rule, f"{about} is denied by the rule")
        is_over = default == "deny" and not is_safe
        yield "ceiling of the mode", Verdict("deny", f"{about} is not possible in {mode}.", source=mode) if is_over else None
        limit = self._limits.get("mcp" if tool == "tool" else tool)
        is_denied = limit is not None and limit.decision == "deny"
        if self._granted.rules != self.grants.rules:
            self._granted = Rulebook(self.grants.rules, self._base)
        rule = None if is_denied else self._granted.find("allow", tool, value)
        yield "answers", _by_rule(rule, f"{about} is allowed by the rule")
        rule = self.book.find("ask", tool, value)
        yield "ask rules", _by_rule(rule, f"{about} needs an approval by the rule")
        rule = self.book.find("allow", tool, value) or (extra.find("allow", tool, value) if extra else None)
        yield "allow rules", _by_rule(rule, f"{about} is allowed by the rule")
        if limit is not None:
            yield "limits of the agent", limit
        yield (
            "safe commands",
            Verdict("allow", f"{about} only reads what anyone may read here.", source=SAFE) if is_safe else None,
        )
        says = "is allowed" if default == "allow" else "needs an approval"
        yield mode, Verdict(default, f"{about} {says} in {mode}.", source=mode)


def _by_rule(rule: Rule | None, about: str) -> Verdict | None:
    return Verdict(rule.decision, f"{about} {rule}.", str(rule), rule.source) if rule else None


class Grants:
    """Answers of the user in this session; a denial holds for one prompt.

    An answer applies to the exact call: with other arguments, or arguments that resolve elsewhere, it is another call.
    """

    def __init__(self) -> None:
        self.rules: tuple[Rule, ...] = ()
        self._allowed: set[str] = set()
        self.refused: dict[str, str] = {}
        """Calls and reasons, until the user's next prompt; a deny rule holds longer."""

    def remember(self, call: str, *, allowed: bool, rule: Rule | None = None, reason: str = "") -> None:
        """`call` is a `fingerprint`. With a rule, every call that it matches is allowed."""
        if not allowed:
            self.refused[call] = reason
            return
        self.refused.pop(call, None)
        if rule is None:
            self._allowed.add(call)
        elif rule not in self.rules:
            self.rules = (*self.rules, rule)

    def allows(self, call: str) -> bool:
        return call in self._allowed

    def refusal(self, call: str) -> str | None:
        """Reason given with the denial (may be empty); None if it was not denied."""
        return self.refused.get(call)

    def __bool__(self) -> bool:
        return bool(self._allowed or self.refused)


def fingerprint(tool_name: str, intents: Sequence[Intent], arguments: Mapping[str, Any]) -> str:
    text = msgspec.json.encode([tool_name, arguments, list(intents)], enc_hook=str, order="deterministic")
    return blake2b(text, digest_size=16).hexdigest()


class Paths(NamedTuple):
    """Both spellings of one file. Deny and ask rules match either, allow rules only the real path."""

    real: str
    written: str


class Target(NamedTuple):
    name: str
    """`SERVER/TOOL` or an agent's name."""


RuleInput = Paths | PlainCommand | ParsedLine | HostAddress | Target


class Rulebook:
    def __init__(self, rules: Iterable[Rule], base: PathBase) -> None:
        self.rules: tuple[Rule, ...] = ()
        self._base = base
        self._matchers: dict[tuple[Decision, RuleTool], list[tuple[Rule, Callable[[RuleInput], bool]]]] = {}
        for rule in rules:
            self.add(rule)

    def add(self, rule: Rule) -> None:
        self.rules = (*self.rules, rule)
        self._matchers.setdefault((rule.decision, rule.tool), []).append((rule, _matcher(rule, self._base)))

    def find(self, decision: Decision, tool: RuleTool, value: RuleInput) -> Rule | None:
        for rule, matches in self._matchers.get((decision, tool), ()):
            if matches(value):
                return rule
        return None

    def has(self, decision: Decision, tool: RuleTool) -> bool:
        return (decision, tool) in self._matchers


def _matcher(rule: Rule, base: PathBase) -> Callable[[RuleInput], bool]:
    wide = rule.decision != "allow"
    match rule.tool:
        case "read" | "write":
            path = PathPattern(rule.pattern, base, wide=wide)
            return lambda subject: (
                isinstance(subject, Paths) and (path.matches(subject.real) or (wide and path.matches(subject.written)))
            )
        case "shell":
            shell = ShellPattern(rule.pattern)
            if wide:
                return lambda subject: isinstance(subject, PlainCommand | ParsedLine) and shell.forbids(subject)
            return lambda subject: isinstance(subject, PlainCommand) and shell.allows(subject)
        case "fetch":
            host = HostPattern(rule.pattern, wide=wide)
            return lambda subject: isinstance(subject, HostAddress) and host.matches(subject)
        case "mcp" | "tool" | "task":
            target = TargetPattern(rule.tool, rule.pattern, wide=wide)
            return lambda subject: isinstance(subject, Target) and target.matches(subject.name)
