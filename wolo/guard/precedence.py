"""The order in which rules, the mode and a person's word decide on one part of a call.

deny rules → the mode's ceiling → what a person allowed in this session → ask rules → allow rules
→ the list of safe commands → what the mode says
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from wolo.guard.grants import Grants
from wolo.guard.matching import Ground
from wolo.guard.modes import Mode
from wolo.guard.rule_index import Rulebook, Subject
from wolo.guard.rules import Decision, Rule, RuleTool, Verdict

SAFE = "safe list"


class Matter(NamedTuple):
    """One part of a call, ready to be decided on."""

    tool: RuleTool
    subject: Subject
    about: str
    """Begins the sentence that gives the reason."""
    default: Decision
    """What the mode says."""
    is_safe: bool = False
    """A command that only reads what anyone may read here: no mode has anything against it."""


class Scales:
    def __init__(self, mode: Mode, book: Rulebook, grants: Grants, ground: Ground) -> None:
        self.mode = mode
        self.book = book
        self.grants = grants
        self.trace: list[str] | None = None
        """Where set, it is told every step."""
        self._ground = ground
        self._granted = Rulebook((), ground)

    def weigh(self, matter: Matter, extra: Rulebook | None) -> Verdict:
        """`extra` holds allow rules to be tried out."""
        for step, verdict in self._steps(matter, extra):
            if self.trace is not None:
                self.trace.append(f"  {step}: {verdict.reason if verdict else 'no'}")
            if verdict:
                return verdict
        raise AssertionError("the mode always has an answer")

    def _steps(self, matter: Matter, extra: Rulebook | None) -> Iterator[tuple[str, Verdict | None]]:
        tool, subject, about, default, is_safe = matter
        mode = f"mode {self.mode.name}"
        rule = self.book.find("deny", tool, subject)
        yield "deny rules", _by_rule(rule, f"{about} is denied by the rule")
        is_over = default == "deny" and not is_safe
        yield "ceiling of the mode", Verdict("deny", f"{about} is not possible in {mode}.", source=mode) if is_over else None
        rule = self._answered().find("allow", tool, subject)
        yield "answers", _by_rule(rule, f"{about} is allowed by the rule")
        rule = self.book.find("ask", tool, subject)
        yield "ask rules", _by_rule(rule, f"{about} needs an approval by the rule")
        rule = self.book.find("allow", tool, subject) or (extra.find("allow", tool, subject) if extra else None)
        yield "allow rules", _by_rule(rule, f"{about} is allowed by the rule")
        yield (
            "safe commands",
            Verdict("allow", f"{about} only reads what anyone may read here.", source=SAFE) if is_safe else None,
        )
        says = "is allowed" if default == "allow" else "needs an approval"
        yield mode, Verdict(default, f"{about} {says} in {mode}.", source=mode)

    def _answered(self) -> Rulebook:
        if self._granted.rules != self.grants.rules:
            self._granted = Rulebook(self.grants.rules, self._ground)
        return self._granted


def _by_rule(rule: Rule | None, about: str) -> Verdict | None:
    return Verdict(rule.decision, f"{about} {rule}.", str(rule), rule.source) if rule else None
