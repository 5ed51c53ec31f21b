"""Asks the questions of the model in a panel: one per page, then a page with all answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from wolo.frontends.terminal.panels.panel import MOVES, Panel, key_hints
from wolo.frontends.terminal.panels.question_answers import as_line, read_reply
from wolo.messages.terminal_text import clean, clean_line
from wolo.tools.tool_values import Question, Replies, Reply

OWN_WORDS = "answer › "
LONGEST_TAB = 16
WIDE_COLUMNS = 56
"""With fewer cells, one row of key hints has to do."""


@dataclass(slots=True)
class _QuestionPage:
    question: Question
    chosen: tuple[int, ...] = ()
    """Options in the order they were selected."""
    text: str = ""
    at: int | None = None
    """The option under the cursor; behind the last option: the user's own answer."""

    @property
    def reply(self) -> Reply:
        return Reply(tuple(self.question.options[at].label for at in self.chosen), self.text)

    @property
    def is_answered(self) -> bool:
        return bool(self.chosen or self.text)

    def pick(self, at: int) -> None:
        if not self.question.several:
            self.chosen, self.text = (at,), ""
        elif at in self.chosen:
            self.chosen = tuple(each for each in self.chosen if each != at)
        else:
            self.chosen += (at,)

    def read(self, written: str) -> None:
        """Reads a typed answer as `read_reply` does: numbers and labels select options."""
        reply = read_reply(self.question, written)
        labels = [option.label for option in self.question.options]
        picked = tuple(labels.index(label) for label in reply.chosen)
        self.text = reply.text
        if picked or not self.question.several:
            self.chosen = picked


def is_character(key: str) -> bool:
    return len(key) == 1 and key.isprintable()


class QuestionsPanel(Panel[Replies | None]):
    """None when the questions are skipped."""

    def __init__(self, questions: Sequence[Question]) -> None:
        self._pages = [_QuestionPage(question) for question in questions]
        self._at = 0
        """The page; behind the last question: all answers."""
        super().__init__()

    # Drawing

    def title(self) -> Text:
        if self._is_review:
            return Text("Your answers")
        place = f" {self._at + 1}/{len(self._pages)}" if len(self._pages) > 1 and not self._has_tabs else ""
        return Text(f"{clean_line(self._page_now.question.header) or 'Question'}{place}")

    def content(self) -> list[Text]:
        if self._is_review:
            return self._tabs() + [as_line(page.question, page.reply) for page in self._pages]
        page, question = self._page_now, self._page_now.question
        first, *rest = clean(question.text).split("\n")
        indent = "" if self.is_framed else "  "  # without a border no line may pass for one of wolo's own
        lines = [*self._tabs(), Text(first, "bold"), *(Text(indent + line, "bold") for line in rest)]
        for at, option in enumerate(question.options):
            mark = ("[x] " if at in page.chosen else "[ ] ") if question.several else ("● " if at in page.chosen else "○ ")
            about = f" · {clean_line(option.description)}" if option.description else ""
            lines.append(self._option(at == page.at, (f"{at + 1} ", "accent"), mark, clean_line(option.label), (about, "dim")))
        is_at_other = page.at == len(question.options)
        return [*lines, self._option(is_at_other, ("Other: ", "dim"), clean_line(page.text) or ("…", "dim"))]

    def choices(self, columns: int) -> list[Text]:
        if self.is_writing:
            hints = [("Enter", "save"), ("Esc", "back")]
        elif self._is_review:
            hints = [("Enter", "send"), ("←", "change"), ("Esc", "skip all")]
        else:
            several = self._page_now.question.several
            hints = [("Enter", "next"), *([("Space", "select several")] if several else []), ("Esc", "skip all")]
            if columns >= WIDE_COLUMNS:
                hints += [("type", "another answer"), *([("←→", "other questions")] if len(self._pages) > 1 else [])]
        row = key_hints(*hints)
        if columns < WIDE_COLUMNS:
            return [row[: max(columns, 1)]]
        return [Text(), row] if self.is_framed else [row]

    @property
    def _has_tabs(self) -> bool:
        """In a low or narrow window the title counts the questions instead."""
        return len(self._pages) > 1 and self.has_room_for_frame

    def _tabs(self) -> list[Text]:
        if not self._has_tabs:
            return []
        cells = [
            (f"{'✓' if page.is_answered else ' '}{clean_line(page.question.header)[:LONGEST_TAB] or number} ", number - 1)
            for number, page in enumerate(self._pages, start=1)
        ]
        row = Text()
        for words, at in [*cells, (" All ", len(self._pages))]:
            row.append(f"{'›' if at == self._at else ' '}{words}", "selection" if at == self._at else "dim")
        return [row, Text()]

    def _option(self, is_current: bool, *pieces: str | tuple[str, str]) -> Text:
        text = Text.assemble("› " if is_current else "  ", *pieces)
        if is_current:
            text.stylize("selection")
        return text

    # Keys

    def on_keys(self, keys: list[str]) -> None:
        """Keys pressed one by one select; text typed fast is an answer of its own."""
        moves = next((at for at, key in enumerate(keys) if key not in MOVES), len(keys))
        written = "".join(filter(is_character, keys[moves:]))
        if MOVES.issuperset(key for key in keys if key != " "):
            self.handle_keys(keys)
        elif len(written) < 2 or self._is_review:
            super().on_keys(keys)
        else:
            self.handle_keys(keys[:moves])
            self.on_paste(written)
        if written and self.is_writing and keys[-1] == "enter":
            self.submit(self.field.text)

    def on_paste(self, text: str) -> None:
        if not self._is_review:
            self.write(OWN_WORDS, self._page_now.text + text)

    def handle_key(self, key: str) -> None:
        if key == "end-of-input":
            self.resolve(None)
        elif key in ("left", "back-tab"):
            self._turn_to(self._at - 1)
        elif key in ("right", "tab"):
            self._turn_to(self._at + 1)
        elif key == "enter":
            if not self._is_review:
                page = self._page_now
                if page.at == len(page.question.options):
                    self.write(OWN_WORDS, page.text)
                    return
                if page.at is not None and page.at not in page.chosen and not (page.question.several and page.is_answered):
                    page.pick(page.at)
            self._turn_on()
        elif self._is_review or key in ("page-up", "page-down", "home", "end"):
            self.scroll(key)
        else:
            page, last = self._page_now, len(self._page_now.question.options)
            if key in ("up", "down"):
                step = 1 if key == "down" else -1
                page.at = (0 if key == "down" else last) if page.at is None else (page.at + step) % (last + 1)
            elif key == " ":
                if page.at is not None and page.at < last:
                    page.pick(page.at)
            elif key.isdecimal() and 1 <= int(key) <= last:
                page.at = int(key) - 1
                page.pick(page.at)
            elif is_character(key):
                self.write(OWN_WORDS, page.text + key)
            self._show()

    def escape(self) -> None:
        self.resolve(None)

    def submit(self, written: str) -> None:
        self._page_now.read(written)
        self.leave_field()
        self._turn_on()

    @property
    def _is_review(self) -> bool:
        return self._at == len(self._pages)

    @property
    def _page_now(self) -> _QuestionPage:
        return self._pages[self._at]

    def _turn_on(self) -> None:
        if self._is_review or len(self._pages) == 1:
            self.resolve(tuple(page.reply for page in self._pages))
        else:
            self._turn_to(self._at + 1)

    def _turn_to(self, at: int) -> None:
        if len(self._pages) > 1:
            self._at = max(0, min(at, len(self._pages)))
        self._show()

    def _show(self) -> None:
        at = None if self._is_review else self._page_now.at
        above = len(self._tabs()) + (0 if self._is_review else self._page_now.question.text.count("\n") + 1)
        self.redraw(showing=0 if at is None else above + at)
