"""`--json`, the same for every subcommand."""

from __future__ import annotations

from typing import Annotated

import typer

from wolo.frontends.streams import as_json, tell_json

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def print_json(value: object) -> None:
    tell_json(as_json(value, indent=2))
