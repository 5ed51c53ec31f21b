"""Slash commands of the terminal: /copy, /editor, /loop, /keys, /theme and /vim."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Sequence
from functools import partial

from wolo.commands.command import Command, CommandContext, Outcome, ShowText
from wolo.config.settings_writer import set_value
from wolo.errors import UsageError
from wolo.frontends.terminal.composer.clipboard_images import find_clipboard_programs
from wolo.frontends.terminal.io.terminal_output import Sender
from wolo.frontends.terminal.io.theme import AUTO, BUILT_IN, load_theme, theme_names
from wolo.frontends.terminal.live.component import TerminalActions
from wolo.frontends.terminal.prompt_loop import USAGE, read_interval
from wolo.messages.terminal_text import quantity
from wolo.places import find_places
from wolo.workspace.processes.command_environment import find_program
from wolo.workspace.root import Workspace

_ABOUT = {
    "auto": "by the terminal's background",
    "dark": "for a dark background",
    "light": "for a light background",
    "dark-colorblind": "dark, with blue and orange for green and red",
    "light-colorblind": "light, with blue and orange for green and red",
    "high-contrast": "bright text for a dark background",
    "ansi": "the terminal's own sixteen colours",
}


def own_commands(actions: TerminalActions) -> tuple[Command, ...]:
    return (
        Command(
            "copy",
            "copy the last answer, or a code block of it",
            partial(_run, actions),
            usage="[N]",
            more="N counts the code blocks of the last answer from its beginning. It uses the terminal (OSC 52), and a "
            "clipboard program if there is one.",
            group="Conversation",
            arguments=_arguments,
            while_working=True,
        ),
        Command(
            "editor",
            "write in your editor (VISUAL, EDITOR)",
            partial(_editor, actions),
            more="Opens the typed text; the edited text replaces it. Same as Ctrl-G.",
            group="Conversation",
            while_working=True,
        ),
        Command(
            "loop",
            "send a prompt again and again",
            partial(_loop, actions),
            usage="[INTERVAL PROMPT | stop]",
            more="/loop 10m PROMPT sends it now and every ten minutes (30s, 10m, 1h30m), after the turn that runs. Esc, "
            "/loop stop and the end of the session stop it. Without arguments: the loop that runs.",
            group="Conversation",
            while_working=True,
        ),
        Command("keys", "list the keys", partial(_keys, actions), while_working=True),
        Command(
            "theme",
            "colours for a dark or a light background",
            partial(_theme, actions),
            usage=f"[{'|'.join((AUTO, *BUILT_IN))}|NAME]",
            more="A file NAME.toml in the folder `themes` of your settings is a theme, too. Also saved in your settings "
            "(ui.theme). NO_COLOR=1 in the environment turns colours off.",
            arguments=lambda context: [(name, _ABOUT.get(name, "yours")) for name in theme_names(find_places().config)],
            while_working=True,
        ),
        Command(
            "vim",
            "edit prompts with the keys of vi, or with the usual ones",
            partial(_vim, actions),
            usage="[on|off]",
            more="Without an argument: the other ones. Counts at once; also saved in your settings (ui.keys).",
            arguments=lambda context: [("on", "keys of vi"), ("off", "keys of emacs, the usual ones")],
            while_working=True,
        ),
    )


async def _vim(actions: TerminalActions, context: CommandContext, rest: str) -> Outcome:
    if rest not in ("", "on", "off"):
        raise UsageError(f"/vim takes on or off, not {rest}.")
    enabled = rest == "on" if rest else not actions.uses_vi
    actions.use_vi(enabled)
    places = find_places()
    await asyncio.to_thread(set_value, places, "ui.keys", "vi" if enabled else "emacs")
    keys = "Keys of vi: Esc, then commands; the status row names the mode." if enabled else "The usual keys."
    return ShowText(f"{keys} Saved in {places.config / 'config.toml'}.")


async def _loop(actions: TerminalActions, context: CommandContext, rest: str) -> Outcome:
    first, _, prompt = rest.partition(" ")
    if not rest:
        return ShowText(actions.loop.describe())
    if rest == "stop":
        return ShowText("The loop is stopped." if actions.loop.stop() else "No loop is running.")
    interval_s = read_interval(first)
    if not prompt.strip():
        raise UsageError("A loop needs a prompt.", hint=USAGE)
    actions.loop.start(interval_s, prompt.strip())
    return ShowText(f"Sent now and every {first}; Esc or /loop stop ends it.")


async def _editor(actions: TerminalActions, context: CommandContext, rest: str) -> Outcome:
    actions.open_editor()
    return ShowText("")


async def _keys(actions: TerminalActions, context: CommandContext, rest: str) -> Outcome:
    return ShowText(actions.keys_listed())


async def _theme(actions: TerminalActions, context: CommandContext, rest: str) -> Outcome:
    places = find_places()
    if not rest:
        off = " (NO_COLOR is set: colours are off)" if os.environ.get("NO_COLOR") else ""
        themes = "\n".join(f"{name:<16} {_ABOUT.get(name, 'yours')}" for name in theme_names(places.config))
        return ShowText(f"{themes}\n\nChange it with /theme NAME{off}.")
    load_theme(rest, places.config)
    actions.use_theme(rest)
    await asyncio.to_thread(set_value, places, "ui.theme", rest)
    return ShowText(f"Theme set to {rest}; saved in {places.config / 'config.toml'}.")


MOST_BYTES = 74_994
"""Limit of many terminals; some close the connection when they get more."""
PROGRAM_S = 5.0


async def _run(actions: TerminalActions, context: CommandContext, rest: str) -> Outcome:
    if not (answers := _answers(context)):
        raise UsageError("There is no answer to copy yet.")
    answer = answers[-1].strip("\n")
    text, what = (_block(answer, rest), f"Block {rest}") if rest else (answer, "The last answer")
    if not (ways := await copy(text, actions.sender, context.conversation.permissions.workspace)):
        raise UsageError(
            f"Cannot copy {what[0].lower()}{what[1:]}: no clipboard takes {len(text.encode()):,} bytes.",
            hint="/export writes a file; wl-copy, xclip, xsel and pbcopy take more than a terminal.",
        )
    return ShowText(f"Copied {what[0].lower()}{what[1:]} ({quantity(len(text), 'character')}), using {' and '.join(ways)}.")


def _arguments(context: CommandContext) -> list[tuple[str, str]]:
    found = blocks(_answers(context)[-1]) if _answers(context) else []
    return [(str(number), block.strip().partition("\n")[0]) for number, block in enumerate(found, start=1)]


async def copy(text: str, sender: Sender | None, workspace: Workspace) -> list[str]:
    """The ways that may have worked: a terminal does not confirm."""
    data = text.encode("utf-8", "replace")
    ways: list[str] = []
    x11 = (("xclip", "-selection", "clipboard"), ("xsel", "--clipboard", "--input"))
    programs = find_clipboard_programs(workspace, mac=(("pbcopy",),), wayland=(("wl-copy",),), x11=x11)
    if programs and await _feed(programs[0], data):
        ways.append(os.path.basename(programs[0][0]))  # noqa: PTH119  # only shown
    if (
        os.environ.get("TMUX")
        and (tmux := find_program("tmux", workspace))
        and await _feed([tmux, "load-buffer", "-w", "-"], data)
    ):
        ways.append("tmux")
    elif sender is not None and len(data) <= MOST_BYTES:
        sender.send(f"\x1b]52;c;{base64.b64encode(data).decode()}\x07")
        ways.append("the terminal")
    return ways


def blocks(answer: str) -> list[str]:
    """Code blocks, without their fences."""
    from markdown_it import MarkdownIt  # noqa: PLC0415  # the first prompt needs no parser

    return [token.content.removesuffix("\n") for token in MarkdownIt().parse(answer) if token.type == "fence"]


def _answers(context: CommandContext) -> list[str]:
    return [message.text for message in context.conversation.history if message.role == "assistant" and message.text.strip()]


def _block(answer: str, which: str) -> str:
    found = blocks(answer)
    if not which.isdecimal() or not 1 <= int(which) <= len(found):
        count = quantity(len(found), "code block") if found else "no code block"
        raise UsageError(f"The last answer has {count}.", hint="/copy copies all of it, /copy N one block.")
    return found[int(which) - 1]


async def _feed(argv: Sequence[str], data: bytes) -> bool:
    """True if the program took it. The process that it leaves behind to serve the clipboard continues."""
    nowhere = asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=asyncio.subprocess.PIPE, stdout=nowhere, stderr=nowhere, start_new_session=True
        )
    except OSError:
        return False
    try:
        async with asyncio.timeout(PROGRAM_S):
            await process.communicate(data)
    except (TimeoutError, OSError):
        process.kill()
        await process.wait()
        return False
    return process.returncode == 0
