"""`wolo tools`: lists, tests and allows custom tools."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wolo.cli.listing import AsJson, Trust, print_json, print_untrusted, read_object
from wolo.errors import UsageError
from wolo.frontends.streams import confirm, print_line, print_message, print_messages
from wolo.workspace.root import find_site

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wolo.config.python_files.custom_tools import CustomToolFile, FoundTools
    from wolo.places import Site

app = typer.Typer(rich_markup_mode=None)
_STANDINGS = {
    "yours": "yours",
    "allowed": "project, allowed",
    "needs consent": "project, not offered: new or changed, so it needs your consent",
    "refused": "project, not offered: refused",
}


@app.command("list")
def show(trust: Trust = False, as_json: AsJson = False) -> None:
    """List the custom tools of this directory; no tool is run."""
    files, tools = _find_tools(trust)
    print_messages(tools.notices)
    standings = {each.file.source: each.consent for each in files}
    rows: list[dict[str, Any]] = [
        *[
            {
                "name": each.name,
                "description": each.spec.description,
                "source": each.source,
                "standing": standings[each.source],
                "effects": list(each.effects),
                "parameters": each.spec.parameters,
            }
            for each in tools.tools
        ],
        *[
            {  # it may not run; only its names are known
                "name": name,
                "description": "",
                "source": each.file.source,
                "standing": each.consent,
                "effects": [],
                "parameters": None,
            }
            for each in files
            if not each.runs and not each.problem
            for name in each.names()
        ],
    ]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        effects = f"  [{', '.join(row['effects'])}]" if row["effects"] else ""
        print_line(f"{row['name']}  ({row['source']}, {_STANDINGS[row['standing']]}){effects}")
        if row["description"]:
            print_line(f"  {row['description'].splitlines()[0]}")
    if not files:
        print_message(
            "No custom tools. Write a function with a docstring in .wolo/tools/NAME.py; see docs/guide/custom-tools.md."
        )


@app.command("test")
def try_out(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    arguments: Annotated[str, typer.Option("--input", metavar="JSON", help="Arguments of the call.")] = "{}",
    trust: Trust = False,
    as_json: AsJson = False,
) -> int:
    """Run a custom tool once, without a model and without the sandbox, and print its result."""
    from wolo.diagnostics.tool_trial import try_tool

    files, found = _find_tools(trust)
    tool = next((each for each in found.tools if each.name == name), None)
    if tool is None:
        print_messages(found.notices)
        if name in [known for each in files if not each.runs for known in each.names()]:
            raise UsageError(f"{name} needs your consent first.", hint=f"wolo tools allow {name}")
        raise UsageError(f"There is no custom tool {name}.", hint="wolo tools list")
    result = asyncio.run(try_tool(tool, read_object(arguments, '{"city": "Rome"}')))
    if as_json:
        print_json(
            {"name": name, "output": result.text, "is_error": result.is_error, "files_changed": list(result.files_changed)}
        )
    else:
        print_line(result.text.rstrip("\n"))
    return 1 if result.is_error else 0


@app.command("allow")
def allow(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A tool or file of this project.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Allow a file of custom tools of this project; it is shown. Without a terminal there is no question."""
    from wolo.config.python_files.custom_tools import project_files

    site = find_site()
    files = [each for each in project_files(site) if _is_named(name, each)]
    if not files:
        raise UsageError(f"There is no custom tool {name} in this project.", hint="wolo tools list --trust")
    allow_files(
        site, files, yes=yes, effect="The tools of {source} are offered from now on, as long as the file does not change."
    )


def allow_files(site: Site, files: Sequence[CustomToolFile], *, yes: bool, effect: str) -> None:
    """Shows each file, asks, and saves the consent. Raises UsageError."""
    from wolo.config.python_files.custom_tools import save_consent
    from wolo.messages.terminal_text import exact

    for each in files:
        if each.problem:
            raise UsageError(each.problem)
        tools = "" if each.file.is_extension else f"  tools: {', '.join(each.names()) or 'none'}"
        print_line(f"{each.file.source}  ({_STANDINGS[each.consent]}){tools}")
        print_line(exact(each.file.text, keeps_tabs=True).rstrip("\n"))
        if each.consent == "allowed":
            continue
        if sys.stdin.isatty() and not yes and not confirm("Allow this file to run?"):
            print_line("Not allowed.")
            continue
        save_consent(site.places, site.root, each, "yes")
        print_line(effect.format(source=each.file.source))
    print_untrusted(site, "reads its files")


def _is_named(name: str, each: CustomToolFile) -> bool:
    from pathlib import Path

    path = Path(each.file.source)
    return name in (each.file.source, path.name, path.stem) or name in each.names()


def _find_tools(trust: bool) -> tuple[list[CustomToolFile], FoundTools]:
    from wolo.config import layers
    from wolo.config.cli_options import Flags
    from wolo.config.python_files.custom_tools import find_files, find_tools

    site = find_site()
    given: Flags = {"trust": str(site.root)} if trust else {}
    config = layers.load(site, given)
    print_messages(config.notices)
    files = find_files(config, site)
    return files, asyncio.run(find_tools(files, config, site))
