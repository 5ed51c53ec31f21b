"""Questions of the model to the person: in a panel, or one by one as lines."""

from __future__ import annotations

from rich.text import Text

from wolo.agent.events import QuestionsAsked
from wolo.frontends.terminal.display.event_view import Screen
from wolo.frontends.terminal.display.line_prompt import PassedOver, ask_line
from wolo.frontends.terminal.io.keyboard import Keyboard
from wolo.frontends.terminal.panels.question_answers import as_line, read_reply
from wolo.messages.terminal_text import clean, clean_line
from wolo.tools.tool_values import Question, Replies, Reply

_HOW = "The model asks. A number picks, your own words do too; Enter passes a question over, {} all of them."


async def ask_questions(asked: QuestionsAsked, screen: Screen, keyboard: Keyboard) -> Replies | None:
    """None: the person answers none of them (Esc, Ctrl-D). Raises Dismissed for Ctrl-C."""
    if (stage := screen.stage) is None:
        return await _ask_by_line(asked, screen, keyboard)
    from wolo.frontends.terminal.panels.questions import QuestionsPanel  # noqa: PLC0415  # prompt_toolkit is for the REPL only

    screen.ask_space()
    given = await stage.stand(QuestionsPanel(asked.questions))
    if given is None:
        screen.say("? you answered none of the questions", "dim")
    for question, reply in zip(asked.questions, given or (), strict=False):
        screen.print(as_line(question, reply))
    return given


async def _ask_by_line(asked: QuestionsAsked, screen: Screen, keyboard: Keyboard) -> Replies | None:
    """A number picks an option, anything else is the person's own words."""
    replies: list[Reply] = []
    screen.say(_HOW.format("Esc" if screen.stdout.can_move else "Ctrl-D"), "dim")
    for number, question in enumerate(asked.questions, start=1):
        _show(question, screen, f" ({number} of {len(asked.questions)})" if len(asked.questions) > 1 else "")
        try:
            typed = await ask_line(_hint(question), screen, keyboard, may_pass=True)
        except (PassedOver, EOFError):
            return None
        replies.append(read_reply(question, typed))
    return tuple(replies)


def _show(question: Question, screen: Screen, place: str) -> None:
    header = f"{clean_line(question.header)}: " if question.header else ""
    first, *rest = clean(question.text).split("\n")
    screen.print(Text.assemble(("? ", "bold warning"), (f"{header}{first}", "bold"), (place, "dim")))
    for line in rest:
        screen.print(Text.assemble(("  ", ""), (line, "bold")))
    for number, option in enumerate(question.options, start=1):
        about = f" · {clean_line(option.description)}" if option.description else ""
        screen.print(Text.assemble((f"  {number} ", "accent"), clean_line(option.label), (about, "dim")))


def _hint(question: Question) -> str:
    last = len(question.options)
    numbers = f" 1-{last}" if last > 1 else " 1" if last else ""
    return f"  answer{numbers}{', several as 1,2' if question.several else ''} › "
