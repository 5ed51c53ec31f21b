"""Asks in a panel whether a call may run: one key answers, Enter takes what is selected, and that is No at first."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from wolo.agent.events import ApprovalAsked, ApprovalGiven, Scope
from wolo.frontends.terminal.panels.approval_preview import Answer
from wolo.frontends.terminal.panels.button_row import Choice, ChoiceRow
from wolo.frontends.terminal.panels.panel import Complaint, Panel
from wolo.frontends.terminal.render.changes import ink
from wolo.messages.terminal_text import clean_line

REASON = "why not › "
RULE = "rule › "


_NO = Choice("n", "No")
_ACCEPT_EDITS = Choice("f", "Yes, and accept edits from now on")
_BECAUSE = Choice("r", "No, because…")
_EDIT = Choice("e", "Edit the rule")
_SCOPES: dict[str, Scope] = {"s": "session", "a": "always", "w": "everywhere"}
"""How long a yes holds, by the key; any other one counts once."""


class ApprovalPanel(Panel[Answer]):
    """`may_accept_edits`: it offers not to ask about later edits."""

    def __init__(self, asked: ApprovalAsked, lines: Sequence[Text], complaint: Complaint, *, may_accept_edits: bool) -> None:
        self._asked, self._lines, self._complaint = asked, lines, complaint
        self._may_accept_edits = may_accept_edits
        self._rule = asked.rule
        self._wrong = ""
        """What is wrong with the rule as it stands in the field."""
        self._row = self._new_row()
        super().__init__()

    def content(self) -> list[Text]:
        lines = list(self._lines)
        if self._rule:
            lines.append(Text("  always would write the rule ", "dim").append_text(ink(self._rule, "cyan")))
        return lines

    def choices(self, columns: int) -> list[Text]:
        if self._label == RULE:
            return [Text(clean_line(self._wrong), "yellow")] if self._wrong else [Text("Enter keeps it, Esc leaves it", "dim")]
        if self._label == REASON:
            return [Text("Enter says no with this reason, Esc goes back", "dim")]
        return self._row.laid_out(columns)

    def press(self, key: str) -> None:
        if key == "enter":
            self._take(self._row.selected)
        elif key == "end-of-input":
            self._take(_NO)
        elif chosen := self._row.find(key):
            self._take(chosen)
        elif key in ("left", "right", "tab", "back-tab") or not self.scroll(key):
            self._row.select(key)

    def submit(self, written: str) -> None:
        if self._label == REASON:
            self.settle(Answer(ApprovalGiven(id=self._asked.id, allowed=False, reason=written.strip())))
        elif not (wrong := self._complaint(written.strip())) or not written.strip():
            self._rule = written.strip() or self._asked.rule
            self._row = self._new_row()
            self._row.select("a" if written.strip() else "n")
            self.leave_field()
            self.changed()
        else:
            self._wrong = wrong

    def edited(self) -> None:
        written = self.field.text.strip()
        self._wrong = self._complaint(written) if written and self._label == RULE else ""

    def _take(self, chosen: Choice) -> None:
        if chosen == _EDIT:
            self.write(RULE, self._rule)
        elif chosen == _BECAUSE:
            self.write(REASON)
        else:
            scope = _SCOPES.get(chosen.key, "once")
            edited = self._rule if self._rule != self._asked.rule and scope != "once" else ""
            given = ApprovalGiven(id=self._asked.id, allowed=chosen.key != _NO.key, scope=scope, rule=edited)
            self.settle(Answer(given, chosen == _ACCEPT_EDITS))

    def _new_row(self) -> ChoiceRow:
        if self._asked.walls == "again":
            no = _NO._replace(label="No, it stays inside")
            return ChoiceRow((Choice("y", "Yes, outside, once"), Choice("s", "Outside for this session"), no, _BECAUSE), no)
        if self._asked.walls == "restored":
            no = _NO._replace(label="No, they stay restored")
            return ChoiceRow((Choice("y", "Yes, keep its version"), no, _BECAUSE), no)
        if self._asked.only_once:
            return ChoiceRow((Choice("y", "Yes, run it"), _NO, _BECAUSE), _NO)
        yes, session = Choice("y", "Yes, once"), Choice("s", "This session")
        here, everywhere = ((Choice("a", "Always here"),), (Choice("w", "Always everywhere"),)) if self._rule else ((), ())
        if self._may_accept_edits:
            return ChoiceRow((yes, _ACCEPT_EDITS, *here, _NO, session, *everywhere, _EDIT, _BECAUSE), _NO)
        return ChoiceRow((yes, session, *here, _NO, *everywhere, _EDIT, _BECAUSE), _NO)
