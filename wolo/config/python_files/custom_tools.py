"""Finds custom tools and extensions, checks consent, and lists what their files register."""

from __future__ import annotations

import ast
import hashlib
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from wolo.config import consents, project
from wolo.config.files import read_own
from wolo.config.schema import Config
from wolo.errors import ConfigError, WoloError
from wolo.extensions.custom_tools.custom_tool import CustomTool, FileProcess
from wolo.extensions.custom_tools.tool_listing import ExtensionListing, L, ToolFile, ToolListing, describe, list_tools
from wolo.extensions.custom_tools.tool_packages import find_installed
from wolo.guard.sandbox_contract import Sandbox, SandboxedCommand
from wolo.places import TOOL_PACKAGES, Notices, Places, Site, installation_state, package_folders
from wolo.tools.tool import FIND_TOOLS
from wolo.tools.toolbox import BUILTIN_WITH_COMPLETION
from wolo.workspace.processes.command_environment import CommandVariables
from wolo.workspace.processes.process_runner import Processes

_TAKEN = frozenset((*(each.name for each in BUILTIN_WITH_COMPLETION), FIND_TOOLS, "read_resource"))
Standing = Literal["yours", "allowed", "needs consent", "refused"]


class CustomToolFile(Struct, frozen=True):
    file: ToolFile
    consent: Standing
    problem: str = ""
    """Why it is not used."""

    @property
    def runs(self) -> bool:
        return self.consent in ("yours", "allowed") and not self.problem

    def names(self) -> list[str]:
        """Public functions, without running anything."""
        try:
            body = ast.parse(self.file.text).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return []
        functions = (each for each in body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
        return [each.name for each in functions if not each.name.startswith("_") and ast.get_docstring(each)]


class FoundTools(Struct, frozen=True):
    tools: tuple[CustomTool, ...] = ()
    notices: tuple[str, ...] = ()


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
    processes: Processes
    notices: tuple[str, ...]


def name_of(file: ToolFile) -> str:
    """The name of the file, or of the entry point."""
    where = file.where
    return Path(where).stem if where.startswith("/") else where.removeprefix("entry point ").partition("=")[0]


def find_files(config: Config, site: Site, kind: project.Kind = project.TOOLS) -> list[CustomToolFile]:
    """Files of tools, or extensions, the nearest first. Reads nothing of an untrusted project, and runs nothing."""
    files = project_files(site, kind) if config.trusts_project else []
    files += [_own_file(path, kind) for path in _python_files(site.places.config / kind.name)]
    if kind is project.EXTENSIONS and site.places.plugin_index.exists():
        from wolo.config.plugins.installed import extensions_of  # noqa: PLC0415  # most users have no plugins

        for file, problem in extensions_of(site.places):
            files.append(CustomToolFile(file, "needs consent" if problem else "allowed", problem))
    state = installation_state()
    for each in find_installed(site.places.cache / TOOL_PACKAGES, package_folders(), state, kind.name):
        entry = f"entry point {each}"
        files.append(CustomToolFile(ToolFile(entry, state, entry, is_extension=kind is project.EXTENSIONS), "yours"))
    return files


def project_files(site: Site, kind: project.Kind = project.TOOLS) -> list[CustomToolFile]:
    folders = [folder / place for folder in project.folders(site.root, site.real_cwd) for place in kind.places]
    return [_project_file(path, site, kind) for folder in reversed(folders) for path in _python_files(folder)]


def save_consent(places: Places, root: Path, file: CustomToolFile, answer: consents.Consent) -> None:
    """Applies only as long as the file does not change. Raises ConfigError."""
    consents.save_consent(places, root, _consent_key(file.file), answer)


async def find_tools(files: Sequence[CustomToolFile], config: Config, site: Site) -> FoundTools:
    """Lists the tools of all files that may run. A problem costs its file or function only."""
    processes, sandbox = Processes(site.places.state / "tools"), LoadingSandbox(config, site)
    tools: dict[str, CustomTool] = {}
    notices = Notices()
    async for file, listing in _list_files(files, site, sandbox, processes, ToolListing, notices):
        process = FileProcess(file, processes)
        for listed in listing.tools:
            if listed.name in _TAKEN or listed.name.startswith("mcp__"):
                notices.add(f"{file.source}: {listed.name} is not offered: wolo has a tool of this name.")
            elif listed.name in tools:
                first = tools[listed.name].source
                notices.add(f"{file.source}: {listed.name} is not offered: {first} has a tool of this name.")
            else:
                tools[listed.name] = CustomTool(listed, listing, process)
    sandbox.close()
    return FoundTools(tuple(tools.values()), tuple(notices))


async def find_extensions(config: Config, site: Site, files: Sequence[CustomToolFile] | None = None) -> FoundExtensions:
    """Those that may run, the nearest first. A problem costs its file only, and is a notice."""
    files = find_files(config, site, project.EXTENSIONS) if files is None else files
    processes, sandbox, notices = Processes(site.places.state / "extensions"), LoadingSandbox(config, site), Notices()
    listings = _list_files(files, site, sandbox, processes, ExtensionListing, notices)
    extensions = [ListedExtension(file, listing) async for file, listing in listings]
    return FoundExtensions(tuple(extensions), sandbox, processes, tuple(notices))


async def _list_files(
    files: Sequence[CustomToolFile], site: Site, sandbox: LoadingSandbox, processes: Processes, form: type[L], notices: Notices
) -> AsyncIterator[tuple[ToolFile, L]]:
    """What each file that may run registers. Notices name those that wait for consent, and problems."""
    kind, what = ("tools", "Custom tools of this project are not offered")
    if form is ExtensionListing:
        kind, what = ("extensions", "Extensions of this project do not run")
    waiting = [each.file.source for each in files if each.consent == "needs consent" and not each.problem]
    if waiting:
        notices.add(
            f"{what}: {', '.join(waiting)}. They are new or changed and need your consent:"
            f" wolo {kind} allow {Path(waiting[0]).stem}"
        )
    for each in files:
        if each.problem:
            notices.add(each.problem)
        if each.runs:
            env = CommandVariables(inherit="core").select(is_outside=False)  # what a file lists is cached for every environment
            enclose = SandboxedCommand if each.file.declares_effects else sandbox.enclose
            listing = await list_tools(each.file, site.places.cache / kind, processes, env, site.real_cwd, enclose, form=form)
            notices.extend(describe(each.file, problem) for problem in listing.problems)
            yield each.file, listing


class LoadingSandbox:
    """The sandbox in which files are loaded to list their tools, made for the first one that is not in the cache."""

    def __init__(self, config: Config, site: Site) -> None:
        self._is_off = config.settings.sandbox.backend == "off"
        self._places = site.places
        self._root = site.root
        self._made: Sandbox | None = None

    def enclose(self, argv: tuple[str, ...]) -> SandboxedCommand:
        """As it is where there is no sandbox. Raises ToolError."""
        if self._made is None and not self._is_off:
            from wolo.guard.sandbox.profile import profile_for  # noqa: PLC0415  # for files that are not in the cache
            from wolo.guard.sandbox.selection import find  # noqa: PLC0415  # as above

            make = find((self._root,), self._places.state, self._places.cache).make
            self._is_off = make is None
            self._made = make(profile_for((self._root,), self._places.own, self._places.state)) if make else None
        if self._made is None:
            return SandboxedCommand(argv)
        return self._made.wrap(argv, self._root, only_reads=True, in_background=True)

    def close(self) -> None:
        if self._made is not None:
            self._made.close()


def _python_files(folder: Path) -> Iterator[Path]:
    try:
        names = sorted(each.name for each in os.scandir(folder))
    except OSError:
        return
    for name in names:
        if name.endswith(".py") and not name.startswith(("_", ".")):
            yield folder / name


def _own_file(path: Path, kind: project.Kind) -> CustomToolFile:
    try:
        data = read_own(path, Notices()) or b""
    except (ConfigError, OSError) as error:
        return CustomToolFile(ToolFile(str(path), "", str(path)), "yours", problem=f"{path} is not used: {error}")
    return CustomToolFile(_tool_file(str(path), data, str(path), kind), "yours")


def _tool_file(where: str, data: bytes, source: str, kind: project.Kind) -> ToolFile:
    text = data.decode("utf-8-sig", "replace")
    return ToolFile(where, hashlib.sha256(data).hexdigest(), source, text, is_extension=kind is project.EXTENSIONS)


def _project_file(path: Path, site: Site, kind: project.Kind) -> CustomToolFile:
    source = str(path.relative_to(site.root))
    try:
        file = _tool_file(os.path.realpath(path), project.read_file(path, site.root), source, kind)
        answer = consents.consent_to(site.places, site.root, _consent_key(file), Notices())
    except WoloError as error:
        return CustomToolFile(ToolFile(str(path), "", source), "needs consent", problem=error.message)
    standing: Standing = "allowed" if answer == "yes" else "refused" if answer == "never" else "needs consent"
    return CustomToolFile(file, standing)


def _consent_key(file: ToolFile) -> str:
    return f"{'extensions' if file.is_extension else 'tools'} {file.source} {file.digest}"
