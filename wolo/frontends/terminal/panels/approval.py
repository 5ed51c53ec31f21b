"""Asks in a panel whether a call may run: one key answers; Enter chooses the selected answer, No at first."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from wolo.agent.events import ApprovalAsked, ApprovalGiven, Scope
from wolo.frontends.terminal.panels.approval_preview import Answer
from wolo.frontends.terminal.panels.button_row import Choice, ChoiceRow, with_hints, without_mark
from wolo.frontends.terminal.panels.panel import Complaint, Panel, key_hints
from wolo.frontends.terminal.render.file_changes import spelled
from wolo.messages.terminal_text import clean_line

REASON = "why not › "
RULE = "rule › "


_NO = Choice("n", "No")
_ACCEPT_EDITS = Choice("f", "Yes, and accept edits from now on")
_BECAUSE = Choice("r", "No, because…")
_EDIT = Choice("e", "Edit the rule")
_SCOPES: dict[str, Scope] = {"s": "session", "a": "always", "w": "everywhere"}
"""The scope of a yes, by its key; any other yes counts once."""


class ApprovalPanel(Panel[Answer]):
    """`may_accept_edits`: offers to allow later edits, too. The first of the `lines` is the title."""

    def __init__(self, asked: ApprovalAsked, lines: Sequence[Text], complaint: Complaint, *, may_accept_edits: bool) -> None:
        self._asked, self._complaint = asked, complaint
        self._title, *self._lines = lines
        self._may_accept_edits = may_accept_edits
        self._rule = asked.rule
        self._wrong = ""
        """The error of the rule in the field."""
        self._row = self._new_row()
        super().__init__()

    def title(self) -> Text:
        return without_mark(self._title)

    def content(self) -> list[Text]:
        lines = [without_mark(line) for line in self._lines]
        if self._rule:
            lines.append(Text("“Always” adds the rule ", "dim").append_text(spelled(self._rule, "accent")))
        return lines

    def choices(self, columns: int) -> list[Text]:
        if self._label == RULE:
            return [Text(clean_line(self._wrong), "warning") if self._wrong else key_hints(("Enter", "save"), ("Esc", "discard"))]
        if self._label == REASON:
            return [key_hints(("Enter", "deny with this reason"), ("Esc", "back"))]
        hints = (("←→", "select"), ("Enter", "confirm"), ("Esc", "deny and stop"))
        return with_hints(self._row.laid_out(columns), *hints, columns=columns)

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
            no = _NO._replace(label="No, keep it sandboxed")
            return ChoiceRow((Choice("y", "Yes, outside the sandbox"), Choice("s", "Outside, this session"), no, _BECAUSE), no)
        if self._asked.walls == "restored":
            no = _NO._replace(label="No, keep them restored")
            return ChoiceRow((Choice("y", "Yes, keep the changes"), no, _BECAUSE), no)
        if self._asked.only_once:
            return ChoiceRow((Choice("y", "Yes, run it"), _NO, _BECAUSE), _NO)
        yes, session = Choice("y", "Yes, once"), Choice("s", "This session")
        here, everywhere = ((Choice("a", "Always here"),), (Choice("w", "Always everywhere"),)) if self._rule else ((), ())
        if self._may_accept_edits:
            return ChoiceRow((yes, _ACCEPT_EDITS, *here, _NO, session, *everywhere, _EDIT, _BECAUSE), _NO)
        return ChoiceRow((yes, session, *here, _NO, *everywhere, _EDIT, _BECAUSE), _NO)
