"""The tool `repo_map`: an overview of a tree by the symbols that are used most, within a number of tokens."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from math import sqrt
from pathlib import PurePosixPath
from typing import Annotated, ClassVar, NamedTuple

from msgspec import Meta, Struct

from wolo.errors import ToolError
from wolo.guard.intents import Intent, ReadIntent
from wolo.messages.parts import ToolKind
from wolo.models.tokens import estimate_text
from wolo.tools.search import code_symbols
from wolo.tools.search.glob import FileSelection, look_for_files, printable_name
from wolo.tools.tool import CallContext, ToolServices
from wolo.tools.tool_arguments import FOLDER_ALIASES
from wolo.tools.tool_values import CallResult, Listing
from wolo.workspace.root import Resolved
from wolo.workspace.walk import WalkLimits, files_of

DEFAULT_TOKENS = 2_000
LEAST_TOKENS, MOST_TOKENS = 200, 6_000
MOST_FILES = 5_000
MAX_S = 20.0
"""Time to parse; what was parsed by then is shown."""
_WALK_S = 5.0
PRIVATE, UNMENTIONED = 0.1, 0.05
"""Weights of names that are private, and of uses in files that do not mention the other."""
MISSING = (
    "The repo map needs tree-sitter, which is not installed. The user can add it with `pip install 'wolo-cli[repo-map]'`, or "
    "`pipx inject wolo-cli tree-sitter tree-sitter-python` and further grammars; until then use grep and glob."
)


class RepoMapArgs(Struct, frozen=True):
    path: str = "."
    tokens: Annotated[int, Meta(description=f"{LEAST_TOKENS} to {MOST_TOKENS}")] = DEFAULT_TOKENS


class RepoMap:
    """Overview of a folder: the classes and functions that other files use most, as `line: text` below their file."""

    name: ClassVar[str] = "repo_map"
    Args: ClassVar[type[Struct]] = RepoMapArgs
    aliases: ClassVar[Mapping[str, str]] = {**FOLDER_ALIASES, "max_tokens": "tokens", "budget": "tokens"}
    reads_only: ClassVar[bool] = True
    kind: ClassVar[ToolKind] = "search"

    def intents(self, args: RepoMapArgs, services: ToolServices) -> Sequence[Intent]:
        if not LEAST_TOKENS <= args.tokens <= MOST_TOKENS:
            raise ToolError(f"`tokens` is {LEAST_TOKENS} to {MOST_TOKENS:,}.")
        resolved = services.workspace.resolve(args.path)
        return (ReadIntent(resolved.path, args.path, resolved.inside),)

    async def run(self, args: RepoMapArgs, call: CallContext) -> CallResult:
        if recorded := call.services.recorded_result(call.call_id):
            return recorded
        text, num_symbols = await draw_map(call.resolve(args.path), args.tokens, call.services)
        return CallResult(text, Listing(args.path, tuple(text.splitlines()), num_symbols))


class SourceFile(NamedTuple):
    """A parsed file."""

    definitions: list[tuple[int, str, str]]
    """Line, its text, and the name."""
    references: dict[str, int]
    """How often it uses a name."""
    mentions: frozenset[str]
    """Files of these names, without their end."""


class Symbol(NamedTuple):
    path: str
    line: int
    text: str
    """Its first line."""
    score: float


async def draw_map(resolved: Resolved, tokens: int, services: ToolServices) -> tuple[str, int]:
    """The map, of at most so many tokens, and the number of symbols there are. Raises ToolError."""
    if not code_symbols.is_installed():
        raise ToolError(MISSING)
    looking = WalkLimits(max_s=_WALK_S)

    def find() -> tuple[FileSelection, list[str]]:
        endings = "|".join(map(re.escape, code_symbols.GRAMMARS))
        selection, folders = look_for_files(resolved, None, services, looking, re.compile(rf".*(?:{endings})", re.DOTALL))
        return selection, list(files_of(folders))

    try:
        selection, files = await asyncio.to_thread(find)
    finally:
        looking.cancel()  # the thread outlives a cancelled task
    files = [path for path in files if path.endswith(tuple(code_symbols.GRAMMARS))]
    parsed = await _parse(files[:MOST_FILES], selection)
    notes = list(selection.notes)
    if len(parsed) < len(files):
        left_out = "others are too large, many or slow, or have no grammar here."
        notes.append(f"{len(parsed):,} of {len(files):,} source files: {left_out}")
    symbols = rank(parsed)
    folder = services.workspace.relative(selection.start)
    prefix = "" if folder == "." else f"{printable_name(folder)}/"
    if not symbols:
        return "\n".join(f"[{note}]" for note in ("There are no symbols in what was read.", *notes)), 0
    for at, symbol in enumerate(symbols[:tokens]):  # no more can be shown
        symbols[at] = symbol._replace(text=services.secrets.hide_cut(symbol.text))
    return fit(symbols, tokens, prefix, notes), len(symbols)


async def _parse(files: Sequence[str], selection: FileSelection) -> dict[str, SourceFile]:
    """By path, as far as time allows."""
    program = (sys.executable, "-I", "-m", code_symbols.__name__)
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *program, stdin=pipe, stdout=pipe, stderr=nothing, env={}, cwd=selection.start, limit=1 << 26
    )
    assert process.stdin is not None
    assert process.stdout is not None
    parsed: dict[str, SourceFile] = {}
    try:
        async with asyncio.timeout(MAX_S):
            process.stdin.write(json.dumps(list(files)).encode())
            process.stdin.close()
            async for line in process.stdout:
                path, definitions, references, mentions = json.loads(line)
                parsed[path] = SourceFile(definitions, references, frozenset(mentions))
    except (TimeoutError, ValueError):
        pass  # the note about files says so
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return parsed


def rank(files: Mapping[str, SourceFile]) -> list[Symbol]:
    """The most used first. A use counts by the root of how often a file makes it, shared by all files that define the name, and
    little where the file does not mention the other: `append` is rarely the method of ours."""
    defined: Counter[str] = Counter()
    users: dict[str, list[tuple[str, float, frozenset[str]]]] = {}
    for path, file in files.items():
        defined.update({name for _, _, name in file.definitions})
        for name, count in file.references.items():
            users.setdefault(name, []).append((path, sqrt(count), file.mentions))
    symbols: dict[tuple[str, int], Symbol] = {}
    for path, file in sorted(files.items()):
        stem = PurePosixPath(path).stem
        for line, text, name in file.definitions:
            weights = (
                weight * (1.0 if stem in mentions else UNMENTIONED)
                for user, weight, mentions in users.get(name, ())
                if user != path
            )
            score = sum(weights) / defined[name] * (PRIVATE if name.startswith("_") else 1.0)
            symbol = Symbol(path, line, text, score)
            symbols[path, line] = max(symbols.get((path, line), symbol), symbol, key=lambda each: each.score)
    return sorted(symbols.values(), key=lambda each: (-each.score, each.path.count("/"), each.path, each.line))


def fit(symbols: Sequence[Symbol], tokens: int, prefix: str, notes: Iterable[str]) -> str:
    """As many of the first symbols as the tokens allow, below their files; the file with the best symbol first."""

    def draw(num: int) -> str:
        rows: dict[str, list[Symbol]] = {}
        for symbol in symbols[:num]:
            rows.setdefault(symbol.path, []).append(symbol)
        lines = [
            f"{prefix}{printable_name(path)}:\n" + "\n".join(f"{each.line}: {each.text}" for each in sorted(group))
            for path, group in rows.items()
        ]
        left = [] if num == len(symbols) else [f"{num:,} of {len(symbols):,} symbols, the most used first."]
        return "\n".join((*lines, *(f"[{note}]" for note in (*left, *notes))))

    least, most = 0, min(len(symbols), tokens)  # none is shorter than a token
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if estimate_text(draw(middle)) <= tokens else (least, middle - 1)
    return draw(least)
