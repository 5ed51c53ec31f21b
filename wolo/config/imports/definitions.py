"""Takes over agents, commands and providers that settings of other agents define."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from wolo.config.translation.findings import Reading
from wolo.guard.protected_paths import is_secret

_NAME = r"[A-Za-z0-9][\w-]*"
_MOST_CHARS = 200_000
_TEXT_FIELDS: Mapping[str, str] = {"agent": "prompt", "command": "template"}


def add_files(reading: Reading, kind: str, entries: object) -> None:
    """Makes a Markdown file of each `agent` or `command` of OpenCode's settings."""
    for name, entry in entries.items() if isinstance(entries, dict) else ():
        what = f"{kind} {name}"
        text = entry.get(_TEXT_FIELDS[kind]) if isinstance(entry, dict) else None
        text = _from_file(reading, text) if isinstance(text, str) else ""
        if reading.is_projects:
            reading.skip(what, f"put it into .opencode/{kind}s, where wolo reads it")
        elif not re.fullmatch(_NAME, str(name)) or not text.strip():
            reading.skip(what, f"it has no {_TEXT_FIELDS[kind]}" if not text.strip() else "its name does not fit a file")
        else:
            fields = [f"{key}: {json.dumps(value)}" for key, value in entry.items() if key != _TEXT_FIELDS[kind]]
            reading.add("file", what, (f"{kind}s/{name}.md", "\n".join(["---", *fields, "---", "", text.strip(), ""])))


def _from_file(reading: Reading, text: str) -> str:
    """Follows `{file:./PATH}` below the folder of the settings; empty where that cannot be read."""
    found = re.fullmatch(r"\s*\{file:(.+)\}\s*", text)
    if found is None:
        return text
    folder = reading.source.parent.resolve()
    path = (folder / found[1].strip()).resolve()
    if not path.is_relative_to(folder) or is_secret(str(path)) or not path.is_file():
        return ""
    read = path.read_text(encoding="utf-8-sig")
    return read if len(read) <= _MOST_CHARS else ""


def add_provider(reading: Reading, name: str, address: object, api: str | None, variable: object) -> None:
    """`variable` names the environment variable of the key; keys themselves are not copied."""
    if reading.is_projects or not re.fullmatch(_NAME, name) or not isinstance(address, str) or api is None:
        why = "a project does not set this for you" if reading.is_projects else "it has no address or an unknown format"
        reading.skip(f"provider {name}", why)
        return
    is_variable = isinstance(variable, str) and re.fullmatch(r"\w+", variable) is not None
    key = {"api_key": f"${variable}"} if is_variable else {}
    reading.add("setting", f"providers.{name}", {"base_url": address, "api": api, **key})
    if variable and not is_variable:
        reading.skip(f"key of provider {name}", f"secrets are not copied: `wolo auth login {name}`")


def variable_in(key: Any) -> Any:
    """The NAME of OpenCode's `{env:NAME}`; otherwise True if there is a key."""
    found = re.fullmatch(r"\{env:(\w+)\}", key) if isinstance(key, str) else None
    return found[1] if found else bool(key)
