"""Panels with choices side by side, each with its key; Enter chooses the selected one.

The approval of a call is one of them: No is selected at first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from prompt_toolkit.application.current import get_app
from rich.text import Text

from wolo.agent.events import ApprovalAsked, ApprovalGiven, Scope
from wolo.frontends.terminal.panels.approval_preview import PreviewAnswer
from wolo.frontends.terminal.panels.panel import FRAME_FROM_ROWS, NARROW_COLUMNS, Complaint, Panel, key_hints, one_row
from wolo.frontends.terminal.render.file_diffs import spell
from wolo.messages.terminal_text import clean_line
from wolo.tools.tool_values import Reply

_STEPS = {"left": -1, "up": -1, "back-tab": -1, "right": 1, "down": 1, "tab": 1}


class PanelChoice(NamedTuple):
    key: str
    label: str


NUMBERED = 4
"""Number of first choices that have a number key."""

REASON = "why not › "
RULE = "rule › "
CHANGES = "what to change › "


_YES = "y"
"""Key of a yes, which counts once all of the quoted text was visible, or the second time."""
_NO = PanelChoice("n", "No")
_ACCEPT_EDITS = PanelChoice("f", "Yes, and accept edits from now on")
_BECAUSE = PanelChoice("r", "No, because…")
_EDIT = PanelChoice("e", "Edit the rule")
_NEVER = PanelChoice("v", "Never here")
_SCOPES: dict[str, Scope] = {"s": "session", "a": "always", "w": "everywhere", _NEVER.key: "always"}
"""The scope of an answer, by its key; any other one counts once."""


class ChoiceRow:
    """`selected` is the default choice; without it the first one."""

    def __init__(self, choices: Sequence[PanelChoice], selected: PanelChoice | None = None) -> None:
        self.choices = tuple(choices)
        self.selected = selected or self.choices[0]

    def find(self, key: str) -> PanelChoice | None:
        """Finds a choice by its letter or its number."""
        if key.isdecimal() and 1 <= int(key) <= len(self.choices[:NUMBERED]):
            return self.choices[int(key) - 1]
        return next((each for each in self.choices if each.key == key.lower()), None)

    def select(self, key: str) -> None:
        """Selects a choice by its key, or moves by an arrow."""
        at = self.choices.index(self.selected)
        found = self.find(key)
        self.selected = found or self.choices[(at + _STEPS.get(key, 0)) % len(self.choices)]

    def laid_out(self, columns: int) -> list[Text]:
        """In a narrow window: the keys, and the label of the selected choice."""
        if columns >= NARROW_COLUMNS:
            return one_row([self._cell(each, f"{each.key} {each.label} ") for each in self.choices], columns, between=" ")
        keys = one_row([self._cell(each, each.key) for each in self.choices], columns, between="")
        return [*keys, Text(self.selected.label[:columns], "bold")]

    def _cell(self, choice: PanelChoice, shown: str) -> tuple[str, str]:
        return (f"›{shown}", "selection") if choice == self.selected else (f" {shown}", "")


class ChoicePanel(Panel[str]):
    """Answers with the key of the choice; Esc and Ctrl-D choose the first one. The first line is the title."""

    def __init__(self, lines: Sequence[Text], choices: Sequence[PanelChoice]) -> None:
        self._title, *self._lines = lines
        self._row = ChoiceRow(choices)
        super().__init__()

    def title(self) -> Text:
        return without_mark(self._title)

    def content(self) -> list[Text]:
        return [without_mark(line) for line in self._lines]

    def choices(self, columns: int) -> list[Text]:
        return with_hints(self._row.laid_out(columns), ("Enter", "select"), ("Esc", "cancel"), columns=columns)

    def handle_key(self, key: str) -> None:
        chosen = self._row.selected if key == "enter" else self._row.find(key)
        if key == "end-of-input":
            self.escape()
        elif chosen is not None:
            if chosen.key != _YES or not self.unfold():
                self.resolve(chosen.key)
        elif key in ("left", "right", "tab", "back-tab") or not self.scroll(key):
            self._row.select(key)

    def escape(self) -> None:
        self.resolve(self._row.choices[0].key)


PLAN_CHOICES = {
    "auto": PanelChoice("a", "Start in auto"),
    "edit": PanelChoice("e", "Start with edits approved"),
    "keep": PanelChoice("k", "Keep planning, with words"),
    "revise": PanelChoice("r", "Edit the plan"),
}
"""By the label of the option."""


class PlanPanel(Panel[Reply | None]):
    """Asks about a plan that stands above it. None: nothing was decided (Esc, Ctrl-D)."""

    def __init__(self, options: Sequence[str]) -> None:
        self._labels = {PLAN_CHOICES[option].key: option for option in options}
        self._row = ChoiceRow([PLAN_CHOICES[option] for option in options], PLAN_CHOICES["keep"])
        super().__init__()

    def title(self) -> Text:
        return Text("Start with this plan?")

    def choices(self, columns: int) -> list[Text]:
        if self.is_writing:
            return [key_hints(("Enter", "keep planning"), ("Esc", "back"))]
        return with_hints(
            self._row.laid_out(columns), ("←→", "select"), ("Enter", "confirm"), ("Esc", "decide later"), columns=columns
        )

    def handle_key(self, key: str) -> None:
        if key == "end-of-input":
            self.resolve(None)
        elif chosen := self._row.selected if key == "enter" else self._row.find(key):
            if chosen == PLAN_CHOICES["keep"]:
                self.write(CHANGES)
            else:
                self.resolve(Reply((self._labels[chosen.key],)))
        elif key in _STEPS:
            self._row.select(key)

    def escape(self) -> None:
        self.resolve(None)

    def submit(self, written: str) -> None:
        self.resolve(Reply(("keep",), written.strip()))


def without_mark(line: Text) -> Text:
    """A line as it is inside a border: without the `? ` or the blanks that begin it elsewhere."""
    if line.plain[:2] not in ("? ", "! ", "  "):
        return line
    rest = line[2:]
    rest.no_wrap = line.no_wrap
    return rest


def with_hints(choices: Sequence[Text], *hints: tuple[str, str], columns: int) -> list[Text]:
    """Choices with key hints and room around them, where there is room."""
    if columns < NARROW_COLUMNS or get_app().output.get_size().rows < FRAME_FROM_ROWS:
        return list(choices)
    return [Text(), *choices, Text(), key_hints(*hints)]


class ApprovalPanel(Panel[PreviewAnswer]):
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
            lines.append(Text("“Always” adds the rule ", "dim").append_text(spell(self._rule, "accent")))
        if self._asked.denial:
            lines.append(Text("“Never” denies ", "dim").append_text(spell(self._asked.denial, "accent")))
        return lines

    def choices(self, columns: int) -> list[Text]:
        if self._label == RULE:
            return [Text(clean_line(self._wrong), "warning") if self._wrong else key_hints(("Enter", "save"), ("Esc", "discard"))]
        if self._label == REASON:
            return [key_hints(("Enter", "deny with this reason"), ("Esc", "back"))]
        hints = (("←→", "select"), ("Enter", "confirm"), ("Esc", "stop the turn"))
        return with_hints(self._row.laid_out(columns), *hints, columns=columns)

    def handle_key(self, key: str) -> None:
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
            self.resolve(PreviewAnswer(ApprovalGiven(id=self._asked.id, allowed=False, reason=written.strip())))
        elif not (wrong := self._complaint(written.strip())) or not written.strip():
            self._rule = written.strip() or self._asked.rule
            self._row = self._new_row()
            self._row.select("a" if written.strip() else "n")
            self.leave_field()
            self.redraw()
        else:
            self._wrong = wrong

    def on_edit(self) -> None:
        written = self.field.text.strip()
        self._wrong = self._complaint(written) if written and self._label == RULE else ""

    def _take(self, chosen: PanelChoice) -> None:
        if chosen == _EDIT:
            self.write(RULE, self._rule)
        elif chosen == _BECAUSE:
            self.write(REASON)
        elif chosen.key in (_NO.key, _NEVER.key) or not self.unfold():
            scope = _SCOPES.get(chosen.key, "once")
            allowed = chosen.key not in (_NO.key, _NEVER.key)
            edited = self._rule if allowed and self._rule != self._asked.rule and scope != "once" else ""
            given = ApprovalGiven(id=self._asked.id, allowed=allowed, scope=scope, rule=edited)
            self.resolve(PreviewAnswer(given, chosen == _ACCEPT_EDITS))

    def _new_row(self) -> ChoiceRow:
        if self._asked.walls == "again":
            no = _NO._replace(label="No, keep it sandboxed")
            return ChoiceRow(
                (PanelChoice("y", "Yes, outside the sandbox"), PanelChoice("s", "Outside, this session"), no, _BECAUSE), no
            )
        if self._asked.walls == "restored":
            no = _NO._replace(label="No, keep them restored")
            return ChoiceRow((PanelChoice("y", "Yes, keep the changes"), no, _BECAUSE), no)
        if self._asked.only_once:
            return ChoiceRow((PanelChoice("y", "Yes, run it"), _NO, _BECAUSE), _NO)
        yes, session = PanelChoice("y", "Yes, once"), PanelChoice("s", "This session")
        here, everywhere = (
            ((PanelChoice("a", "Always here"),), (PanelChoice("w", "Always everywhere"),)) if self._rule else ((), ())
        )
        never = (_NEVER,) if self._asked.denial else ()
        if self._may_accept_edits:
            return ChoiceRow((yes, _ACCEPT_EDITS, *here, _NO, session, *everywhere, _EDIT, _BECAUSE, *never), _NO)
        return ChoiceRow((yes, session, *here, _NO, *everywhere, _EDIT, _BECAUSE, *never), _NO)
