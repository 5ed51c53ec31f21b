"""The `glob` tool: finds files by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from wolo.errors import ToolError
from wolo.guard.intents import Intent, ReadIntent
from wolo.messages.parts import ToolKind
from wolo.tools.search.search_files import MAX_S, MAX_TEXT_BYTES, FileSelection, find_files, shown
from wolo.tools.tool import CallContext, ToolServices
from wolo.tools.tool_arguments import FOLDER_ALIASES
from wolo.tools.tool_values import CallResult, Listing
from wolo.workspace.walk import WalkLimits

_MAX_NAMES = 500


class GlobArgs(Struct, frozen=True):
    pattern: Annotated[str, Meta(description="such as `*.py` (at any depth) or `src/**/*.{ts,tsx}`")]
    path: Annotated[str, Meta(description="folder to search")] = "."


class Glob:
    """Find files by name, sorted by path. Files ignored by git, and links, are omitted."""

    name: ClassVar[str] = "glob"
    Args: ClassVar[type[Struct]] = GlobArgs
    aliases: ClassVar[Mapping[str, str]] = {
        "glob": "pattern",
        "glob_pattern": "pattern",
        "query": "pattern",
        **FOLDER_ALIASES,
    }
    reads_only: ClassVar[bool] = True
    kind: ClassVar[ToolKind] = "search"

    def intents(self, args: GlobArgs, services: ToolServices) -> Sequence[Intent]:
        resolved = services.workspace.resolve(args.path)
        return (ReadIntent(resolved.path, args.path, resolved.inside),)

    async def run(self, args: GlobArgs, call: CallContext) -> CallResult:
        if not args.pattern.strip():
            raise ToolError("The pattern is empty.")
        resolved = call.resolve(args.path)
        found = await find_files(resolved, args.pattern, call.services, WalkLimits(max_s=MAX_S))
        names = _names(found, call.services)
        notes = found.notes
        if len(names) < len(found.files):
            notes.insert(0, f"{len(names)} of {len(found.files):,} files: narrow the pattern.")
        elif not names:
            notes.insert(0, f"No file matches {args.pattern}.{_hint(args.pattern)}")
        text = "\n".join([*names, *(f"[{note}]" for note in notes)])
        return CallResult(text, Listing(args.pattern, tuple(names), len(found.files), found.incomplete))


def _names(found: FileSelection, services: ToolServices) -> list[str]:
    names: list[str] = []
    room = MAX_TEXT_BYTES
    for path in found.files[:_MAX_NAMES]:
        name = shown(services.workspace.relative(found.start / path))
        room -= len(name.encode()) + 1
        if room < 0:
            break
        names.append(name)
    return names


def _hint(pattern: str) -> str:
    return " `[` opens a set of characters; write \\[ for the character itself." if "[" in pattern else ""
