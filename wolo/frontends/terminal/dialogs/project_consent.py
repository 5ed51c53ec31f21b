"""Asks whether files, hooks and MCP servers of a project may be used, once for each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from rich.text import Text

from wolo.config import configured_servers, consents, project
from wolo.config.cli_options import Flags
from wolo.conversation.resources.conversation_hooks import awaiting_consent, save_consent
from wolo.conversation.resources.mcp_servers import servers_here
from wolo.errors import ConfigError, UsageError
from wolo.extensions.hooks.definitions import describe_hook
from wolo.frontends.terminal.display.line_prompt import PassedOver, ask_line
from wolo.frontends.terminal.display.terminal import Terminal
from wolo.mcp.server import ConfiguredServer, describe_server
from wolo.messages.terminal_text import clean_line, escaped_pieces
from wolo.places import Notices, find_places
from wolo.workspace.root import find_root, find_site

ANSWER_WITHIN_S = 120.0
"""A script can have a terminal, too: its task must not wait for ever."""
LOCAL = "It runs with all your rights, outside any sandbox."
REMOTE = "It receives the arguments of the tools that the model calls."


Answer = Literal["yes", "never"]


class Wording(NamedTuple):
    """Wording of a question that is answered by yes, not now, or never."""

    question: str
    yes: str
    subject: str
    granted: str
    refused: str
    """Follows `never` and `not` in the line that records the answer."""


TRUST = Wording("Trust it?", "Yes, trust it", "the files of this project", "trusted", "trusted")
HOOKS = Wording("Run them?", "Yes, run them", "the hooks of this project", "they run", "run")


async def ask_project_consent(flags: Flags, terminal: Terminal) -> None:
    """Anything but a yes counts as no. Raises Dismissed for Ctrl-C, and ConfigError for wrong settings."""
    await _ask_trust(flags, terminal)
    await _ask_servers(flags, terminal)
    site = find_site()
    for hooks in awaiting_consent(site, flags):
        lines = [
            Text.assemble(("? ", "bold warning"), ("Hooks of this project want to run, from ", "bold"), _in_full(hooks.source))
        ]
        for event, hook in hooks.hooks:
            lines.append(Text(f"  {event}", "dim"))
            lines += [_quote(f"    {called:<11} ", value) for called, value in describe_hook(hook)]
        notes = (
            "They run with all your rights, outside any sandbox.",
            "They can make wolo stricter, never looser.",
            "If one of them changes, you are asked again.",
        )
        await _decide(lines, notes, HOOKS, partial(save_consent, site.places, site.root, hooks), terminal)


async def _ask_trust(flags: Flags, terminal: Terminal) -> None:
    root, places = find_root(), find_places()
    files = project.find(root, Path.cwd())
    if not files or flags.get("trust") == str(root) or consents.trust_in(places, root, Notices()):
        return
    width = max(len(each.kind) for each in files)
    lines = [Text.assemble(("? ", "bold warning"), ("This folder contains files that configure wolo:", "bold"))]
    lines += [_quote(f"  {each.kind:<{width}}  ", str(each.path.relative_to(root))) for each in files]
    lines.append(_quote("  in ", str(root)))
    notes = ("None of them is used unless you trust the folder.", "Your permissions stay as they are either way.")
    await _decide(
        lines,
        notes,
        TRUST,
        lambda answer: consents.save_trust(places, root, "trusted" if answer == "yes" else answer),
        terminal,
    )


async def _ask_servers(flags: Flags, terminal: Terminal) -> None:
    root, places = find_root(), find_places()
    if not any(project.MCP_SERVERS.name in each.kind for each in project.find(root, Path.cwd())):
        return
    if flags.get("trust") != str(root) and consents.trust_in(places, root, Notices()) != "trusted":
        return

    def save(server: ConfiguredServer, answer: Answer) -> None:
        configured_servers.save_server_consent(places, root, server, allowed=answer == "yes")

    for server in configured_servers.find_unanswered(servers_here(flags, find_site()), places, root):
        lines = [
            Text.assemble(("? ", "bold warning"), ("This project configures an MCP server: ", "bold"), _in_full(server.name))
        ]
        lines += [_quote(f"  {called:<11} ", value) for called, value in describe_server(server.server)]
        lines.append(_quote("  from        ", server.source))
        notes = (REMOTE if server.server.url else LOCAL, "If any of this changes, you are asked again.")
        if await _decide(lines, notes, _server_wording(server), partial(save, server), terminal):
            try:
                await ask_inputs(server, terminal)
            except ConfigError as error:
                _report_unsaved(error, terminal)


async def _decide(
    lines: Sequence[Text], notes: Iterable[str], wording: Wording, save: Callable[[Answer], object], terminal: Terminal
) -> bool:
    """Asks, and saves a yes or a never. True for a yes that is saved."""
    answer = await _ask([*lines, *(Text(f"  {note}", "dim") for note in notes)], wording, terminal)
    try:
        if answer:
            save("yes" if answer == "yes" else "never")
    except ConfigError as error:
        _report_unsaved(error, terminal)
        if answer == "yes" and wording is TRUST:
            terminal.screen.show_text("--trust trusts the folder for one run.", "dim")
        return False
    return answer == "yes"


async def ask_inputs(server: ConfiguredServer, terminal: Terminal | None) -> None:
    """Asks for missing values; an empty answer leaves one out. Raises ConfigError; UsageError without a terminal."""
    if not server.server.inputs:
        return
    from wolo.config.mcp_logins import ServerInputs  # noqa: PLC0415  # few servers ask for some
    from wolo.frontends.terminal.dialogs.input_prompts import ask_secret, ask_text  # noqa: PLC0415  # the same

    saved = ServerInputs(find_places(), find_root())
    missing = saved.missing(server)
    if terminal is None:
        if not missing:
            return
        asked = ", ".join(f"{each.name} ({each.question})" for each in missing)
        raise UsageError(f"{server.name} needs your input: {asked}.", hint=f"At a terminal, `wolo mcp allow {server.name}` asks.")
    for each in missing:
        choice = f" ({', '.join(each.options)})" if each.options else " (input is hidden)" if each.is_secret else ""
        question = clean_line(f"{server.name}: {each.question}{choice}")
        with suppress(EOFError, PassedOver):
            value = await (ask_secret(question, terminal) if each.is_secret else ask_text(f"  {question} › ", terminal))
            value = value or each.default
            if each.options and value not in each.options:
                terminal.screen.show_text(f"Not saved: it must be one of {', '.join(each.options)}.", "warning")
            elif value:
                saved.save(each.name, value)


async def _ask(lines: Sequence[Text], wording: Wording, terminal: Terminal) -> str:
    """Returns `yes`, `never`, or an empty string for anything else and for no answer in time."""
    try:
        async with asyncio.timeout(ANSWER_WITHIN_S):
            if terminal.has_panels:
                from wolo.frontends.terminal.live.temporary_region import choose  # noqa: PLC0415  # the same
                from wolo.frontends.terminal.panels.choice_panels import NO, YES, PanelChoice  # noqa: PLC0415  # prompt_toolkit is for the REPL only

                choices = (
                    PanelChoice(YES, wording.yes, "y"),
                    PanelChoice(NO, "Not now", "n"),
                    PanelChoice("d", "No, and don't ask again"),
                )
                chosen = await choose([*lines, Text(f"  {wording.question}", "bold")], choices, terminal)
                answers = {YES: ("yes", wording.granted), "d": ("never", f"never {wording.refused}")}
                answer, words = answers.get(chosen, ("", f"not {wording.refused} now"))
                terminal.screen.print(Text.assemble(("? ", "warning"), (wording.subject, "dim"), " → ", (words, "bold")))
                return answer
            for line in lines:
                terminal.screen.print(line)
            typed = await ask_line(f"  {wording.question} [y]es  [N]ot now  [never] › ", terminal)
    except (EOFError, TimeoutError):
        return ""
    return {"y": "yes", "yes": "yes", "never": "never"}.get(typed.strip().lower(), "")


def _report_unsaved(error: ConfigError, terminal: Terminal) -> None:
    terminal.screen.show_text(f"Cannot save your answer: {error.message}", "warning")


def _server_wording(server: ConfiguredServer) -> Wording:
    subject = f"the MCP server {clean_line(server.name)}"
    if server.server.url:
        return Wording("Use it?", "Yes, use it", subject, "used", "used")
    return Wording("Start it?", "Yes, start it", subject, "started", "started")


def _quote(label: str, text: str) -> Text:
    """Not to be wrapped at spaces: a blank at the end of a row is part of the text."""
    return Text.assemble((label, "dim"), _in_full(text), no_wrap=True)


def _in_full(text: str, style: str = "accent") -> Text:
    """The text uncut, on one line."""
    pieces = escaped_pieces(text)
    return Text.assemble(
        *((piece.replace("\n", "\\n"), "reverse" if is_escape or "\n" in piece else style) for piece, is_escape in pieces)
    )
