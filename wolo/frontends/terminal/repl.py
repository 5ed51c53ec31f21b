"""The REPL: a line is typed; `/…` goes to the commands, the rest to the model."""

from __future__ import annotations

import asyncio
from pathlib import Path

from rich.text import Text

from wolo.commands.command import Desk, Left, Opened, Shown, Worked, dispatch
from wolo.commands.table import COMMANDS
from wolo.conversation.attachments import compose
from wolo.conversation.conversation import Conversation
from wolo.errors import WoloError
from wolo.frontends.terminal.composer import Composer, Leave
from wolo.frontends.terminal.terminal import Terminal
from wolo.frontends.terminal.turn import jobs_running, run_turn, run_work, tell_jobs
from wolo.messages.message import Message
from wolo.messages.terminal_text import clean_line
from wolo.places import find_home
from wolo.workspace.branch import current_branch

LEAVING_WORDS = frozenset({"exit", "quit", ":q"})
MOST_RECALLED_LINES = 30
"""Of the last answer of a resumed session."""


class Repl:
    def __init__(self, conversation: Conversation, terminal: Terminal) -> None:
        self.conversation = conversation
        self._terminal = terminal
        self._screen = terminal.screen
        names = [f"/{name}" for command in COMMANDS for name in (command.name, *command.aliases)]
        self._composer = Composer(names, self._show_thinking, self._aside)
        self._attend()
        self._screen.thinking.hint = " · Ctrl-O shows it"

    async def run(self) -> int:
        """Until the person leaves; the exit status."""
        self._introduce()
        self._screen.say("Enter sends, Alt-Enter makes a new line, /help shows the rest.", "dim")
        self._recall()
        while True:
            try:
                line = (await self._read()).strip()
                if line in LEAVING_WORDS:
                    return 0
                if line and not await self._take(line):
                    return self._terminal.signals.exit_status
            except Leave:
                return 130 if self._terminal.signals.just_forgiven else 0
            except EOFError:
                return self._terminal.signals.exit_status
            except asyncio.CancelledError:
                if not self._terminal.signals.exit_status:
                    raise
                return self._terminal.signals.exit_status

    def _introduce(self) -> None:
        """Who answers, how much it may do, and where."""
        facts = self.conversation.facts
        branch = clean_line(current_branch(facts.cwd))
        place = f"{where(facts.cwd)} ({branch})" if branch else where(facts.cwd)
        self._screen.print(
            Text.assemble(("wolo", "bold"), (f" · {facts.model} · {how_held(facts.mode, facts.sandbox)} · {place}", "dim"))
        )

    async def _read(self) -> str:
        self._screen.space()
        with self._terminal.signals.during(self._composer.stop):
            return await self._composer.read()

    async def _take(self, line: str) -> bool:
        """False when it ends the REPL."""
        self._screen.fresh()
        try:
            if is_command(line):
                return await self._command(line)
            words, talk = line[1:] if line.startswith("//") else line, self.conversation
            message = compose(words, cwd=talk.cwd, attaching=talk.attaching)
        except WoloError as error:
            self._complain(error)
            return True
        await run_turn(self.conversation, message, self._terminal)
        if self._terminal.signals.exit_status:
            self._composer.count_ctrl_c()
        return self._terminal.signals.forgive()

    async def _command(self, line: str) -> bool:
        jobs = self.conversation.jobs
        running = jobs.running if jobs is not None else ()
        with self._terminal.signals.during(lambda: None):
            outcome = await dispatch(line, Desk(self.conversation, COMMANDS))
        match outcome:
            case Shown():
                self._screen.say(outcome.text)
            case Opened():
                is_other = outcome.conversation.session_id != self.conversation.session_id
                self.conversation = outcome.conversation
                self._attend()
                if jobs is not None and self.conversation.jobs is not jobs:
                    tell_jobs(jobs, running, self._screen)
                if outcome.text:
                    self._screen.say(outcome.text, "dim")
                else:
                    self._introduce()
                if is_other:
                    self._recall()
                self._composer.draft = outcome.draft
            case Worked():
                await run_work(self.conversation, outcome.events, self._terminal)
                if self._terminal.signals.exit_status:
                    self._composer.count_ctrl_c()
            case Left():
                return False
        return self._terminal.signals.forgive()

    def _attend(self) -> None:
        """What happens while nobody is asked is shown above the line that is being written."""
        self.conversation.between = lambda event: self._composer.above(lambda: self._screen.show(event))

    def _aside(self) -> str:
        running = jobs_running(self.conversation)
        return f"{running} · /jobs" if running else ""

    def _show_thinking(self) -> None:
        """All of what was thought last, in this process or before it."""
        said = (message.reasoning_content for message in reversed(self.conversation.history))
        thought = self._screen.thinking.text.strip() or next((text for text in said if text.strip()), "").strip()
        self._screen.fresh()
        self._screen.say(thought or "Nothing was thought yet.", "dim")

    def _complain(self, error: WoloError) -> None:
        self._screen.say(error.message, "red")
        if error.hint:
            self._screen.say(error.hint, "dim")

    def _recall(self) -> None:
        """The last exchange of a session that goes on."""
        asked, answered = last_exchange(self.conversation.history)
        if asked:
            self._screen.print(Text.assemble("\n", ("› ", "bold"), (clean_line(asked), "dim")))
        if answered:
            lines = answered.strip().split("\n")
            shown = lines[-MOST_RECALLED_LINES:]
            if len(lines) > len(shown):
                self._screen.say(f"… {len(lines) - len(shown)} lines above", "dim")
            self._screen.answer("\n".join(shown))


def is_command(line: str) -> bool:
    """`//text` is text that begins with a slash, and so is a path."""
    return line.startswith("/") and "/" not in line[1:].partition(" ")[0]


def last_exchange(history: tuple[Message, ...]) -> tuple[str, str]:
    """The last prompt of the person and the last words of the model after it."""
    asked = answered = ""
    for message in history:
        if message.is_prompt and message.text:
            asked, answered = message.text, ""
        elif message.role == "assistant" and message.text:
            answered = message.text
    return asked, answered


def how_held(mode: str, sandbox: str) -> str:
    """The mode, and what holds commands in it."""
    return f"{mode} in {sandbox}" if sandbox else mode


def where(path: Path) -> str:
    """A directory as people write it."""
    home = find_home()
    return clean_line(f"~/{path.relative_to(home)}" if path.is_relative_to(home) and path != home else str(path))
