"""Files of tools, and what is in them: asked of a process once, and cached by content."""

from __future__ import annotations

import ast
import asyncio
import hashlib
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from wolo import __version__
from wolo.errors import ToolError
from wolo.extensions.custom_tools.tool_process import ToolCrashedError, start_and_load
from wolo.guard.sandbox_contract import SandboxedCommand
from wolo.messages.terminal_text import clean, clean_line
from wolo.places import make_private
from wolo.workspace.files.unfinished import write_whole
from wolo.workspace.processes.process_runner import Processes

Enclose = Callable[[tuple[str, ...]], SandboxedCommand]
"""Puts a command line into the sandbox. Raises ToolError."""
EFFECTS = ("network", "write")
LIST_WITHIN_S = 20.0
MOST_DESCRIPTION_CHARS = 4000
_NAME = r"[A-Za-z][A-Za-z0-9_]{0,63}"
_PACKAGE = "wolo.extensions.custom_tools"
_API = "wolo.extension"
_MODULES = ("function_schema", "function_server", "extension_server")
_BEGIN = f"""
import importlib, json, os, sys, types
requests = os.fdopen(os.dup(0), "rb")
with open(os.devnull) as nothing:
    os.dup2(nothing.fileno(), 0)
given = json.loads(requests.readline())
try:
    import {_PACKAGE}
except ImportError:  # hidden by the sandbox
    for name in ("wolo", "wolo.extensions", "{_PACKAGE}"):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = []
    for name, path, text in given["modules"]:
        module = sys.modules[name] = types.ModuleType(name)
        module.__file__ = path
        exec(compile(text, path, "exec"), module.__dict__)
server = importlib.import_module(given["server"])
if given["import_from"]:  # the user allowed exactly these files: no bytecode joins them
    sys.dont_write_bytecode = True
    sys.path.insert(0, given["import_from"])
server.main(given["where"], given["text"], requests, only_lists=given["only_lists"])
"""


class ToolFile(Struct, frozen=True):
    """A file of tools, or an entry point of a package."""

    where: str
    """Absolute path, or `entry point NAME=MODULE:ATTRIBUTE`."""
    digest: str
    """Of the content; of an entry point: of what is installed."""
    source: str
    """For the user."""
    text: str = ""
    """Content of the file."""
    is_extension: bool = False
    import_from: str = ""
    """Folder of an unpacked package that the entry point is in; empty: it is installed."""

    @property
    def declares_effects(self) -> bool:
        """Found without running it: such a file, and a package, is loaded outside of the sandbox."""
        if not Path(self.where).is_absolute():
            return True
        try:
            body = ast.parse(self.text).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
        names = {each.id for part in body for each in ast.walk(part) if isinstance(each, ast.Name)}
        return "EFFECTS" in names

    @property
    def argv(self) -> list[str]:
        return [sys.executable, "-I", "-c", _BEGIN]

    def first_line(self, *, only_lists: bool = False) -> bytes:
        """What the process must read first."""
        num_modules = len(_MODULES) if self.is_extension else len(_MODULES) - 1
        files = {f"{_PACKAGE}.{name}": Path(__file__).with_name(f"{name}.py") for name in _MODULES[:num_modules]}
        if self.is_extension:
            files = {_API: Path(__file__).parents[2] / "extension.py", **files}
        modules = [(name, str(path), path.read_text("utf-8")) for name, path in files.items()]
        server = f"{_PACKAGE}.{_MODULES[num_modules - 1]}"
        request = {
            "where": self.where,
            "text": self.text,
            "server": server,
            "modules": modules,
            "import_from": self.import_from,
            "only_lists": only_lists,
        }
        return msgspec.json.encode(request) + b"\n"


class ListedFunction(Struct, frozen=True):
    name: str
    description: str
    parameters: dict[str, Any]
    line: int = 0


class ToolProblem(Struct, frozen=True):
    message: str
    line: int = 0


class ToolListing(Struct, frozen=True):
    tools: tuple[ListedFunction, ...] = ()
    problems: tuple[ToolProblem, ...] = ()
    effects: tuple[str, ...] = ()
    """Declared by `EFFECTS`; then the tools run outside the sandbox."""
    timeout_s: float | None = None


class ListedCommand(Struct, frozen=True):
    name: str
    help: str = ""
    usage: str = ""
    completes: bool = False


class ExtensionListing(ToolListing, frozen=True):
    """What an extension registers."""

    events: tuple[str, ...] = ()
    """Types of events that it observes; `*`: all."""
    task_events: tuple[str, ...] = ()
    """Types of events of subagents that it observes."""
    hooks: Mapping[str, tuple[str, ...]] = {}
    """Names of tools by hook event; none: all."""
    commands: tuple[ListedCommand, ...] = ()
    providers: Mapping[str, dict[str, Any]] = {}
    logins: tuple[str, ...] = ()
    """Providers whose key it fetches."""
    dialogs: tuple[str, ...] = ()
    """Providers whose login it leads the user through."""


L = TypeVar("L", bound=ToolListing)


def describe(file: ToolFile, problem: ToolProblem) -> str:
    where = f"{file.source}:{problem.line}" if problem.line else file.source
    return f"{where}: {clean_line(problem.message)}"


async def list_tools(
    file: ToolFile,
    cache: Path,
    processes: Processes,
    env: Mapping[str, str],
    cwd: Path,
    enclose: Enclose = SandboxedCommand,
    *,
    form: type[L],
) -> L:
    """From the cache, or by loading the file in a process. Errors are problems of the listing, which has the given `form`."""
    key = hashlib.sha256("\0".join((form.__name__, file.where, file.digest, __version__, sys.version)).encode()).hexdigest()
    path = cache / f"{key[:40]}.json"
    with suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode(path.read_bytes(), type=form)
    asked = file.first_line(only_lists=True)
    try:
        async with asyncio.timeout(LIST_WITHIN_S):
            process, loaded = await start_and_load(processes, lambda: enclose(tuple(file.argv)), cwd, env, asked)
        await process.end()
        listing = _check(msgspec.convert(loaded, type=form))
        if not file.declares_effects:
            listing = msgspec.structs.replace(listing, problems=tuple(map(_with_cause, listing.problems)))
    except TimeoutError:
        return form(problems=(ToolProblem(f"loading it took longer than {LIST_WITHIN_S:g} s and was ended"),))
    except ToolError as error:
        return form(problems=(ToolProblem(f"cannot be loaded: {error.message}"),))
    except (ToolCrashedError, msgspec.MsgspecError) as error:
        return form(problems=(ToolProblem(f"cannot be loaded: {error}"),))
    if isinstance(listing, ExtensionListing) and listing.problems:
        return listing  # what it checks is refused until it loads: a package that was missing may be there the next time
    with suppress(OSError):
        make_private(cache)
        write_whole(path, msgspec.json.encode(listing), durable=False)
    return listing


def _with_cause(problem: ToolProblem) -> ToolProblem:
    is_refusal = problem.message.startswith(("OSError: [Errno 30]", "PermissionError", "OSError: [Errno 101]"))
    why = " (it declares no EFFECTS, so it is loaded inside the sandbox)" if is_refusal else ""
    return msgspec.structs.replace(problem, message=problem.message + why)


def _check(listing: L) -> L:
    problems = list(listing.problems)
    tools = []
    for each in listing.tools:
        if not re.fullmatch(_NAME, each.name):
            problems.append(ToolProblem(f"{each.name} cannot be the name of a tool", each.line))
            continue
        tools.append(msgspec.structs.replace(each, description=clean(each.description)[:MOST_DESCRIPTION_CHARS]))
    if unknown := [each for each in listing.effects if each not in EFFECTS]:
        problems.append(
            ToolProblem(f"EFFECTS: {unknown[0]} is unknown; there are {', '.join(EFFECTS)}, so its tools are not offered")
        )
        tools = []
    return msgspec.structs.replace(listing, tools=tuple(tools), problems=tuple(problems))
