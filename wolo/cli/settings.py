"""`wolo config`: every setting with where it comes from, and where the files are."""

from __future__ import annotations

from typing import Any

import typer

from wolo.cli.as_json import AsJson, print_json
from wolo.frontends.streams import say, tell

app = typer.Typer(rich_markup_mode=None)


@app.command("show")
def show(as_json: AsJson = False) -> None:
    """Every setting, its value and who set it."""
    from wolo.config import layers
    from wolo.places import find_places

    config = layers.load(find_places())
    for notice in config.notices:
        say(notice)
    rows: list[tuple[str, Any, str]] = list(layers.rows(config))
    if as_json:
        print_json([{"key": key, "value": value, "source": source} for key, value, source in rows])
        return
    for key, value, source in rows:
        tell(f"{key:<28} {_shown(value):<32} {source}")


def _shown(value: Any) -> str:
    """As a settings file writes it; nothing where nothing is set."""
    import json

    return "" if value in (None, "", (), {}) else json.dumps(value, ensure_ascii=False, default=list)


@app.command("path")
def path(as_json: AsJson = False) -> None:
    """Where settings, sessions, cache and state lie."""
    from wolo.places import find_places

    places = find_places()
    found = {
        "settings": places.config / "config.toml",
        "rules": places.config / "permissions.toml",
        "instructions": places.config / "AGENTS.md",
        "sessions": places.data / "wolo.db",
        "cache": places.cache,
        "state": places.state,
    }
    if as_json:
        print_json({name: str(where) for name, where in found.items()})
        return
    for name, where in found.items():
        tell(f"{name:<13} {where}")
