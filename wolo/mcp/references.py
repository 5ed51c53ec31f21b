"""Expands references to environment variables in the settings of MCP servers."""

from __future__ import annotations

import re
from collections.abc import Mapping

from wolo.errors import ConfigError

INPUT = "input:"
"""Begins the name of a value that the user types, among variables."""
_NAME = r"[A-Za-z_]\w*|input:[\w.-]+"
_VARIABLE = re.compile(rf"\$\{{({_NAME})(?::-([^}}]*))?\}}")
_EITHER = re.compile(rf"(\$\{{(?:{_NAME})(?::-[^}}]*)?\}})|\$([A-Z_][A-Z0-9_]*)\b")
"""A bare `$NAME` must be upper case; other `$` are literal, as in passwords."""


def fill_in(text: str, environ: Mapping[str, str], called: str, *, may_lack: bool = False) -> str:
    """Expand `${NAME}` and `${NAME:-default}`. Raises ConfigError for unset variables."""

    def value(match: re.Match[str]) -> str:
        name, otherwise = match.groups()
        if environ.get(name):
            return environ[name]
        if name.startswith(INPUT):
            raise ConfigError(f"{called} needs your input {name.removeprefix(INPUT)}: `wolo mcp allow NAME` asks for it.")
        if otherwise is None and not may_lack:
            raise ConfigError(f"{called} refers to ${name}, which is not set.")
        return match[0] if otherwise is None else otherwise

    return _VARIABLE.sub(value, text)


def with_bare(text: str, environ: Mapping[str, str], called: str) -> str:
    """Also expand `$NAME`; expanded values are not expanded again. Raises ConfigError."""
    pieces, at = [], 0
    for found in _EITHER.finditer(text):
        pieces += [text[at : found.start()], fill_in(found[1] or f"${{{found[2]}}}", environ, called)]
        at = found.end()
    return "".join([*pieces, text[at:]])
