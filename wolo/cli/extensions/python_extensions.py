"""`wolo extensions`: lists, writes, tests and allows extensions."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wolo.cli.extensions.tools import allow_files
from wolo.cli.listing import AsJson, Trust, print_json
from wolo.errors import UsageError
from wolo.frontends.streams import print_line, print_message, print_messages
from wolo.workspace.root import find_site

if TYPE_CHECKING:
    from wolo.config.python_files.custom_tools import CustomToolFile, FoundExtensions

app = typer.Typer(rich_markup_mode=None)


@app.command("list")
def show(trust: Trust = False, as_json: AsJson = False) -> None:
    """List the extensions of this directory, and what each registers."""
    files, found = _find(trust)
    listings = {each.file.source: each for each in found.extensions}
    print_messages(found.notices)
    rows: list[dict[str, Any]] = []
    for each in files:
        extension = listings.get(each.file.source)
        listing = extension.listing if extension else None
        rows.append(
            {
                "name": _name(each),
                "source": each.file.source,
                "standing": each.consent,
                "effects": list(listing.effects) if listing else [],
                "events": list(listing.events) if listing else [],
                "hooks": sorted(listing.hooks) if listing else [],
                "tools": [tool.name for tool in listing.tools] if listing else [],
                "commands": [command.name for command in listing.commands] if listing else [],
                "providers": sorted(listing.providers) if listing else [],
            }
        )
    if as_json:
        print_json(rows)
        return
    for row in rows:
        effects = f"  [{', '.join(row['effects'])}]" if row["effects"] else ""
        print_line(f"{row['name']}  ({row['source']}, {row['standing']}){effects}")
        for kind in ("events", "hooks", "tools", "commands", "providers"):
            if row[kind]:
                print_line(f"  {kind}: {', '.join(row[kind])}")
    if not rows:
        print_message("No extensions. `wolo extensions new NAME` writes one; see docs/guide/extensions.md.")


@app.command("new")
def new(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    in_project: Annotated[bool, typer.Option("--project", help="Write it for this project.")] = False,
) -> None:
    """Write an extension with its test, for all projects or for this one."""
    import re

    if not re.fullmatch(r"[a-z][a-z0-9_]{0,63}", name):
        raise UsageError(f"{name!r} is no name of an extension.", hint="Use small letters, digits and underscores.")
    site = find_site()
    folder = site.root / ".wolo/extensions" if in_project else site.places.config / "extensions"
    files = {folder / f"{name}.py": "new_extension.txt", folder / "tests" / f"test_{name}.py": "new_extension_test.txt"}
    if existing := [path for path in files if path.exists()]:
        raise UsageError(f"{existing[0]} exists.", hint="Choose another name.")
    for path, template in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        content = Path(__file__).with_name(template).read_text("utf-8")
        path.write_text(content.replace("NAME", name), encoding="utf-8")
        print_line(str(Path(path)))
    print_message(f"`wolo extensions {'allow' if in_project else 'test'} {name}` is next.")


@app.command("test")
def try_out(name: Annotated[str, typer.Argument(metavar="NAME")], trust: Trust = False) -> int:
    """Load an extension, print what it registers, and run its test. The test runs outside of the sandbox."""
    import subprocess

    files, extensions_here = _find(trust)
    file = next((each for each in files if _name(each) == name), None)
    if file is None:
        raise UsageError(f"There is no extension {name}.", hint="wolo extensions list")
    if not file.runs:
        raise UsageError(file.problem or f"{name} needs your consent first.", hint=f"wolo extensions allow {name}")
    listing = next(each.listing for each in extensions_here.extensions if each.file == file.file)
    print_messages(extensions_here.notices)
    for kind, names in (
        ("events", listing.events),
        ("hooks", sorted(listing.hooks)),
        ("tools", [each.name for each in listing.tools]),
        ("commands", [each.name for each in listing.commands]),
        ("providers", sorted(listing.providers)),
    ):
        if names:
            print_line(f"{kind}: {', '.join(names)}")
    test = Path(file.file.where).parent / "tests" / f"test_{name}.py"
    if listing.problems:
        return 1
    if not test.is_file():
        print_message(f"It has no test: {test}.")
        return 0
    # A test of a project runs only for those who have written it: it is not what they allowed
    if file.consent != "yours":
        raise UsageError(f"{test} belongs to the project and is not run.", hint=f"Run it yourself: {sys.executable} {test}")
    return subprocess.run([sys.executable, str(test)], check=False).returncode and 1


@app.command("allow")
def allow(
    name: Annotated[str, typer.Argument(metavar="NAME", help="An extension of this project.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Allow an extension of this project; it is shown. Without a terminal there is no question."""
    from wolo.config import project
    from wolo.config.python_files.custom_tools import project_files

    site = find_site()
    files = [each for each in project_files(site, project.EXTENSIONS) if name in (_name(each), each.file.source)]
    if not files:
        raise UsageError(f"There is no extension {name} in this project.", hint="wolo extensions list --trust")
    allow_files(site, files, yes=yes, effect="{source} runs from now on, as long as the file does not change.")


@app.command("key", hidden=True)
def key(
    name: Annotated[str, typer.Argument(metavar="NAME")], provider: Annotated[str, typer.Argument(metavar="PROVIDER")]
) -> None:
    """Print the API key that an extension of yours fetches for a provider."""
    from wolo.config import layers
    from wolo.config.python_files.extension_providers import fetch_key

    site = find_site()
    print_line(asyncio.run(fetch_key(layers.load(site), site, name, provider)))


def _name(each: CustomToolFile) -> str:
    from wolo.config.python_files.custom_tools import name_of

    return name_of(each.file)


def _find(trust: bool) -> tuple[list[CustomToolFile], FoundExtensions]:
    from wolo.config import layers, project
    from wolo.config.cli_options import Flags
    from wolo.config.python_files.custom_tools import find_extensions, find_files

    site = find_site()
    flags: Flags = {"trust": str(site.root)} if trust else {}
    config = layers.load(site, flags)
    print_messages(config.notices)
    files = find_files(config, site, project.EXTENSIONS)
    found = asyncio.run(find_extensions(config, site, files))
    found.sandbox.close()
    return files, found
