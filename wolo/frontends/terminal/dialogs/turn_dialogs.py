"""Asks the user what a turn needs: approvals of calls, and answers to the model's questions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial

from rich.text import Text

from wolo.agent.events import ApprovalAsked, ApprovalGiven, QuestionsAsked
from wolo.conversation.conversation import Conversation
from wolo.errors import UsageError
from wolo.frontends.terminal.display.event_view import Screen
from wolo.frontends.terminal.display.line_prompt import PassedOver, ask_line
from wolo.frontends.terminal.display.terminal import Terminal
from wolo.frontends.terminal.panels.approval_preview import PreviewAnswer, outcome
from wolo.frontends.terminal.panels.question_answers import as_line, read_reply
from wolo.messages.terminal_text import clean, clean_line
from wolo.tools.tool_values import Question, Replies, Reply

_HOW = "The model asks. Type a number or your own words; Enter skips a question, {} skips all."


async def ask_approval(
    asked: ApprovalAsked, lines: Sequence[Text], terminal: Terminal, conversation: Conversation, *, may_accept_edits: bool
) -> PreviewAnswer:
    """Anything but a yes is a no. `lines` describe the call. Raises Dismissed for Ctrl-C.

    `may_accept_edits`: offers not to ask about later edits.
    """
    screen = terminal.screen
    if (dialog_host := screen.dialog_host) is None:
        for line in lines:
            screen.print(line)
        return await _approve_by_line(asked, terminal, conversation, may_accept_edits)
    from wolo.frontends.terminal.panels.choice_panels import ApprovalPanel  # noqa: PLC0415  # prompt_toolkit is for the REPL only

    screen.ask_space()
    complaint = partial(conversation.approvals.rule_problem, asked)
    answer = await dialog_host.show_dialog(ApprovalPanel(asked, lines, complaint, may_accept_edits=may_accept_edits))
    if (said := outcome(asked, answer)) is not None:
        screen.print(said)
    return answer


async def _approve_by_line(
    asked: ApprovalAsked, terminal: Terminal, conversation: Conversation, may_accept_edits: bool
) -> PreviewAnswer:
    """Only an offered letter is a yes; any other text is a no with that reason."""
    rule, screen = asked.rule, terminal.screen
    if may_accept_edits:
        screen.show_text("  f: yes, and accept edits from now on", "dim")
    while True:
        if rule:
            screen.show_text(f"  always: adds the rule {rule} for this workspace, everywhere: for all", "dim")
        if asked.denial:
            screen.show_text(f"  v: never, denies {asked.denial} in this workspace from now on", "dim")
        if asked.walls == "again":
            question = "  outside: [y]es, once  [s]ession  [N]o, or type why not › "
        elif asked.walls == "host":
            question = "  [y]es, for this command  [s]ession  [N]o, or type why not › "
        elif asked.only_once:
            question = "  [y]es, run it  [N]o, or type why not › "
        else:  # fits 80 columns
            always = "  [a]lways  every[w]here" if rule else ""
            question = f"  [y]es  [s]ession{always}  [e]dit  [N]o, or type why not › "
        try:
            typed = await ask_line(question, terminal)
            if typed.strip().isdecimal():  # the answer's number in a panel, and no reason
                screen.show_text("  No answer has a number here: type its letter, or a reason.", "warning")
                continue
            if may_accept_edits and typed.strip().lower() == "f":
                return PreviewAnswer(ApprovalGiven(id=asked.id, allowed=True), accepts_edits=True)
            if typed.strip().lower() not in ("e", "edit") or asked.only_once or asked.walls in ("again", "restored", "host"):
                return PreviewAnswer(_read_answer(asked, typed, rule))
            edited = (await ask_line("  rule › ", terminal, draft=rule)).strip()
            if wrong := conversation.approvals.rule_problem(asked, edited) if edited not in ("", rule) else "":
                screen.show_text(f"  {wrong}", "warning")
            else:
                rule = edited or rule
        except EOFError:
            return PreviewAnswer(ApprovalGiven(id=asked.id, allowed=False, is_dismissed=True))


def _read_answer(asked: ApprovalAsked, typed: str, rule: str) -> ApprovalGiven:
    edited = rule if rule != asked.rule else ""
    match typed.lower().strip(" \t"):
        case "y" | "yes":
            return ApprovalGiven(id=asked.id, allowed=True)
        case "s" | "session" if not asked.only_once:
            return ApprovalGiven(id=asked.id, allowed=True, scope="session", rule=edited)
        case "a" | "always" | "here" if rule:
            return ApprovalGiven(id=asked.id, allowed=True, scope="always", rule=edited)
        case "w" | "everywhere" if rule:
            return ApprovalGiven(id=asked.id, allowed=True, scope="everywhere", rule=edited)
        case "v" | "never" if asked.denial:
            return ApprovalGiven(id=asked.id, allowed=False, scope="always")
        case "" | "n" | "no":
            return ApprovalGiven(id=asked.id, allowed=False)
        case _:
            return ApprovalGiven(id=asked.id, allowed=False, reason=typed.strip())


async def ask_questions(asked: QuestionsAsked, terminal: Terminal) -> Replies | None:
    """None: the user skipped them all (Esc, Ctrl-D). Raises Dismissed for Ctrl-C."""
    if asked.questions[0].is_plan:
        return await _ask_about_plan(asked.questions[0], terminal)
    screen = terminal.screen
    if (dialog_host := screen.dialog_host) is None:
        answers: list[Reply] = []
        screen.show_text(_HOW.format("Esc" if screen.stdout.can_move else "Ctrl-D"), "dim")
        for number, question in enumerate(asked.questions, start=1):
            _print_question(question, screen, f" ({number} of {len(asked.questions)})" if len(asked.questions) > 1 else "")
            try:
                last = len(question.options)
                numbers = f" 1-{last}" if last > 1 else " 1" if last else ""
                typed = await ask_line(
                    f"  answer{numbers}{', several as 1,2' if question.several else ''} › ",
                    terminal,
                    may_pass=True,
                )
            except (PassedOver, EOFError):
                return None
            answers.append(read_reply(question, typed))
        return tuple(answers)
    from wolo.frontends.terminal.panels.questions import QuestionsPanel  # noqa: PLC0415  # prompt_toolkit is for the REPL only

    screen.ask_space()
    if (replies := await dialog_host.show_dialog(QuestionsPanel(asked.questions))) is None:
        screen.show_text("? you skipped the questions", "dim")
    for question, reply in zip(asked.questions, replies or (), strict=False):
        screen.print(as_line(question, reply))
    return replies


async def _ask_about_plan(question: Question, terminal: Terminal) -> Replies | None:
    """The plan is printed like an answer. None: the user decides later. Raises Dismissed for Ctrl-C."""
    screen, labels = terminal.screen, [option.label for option in question.options]
    screen.answer(question.text)
    while True:
        if (dialog_host := screen.dialog_host) is None:
            reply = await _decide_by_line(terminal)
        else:
            from wolo.frontends.terminal.panels.choice_panels import PlanPanel  # noqa: PLC0415  # as above

            screen.ask_space()
            reply = await dialog_host.show_dialog(PlanPanel(labels))
        if reply is None:
            screen.show_text("? not decided; plan mode continues", "dim")
            return None
        if reply.chosen != ("revise",):
            screen.print(as_line(Question(text="", header="Plan"), reply))
            return (reply,)
        if edited := await _edit_plan(question.text, terminal):
            return (Reply(("revise",), edited),)


async def _decide_by_line(terminal: Terminal) -> Reply | None:
    choices = "  start in [a]uto  with [e]dits approved  [k]eep planning  [r]evise the plan, or type what to change › "
    try:
        typed = (await ask_line(choices, terminal, may_pass=True)).strip()
    except (PassedOver, EOFError):
        return None
    letters = {"a": "auto", "e": "edit", "k": "keep", "r": "revise", "": "keep"}
    word = letters.get(typed.lower(), typed.lower())
    return Reply((word,)) if word in letters.values() else Reply(("keep",), typed)


async def _edit_plan(plan: str, terminal: Terminal) -> str:
    """The plan as it was edited; empty where it was not changed, or cannot be used."""
    from wolo.frontends.terminal.dialogs.external_editor import edit  # noqa: PLC0415  # few plans are edited
    from wolo.tools.questions.present_plan import EMPTY  # noqa: PLC0415  # the same

    screen, host = terminal.screen, terminal.screen.dialog_host
    try:
        with terminal.signals.aside():
            terminal.keyboard.pause()
            try:
                async with host.aside() if host is not None else nullcontext():
                    edited = (await edit(f"{plan}\n")).strip()
            finally:
                terminal.keyboard.resume()
    except UsageError as error:
        screen.show_error(error)
        return ""
    if not edited:
        screen.show_text(f"The plan is unchanged: {EMPTY}", "warning")
    return "" if edited == plan.strip() else edited


def _print_question(question: Question, screen: Screen, place: str) -> None:
    header = f"{clean_line(question.header)}: " if question.header else ""
    first, *rest = clean(question.text).split("\n")
    screen.print(Text.assemble(("? ", "bold warning"), (f"{header}{first}", "bold"), (place, "dim")))
    for line in rest:
        screen.print(Text.assemble(("  ", ""), (line, "bold")))
    for number, option in enumerate(question.options, start=1):
        about = f" · {clean_line(option.description)}" if option.description else ""
        screen.print(Text.assemble((f"  {number} ", "accent"), clean_line(option.label), (about, "dim")))
