"""`--json`, the same for every subcommand."""

from __future__ import annotations

from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def print_json(value: object) -> None:
    import json

    print(json.dumps(value, ensure_ascii=False, indent=2, default=str))
