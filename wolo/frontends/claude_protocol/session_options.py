"""What a program asks of its session: on the command line, and in its `initialize` request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from wolo.errors import UsageError
from wolo.extensions.hooks.definitions import ABOUT_TOOLS, EVENTS, Hook, complaint

if TYPE_CHECKING:
    from wolo.extensions.agent_files import AgentProfile
    from wolo.extensions.hooks.hook_runner import ProgramHook

Values = dict[str, "str | bool | list[str]"]
"""Options of the command line by wolo's names."""


class SessionOptions(Struct, kw_only=True):
    """Completed by `initialize`, fixed once the conversation is open."""

    values: Values
    session_id: str = ""
    """The id that the program chose; empty: wolo's own."""
    asks_program: bool = False
    """`--permission-prompt-tool stdio`: the program decides about calls."""
    dont_ask: bool = False
    """The mode dontAsk: the program is not asked until it chooses another one."""
    may_bypass: bool = False
    """The mode bypassPermissions may be chosen later."""
    partial: bool = False
    replays: bool = False
    """Prompts are sent back, with the UUIDs by which files can be rewound."""
    with_text: bool = False
    """Words of subagents are sent, too."""
    hosted: tuple[str, ...] = ()
    """Names of MCP servers inside the program."""
    timeouts: dict[str, float] = field(default_factory=dict)
    """Seconds for a call of such a server."""
    schema: str = ""
    """JSON schema of the answers; empty: none."""
    agents: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    hooks: Mapping[str, Any] = field(default_factory=dict)
    title: str = ""


_IGNORED = frozenset(
    (
        *("subtype", "sdkMcpServerManifests", "sdkMcpServerManifestsOrigin", "supportedDialogKinds", "perTaskStopAffordance"),
        *("systemPromptSnapshot", "excludeDynamicSections"),
    )
)
"""Fields that ask for nothing which must happen: a cache of tool lists, what the program can show, how a prompt is cached."""
_MATCHER_FIELDS = frozenset(("matcher", "hookCallbackIds", "timeout", "onFailure"))


def add_initialize(options: SessionOptions, request: Mapping[str, Any], add_rules: Callable[[Values, str, Any], None]) -> None:
    """Adds the fields of the request. `add_rules` adds those of `--disallowedTools` and `--settings`. Raises UsageError."""
    for name, value in request.items():
        if value in (None, False, "", [], {}) or name in _IGNORED:
            continue
        match name, value:
            case "hooks", dict():
                options.hooks = value
            case "forwardSubagentText", True:
                options.with_text = True
            case "sdkMcpServers", list():
                options.hosted = tuple(dict.fromkeys((*options.hosted, *map(str, value))))
            case "sdkMcpServerConfigs", dict():
                options.timeouts = _read_timeouts(value)
            case "jsonSchema", dict():
                options.schema = as_json_text(value)
            case "systemPrompt", list():
                set_prompt(options.values, "system_prompt", "\n\n".join(map(str, value)))
            case ("systemPrompt", str()) | ("appendSystemPrompt", str()):
                set_prompt(options.values, "system_prompt" if name == "systemPrompt" else "append_system_prompt", value)
            case "agents", dict():
                options.agents |= value
            case "title", str():
                options.title = value
            case "mcpServers", dict():
                servers = options.values.setdefault("mcp_config", [])
                assert isinstance(servers, list)
                servers.append(as_json_text({"mcpServers": value}))
            case (("disallowedTools" | "settings"), _):
                add_rules(options.values, name, value)
            case _:
                raise UsageError(f"initialize: {name} is not supported by wolo.")


def as_json_text(value: Any) -> str:
    import json  # noqa: PLC0415  # few sessions need it

    return json.dumps(value, ensure_ascii=False)


def set_prompt(values: Values, name: str, text: str) -> None:
    """A prompt that begins with @ would name a file. An empty system prompt keeps wolo's own."""
    if text.strip():
        values[name] = f"\n{text}" if text.startswith("@") else text


def _read_timeouts(configs: Mapping[str, Any]) -> dict[str, float]:
    """Seconds by server. Raises UsageError for other settings: they may be a policy."""
    timeouts = {}
    for name, settings in configs.items():
        table = settings if isinstance(settings, Mapping) else {"settings": settings}
        if unknown := [key for key in table if key != "timeout"]:
            raise UsageError(f"initialize: sdkMcpServerConfigs.{name}.{unknown[0]} is not supported by wolo.")
        if isinstance(table.get("timeout"), int | float):
            timeouts[name] = table["timeout"] / 1000
    return timeouts


def read_agents(definitions: Mapping[str, Any]) -> tuple[AgentProfile, ...]:
    """Raises WoloError."""
    from wolo.extensions.agent_files import read_definition  # noqa: PLC0415  # few programs define some

    for name, table in definitions.items():
        if not isinstance(table, Mapping):
            raise UsageError(f"agents: {name} is no object.")
    return tuple(read_definition(name, table) for name, table in definitions.items())


AskHook = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Takes the id of a callback and the event. Raises WoloError."""


def read_hooks(hooks: Mapping[str, Any], ask: AskHook) -> tuple[ProgramHook, ...]:
    """A hook before a call denies it when it cannot be asked. Raises UsageError."""
    from wolo.extensions.hooks.hook_runner import ProgramHook  # noqa: PLC0415  # few programs have hooks

    options = []
    for event, matchers in hooks.items():
        if event not in EVENTS:
            raise UsageError(f"hooks: wolo has no event {event}.", hint=f"There are: {', '.join(EVENTS)}.")
        for number, entry in enumerate(matchers if isinstance(matchers, list) else [matchers]):
            where = f"hooks.{event}[{number}]"
            table = entry if isinstance(entry, Mapping) else {}
            ids, timeout, matcher = table.get("hookCallbackIds"), table.get("timeout"), table.get("matcher") or ""
            if not isinstance(ids, list) or not all(isinstance(id, str) for id in ids) or not isinstance(matcher, str):
                raise UsageError(f"{where} has no list hookCallbackIds, or its matcher is no text.")
            if unknown := [name for name, value in table.items() if name not in _MATCHER_FIELDS and value not in (None, False)]:
                raise UsageError(f"{where}.{unknown[0]} is not supported by wolo.")
            if problem := complaint(matcher):
                raise UsageError(f"{where}: {problem}.")
            if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, int | float) or timeout <= 0):
                raise UsageError(f"{where}.timeout is no number above 0.")
            strict = event in GUARDS or table.get("onFailure", "continue") not in (None, "continue")
            if event not in ABOUT_TOOLS and event == "FileChanged" and not matcher:
                raise UsageError(f"{where}: the matcher must name the files to watch.")
            for id in ids:
                hook = Hook(command=f"callback {id}", matcher=matcher, timeout_s=timeout, strict=strict)
                options.append(ProgramHook(event, hook, partial(ask, id)))
    return tuple(options)


GUARDS = frozenset(("PreToolUse", "PermissionRequest", "UserPromptSubmit"))
"""Events whose hooks guard something: without their answer it does not happen."""


_LEVELS = ((0, "off"), (4_096, "low"), (16_384, "medium"), (31_999, "high"))
"""Tokens for thinking, and the level for as many at most."""


def to_level(tokens: Any) -> Any:
    """The thinking level for a budget in tokens. Raises UsageError."""
    try:
        number = int(tokens)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{tokens!r} is no number of tokens for thinking.") from error
    return next((level for most, level in _LEVELS if number <= most), "max")
