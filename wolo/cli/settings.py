"""`wolo config`: shows settings with their sources, changes them, and lists the files."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from wolo.cli.listing import AsJson, print_json
from wolo.errors import UsageError
from wolo.frontends.streams import print_line, print_message, print_messages, show_error
from wolo.places import Notices, find_places
from wolo.workspace.root import find_site

app = typer.Typer(rich_markup_mode=None)


@app.command("show")
def show(as_json: AsJson = False) -> None:
    """List every setting with its value and source."""
    from wolo.config import layers

    config = layers.load(find_site())
    print_messages(config.notices)
    rows: list[tuple[str, Any, str]] = list(layers.rows(config))
    if as_json:
        print_json([{"key": key, "value": value, "source": source} for key, value, source in rows])
        return
    for key, value, source in rows:
        print_line(f"{key:<28} {_show(value):<32} {source}")


def _show(value: Any) -> str:
    """TOML-like value; empty if not set."""
    import json

    return "" if value in (None, "", (), {}) else json.dumps(value, ensure_ascii=False, default=list)


@app.command("get")
def get(
    key: Annotated[str, typer.Argument(metavar="SETTING", help="Key as shown by `wolo config show`.")], as_json: AsJson = False
) -> None:
    """Print the value of one setting.

    Text as it is, anything else as JSON; nothing where it is not set.
    """
    from difflib import get_close_matches

    from wolo.config import layers

    config = layers.load(find_site())
    rows = {name: (value, source) for name, value, source in layers.rows(config)}
    if key not in rows:
        near = get_close_matches(key, rows, n=1, cutoff=0.5)
        hint = f"Did you mean {near[0]}?" if near else "`wolo config show` lists them."
        raise UsageError(f"There is no setting {key}.", hint=hint)
    value, source = rows[key]
    if as_json:
        print_json({"key": key, "value": value, "source": source})
    else:
        print_line(value if isinstance(value, str) else _show(value))


@app.command("set")
def set_one(
    key: Annotated[str, typer.Argument(metavar="SETTING", help="Key as shown by `wolo config show`.")],
    value: Annotated[str, typer.Argument(metavar="VALUE", help='Value; a list is one word or ["a", "b"].')],
) -> None:
    """Change one setting in your config.toml."""
    from wolo.config import layers, settings_writer

    site = find_site()
    name = settings_writer.write_setting(site.places, key, value)
    config = layers.load(site)
    held = next((row for row in layers.rows(config) if row[0] == name), None)
    if held is None:
        return
    print_line(f"{name} = {_show(held[1])}")
    if str(site.places.config / "config.toml") not in held[2]:
        print_message(f"Saved, but overridden here by {held[2]}.")


@app.command("edit")
def edit() -> None:
    """Open your config.toml in an editor.

    The file is checked before it is saved.
    """
    import sys

    if not sys.stdin.isatty() or not sys.stdout.isatty():
        raise UsageError("An editor needs a terminal.", hint="Use `wolo config set KEY VALUE` instead.")
    import asyncio

    from wolo.config import files, layers
    from wolo.config.settings_writer import replace_settings
    from wolo.errors import ConfigError
    from wolo.frontends.terminal.dialogs import external_editor

    path = find_places().config / "config.toml"
    before = files.read_own(path, Notices()) or b""
    text = before.decode("utf-8-sig", "replace")
    while True:
        text = asyncio.run(external_editor.edit(text, suffix=".toml")) + "\n"
        if text.encode() == before or not (text.strip() or before):
            print_line("Nothing was changed.")
            return
        try:
            layers.check_user_file(text.encode(), path)
        except ConfigError as error:
            show_error(error)
            if typer.confirm("Edit again? Otherwise nothing is changed.", default=True, err=True):
                continue
            raise typer.Exit(error.exit_code) from error
        replace_settings(find_places(), before, text.encode())
        print_line(str(path))
        return


@app.command("schema")
def schema() -> None:
    """Print the JSON Schema of config.toml.

    Editors use the file that the first line of a TOML file names: `#:schema ./schema.json`.
    """
    import msgspec

    from wolo.config.schema import Settings

    generated = msgspec.json.schema(Settings)
    definitions = generated["$defs"]
    top = definitions.pop("Settings")
    groups = [top]
    for group in groups:
        group["additionalProperties"] = False  # an unknown setting is an error
        for row in group["properties"].values():
            reference = row.get("$ref") or row.get("additionalProperties", {}).get("$ref", "")
            groups += [
                definitions[name] for name in (reference.rpartition("/")[2],) if name and "properties" in definitions[name]
            ]
    print_json(
        {"$schema": "https://json-schema.org/draft/2020-12/schema", **top, "title": "Settings of wolo", "$defs": definitions}
    )


@app.command("path")
def path(as_json: AsJson = False) -> None:
    """Show where settings, sessions, cache and state are stored."""
    import os

    from wolo.config.managed import find_managed_files

    places = find_places()
    paths = {
        **{f"managed {number}".removesuffix(" 1"): file for number, file in enumerate(find_managed_files(os.environ), 1)},
        "settings": places.config / "config.toml",
        "rules": places.config / "permissions.toml",
        "instructions": places.config / "AGENTS.md",
        "sessions": places.data / "wolo.db",
        "cache": places.cache,
        "state": places.state,
    }
    if as_json:
        print_json({name: str(where) for name, where in paths.items()})
        return
    for name, where in paths.items():
        print_line(f"{name:<13} {where}")
