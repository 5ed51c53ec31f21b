"""`--output-format claude-stream-json`: reads the options of Claude Code, and serves a session to a program of its SDKs."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import uuid
from collections.abc import Callable, Mapping
from functools import partial

from wolo.cli.crash_log import log_to_file
from wolo.cli.options import parse
from wolo.cli.protocols.claude_rules import add_permission, add_rules, add_settings, disallow, other_tools, split_list, values_of
from wolo.cli.protocols.detection import CLAUDE_MARK
from wolo.cli.signals import answer_signals, is_answered
from wolo.errors import UsageError, WoloError
from wolo.extensions.agent_fields import tools
from wolo.extensions.markdown_files import Document
from wolo.frontends.claude_protocol.can_use_tool import to_mode
from wolo.frontends.claude_protocol.claude_session import ClaudeSession
from wolo.frontends.claude_protocol.session_options import SessionOptions, set_prompt, to_level
from wolo.frontends.claude_protocol.wire_messages import failure
from wolo.frontends.streams import OutputLost, print_json, show_error
from wolo.operating_system import EXIT_BY_SIGNAL, on_signal

_MARKS = (CLAUDE_MARK, "CLAUDE_CODE_ENTRYPOINT")
_STATE = "CLAUDE_CODE_SDK_READS_SESSION_STATE"


def serve(argv: list[str]) -> int:
    """Returns the exit code. An unusable command line is reported as a result, too."""
    try:
        options = read_claude_options(argv)
    except WoloError as error:
        show_error(error)
        try:
            print_json(failure(" ".join(filter(None, (error.message, error.hint)))))
        except OutputLost as lost:
            return lost.exit_code
        return error.exit_code
    reports_state = bool(os.environ.get(_STATE))
    for name in (*_MARKS, _STATE):
        os.environ.pop(name, None)  # a wolo that a command starts is driven by nobody
    log_to_file()
    gc.enable()
    gc.freeze()

    async def run() -> int:
        session = ClaudeSession(options, add_rules, reports_state=reports_state)
        for number in filter(is_answered, EXIT_BY_SIGNAL):
            on_signal(asyncio.get_running_loop(), number, partial(_stop, session, number))
        return await session.run()

    try:
        return asyncio.run(run())
    finally:
        answer_signals(signal.SIG_IGN)  # the exit status is final


def _stop(session: ClaudeSession, number: signal.Signals) -> None:
    """The first signal interrupts the turn, the second one ends the process."""
    if session.stopped_by:
        session.kill()
        os._exit(session.stopped_by)
    session.stop(EXIT_BY_SIGNAL[number])


FORM = "claude-stream-json"


def read_claude_options(argv: list[str]) -> SessionOptions:
    """Raises UsageError for an option that wolo does not have; it names the option."""
    options = SessionOptions(values={"mode": "ask"})
    options.values["set"] = []
    words = list(argv)
    own: list[str] = []
    while words:
        name, equals, value = words.pop(0).partition("=")
        if name in _FLAGS and not equals:
            switch = _FLAGS[name]
            if isinstance(switch, str):
                options.values[switch] = True
            else:
                switch(options)
        elif name in _VALUES:
            if not equals:
                if not words:
                    raise UsageError(f"{name} needs a value.")
                value = words.pop(0)
            take = _VALUES[name]
            if isinstance(take, str):
                options.values[take] = value
            else:
                take(options, value)
        elif name in _OF_WOLO:
            own += [name, value if equals else words.pop(0) if words else ""]
        else:
            raise UsageError(f"wolo does not have the option {name} of Claude Code.", hint="Leave it out of the SDK's options.")
    for name, given in parse(own).values.items():
        options.values[name] = [*values_of(options.values, name), *given] if isinstance(given, list) else given
    if "session" in options.values and {"continue", "resume"} & {*options.values}:
        raise UsageError("--session-id cannot be combined with --continue or --resume.", hint="wolo chooses the id of a copy.")
    return options


def _offer(options: SessionOptions, text: str) -> None:
    """`--tools`: built-in tools to offer; MCP servers of the program stay."""
    if text == "default":
        return
    offered = tools(Document({"tools": list(split_list(text))}, "", "--tools")) or ()
    options.values["set"] = [*values_of(options.values, "set"), f"tools.offer={json.dumps([*offered, *other_tools(text)])}"]


def _allow(options: SessionOptions, text: str) -> None:
    """`--allowedTools`: these calls need no approval."""
    for written in split_list(text):
        add_permission(options.values, "allow", written)


def _set_mode(options: SessionOptions, name: str) -> None:
    options.values["mode"] = to_mode(name)
    options.dont_ask = name == "dontAsk"
    options.may_bypass = options.may_bypass or name == "bypassPermissions"


def _ask_program(options: SessionOptions, name: str) -> None:
    if name != "stdio":
        raise UsageError(f"--permission-prompt-tool {name} is not supported by wolo, only stdio.")
    options.asks_program = True


def _choose_id(options: SessionOptions, text: str) -> None:
    try:
        options.session_id = str(uuid.UUID(text))
    except ValueError as error:
        raise UsageError(f"--session-id: {text} is no UUID.") from error
    options.values["session"] = options.session_id


def _resume(options: SessionOptions, id: str) -> None:
    options.values["resume"] = id
    try:
        options.session_id = str(uuid.UUID(id))  # the name that the program gave it
    except ValueError:
        options.session_id = ""


def _use_servers(options: SessionOptions, text: str) -> None:
    """`--mcp-config`; servers of the type sdk are inside the program."""
    try:
        document = json.loads(text) if text.lstrip().startswith("{") else None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--mcp-config is no JSON: {error}.") from error
    servers = document.get("mcpServers") if isinstance(document, dict) else None
    if not isinstance(servers, dict):
        values_of(options.values, "mcp_config").append(text)
        return
    hosted = [name for name, entry in servers.items() if isinstance(entry, dict) and entry.get("type") == "sdk"]
    options.hosted = tuple(dict.fromkeys((*options.hosted, *hosted)))
    if others := {name: entry for name, entry in servers.items() if name not in hosted}:
        values_of(options.values, "mcp_config").append(json.dumps({"mcpServers": others}))


def _define_agents(options: SessionOptions, text: str) -> None:
    try:
        definitions = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--agents is no JSON: {error}.") from error
    if not isinstance(definitions, dict):
        raise UsageError("--agents is no JSON object.")
    options.agents |= definitions


def _check_form(options: SessionOptions, form: str) -> None:
    if form not in (FORM, "stream-json"):
        raise UsageError(f"{FORM} is the form of both stdin and stdout, not {form}.")


def _set(name: str, options: SessionOptions, value: str | bool = True) -> None:
    setattr(options, name, value)


def _model(options: SessionOptions, value: str) -> None:
    if value != "default":
        options.values["model"] = value


def _thinking(options: SessionOptions, value: str) -> None:
    if value not in ("adaptive", "disabled", "enabled"):
        raise UsageError(f"--thinking: there is no {value}, only adaptive, enabled and disabled.")
    if value == "disabled":
        options.values["thinking"] = "off"


def _display(options: SessionOptions, value: str) -> None:
    if value != "summarized":
        raise UsageError(f"--thinking-display {value} is not supported by wolo: thinking is passed on as the provider sends it.")


def _sources(options: SessionOptions, value: str) -> None:
    """wolo reads its own settings, and a project's only where the user trusts the folder."""
    if unknown := [each for each in split_list(value) if each not in ("user", "project", "local")]:
        raise UsageError(f"--setting-sources: there is no source {unknown[0]}.")


def _refuse_url(options: SessionOptions, value: str) -> None:
    raise UsageError("--sdk-url is not supported by wolo: the protocol is spoken on stdin and stdout.")


_FLAGS: Mapping[str, str | Callable[[SessionOptions], object]] = {
    **dict.fromkeys(("--print", "-p", "--verbose", "--await-initialize"), lambda options: None),
    "--continue": "continue",
    "--fork-session": "fork",
    "--include-partial-messages": partial(_set, "partial"),
    "--replay-user-messages": partial(_set, "replays"),
    "--strict-mcp-config": "strict_mcp_config",
    "--no-session-persistence": "no_session",
    "--allow-dangerously-skip-permissions": partial(_set, "may_bypass"),
    "--dangerously-skip-permissions": lambda options: _set_mode(options, "bypassPermissions"),
}
"""Names of settings that they turn on, or functions that do more."""
_VALUES: Mapping[str, str | Callable[[SessionOptions, str], object]] = {
    "--output-format": _check_form,
    "--input-format": _check_form,
    "--permission-prompt-tool": _ask_program,
    "--permission-mode": _set_mode,
    "--model": _model,
    "--fallback-model": "fallback_model",
    "--max-turns": "max_turns",
    "--max-budget-usd": "max_cost",
    "--system-prompt": lambda options, value: set_prompt(options.values, "system_prompt", value),
    "--system-prompt-file": lambda options, value: options.values.update(system_prompt=f"@{value}"),
    "--append-system-prompt": lambda options, value: set_prompt(options.values, "append_system_prompt", value),
    "--tools": _offer,
    "--allowedTools": _allow,
    "--allowed-tools": _allow,
    "--disallowedTools": lambda options, value: disallow(options.values, split_list(value)),
    "--disallowed-tools": lambda options, value: disallow(options.values, split_list(value)),
    "--mcp-config": _use_servers,
    "--resume": _resume,
    "-r": _resume,
    "--session-id": _choose_id,
    "--settings": lambda options, value: add_settings(options.values, value),
    "--setting-sources": _sources,
    "--add-dir": lambda options, value: values_of(options.values, "add_dir").append(value),
    "--agent": "agent",
    "--agents": _define_agents,
    "--effort": "thinking",
    "--thinking": _thinking,
    "--max-thinking-tokens": lambda options, value: options.values.update(thinking=to_level(value)),
    "--thinking-display": _display,
    "--json-schema": partial(_set, "schema"),
    "--sdk-url": _refuse_url,
}
_OF_WOLO = frozenset(
    (
        *(
            "--base-url",
            "--api-key",
            "--api",
            "--account",
            "--drive",
            "--allow",
            "--deny",
            "--sandbox",
            "--set",
            "--name",
            "--mode",
        ),
        *("--max-cost", "--max-tokens", "--max-seconds", "--wait-for-reset", "--debug-wire", "--verify"),
    )
)
"""Options of wolo's own, which a program can pass as extra arguments."""
