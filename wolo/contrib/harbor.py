"""Runs wolo as an agent of the Harbor evaluation framework: `harbor run -a wolo.contrib.harbor:WoloAgent`.

The commands and results are here; the class that Harbor asks for is loaded, with Harbor itself, when its name is first used.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from wolo.errors import ConfigError, ExtensionError
from wolo.models.catalog import Catalog

RESULT, LOG, TRAJECTORY = "wolo.json", "wolo.log", "trajectory.json"
"""Files in Harbor's folder of logs; it reads the trajectory by this name."""
WITH_TOOLS = 'export PATH="$HOME/.local/bin:$PATH"; '
OWN_VARIABLES = ("WOLO_API_KEY", "WOLO_BASE_URL", "WOLO_API")


class RunUsage(msgspec.Struct, frozen=True):
    """Tokens and cost of a run, counted as Harbor does: input includes the cached part."""

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    session_id: str = ""
    exit_code: int = 0


def install_command(version: str | None = None, wheel: str = "") -> str:
    """Installs wolo for the user of the container, with a Python that suits it; `wheel` is a file there."""
    package = shlex.quote(wheel or (f"wolo-cli=={version}" if version else "wolo-cli"))
    return (
        f"set -e; {WITH_TOOLS}"
        "command -v uv >/dev/null 2>&1 || curl -LsSf https://astral.sh/uv/install.sh | sh; "
        f"uv tool install --quiet --compile-bytecode --python 3.13 {package}; wolo --version"
    )


def run_command(instruction: str, logs: PurePosixPath, *options: str) -> str:
    """Runs one task and exports its session; fails as wolo does, except after a denied action or at a budget."""
    result, log, trajectory = (shlex.quote(str(logs / name)) for name in (RESULT, LOG, TRAJECTORY))
    return (
        f"{WITH_TOOLS}wolo --json --no-mentions {shlex.join(options)} -- {shlex.quote(instruction)} >{result} 2>{log}; code=$?; "
        f"wolo sessions export --format atif -o {trajectory} >>{log} 2>&1; "
        f"case $code in 0|4|5) ;; *) cat {log} {result} >&2; exit $code;; esac"
    )


def server_options(servers: Sequence[Any]) -> list[str]:
    """The option for MCP servers that a task names."""
    named = {}
    for server in servers:
        if server.transport == "stdio":
            named[server.name] = {"command": server.command, "args": list(server.args)}
        else:
            kind = "sse" if server.transport == "sse" else "http"
            named[server.name] = {"type": kind, "url": server.url, "headers": dict(getattr(server, "headers", {}))}
    return ["--mcp-config", json.dumps({"mcpServers": named})] if named else []


def model_variables(model: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of `environ` that wolo needs for a model: the keys of its provider, and WOLO_ ones."""
    try:
        keys = Catalog(environ).find(model).provider.key_env
    except ConfigError:
        keys = ()
    return {name: environ[name] for name in (*keys, *OWN_VARIABLES) if environ.get(name)}


def read_usage(logs: Path) -> RunUsage | None:
    """What the run in this folder used; None when wolo printed no result."""
    try:
        result = json.loads((logs / RESULT).read_bytes())
        usage = result["usage"]
        cached = usage["cache_read_tokens"]
        return RunUsage(
            input_tokens=usage["input_tokens"] + cached + usage["cache_write_tokens"],
            cached_tokens=cached,
            output_tokens=usage["output_tokens"],
            cost_usd=result["total_cost_usd"],
            session_id=result["session_id"],
            exit_code=result["exit_code"],
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def __getattr__(name: str) -> object:
    if name != "WoloAgent":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return import_module("wolo.contrib.harbor_agent").WoloAgent
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "harbor":
            raise
        raise ExtensionError(
            "Harbor is not installed, or too old.", hint="pip install -U harbor (it needs Python 3.12 or newer)"
        ) from error
