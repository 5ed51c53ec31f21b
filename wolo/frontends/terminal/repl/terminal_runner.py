"""Runs wolo at a terminal: one task, or the REPL."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace
from rich.text import Text

from wolo.commands.command import SendPrompt
from wolo.conversation.conversation import Conversation
from wolo.conversation.factory import open_conversation
from wolo.conversation.handover import HandoverFailed
from wolo.conversation.prompt_attachments import must_be_sent, write_prompt
from wolo.conversation.resources.model_selection import NO_MODEL
from wolo.conversation.resources.startup import ConversationChange, StartOptions
from wolo.errors import ConfigError, UsageError
from wolo.frontends.streams import error_text, save_answer
from wolo.frontends.terminal.dialogs.input_prompts import confirm
from wolo.frontends.terminal.dialogs.project_consent import ask_project_consent
from wolo.frontends.terminal.display.line_prompt import Dismissed
from wolo.frontends.terminal.display.terminal import Terminal, hold_terminal
from wolo.frontends.terminal.io.theme import BUILT_IN
from wolo.frontends.terminal.repl.turn_runner import print_jobs_left, run_turn
from wolo.messages.terminal_text import clean_line, quantity
from wolo.places import find_places, make_private


class TerminalTask(Struct, frozen=True, kw_only=True):
    """The task given on the command line."""

    prompt: str = ""
    piped: str = ""
    files: tuple[Path, ...] = ()
    last_message_file: Path | None = None
    stay: bool = False
    """Opens the REPL, after the prompt if there is one."""
    on_end: Callable[[Path], None] | None = None
    """Called with the directory of the last conversation when the REPL has ended."""


async def start(opening: StartOptions, task: TerminalTask) -> int:
    """Returns the exit status. Raises WoloError for errors that the user can fix."""
    with hold_terminal() as terminal:
        terminal.screen.make_plain(bool(opening.flags.get("plain")))
        terminal.screen.says_more = bool(opening.flags.get("verbose"))
        terminal.state.is_interactive = task.stay
        try:
            await ask_project_consent(opening.flags, terminal)
            if opening.flags.get("resume") == "":  # `-r` without a session
                from wolo.frontends.terminal.dialogs.menu_sources import pick_session  # noqa: PLC0415  # only then

                if not (session_id := await pick_session(terminal)):
                    return 0
                opening = replace(opening, flags={**opening.flags, "resume": session_id})
            return await _run(opening, task, terminal)
        except Dismissed:
            return 130
        except asyncio.CancelledError:
            if not terminal.signals.exit_status:
                raise
            return terminal.signals.exit_status


def _use_theme(name: str, terminal: Terminal) -> None:
    """A damaged theme is a warning: the colours are those of `auto`. A notice of the settings names a missing one."""
    from wolo.frontends.terminal.io.theme import load_theme  # noqa: PLC0415  # few have one

    try:
        if name not in (terminal.state.theme, *BUILT_IN):
            load_theme(name, find_places().config)
        terminal.screen.use_theme(name)
    except ConfigError as error:
        terminal.screen.show_error(error)
    except UsageError:
        pass


async def _run(opening: StartOptions, task: TerminalTask, terminal: Terminal) -> int:
    conversation = await _follow_directory(await _open(opening, terminal), opening, terminal)
    _use_theme(conversation.info.ui.theme, terminal)
    terminal.screen.make_plain(conversation.info.ui.plain)
    gc.enable()
    gc.freeze()
    exit_code = 0
    try:
        if task.prompt.strip() or task.piped.strip():
            prompt, typed = task.prompt, None
            if prompt.startswith("/") and (made := await _expand(prompt, conversation, terminal)):
                from wolo.commands.expansion import switch_model  # noqa: PLC0415  # few prompts come from commands

                if not made.text:
                    return 0
                prompt, typed = made.text, made.typed
                if "model" not in opening.flags:
                    conversation = await switch_model(made.model, conversation, terminal.screen.show_text)
            message = write_prompt(
                prompt,
                conversation,
                origin="keyboard",
                notify=terminal.screen.show_text,
                typed=typed,
                piped=task.piped,
                files=task.files,
            )
            if task.files and "ignore_unsupported" not in opening.flags:
                message = must_be_sent(conversation.choice, message)
            terminal.state.conversation, terminal.state.is_working = conversation, True
            ended = await run_turn(conversation, message, terminal)
            terminal.state.is_working = terminal.state.is_stopping = False
            exit_code = ended.exit_code
            if task.last_message_file is not None:
                save_answer(task.last_message_file, ended.answer, partial(terminal.screen.show_text, style="error"))
        if task.stay and terminal.signals.forgive():
            from wolo.frontends.terminal.repl.repl import Repl  # noqa: PLC0415  # prompt_toolkit is for the REPL only

            _offer_import(terminal)
            _name_waiting_notes(conversation, terminal)
            repl = Repl(conversation, terminal)
            try:
                exit_code = await repl.run()
            finally:
                conversation = repl.conversation
                if task.on_end is not None:
                    task.on_end(conversation.info.cwd.resolve())
    finally:
        jobs = conversation.jobs
        running = jobs.running if jobs is not None else ()
        with terminal.signals.during(lambda: None):
            await conversation.close()
        if jobs is not None:
            print_jobs_left(jobs, running, terminal.screen)
        if conversation.info.saves_session and conversation.history:
            again = Text.assemble((f"wolo --resume {conversation.info.session_id}", "dim"), no_wrap=True)
            terminal.screen.print(again)
    return terminal.signals.exit_status or exit_code


def _offer_import(terminal: Terminal) -> None:
    """Names settings of other agents, once."""
    asked = find_places().state / "import-offered"
    if asked.exists():
        return
    from wolo.config.imports.agents import AGENTS, is_there  # noqa: PLC0415  # on the first run only

    with suppress(OSError):
        make_private(asked.parent)
        asked.touch()
    if found := [each.label for each in AGENTS if is_there(each)]:
        names = " and ".join(filter(None, (", ".join(found[:-1]), found[-1])))
        terminal.screen.show_text(f"Found settings of {names}: `wolo import-config` shows what wolo can take over.", "dim")


def _name_waiting_notes(conversation: Conversation, terminal: Terminal) -> None:
    places = find_places()
    if not (places.data / "memory" / "inbox.json").exists():
        return
    from wolo.conversation.resources.learned_notes import LearnedNotes  # noqa: PLC0415  # few users have any

    with suppress(ConfigError):
        if waiting := LearnedNotes(places, conversation.info.root).waiting():
            notes = quantity(len(waiting), "note waits", "notes wait")
            terminal.screen.show_text(f"{notes} for your decision: /memory inbox", "dim")


async def _expand(prompt: str, conversation: Conversation, terminal: Terminal) -> SendPrompt | None:
    """The prompt that a slash command makes; None: it is text."""
    from wolo.commands.expansion import expand  # noqa: PLC0415  # few prompts come from commands
    from wolo.frontends.terminal.repl.submissions import show_prompt  # noqa: PLC0415  # as above

    with terminal.signals.during(conversation.interrupt):
        made = await expand(prompt, conversation, terminal.screen.show, "keyboard")
    if made and made.text:
        show_prompt(made, terminal.screen)
    elif made:
        terminal.screen.show_text("\n".join(made.notices))
    return made


async def _open(opening: StartOptions, terminal: Terminal) -> Conversation:
    opening = replace(opening, progress=terminal.screen.weights_progress())
    try:
        return await open_conversation(opening)
    except ConfigError as error:
        if error.message != NO_MODEL:
            raise
        from wolo.frontends.terminal.dialogs.first_run import offer_model  # noqa: PLC0415  # on the first run only

        await offer_model(terminal, error)
    return await open_conversation(opening)


async def _follow_directory(conversation: Conversation, opening: StartOptions, terminal: Terminal) -> Conversation:
    """Asks whether a session of another directory continues there or here, unless `-C` decides."""
    there = conversation.info.started_in
    if "cd" in opening.flags or not _is_elsewhere(there, conversation.info.cwd):
        return conversation
    try:
        question = f"This session was started in {clean_line(there)}. Continue there?"
        if not await confirm(question, terminal, no="No, stay here", yes="Yes, continue there"):
            return conversation
        os.chdir(there)
        await ask_project_consent(opening.flags, terminal)
    except EOFError:
        return conversation
    except Dismissed:
        await conversation.close()
        raise
    try:
        return await conversation.reopen(ConversationChange())
    except HandoverFailed as failed:
        if failed.conversation is None:
            raise
        terminal.screen.show_text(error_text(failed), "error")
        return failed.conversation


def _is_elsewhere(there: str, here: Path) -> bool:
    """It is another directory, and still exists."""
    return bool(there) and Path(there).is_dir() and not here.samefile(there)
