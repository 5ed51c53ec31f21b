"""Whether a call may run, asked in a panel: one key answers, Enter takes what is selected, and that is No at first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text

from wolo.agent.events import ApprovalAsked, ApprovalGiven, Scope
from wolo.frontends.terminal.panels.panel import NARROW_COLUMNS, Complaint, Panel, one_row
from wolo.frontends.terminal.proposal import proposal
from wolo.frontends.terminal.render.changes import ink
from wolo.messages.parts import ToolPart
from wolo.messages.terminal_text import clean_line

REASON = "why not › "
RULE = "rule › "


class _Choice(NamedTuple):
    key: str
    label: str
    scope: Scope = "once"


_NO = _Choice("n", "No")
_BECAUSE = _Choice("r", "No, because…")
_EDIT = _Choice("e", "Edit the rule")
_HERE = _Choice("a", "Always here", "always")
_EVERYWHERE = _Choice("w", "Always everywhere", "everywhere")


class ApprovalPanel(Panel[ApprovalGiven]):
    def __init__(self, asked: ApprovalAsked, complaint: Complaint, waiting: Sequence[ToolPart] = ()) -> None:
        self._asked, self._complaint, self._waiting = asked, complaint, waiting
        self._rule = asked.rule
        self._wrong = ""
        """What is wrong with the rule as it stands in the field."""
        self._choices = _choices(asked, self._rule)
        self._selected = self._choices[0]
        super().__init__()

    def content(self) -> list[Text]:
        lines = proposal(self._asked, self._waiting)
        if self._rule:
            lines.append(Text("  always would write the rule ", "dim").append_text(ink(self._rule, "cyan")))
        return lines

    def choices(self, columns: int) -> list[Text]:
        if self._label == RULE:
            return [Text(clean_line(self._wrong), "yellow")] if self._wrong else [Text("Enter keeps it, Esc leaves it", "dim")]
        if self._label == REASON:
            return [Text("Enter says no with this reason, Esc goes back", "dim")]
        return self._laid_out(columns)

    def press(self, key: str) -> None:
        chosen = next((each for each in self._choices if each.key == key.lower()), None)
        if key == "enter":
            self._take(self._selected)
        elif key == "end-of-input":
            self._take(_NO)
        elif chosen is not None:
            self._take(chosen)
        elif key in ("left", "right", "tab", "back-tab") or not self.scroll(key):
            self._select(key)

    def submit(self, written: str) -> None:
        if self._label == REASON:
            self.settle(ApprovalGiven(id=self._asked.id, allowed=False, reason=written.strip()))
        elif not (wrong := self._complaint(written.strip())) or not written.strip():
            self._rule = written.strip() or self._asked.rule
            self._choices = _choices(self._asked, self._rule)
            self._selected = _HERE if written.strip() else self._choices[0]
            self.leave_field()
            self.changed()
        else:
            self._wrong = wrong

    def edited(self) -> None:
        written = self.field.text.strip()
        self._wrong = self._complaint(written) if written and self._label == RULE else ""

    def _take(self, chosen: _Choice) -> None:
        if chosen == _EDIT:
            self.write(RULE, self._rule)
        elif chosen == _BECAUSE:
            self.write(REASON)
        else:
            edited = self._rule if self._rule != self._asked.rule and chosen.scope != "once" else ""
            self.settle(ApprovalGiven(id=self._asked.id, allowed=chosen.key != _NO.key, scope=chosen.scope, rule=edited))

    def _select(self, key: str) -> None:
        step = {"left": -1, "up": -1, "back-tab": -1, "right": 1, "down": 1, "tab": 1}.get(key, 0)
        at = self._choices.index(self._selected) if self._selected in self._choices else 0
        self._selected = self._choices[(at + step) % len(self._choices)]

    def _laid_out(self, columns: int) -> list[Text]:
        """In a narrow window the keys alone, and what the selected one means."""
        if columns >= NARROW_COLUMNS:
            return one_row([self._cell(each, f"{each.key} {each.label}") for each in self._choices], columns)
        keys = one_row([self._cell(each, each.key) for each in self._choices], columns, between="")
        return [*keys, Text(self._selected.label[:columns], "bold")]

    def _cell(self, choice: _Choice, shown: str) -> tuple[str, str]:
        return (f"›{shown}", "bold reverse") if choice == self._selected else (f" {shown}", "")


def _choices(asked: ApprovalAsked, rule: str) -> tuple[_Choice, ...]:
    if asked.walls == "again":
        again = (_Choice("y", "Yes, outside, once"), _Choice("s", "Outside for this session", "session"))
        return (_NO._replace(label="No, it stays inside"), *again, _BECAUSE)
    always = (_HERE, _EVERYWHERE) if rule else ()
    return (_NO, _Choice("y", "Yes, once"), _Choice("s", "This session", "session"), *always, _EDIT, _BECAUSE)
