"""The `glob` tool, which finds files by name, and the selection of files that it shares with `grep`."""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, ClassVar, NamedTuple

from msgspec import Meta, Struct

from wolo.errors import ToolError
from wolo.guard.intents import Intent, ReadIntent
from wolo.messages.parts import ToolKind
from wolo.tools.tool import CallContext, ToolServices
from wolo.tools.tool_arguments import FOLDER_ALIASES, missing
from wolo.tools.tool_values import CallResult, Listing
from wolo.workspace.files.safe_open import explain
from wolo.workspace.globs import BadPattern, compile_glob
from wolo.workspace.root import Resolved
from wolo.workspace.walk import Folder, WalkLimits, WalkStopped, files_of, walk_folders

_MAX_NAMES = 500


class GlobArgs(Struct, frozen=True):
    pattern: Annotated[str, Meta(description="such as `*.py` (at any depth) or `src/**/*.{ts,tsx}`")]
    path: Annotated[str, Meta(description="folder to search")] = "."


class Glob:
    """Find files by name, sorted by path. Files ignored by git, and links, are omitted."""

    name: ClassVar[str] = "glob"
    Args: ClassVar[type[Struct]] = GlobArgs
    aliases: ClassVar[Mapping[str, str]] = {"glob": "pattern", "glob_pattern": "pattern", "query": "pattern", **FOLDER_ALIASES}
    reads_only: ClassVar[bool] = True
    kind: ClassVar[ToolKind] = "search"

    def intents(self, args: GlobArgs, services: ToolServices) -> Sequence[Intent]:
        resolved = services.workspace.resolve(args.path)
        return (ReadIntent(resolved.path, args.path, resolved.inside),)

    async def run(self, args: GlobArgs, call: CallContext) -> CallResult:
        if not args.pattern.strip():
            raise ToolError("The pattern is empty.")
        resolved = call.resolve(args.path)
        selection = await find_files(resolved, args.pattern, call.services, WalkLimits(max_s=MAX_S))
        names: list[str] = []
        room = MAX_TEXT_BYTES
        for path in selection.files[:_MAX_NAMES]:
            name = printable_name(call.services.workspace.relative(selection.start / path))
            room -= len(name.encode()) + 1
            if room < 0:
                break
            names.append(name)
        notes = selection.notes
        if len(names) < len(selection.files):
            notes.insert(0, f"{len(names)} of {len(selection.files):,} files: narrow the pattern.")
        elif not names:
            hint = " `[` opens a set of characters; write \\[ for the character itself." if "[" in args.pattern else ""
            notes.insert(0, f"No file matches {args.pattern}.{hint}")
        text = "\n".join([*names, *(f"[{note}]" for note in notes)])
        return CallResult(text, Listing(args.pattern, tuple(names), len(selection.files), selection.incomplete))


MAX_S = 9.0
"""Time limit of a search; the whole answer comes within ten seconds."""
MAX_TEXT_BYTES = 25_000

_UNPRINTABLE = r"[\x00-\x1f\x7f-\x9f]"


class Gap(NamedTuple):
    """A reason why a search may be incomplete."""

    note: str
    """Sentence for the model."""
    shown: str
    """A few words for the user."""


class FileSelection(Struct):
    start: Path
    """The searched folder."""
    files: list[str] = []
    """Relative to `start`, sorted."""
    protected: int = 0
    """Number of files omitted because they must not be read."""
    gaps: list[Gap] = []

    @property
    def notes(self) -> list[str]:
        """Notes on completeness for the model."""
        were = "file was" if self.protected == 1 else "files were"
        left_out = [f"{self.protected:,} protected {were} left out."] if self.protected else []
        return [*(gap.note for gap in self.gaps), *left_out]

    @property
    def incomplete(self) -> str:
        """The same for the user; empty: complete."""
        return ", ".join(gap.shown for gap in self.gaps)


async def find_files(resolved: Resolved, glob: str, services: ToolServices, bounds: WalkLimits) -> FileSelection:
    """Lists the readable files at or below a path that git does not ignore. Raises ToolError."""

    def find() -> FileSelection:
        selection, folders = look_for_files(resolved, glob, services, bounds)
        selection.files += files_of(folders)
        return selection

    try:
        return await asyncio.to_thread(find)
    finally:
        bounds.cancel()  # the thread outlives a cancelled task


def printable_name(path: str) -> str:
    """Escapes control characters, so that a file name cannot look like two."""
    readable = os.fsencode(path).decode(errors="replace")
    return re.sub(_UNPRINTABLE, lambda match: f"\\x{ord(match[0]):02x}", readable)


def not_read(num_unread: int, kind: str) -> Gap:
    what = f"{num_unread:,} {kind}{'' if num_unread == 1 else 's'} could not be read"
    return Gap(f"{what}.", what)


def look_for_files(
    resolved: Resolved, glob: str | None, services: ToolServices, bounds: WalkLimits, of_type: re.Pattern[str] | None = None
) -> tuple[FileSelection, Iterator[Folder]]:
    """The iterator yields folders of `walk_folders` and completes the counts and gaps of `FileSelection`. Raises ToolError.

    A file of a folder must match `glob`, which may begin with the full path or `./`, and `of_type`.
    """
    try:
        mode = resolved.path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise missing(resolved, services) from None
    except OSError as error:
        raise explain(error, services.workspace.relative(resolved.path)) from error
    if stat.S_ISREG(mode):
        selection = FileSelection(resolved.path.parent)
        alone = Folder("", [resolved.path.name], is_whole=False, subfolders=[])
        return selection, _select([alone], (), selection, services)
    if not stat.S_ISDIR(mode):
        raise ToolError(f"`{resolved.spelling}` is neither a file nor a folder.")
    selection = FileSelection(resolved.path)
    filters = [of_type] if of_type else []
    if glob:
        relative = glob.removeprefix(f"{resolved.path}/").removeprefix("./")
        try:
            filters.append(compile_glob(f"{relative}**" if relative.endswith("/") else relative))
        except BadPattern as error:
            raise ToolError(f"`{glob}` is not a usable glob: {error}") from error
    top = services.workspace.root if resolved.inside else None
    folders = _walk_noting_gaps(walk_folders(resolved.path, bounds, top=top), bounds, selection)
    return selection, _select(folders, filters, selection, services)


def _walk_noting_gaps(folders: Iterator[Folder], bounds: WalkLimits, selection: FileSelection) -> Iterator[Folder]:
    try:
        yield from folders
    except WalkStopped as stopped:
        selection.gaps.append(Gap(f"The search stopped {stopped}: narrow `path`.", f"stopped {stopped}"))
    if bounds.num_unreadable:
        selection.gaps.append(not_read(bounds.num_unreadable, "folder"))


def _select(
    folders: Iterable[Folder], filters: Sequence[re.Pattern[str]], selection: FileSelection, services: ToolServices
) -> Iterator[Folder]:
    """Leaves out files that a filter does not match, or that must not be read."""
    for folder in folders:
        path, files, place = folder.path, folder.files, selection.start / folder.path
        if filters:
            files = [name for name in files if all(each.fullmatch(path + name) for each in filters)]
        if not services.all_readable(place, files):
            matching, files = files, [name for name in files if services.is_readable(place / name)]
            selection.protected += len(matching) - len(files)
        if files:
            yield Folder(path, files, folder.is_whole and len(files) == len(folder.files), folder.subfolders)


_TYPES = """
c=.c,.h config=.cfg,.conf,.config,.ini cpp=.cpp,.cc,.cxx,.hpp,.hh,.hxx,.h,.inl cs,csharp=.cs css=.css,.scss,.sass,.less
docker=Dockerfile*,.dockerfile elixir=.ex,.exs,.eex,.heex erlang=.erl,.hrl go=.go h=.h,.hh,.hpp haskell=.hs,.lhs html=.html,.htm
java=.java javascript,js=.js,.jsx,.mjs,.cjs json=.json,.jsonl,.json5 julia=.jl kotlin=.kt,.kts lua=.lua
make=Makefile,makefile,GNUmakefile,.mk,.mak markdown,md=.md,.markdown,.mdx objc=.m,.h ocaml=.ml,.mli perl=.pl,.pm,.t php=.php
proto=.proto ps=.ps1,.psm1,.psd1 py,python=.py,.pyi r=.r,.R,.Rmd rb,ruby=.rb,.gemspec,.rake rs,rust=.rs scala=.scala,.sbt
sh,shell=.sh,.bash,.zsh,.ksh,.fish sql=.sql swift=.swift tex=.tex,.sty,.cls,.bib toml=.toml ts,typescript=.ts,.tsx,.mts,.cts
tsx=.tsx txt=.txt vue=.vue xml=.xml,.xsd,.xsl,.xslt,.svg yaml,yml=.yaml,.yml zig=.zig
"""
"""Names of languages, and endings or names of their files."""
ENDINGS = frozenset(each for each in _TYPES.lower().replace("=", " ").replace(",", " ").split() if each[0] == ".")
"""Of names that are usually text."""
_ENDING = r"[\w+-]+(?:\.[\w+-]+)*"


@cache
def _types() -> dict[str, str]:
    """Globs by the name of a language."""
    rows = (re.sub(r"(?<=[=,])[.]", "*.", row).split("=") for row in _TYPES.split())
    return {name: f"{{{files}}}" if "," in files else files for names, files in rows for name in names.split(",")}


def compile_type(name: str) -> re.Pattern[str]:
    """Returns a pattern for paths of this language; an unknown name is taken as a suffix. Raises ToolError."""
    ending = name.strip().removeprefix("*").removeprefix(".")
    if not re.fullmatch(_ENDING, ending):
        raise ToolError(
            f"`{name}` is not a known file type. Known types: {', '.join(_types())}; or a file name suffix, such as `vue`."
        )
    return compile_glob(_types().get(ending.lower(), f"*.{ending}"))
