"""Panels with one choice a row, each with its keys; Enter chooses the selected one.

A digit means the same in all of them: 1 is yes, 2 is yes for longer, 3 is no. No is selected at first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from prompt_toolkit.application.current import get_app
from rich.text import Text

from wolo.agent.events import ApprovalAsked, ApprovalGiven, Scope
from wolo.frontends.terminal.panels.approval_preview import WRITE, PreviewAnswer, effects, risks
from wolo.frontends.terminal.panels.panel import Fold, Panel, key_hints, one_row
from wolo.frontends.terminal.render.file_diffs import spell
from wolo.guard.intents import ReadIntent, RunIntent, WriteIntent
from wolo.messages.terminal_text import clean_line
from wolo.tools.tool_values import Reply

T = TypeVar("T")
_STEPS = {"left": -1, "up": -1, "back-tab": -1, "right": 1, "down": 1, "tab": 1}
_LIST_FROM_ROWS = 10
"""In a lower window the keys stand side by side."""


class PanelChoice(NamedTuple):
    key: str
    label: str
    letter: str = ""
    """A second key, drawn behind the label."""


REASON = "why not › "
RULE = "rule › "
CHANGES = "what to change › "

YES, SESSION, NO, PLAIN_NO, RULES = "1", "2", "3", "n", "a"
"""Keys of choices. A yes counts once all of the quoted text was visible, or the second time."""
_HERE, _EVERYWHERE, _NEVER, _EDIT, _ACCEPT_EDITS = "h", "w", "v", "e", "f"
_SCOPES: dict[str, Scope] = {SESSION: "session", "s": "session", _HERE: "always", _EVERYWHERE: "everywhere", _NEVER: "always"}
"""The scope of an answer, by its key; any other one counts once."""


class ChoiceList:
    """`selected` is the key of the default choice. `others` are keys that work and are drawn below the choices."""

    def __init__(self, choices: Sequence[PanelChoice], selected: str, others: Sequence[tuple[str, str]] = ()) -> None:
        self.choices = tuple(choices)
        self.others = tuple(others)
        self.selected = next((each for each in self.choices if each.key == selected), self.choices[-1])

    def find(self, key: str) -> str:
        """The key of the choice; empty for a key that chooses nothing."""
        typed = key.lower()
        at = next((each.key for each in self.choices if typed in (each.key, each.letter)), "")
        return at or next((each for each, _ in self.others if each == typed), "")

    def move(self, key: str) -> None:
        at = self.choices.index(self.selected)
        self.selected = self.choices[(at + _STEPS.get(key, 0)) % len(self.choices)]

    def laid_out(self, columns: int, *hints: tuple[str, str]) -> list[Text]:
        """One choice a row, then the key hints: all, or the last where they do not fit one row.

        In a low window: the keys side by side, and the label of the selected choice.
        """
        if get_app().output.get_size().rows >= _LIST_FROM_ROWS:
            row = key_hints(*self.others, *hints)
            if row.cell_len > columns:
                row = key_hints(*self.others, hints[-1])
            return [*(self._row(each) for each in self.choices), row]
        cells = [(f"› {each.key}", "selection") if each == self.selected else (each.key, "") for each in self.choices]
        keys = one_row([*cells, *((key, "") for key, _ in self.others)], columns, between=" ")
        return [*keys, Text(self.selected.label[:columns], "bold")]

    def _row(self, choice: PanelChoice) -> Text:
        letter = (f"  {choice.letter}", "dim") if choice.letter else ""
        if choice == self.selected:
            return Text.assemble((f"› {choice.key} {choice.label}", "selection"), letter)
        return Text.assemble(f"  {choice.key} {choice.label}", letter)


class ListPanel(Panel[T]):
    """A panel with a list of choices, of which `take` gets the key; Ctrl-D is Esc unless a panel says otherwise."""

    _list: ChoiceList

    def take(self, chosen: str) -> None:
        """Handles a choice."""

    def end_of_input(self) -> None:
        self.escape()

    def handle_key(self, key: str) -> None:
        if key == "end-of-input":
            self.end_of_input()
        elif chosen := self._list.selected.key if key == "enter" else self._list.find(key):
            self.take(chosen)
        elif key in _STEPS:
            self._list.move(key)
        else:
            self.scroll(key)


class ChoicePanel(ListPanel[str]):
    """Answers with the key of the choice; Esc and Ctrl-D choose NO. The first line is the title."""

    def __init__(self, lines: Sequence[Text], choices: Sequence[PanelChoice]) -> None:
        self._title, *self._lines = lines
        self._list = ChoiceList(choices, NO)
        super().__init__()

    def title(self) -> Text:
        return without_mark(self._title)

    def content(self) -> list[Text]:
        return [without_mark(line) for line in self._lines]

    def choices(self, columns: int) -> list[Text]:
        hints = (("↑↓", "select"), ("Enter", "confirm"), ("Esc", "cancel"))
        return self._list.laid_out(columns, *hints)

    def take(self, chosen: str) -> None:
        if chosen != YES or not self.unfold():
            self.resolve(chosen)

    def escape(self) -> None:
        self.resolve(NO)


PLAN_CHOICES = {
    "auto": PanelChoice(YES, "Start in auto", "a"),
    "edit": PanelChoice(SESSION, "Start with edits approved", "e"),
    "keep": PanelChoice(NO, "Keep planning, with words", "k"),
    "revise": PanelChoice("r", "Edit the plan"),
}
"""By the label of the option."""


class PlanPanel(ListPanel[Reply | None]):
    """Asks about a plan that stands above it. None: nothing was decided (Esc, Ctrl-D)."""

    def __init__(self, options: Sequence[str]) -> None:
        self._labels = {PLAN_CHOICES[option].key: option for option in options}
        self._list = ChoiceList([PLAN_CHOICES[option] for option in options], NO)
        super().__init__()

    def title(self) -> Text:
        return Text("Start with this plan?")

    def choices(self, columns: int) -> list[Text]:
        if self.is_writing:
            return [key_hints(("Enter", "keep planning"), ("Esc", "back"))]
        hints = (("↑↓", "select"), ("Enter", "confirm"), ("Esc", "decide later"))
        return self._list.laid_out(columns, *hints)

    def take(self, chosen: str) -> None:
        if chosen == NO:
            self.write(CHANGES)
        else:
            self.resolve(Reply((self._labels[chosen],)))

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


def _plain_name(asked: ApprovalAsked) -> str:
    """The only file, in the workspace, that would be written; empty if its name could pass for other text."""
    paths = {intent.path for intent in asked.intents if isinstance(intent, WriteIntent | ReadIntent)}
    is_alone = len(paths) == 1 and all(isinstance(each, WriteIntent | ReadIntent) and each.inside for each in asked.intents)
    path = paths.pop() if is_alone else Path()
    name = str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
    return name if is_alone and re.fullmatch(r"[\w./+-]+", name) else ""


class ApprovalPanel(ListPanel[PreviewAnswer]):
    """`may_accept_edits`: offers to allow later edits, too. The first of the `lines` is the title."""

    def __init__(
        self, asked: ApprovalAsked, lines: Sequence[Text], complaint: Callable[[str], str], *, may_accept_edits: bool
    ) -> None:
        """`complaint` returns the error of a rule that was typed; empty when it is valid."""
        self._asked, self._complaint = asked, complaint
        self._risks = risks(asked)
        self._title, *others = lines
        self._lines = [line for line in others if line not in self._risks]
        self._file = _plain_name(asked) if self._title.plain == f"? {WRITE}" else ""
        """A file that the title may name."""
        self._may_accept_edits = may_accept_edits
        self._rule = asked.rule
        self._wrong = ""
        """The error of the rule in the field."""
        self._is_about_rules = False
        """The choices are those behind RULES."""
        self._list = self._answers()
        super().__init__()

    def title(self) -> Text:
        return Text(" · ").join([self._question, *self._split_risks()[0]])

    @property
    def _names_file(self) -> bool:
        columns = get_app().output.get_size().columns
        return self.has_room_for_frame and bool(self._file) and len(f"╭─ Write {self._file}?") < columns

    @property
    def _question(self) -> Text:
        return Text(f"Write {self._file}?", "bold") if self._names_file else without_mark(self._title.copy())

    def fold(self) -> Fold | None:
        """A command and the arguments of a call; of a file, its changes from the first changed line on."""
        end = next((at for at, line in enumerate(self._lines) if not line.no_wrap), len(self._lines))
        named = int(self._names_file)
        if not any(isinstance(intent, WriteIntent) for intent in self._asked.intents):
            return Fold(0, end, 0, to_end=True)
        if any(isinstance(intent, RunIntent) for intent in self._asked.intents):
            return None
        start = len(effects(self._asked))
        changes = enumerate(self._lines[start:end], start)
        first = next((at for at, line in changes if re.match(r" *\d* *[-+] ", line.plain)), start)
        return Fold(start - named, end - named, first - named, to_end=False)

    def content(self) -> list[Text]:
        lines = [without_mark(line) for line in [*self._lines[self._names_file :], *self._split_risks()[1]]]
        if self._is_about_rules and self._rule:
            lines.append(Text("“Always” adds the rule ", "dim").append_text(spell(self._rule, "accent")))
        if self._is_about_rules and self._asked.denial:
            lines.append(Text("“Never” denies ", "dim").append_text(spell(self._asked.denial, "accent")))
        return lines

    def choices(self, columns: int) -> list[Text]:
        if self._label == RULE:
            return [Text(clean_line(self._wrong), "warning") if self._wrong else key_hints(("Enter", "save"), ("Esc", "discard"))]
        if self._label == REASON:
            return [key_hints(("Enter", "deny, with or without a reason"), ("Esc", "back"))]
        hints = (("↑↓", "select"), ("Enter", "confirm"), ("Esc", "back" if self._is_about_rules else "stop the turn"))
        return self._list.laid_out(columns, *hints)

    def end_of_input(self) -> None:
        self.take(PLAIN_NO)

    def escape(self) -> None:
        if self._is_about_rules:
            self._show(self._answers(), is_about_rules=False)
        else:
            super().escape()

    def submit(self, written: str) -> None:
        if self._label == REASON:
            self.resolve(PreviewAnswer(ApprovalGiven(id=self._asked.id, allowed=False, reason=written.strip())))
        elif not (wrong := self._complaint(written.strip())) or not written.strip():
            self._rule = written.strip() or self._asked.rule
            self.leave_field()
            self._show(self._rules(_HERE if written.strip() else _EDIT), is_about_rules=True)
        else:
            self._wrong = wrong

    def on_edit(self) -> None:
        written = self.field.text.strip()
        self._wrong = self._complaint(written) if written and self._label == RULE else ""

    def _split_risks(self) -> tuple[list[Text], list[Text]]:
        """The risks that fit the title's row, and the others."""
        columns = get_app().output.get_size().columns
        room = columns - len("╭─  ") - self._question.cell_len if self.has_room_for_frame else 0
        for at, risk in enumerate(self._risks):
            room -= risk.cell_len + 1  # ` · ` for the two blanks that begin the line
            if room < 0:
                return [without_mark(each.copy()) for each in self._risks[:at]], self._risks[at:]
        return [without_mark(each.copy()) for each in self._risks], []

    def take(self, chosen: str) -> None:
        if chosen == RULES:
            self._show(self._rules(_EDIT), is_about_rules=True)
        elif chosen == _EDIT:
            self.write(RULE, self._rule)
        elif chosen == NO:
            self.write(REASON)
        elif chosen in (PLAIN_NO, _NEVER) or not self.unfold():
            scope = _SCOPES.get(chosen, "once")
            allowed = chosen not in (PLAIN_NO, _NEVER)
            edited = self._rule if self._is_about_rules and allowed and self._rule != self._asked.rule else ""
            given = ApprovalGiven(id=self._asked.id, allowed=allowed, scope=scope, rule=edited)
            self.resolve(PreviewAnswer(given, chosen == _ACCEPT_EDITS))

    def _show(self, choices: ChoiceList, *, is_about_rules: bool) -> None:
        self._list, self._is_about_rules = choices, is_about_rules
        self.redraw(showing=len(self.content()) - 1 if is_about_rules else None)

    def _answers(self) -> ChoiceList:
        asked = self._asked
        labels = {"again": ("Yes, outside the sandbox", "No, keep it sandboxed; say why…")}
        labels["host"] = ("Yes, for this command", "No, and say why…")
        labels["restored"] = ("Yes, keep the changes", "No, keep them restored; say why…")
        yes, no = labels.get(asked.walls, ("Yes, run it" if asked.only_once else "Yes, once", "No, and say why…"))
        may_last = asked.walls != "restored" and (asked.walls == "again" or not asked.only_once)
        longer = "Yes, outside for this session" if asked.walls == "again" else "Yes, for this session"
        session = (PanelChoice(SESSION, longer, "s"),) if may_last else ()
        edits = (PanelChoice(_ACCEPT_EDITS, "Yes, and accept edits from now on"),) if self._may_accept_edits else ()
        others = [(PLAIN_NO, "no"), *([(RULES, "rules…")] if may_last and asked.walls not in ("again", "host") else [])]
        return ChoiceList((PanelChoice(YES, yes, "y"), *session, *edits, PanelChoice(NO, no, "r")), NO, others)

    def _rules(self, selected: str) -> ChoiceList:
        choices = [PanelChoice(_EDIT, "Edit the rule")]
        if self._rule:
            choices += [PanelChoice(_HERE, "Always here"), PanelChoice(_EVERYWHERE, "Always everywhere")]
        if self._rule != self._asked.rule:
            choices.append(PanelChoice("s", "Yes, for this session"))
        if self._asked.denial:
            choices.append(PanelChoice(_NEVER, "Never here"))
        return ChoiceList(choices, selected)
