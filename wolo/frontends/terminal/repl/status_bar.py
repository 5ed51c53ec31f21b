"""Status bar below the input, also by the user's own command, and the banner at the start."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from pathlib import Path

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from wolo import __version__, places
from wolo.agent.budget import NOTHING, add
from wolo.agent.events import AnswerEnded, CallEnded, Compacted, Event, RequestStarted, TaskEnded
from wolo.conversation.conversation import Conversation
from wolo.errors import UsageError
from wolo.frontends.terminal.display.activity import fit_row
from wolo.frontends.terminal.display.event_view import Screen
from wolo.frontends.terminal.display.terminal_state import TerminalState
from wolo.frontends.terminal.live.component import Row
from wolo.frontends.terminal.render.tool_calls import without_dots
from wolo.messages.message import Usage, task_usage
from wolo.messages.terminal_text import clean_line, in_short
from wolo.places import settings_folder
from wolo.tools.tool_values import TodoItem, TodoList
from wolo.workspace.git_branch import current_branch
from wolo.workspace.processes.command_environment import user_environment

BETWEEN = " · "
LONGEST_PLACE = 40
"""Cells; a longer directory is shortened to its last names."""
IMPORTANCE = ("vi", "mode", "context", "model", "extensions", "dir", "branch", "jobs", "cost", "cache")
"""In a narrow window the last of these are dropped first."""
USED = frozenset({"context", "cache", "cost", "jobs"})
"""Facts on the right."""


class StatusBar:
    """Looks up slow facts after turns and commands, never while painting."""

    most_rows = 1
    least_window_rows = 0

    def __init__(self, state: TerminalState) -> None:
        self._state = state
        self._branch = self._level = ""
        self._used = NOTHING
        """Usage of this session, as far as it was read."""
        self._in_window: int | None = None
        self._line = ""
        """Printed by the user's command; shown in place of the facts."""
        self._is_due = self._is_running = False
        """The facts have changed since that command was run; it runs."""
        self._errors: set[str] = set()
        """Those of the command that were shown."""
        self._most: int | None = None
        """Tokens in the context window, and its size; None: unknown."""

    def refresh(self) -> None:
        """Looks everything up again: a turn or a command has ended."""
        if (talk := self._state.conversation) is None:
            return
        filling = talk.context_usage()
        self._in_window, self._most = filling.total, filling.most
        self._branch = current_branch(talk.info.cwd)
        self._level = talk.thinking_used or ""
        said = (message.usage for message in talk.history if message.usage is not None)
        tasks = (usage for message in talk.history for part in message.calls if (usage := task_usage(part)) is not None)
        self._used = reduce(add, (*said, *talk.events.summary_usage, *tasks), talk.session.stored.unread_usage)

    def facts(self) -> dict[str, object]:
        """The facts for the user's command; the names are those of Claude Code's status line where it has one."""
        if (talk := self._state.conversation) is None:
            return {}
        cost = self._used.cost.total if self._used.cost is not None else None
        return {
            "session_id": talk.info.session_id,
            "cwd": str(talk.info.cwd),
            "workspace": {"current_dir": str(talk.info.cwd)},
            "model": {"id": talk.info.model, "display_name": talk.info.model.rpartition("/")[2]},
            "thinking": self._level,
            "mode": talk.info.mode,
            "sandbox": talk.info.sandbox,
            "branch": self._branch,
            "context_window": {"used_tokens": self._in_window, "size": self._most},
            "cost": {"total_cost_usd": cost},
            "version": __version__,
        }

    async def run_command(self, paint: Callable[[], None]) -> None:
        """Shows what the user's command prints; raises an error of it once, and shows the facts again."""
        self._is_due = True
        if self._is_running or self._state.conversation is None:
            return
        self._is_running = True
        try:
            while self._is_due:
                self._is_due = False
                self._line = await run_status_command(self._state.conversation.info.ui.status_command, self.facts())
        except UsageError as error:
            self._line = ""
            if error.message not in self._errors:
                self._errors.add(error.message)
                raise
        finally:
            self._is_running = False
            paint()

    def on_event(self, event: Event) -> None:
        match event:
            case RequestStarted():
                self._in_window = event.context_tokens
            case AnswerEnded() if event.message.usage is not None:
                self._used = add(self._used, event.message.usage)
            case TaskEnded():
                self._used = add(self._used, event.usage)
            case Compacted():
                self._in_window = event.tokens_after

    def render(self, width: int) -> Sequence[Row]:
        if (talk := self._state.conversation) is None:
            return ()
        drive = talk.choice.drive  # None until it is settled
        model = f"{talk.info.model}:{self._level}" if self._level else talk.info.model
        if self._line:
            return [[("class:dim", fit_row(self._line, "", width))]]
        facts = {
            "dir": short_place(talk.info.cwd),
            "branch": clean_line(self._branch),
            "model": clean_line(model) + (f" {drive}" if drive not in (None, "native") else ""),
            "mode": how_held(talk.info.mode, talk.info.sandbox),
            "context": self._context(),
            "cache": cache_share(self._used),
            "cost": money(self._used),
            "jobs": f"{running} · /{'jobs' if 'job' in running else 'tasks'}" if (running := self._state.running_jobs) else "",
        }
        shown = {"vi": self._state.vi_mode} if self._state.vi_mode else {}
        shown |= {name: facts[name] for name in talk.info.ui.status if facts[name]}
        if talk.extensions is not None and (texts := talk.extensions.status):
            shown["extensions"] = BETWEEN.join(map(clean_line, texts))
        return [[("class:dim", spread(shown, width))]]

    def _context(self) -> str:
        """The share of the window, or the tokens where its size is unknown."""
        if not self._in_window:
            return "context 0%" if self._most and self._in_window is not None else ""
        return f"context {self._in_window / self._most:.0%}" if self._most else f"context {in_short(self._in_window)} tokens"


def spread(facts: Mapping[str, str], columns: int) -> str:
    """The facts that fit: where and who on the left, what was used on the right."""
    shown = _fitting(facts, columns)
    left = BETWEEN.join(fact for name, fact in shown.items() if name not in USED)
    right = BETWEEN.join(fact for name, fact in shown.items() if name in USED)
    gap = columns - cell_len(left) - cell_len(right)
    return f"{left}{' ' * gap}{right}" if left and right and gap > len(BETWEEN) else fit(facts, columns)


def print_banner(conversation: Conversation, screen: Screen) -> None:
    facts = conversation.info
    branch = clean_line(current_branch(facts.cwd))
    place = f"{where(facts.cwd)} ({branch})" if branch else where(facts.cwd)
    held = how_held(facts.mode, facts.sandbox)
    line = f" · {facts.model} · {held} · {place}"
    screen.print(Text.assemble(("wolo", "bold"), (line if screen.stdout.can_move else without_dots(line), "dim")))


def fit(facts: Mapping[str, str], columns: int) -> str:
    """Joins the facts that fit, in the given order; the last remaining one is cut."""
    line = BETWEEN.join(_fitting(facts, columns).values())
    return line if cell_len(line) <= columns else f"{set_cell_size(line, max(columns - 1, 0)).rstrip()}…"


def _fitting(facts: Mapping[str, str], columns: int) -> dict[str, str]:
    shown = dict(facts)
    for name in reversed(IMPORTANCE):
        if len(shown) > 1 and cell_len(BETWEEN.join(shown.values())) > columns:
            shown.pop(name, None)
    return shown


def cache_share(used: Usage) -> str:
    """Share of the sent tokens that came from the provider's cache."""
    return f"cache {used.cache_read_tokens / used.prompt_tokens:.0%}" if used.cache_read_tokens else ""


def money(used: Usage) -> str:
    about = "~" if used.estimated else ""
    return f"{about}${used.cost.total:.2f}" if used.cost is not None and used.cost.total >= 0.005 else ""


def how_held(mode: str, sandbox: str) -> str:
    """The mode and the sandbox; Landlock alone cannot protect files from being renamed."""
    partial = " (partial)" if sandbox == "landlock" else ""
    return f"{mode} · sandboxed{partial}" if sandbox else mode


def where(path: Path) -> str:
    home = places.find_home()
    return clean_line(f"~/{path.relative_to(home)}" if path.is_relative_to(home) and path != home else str(path))


def short_place(path: Path) -> str:
    place, shown = where(path), ""
    rest = place
    while cell_len(shown or place) > LONGEST_PLACE and "/" in rest.lstrip("/"):
        rest = rest.lstrip("/").partition("/")[2]
        shown = f"…/{rest}"
    return shown or place


MOST_ITEMS = 3


class TodoPanel:
    most_rows = 5
    least_window_rows = 15

    def __init__(self) -> None:
        self.items: Sequence[TodoItem] = ()

    def on_event(self, event: Event) -> None:
        if isinstance(event, CallEnded) and isinstance(event.view, TodoList):
            self.items = event.view.items

    def render(self, width: int) -> Sequence[Row]:
        """Empty when no item is open."""
        working = [item for item in self.items if item.status == "in_progress"]
        pending = [item for item in self.items if item.status == "pending"]
        shown = [*working, *pending][:MOST_ITEMS]
        left = len(working) + len(pending) - len(shown)
        lines = [f"{'▶' if item.status == 'in_progress' else '☐'} {clean_line(item.text)}" for item in shown]
        if lines:
            done = sum(item.status == "completed" for item in self.items)
            more = f"{left} more open · " if left else ""
            lines.append(f"  {more}{done} of {len(self.items)} done")
        return [[("class:dim", fit_row(line, "", width))] for line in lines]


SETTING = "ui.status_command"
COMMAND_S = 2.0
"""Time limit of the command."""
MOST_BYTES = 4096


async def run_status_command(argv: Sequence[str], facts: Mapping[str, object]) -> str:
    """The first line that it prints, without colours. Raises UsageError when it cannot be run, fails or takes too long.

    Runs like the user's hooks: without a shell, without the keys of wolo, next to `config.toml`.
    """
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            cwd=settings_folder(),
            stdin=pipe,
            stdout=pipe,
            stderr=asyncio.subprocess.DEVNULL,
            env=dict(user_environment(os.environ)),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise UsageError(f"{SETTING} cannot be run: {error}.") from error
    try:
        async with asyncio.timeout(COMMAND_S):
            # Reads as much as a line can have; the rest is not waited for
            assert process.stdin is not None  # both are pipes
            assert process.stdout is not None
            with suppress(OSError):
                process.stdin.write(json.dumps(facts).encode())
                await process.stdin.drain()
            process.stdin.close()
            output = b""
            while len(output) < MOST_BYTES and (piece := await process.stdout.read(MOST_BYTES)):
                output += piece
            if len(output) < MOST_BYTES:
                await process.wait()
    except TimeoutError as error:
        raise UsageError(f"{SETTING} took longer than {COMMAND_S:.0f} seconds.") from error
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode not in (0, -signal.SIGKILL):
        raise UsageError(f"{SETTING} failed with exit code {process.returncode}.")
    line = next((line for line in output.decode("utf-8", "replace").splitlines() if line.strip()), "")
    return clean_line(re.sub(r"\x1b\[[0-9;:]*m", "", line)).strip()
