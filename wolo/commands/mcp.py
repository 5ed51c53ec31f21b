"""/mcp: lists MCP servers, shows their tools, restarts and allows them."""

from __future__ import annotations

import os
from functools import partial

from wolo.agent.events import Noticed
from wolo.commands.command import Command, CommandContext, Outcome, ShowText, rows
from wolo.conversation.conversation import Conversation
from wolo.conversation.resources.mcp_servers import allow_server, remember_listing
from wolo.errors import UsageError, WoloError
from wolo.mcp.logins import LoginStore
from wolo.mcp.mcp_tool import offered_name
from wolo.mcp.server import ConfiguredServer, describe_server
from wolo.mcp.servers import Servers, ServerStatus
from wolo.messages.terminal_text import clean_line, escaped_line, quantity
from wolo.places import find_places

_HINT = "/mcp, /mcp tools NAME, /mcp log NAME, /mcp restart NAME, /mcp allow NAME, /mcp login NAME"
_MOST_RESOURCES = 50
_NONE = "No MCP servers. Add one with `wolo mcp add NAME -- COMMAND`, or with an .mcp.json in the project."
_STATES = {"known": "starts on first use", "starting": "still starting"}


async def _run(context: CommandContext, rest: str) -> Outcome:
    servers = context.conversation.servers
    action, _, name = rest.partition(" ")
    match action:
        case "" | "list":
            return ShowText("\n".join(_lines(servers.statuses())))
        case "tools":
            return ShowText(_tools(servers, name.strip(), context.columns))
        case "log":
            return ShowText(_log(servers, name.strip()))
        case "restart":
            await servers.restart(name.strip())
            return ShowText(f"Restarting {name.strip()}.")
        case "allow":
            return ShowText(_allow(context, servers, name.strip()))
        case "login":
            servers.start_login(name.strip(), partial(_log_in, context.conversation))
            return ShowText(f"Logging in to {name.strip()}: the address follows, and the result once you have answered there.")
        case _:
            raise UsageError(f"Unknown action: {clean_line(action)}.", hint=_HINT)


def _lines(statuses: tuple[ServerStatus, ...]) -> list[str]:
    if not statuses:
        return [_NONE]
    width = max(len(each.name) for each in statuses)
    return [f"{each.name:<{width}}  {_about(each)}" for each in statuses]


def _about(status: ServerStatus) -> str:
    count = len(status.tools)
    tools = "" if not count else "1 tool" if count == 1 else f"{count} tools"
    consent = f"/mcp allow {status.name} starts it" if status.state == "needs consent" else ""
    why = clean_line(status.why) if status.state == "failed" else ""
    facts = (_STATES.get(status.state, status.state), tools, why, consent, f"from {clean_line(status.source)}")
    return " · ".join(filter(None, facts))


def _tools(servers: Servers, name: str, columns: int) -> str:
    status = _status(servers, name)
    listed = [(tool, clean_line(" ".join(about.split()))) for tool, about in status.tools]
    listed += [(f"/{offered_name(name, each.name)}", each.description or "a prompt") for each in status.prompts]
    listed += [(f"@{name}:{each.uri}", each.description or each.name) for each in status.resources[:_MOST_RESOURCES]]
    more = len(status.resources) - _MOST_RESOURCES
    notes = [f"… and {more} more resources"] if more > 0 else []
    notes += [f"{name}: {clean_line(notice)}" for notice in status.notices]
    if not listed:
        return "\n".join([f"{name} has no tools: {_about(status)}", *notes])
    return "\n".join([*rows(listed, columns), *notes])


def _log(servers: Servers, name: str) -> str:
    return "\n".join(_status(servers, name).log) or f"{name} has logged nothing since it was started."


def _status(servers: Servers, name: str) -> ServerStatus:
    status = next((each for each in servers.statuses() if each.name == name), None)
    if status is None:
        raise UsageError(f"Unknown MCP server: {clean_line(name)}.", hint=_HINT)
    return status


def _allow(context: CommandContext, servers: Servers, name: str) -> str:
    wanted = servers.waits_for_consent(name)
    facts = "\n".join(f"  {called:<11} {escaped_line(value)}" for called, value in describe_server(wanted.server))
    allow_server(servers, name, find_places(), context.conversation.info.root)
    return f"Allowed {name} until its definition changes, and started it:\n{facts}"


async def _log_in(conversation: Conversation, configured: ConfiguredServer, store: LoginStore | None) -> None:
    """Shows the address and the result between other events; neither is saved."""
    from wolo.config.mcp_logins import MCPLogins  # noqa: PLC0415  # for a login only
    from wolo.mcp.oauth.callback import LoginFailed, open_browser  # noqa: PLC0415
    from wolo.mcp.oauth.login import log_in  # noqa: PLC0415

    name, logins = configured.name, store or MCPLogins(find_places())

    def show(text: str) -> None:
        conversation.events.pass_on(Noticed(text=text, level="warning"))  # plain ones are for --verbose

    def on_address(address: str) -> None:
        show(f"Open this address to log in to {name}: {clean_line(address)}")
        open_browser(address, os.environ)

    try:
        listing = await log_in(name, configured.server, logins, os.environ, on_address)
        if listing is None:
            show(f"{name} needs no login.")
            return
        remember_listing(configured, listing)
        await conversation.servers.restart(name)
    except (LoginFailed, WoloError) as error:
        show(f"The login to {name} failed: {clean_line(str(getattr(error, 'message', error)))}.")
    else:
        show(f"Logged in to {name}: {quantity(len(listing.tools), 'tool')}.")


def _arguments(context: CommandContext) -> list[tuple[str, str]]:
    arguments: list[tuple[str, str]] = []
    for each in context.conversation.servers.statuses():
        actions = ("allow",) if each.state == "needs consent" else ("tools", "log", "restart", "login")
        arguments += [(f"{action} {each.name}", _STATES.get(each.state, each.state)) for action in actions]
    return arguments


COMMANDS = (
    Command(
        "mcp",
        "MCP servers and their status",
        _run,
        usage="[tools|log|restart|allow|login NAME]",
        more="tools lists what one offers, log its messages; restart restarts it, allow starts one that the project defines,"
        " login opens the browser for a remote one.",
        group="Extensions",
        arguments=_arguments,
        while_working=True,
    ),
)
