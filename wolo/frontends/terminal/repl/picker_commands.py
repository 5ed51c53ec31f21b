"""Lists to choose from: for /resume, /model, /rewind and /login without an argument, and for files to mention."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from msgspec.structs import replace
from prompt_toolkit.buffer import Buffer

from wolo.commands import undo
from wolo.commands.command import Command, CommandContext, Outcome, ShowText, SwitchConversation, find
from wolo.conversation.permission_check import in_precedence, rule_lines
from wolo.conversation.resources.startup import ConversationChange
from wolo.frontends.terminal.composer.completion import mention
from wolo.frontends.terminal.dialogs import input_prompts, menu_sources
from wolo.frontends.terminal.dialogs.picker import EMBEDDED, SERVER, Item, Menu, pick
from wolo.frontends.terminal.display.line_prompt import Dismissed, PassedOver
from wolo.frontends.terminal.display.terminal import Terminal

NOTHING = ShowText("")
Choose = Callable[[Terminal, Command, CommandContext], Awaitable[Outcome]]


def with_lists(commands: Sequence[Command], terminal: Terminal) -> tuple[Command, ...]:
    """The same commands, some of which open a list when they get no argument."""
    ways = LISTS if terminal.screen.stdout.can_move else _BY_NUMBER
    asking = {name: partial(_run, terminal, find(name, commands), choose) for name, choose in ways.items()}
    asking["login"] = partial(_log_in, terminal)
    return tuple(replace(command, run=asking.get(command.name, command.run)) for command in commands)


async def choose_ahead(line: str, context: CommandContext, terminal: Terminal) -> str:
    """The command with the choice; unchanged if there is nothing to choose from; empty if the user cancelled."""
    menu = await asyncio.to_thread(CHOSEN_AHEAD[line], context)
    if not menu.listed(True):
        return line
    with suppress(Dismissed):
        if picked := await pick(menu, terminal):
            return f"{line} {picked.value}"
    return ""


async def mention_file(cwd: Path, writing: Buffer, terminal: Terminal) -> None:
    menu = await asyncio.to_thread(menu_sources.files_menu, cwd)
    with suppress(Dismissed):
        if picked := await pick(menu, terminal):
            writing.insert_text(f"{mention(picked.value)} ")


async def _run(terminal: Terminal, command: Command, choose: Choose, context: CommandContext, rest: str) -> Outcome:
    if rest:
        return await command.run(context, rest)
    try:
        return await choose(terminal, command, context)
    except Dismissed:
        return NOTHING


async def _log_in(terminal: Terminal, context: CommandContext, rest: str) -> Outcome:
    """Saves a key; this conversation keeps the one it began with."""
    from wolo.diagnostics.provider_login import find_login_provider, login_providers, split_account  # noqa: PLC0415  # loads the HTTP stack
    from wolo.frontends.terminal.dialogs.login_dialog import ask_provider, log_in  # noqa: PLC0415  # the same

    try:
        name, account = split_account(rest)
        provider = find_login_provider(name) if name else await ask_provider(login_providers(), terminal)
        work = asyncio.ensure_future(log_in(provider, terminal, account))
        with terminal.signals.during(work.cancel):  # a dialog of an extension may wait for long
            is_saved = await work
    except (Dismissed, EOFError):
        return NOTHING
    model = f"{provider.name}/{provider.default_model}" if provider.default_model else f"{provider.name}/MODEL"
    return ShowText(f"Use it with /model {model}." if is_saved else "")


async def _session(terminal: Terminal, command: Command, context: CommandContext) -> Outcome:
    menu = menu_sources.sessions_menu(context.conversation.info.cwd, context.conversation.info.session_id)
    if not menu.listed(True):
        return ShowText("There is no other session yet.")
    picked = await pick(menu, terminal)
    return await command.run(context, picked.value) if picked else NOTHING


async def _theme(terminal: Terminal, command: Command, context: CommandContext) -> Outcome:
    names = command.arguments(context) if command.arguments is not None else ()
    items = [Item(name, name, about) for name, about in names]
    picked = await pick(Menu("Theme", lambda is_on: items), terminal)
    return await command.run(context, picked.value) if picked else NOTHING


async def _setting(terminal: Terminal, command: Command, context: CommandContext) -> Outcome:
    """Asks for the new value of the chosen setting; an empty line only shows it."""
    rows = command.arguments(context) if command.arguments is not None else ()
    items = [Item(name, name, value) for name, value in rows]
    if (picked := await pick(Menu("Settings", lambda is_on: items), terminal)) is None:
        return NOTHING
    try:
        value = await input_prompts.ask_text(f"{picked.value} = ", terminal)
    except (PassedOver, EOFError):
        return NOTHING
    return await command.run(context, f"{picked.value} {value}".strip())


async def _rule(terminal: Terminal, command: Command, context: CommandContext) -> Outcome:
    """Offers to remove the chosen rule, where "always" saved it; others are in settings, whose name is shown."""
    rules = in_precedence(context.conversation.permissions.judge.rules)
    items = [Item(at, rule_lines((rule,))[0]) for at, rule in enumerate(rules)]
    title = f"Rules, in the order of decision · mode {context.conversation.info.mode}"
    if not items:
        return await command.run(context, "list")
    if (picked := await pick(Menu(title, lambda is_on: items), terminal)) is None:
        return NOTHING
    rule = rules[picked.value]
    if "permissions.toml" not in rule.source:
        return ShowText(items[picked.value].label)
    if not await input_prompts.confirm(f"Remove {rule}?", terminal, yes="Yes, remove it"):
        return NOTHING
    return await command.run(context, f"remove {rule}")


async def _model(terminal: Terminal, command: Command, context: CommandContext) -> Outcome:
    from wolo.frontends.terminal.dialogs.embedded_model import offer_embedded  # noqa: PLC0415  # loads the HTTP stack
    from wolo.frontends.terminal.dialogs.new_server import add_server  # noqa: PLC0415  # the same

    picked = await pick(await asyncio.to_thread(menu_sources.models_menu, context.conversation), terminal)
    if picked is None or picked.value == context.conversation.info.model:
        return NOTHING
    ways = {SERVER: add_server, EMBEDDED: offer_embedded}
    if picked.value not in ways:
        return await command.run(context, picked.value)
    try:
        spec = await ways[picked.value](terminal)
    except EOFError:
        return NOTHING
    return (
        SwitchConversation(await context.conversation.reopen(ConversationChange(model=spec, at_own_address=True)))
        if spec
        else NOTHING
    )


CHOSEN_AHEAD: dict[str, Callable[[CommandContext], Menu[str]]] = {
    "/model": lambda context: menu_sources.models_menu(context.conversation, ahead=True),
    "/resume": lambda context: menu_sources.sessions_menu(context.conversation.info.cwd, context.conversation.info.session_id),
}


async def _prompt(terminal: Terminal, command: Command, context: CommandContext) -> Outcome:
    menu = menu_sources.rewind_menu(context)
    if not menu.listed(False):
        return ShowText("There is no prompt yet.")
    if (picked := await pick(menu, terminal)) is None:
        return NOTHING
    if picked.is_on:
        num_turns = [item.value for item in menu.listed(False)].index(picked.value) + 1
        return await undo.undo(context, str(num_turns))
    return await command.run(context, str(picked.value.number))


_BY_NUMBER: dict[str, Choose] = {"resume": _session, "model": _model, "rewind": _prompt}
"""Lists that are also asked line by line."""
LISTS: dict[str, Choose] = {**_BY_NUMBER, "theme": _theme, "config": _setting, "permissions": _rule}
