"""Reads the command line that Codex's SDK gives to the program it starts, and Codex's settings in it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from wolo.cli.options import Values
from wolo.errors import UsageError
from wolo.frontends.codex_protocol.sandboxes import READ_ONLY, check_sandbox, mode_of, to_thinking

FLAG = "--experimental-json"


class ExecOptions(Struct, kw_only=True):
    """One run of `exec`."""

    values: Values = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    """The prompt, or none: it comes from stdin."""
    images: list[Path] = field(default_factory=list)
    schema: str = ""
    """File with the JSON schema of the answer; empty: none."""
    sandbox: str = "read-only"
    policy: str = "never"
    checks_repository: bool = True


def read_exec_options(argv: list[str]) -> ExecOptions:
    """`argv` without `exec`. Raises UsageError that names an option or setting which wolo does not have."""
    options, rest = ExecOptions(), list(argv)
    settings: dict[str, Any] = {}
    while rest:
        token = rest.pop(0)
        name, equals, value = token.partition("=")
        if token == "--":
            options.words += rest
            break
        if token in _SHORT:
            name, equals = _SHORT[token], ""
        if not token.startswith("-") or token == "-":
            if token == "resume" and not options.words and "resume" not in options.values and rest:
                _resume(options, rest.pop(0))
            elif token != "-":
                options.words.append(token)
            continue
        if name in (FLAG, "--skip-git-repo-check"):
            options.checks_repository = options.checks_repository and name == FLAG
            continue
        if name not in _VALUES:
            raise UsageError(f"wolo does not have the option {name} of Codex.", hint="Leave it out of the SDK's options.")
        if not equals:
            if not rest:
                raise UsageError(f"{name} needs a value.")
            value = rest.pop(0)
        _take(options, settings, name, value)
    apply_settings(options.values, settings, options)
    options.values["mode"] = mode_of(options.sandbox, options.policy)
    if options.sandbox == "read-only":
        options.values["agent"] = READ_ONLY.name
    return options


_SHORT = {"-c": "--config", "-m": "--model", "-s": "--sandbox", "-C": "--cd", "-i": "--image"}
_VALUES = frozenset(("--config", "--model", "--sandbox", "--cd", "--add-dir", "--output-schema", "--image", "--thread-source"))


def _resume(options: ExecOptions, id: str) -> None:
    options.values |= {"continue": True} if id == "--last" else {"resume": id}


def _take(options: ExecOptions, settings: dict[str, Any], name: str, value: str) -> None:
    match name:
        case "--config":
            key, equals, text = value.partition("=")
            if not equals or not key.strip():
                raise UsageError(f"--config {value}: it is no KEY=VALUE.")
            _set(settings, key.strip(), _toml(text))
        case "--model":
            options.values["model"] = value
        case "--sandbox":
            options.sandbox = check_sandbox(value)
        case "--cd":
            options.values["cd"] = value
        case "--add-dir":
            held = options.values.setdefault("add_dir", [])
            assert isinstance(held, list)
            held.append(value)
        case "--output-schema":
            options.schema = value
        case "--image":
            options.images += map(Path, value.split(","))
        case "--thread-source":
            pass  # a label for the vendor's statistics


def _toml(text: str) -> Any:
    """As Codex reads it: a TOML value, else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text.strip().strip("\"'")


def _set(settings: dict[str, Any], key: str, value: Any) -> None:
    *tables, last = key.split(".")
    table = settings
    for name in tables:
        inner = table.setdefault(name, {})
        if not isinstance(inner, dict):
            raise UsageError(f"--config {key}: {name} is no table.")
        table = inner
    table[last] = value


def apply_settings(values: Values, settings: Mapping[str, Any], options: ExecOptions) -> None:
    """Codex's settings as options. Raises UsageError for one that wolo does not have."""
    for name, value in settings.items():
        match name, value:
            case "model", str():
                values.setdefault("model", value)
            case "openai_base_url", str():
                values |= {"base_url": value, "api": "openai-responses"}
            case "model_reasoning_effort", str():
                values["thinking"] = to_thinking(value)
            case "approval_policy", str():
                options.policy = value
            case "sandbox_mode", str():
                options.sandbox = check_sandbox(value)
            case "sandbox_workspace_write", dict():
                _check_network(value)
            case "web_search", "disabled":
                values["disallow_tools"] = "web_search,fetch"
            case "web_search", "cached" | "live":
                pass  # it is offered where a search service is set up
            case "mcp_servers", dict():
                values["mcp_config"] = [json.dumps({"mcpServers": value})]
            case _:
                raise UsageError(f"wolo does not have the setting {name} = {value!r} of Codex.")


def _check_network(table: Mapping[str, Any]) -> None:
    """Commands in the sandbox have the network that the user's settings give them."""
    for name, value in table.items():
        if name != "network_access":
            raise UsageError(f"wolo does not have the setting sandbox_workspace_write.{name} of Codex.")
        if value is True:
            raise UsageError(
                "sandbox_workspace_write.network_access = true is not supported: commands of wolo's sandbox have no network.",
                hint='Use sandboxMode "danger-full-access", or leave it out.',
            )
