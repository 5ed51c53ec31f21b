"""Reads the command line that Codex's SDK gives to the program it starts, and Codex's settings in it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from msgspec import field

from wolo.errors import UsageError
from wolo.frontends.codex_protocol.codex_settings import CodexSettings, set_key
from wolo.frontends.codex_protocol.sandboxes import check_sandbox

FLAG = "--experimental-json"


class ExecOptions(CodexSettings, kw_only=True):
    """One run of `exec`."""

    words: list[str] = field(default_factory=list)
    """The prompt, or none: it comes from stdin."""
    images: list[Path] = field(default_factory=list)
    schema: str = ""
    """File with the JSON schema of the answer; empty: none."""
    checks_repository: bool = True


def read_exec_options(argv: list[str]) -> ExecOptions:
    """`argv` without `exec`. Raises UsageError that names an option or setting which wolo does not have."""
    options, rest = ExecOptions(sandbox="read-only", policy="never"), list(argv)
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
                id = rest.pop(0)
                options.values |= {"continue": True} if id == "--last" else {"resume": id}
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
    options.apply(settings)
    options.choose_mode(asks=False)
    return options


_SHORT = {"-c": "--config", "-m": "--model", "-s": "--sandbox", "-C": "--cd", "-i": "--image"}
_VALUES = frozenset(("--config", "--model", "--sandbox", "--cd", "--add-dir", "--output-schema", "--image", "--thread-source"))


def _take(options: ExecOptions, settings: dict[str, Any], name: str, value: str) -> None:
    match name:
        case "--config":
            parse_setting(settings, value)
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


def parse_setting(settings: dict[str, Any], text: str) -> None:
    """Adds `KEY=VALUE`. Raises UsageError."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"--config {text}: it is no KEY=VALUE.")
    set_key(settings, key.strip(), _toml(value))


def _toml(text: str) -> Any:
    """As Codex reads it: a TOML value, else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text.strip().strip("\"'")
