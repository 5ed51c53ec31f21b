"""Finds extensions, checks consent, and lists what they register."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from wolo.config import project, schema
from wolo.config.python_files.custom_tools import CustomToolFile, LoadingSandbox, find_files
from wolo.extensions.custom_tools.tool_listing import ExtensionListing, ToolFile, describe, list_tools
from wolo.guard.sandbox_contract import SandboxedCommand
from wolo.places import Notices, Site
from wolo.workspace.processes import command_environment, process_runner


class ListedExtension(Struct, frozen=True):
    file: ToolFile
    listing: ExtensionListing

    @property
    def name(self) -> str:
        return name_of(self.file)


class FoundExtensions(Struct, frozen=True):
    extensions: tuple[ListedExtension, ...]
    sandbox: LoadingSandbox
    """In which those without effects run; close it after them."""
    processes: process_runner.Processes
    notices: tuple[str, ...]


def name_of(file: ToolFile) -> str:
    """The name of the file, or of the entry point."""
    where = file.where
    return Path(where).stem if where.startswith("/") else where.removeprefix("entry point ").partition("=")[0]


async def find_extensions(config: schema.Config, site: Site, files: Sequence[CustomToolFile] | None = None) -> FoundExtensions:
    """Those that may run, the nearest first. A problem costs its file only, and is a notice."""
    files = find_files(config, site, project.EXTENSIONS) if files is None else files
    notices = Notices()
    waiting = [each.file.source for each in files if each.consent == "needs consent" and not each.problem]
    if waiting:
        notices.add(
            f"Extensions of this project do not run: {', '.join(waiting)}. They are new or changed and need your consent:"
            f" wolo extensions allow {Path(waiting[0]).stem}"
        )
    sandbox, processes = LoadingSandbox(config, site), process_runner.Processes(site.places.state / "extensions")
    extensions = []
    for each in files:
        if each.problem:
            notices.add(each.problem)
        if each.runs:
            env = command_environment.CommandVariables(inherit="core").select(is_outside=False)  # as for custom tools
            listing = await list_tools(
                each.file,
                site.places.cache / "extensions",
                processes,
                env,
                site.real_cwd,
                SandboxedCommand if each.file.declares_effects else sandbox.enclose,
                form=ExtensionListing,
            )
            notices.extend(describe(each.file, problem) for problem in listing.problems)
            extensions.append(ListedExtension(each.file, listing))
    return FoundExtensions(tuple(extensions), sandbox, processes, tuple(notices))
