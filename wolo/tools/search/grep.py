"""The `grep` tool: searches file contents with ripgrep, or a Python equivalent if it is missing."""

from __future__ import annotations

import asyncio
import errno
import stat
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

from msgspec import Meta, Struct
from msgspec.structs import replace

from wolo.errors import ToolError
from wolo.guard.intents import Intent, ReadIntent
from wolo.messages.parts import ToolKind
from wolo.operating_system import os
from wolo.tools.search.glob import ENDINGS, MAX_S, MAX_TEXT_BYTES, Gap, compile_type, look_for_files, not_read, printable_name
from wolo.tools.search.ripgrep import MOST_HANDLES, GrepHit, GrepQuery, Mode, Searched, find_hits, find_names, find_program
from wolo.tools.tool import UNOFFERED, CallContext, ToolServices
from wolo.tools.tool_arguments import FOLDER_ALIASES
from wolo.tools.tool_values import CallResult, Listing
from wolo.workspace.processes.process_runner import Processes
from wolo.workspace.walk import Folder, WalkLimits

_DEFAULT_LIMIT = 200
_MAX_LIMIT = 2000
_MAX_CONTEXT = 20
_MAX_OFFSET = 100_000
_MAX_PATTERN = 10_000
_MAX_WIDTH = 300
"""Maximum characters of a line."""
_LEAD = 80
"""Characters shown before a match far to the right."""
_LOOKING = 0.9
"""Share of the time for listing files; the rest is for searching the last of them."""
_SNIFF_BYTES = 8000
_UNOPENED_BYTES = 64 * 1024
"""Smaller files are checked for NUL bytes only if they match; larger ones before, because they may be large binaries."""
_FIRST_BATCH = 64
"""Files of the first batch; later batches are four times as large, so common words are found fast and rare ones too."""
_MAX_BATCH = 8192
_MAX_BATCH_BYTES = 300_000
"""Maximum length of the arguments of a batch; systems allow one to two megabytes."""
_MAX_AT_ONCE = min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
"""Maximum number of parallel searches."""
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


_UNOFFERED = Meta(extra_json_schema={UNOFFERED: True})
"""For models that know the tool of another agent; `glob` and `context` are enough for the others."""


class GrepArgs(Struct, frozen=True):
    pattern: Annotated[str, Meta(description="regular expression")]
    path: Annotated[str, Meta(description="file or folder")] = "."
    glob: Annotated[str | None, Meta(description="only files such as `*.py` or `src/**/*.ts`")] = None
    type: Annotated[str | None, _UNOFFERED] = None
    """A language: py, js, rust."""
    output_mode: Mode = "content"
    context: Annotated[int, Meta(description="lines around each match")] = 0
    before: Annotated[int | None, _UNOFFERED] = None
    after: Annotated[int | None, _UNOFFERED] = None
    line_numbers: Annotated[bool, _UNOFFERED] = True
    ignore_case: bool = False
    multiline: Annotated[bool, Meta(description="`.` matches line ends too")] = False
    head_limit: int = _DEFAULT_LIMIT
    offset: Annotated[int, Meta(description="lines to skip")] = 0


class Grep:
    """Search file contents; lines are shown as `path:12:text`, sorted by path. Files ignored by git, binaries and links are
    omitted."""

    name: ClassVar[str] = "grep"
    Args: ClassVar[type[Struct]] = GrepArgs
    aliases: ClassVar[Mapping[str, str]] = {
        "query": "pattern",
        "regex": "pattern",
        "include": "glob",
        "include_pattern": "glob",
        "file_pattern": "glob",
        **FOLDER_ALIASES,
        "file_path": "path",
        "-A": "after",
        "-B": "before",
        "-C": "context",
        "-i": "ignore_case",
        "-n": "line_numbers",
        "file_type": "type",
        "case_insensitive": "ignore_case",
        "limit": "head_limit",
        "max_results": "head_limit",
    }
    reads_only: ClassVar[bool] = True
    kind: ClassVar[ToolKind] = "search"

    def __init__(self, program: Sequence[str] | None = None) -> None:
        self._program = program
        """Located anew for each call if None."""

    def intents(self, args: GrepArgs, services: ToolServices) -> Sequence[Intent]:
        resolved = services.workspace.resolve(args.path)
        return (ReadIntent(resolved.path, args.path, resolved.inside),)

    async def run(self, args: GrepArgs, call: CallContext) -> CallResult:
        _refuse_unusable(args)
        bounds, looking = WalkLimits(max_s=MAX_S), WalkLimits(max_s=MAX_S * _LOOKING)
        of_type = compile_type(args.type) if args.type else None
        resolved = call.resolve(args.path)
        selection, folders = await asyncio.to_thread(look_for_files, resolved, args.glob, call.services, looking, of_type)
        lines = _ResultLines(args, call.services, selection.start)
        program = self._program or find_program(call.services.workspace)
        batches = _FoundBatches(selection.start, folders, looking)
        try:
            gaps = await _search(program, args, call, batches, bounds, lines)
        finally:
            await batches.close()
        selection.gaps[:0] = gaps
        notes = selection.notes
        if not lines.shown:
            more = " after the skipped lines" if lines.skipped else ""
            notes.insert(0, f"No matches{more} in what was searched." if notes else f"No matches{more}.")
        text = "\n".join([*lines.shown, *(f"[{note}]" for note in notes)])
        return CallResult(text, Listing(args.pattern, tuple(lines.shown), len(lines.shown), selection.incomplete))


class _Batch(Struct, frozen=True):
    files: list[str]
    paths: list[str]
    """Arguments of the search program: folders as a whole, and files of others."""
    end: list[str] | None
    """Components of a path; every file that sorts before it is in this batch or an earlier one. None: all are."""


class _FoundBatches:
    """Batches of files, of which the next is collected in a thread while others are searched.

    One thread does all of it: several would wait for each other at every step of the event loop.
    """

    def __init__(self, start: Path, folders: Iterator[Folder], looking: WalkLimits) -> None:
        self.num_unread = 0
        self.start, self._looking = start, looking
        self._batches = _batches(map(self._without_binaries, folders))
        self._next = self._begin()

    def _begin(self) -> asyncio.Task[_Batch | None]:
        return asyncio.create_task(asyncio.to_thread(next, self._batches, None))

    async def take(self) -> _Batch | None:
        """None at the end."""
        if (batch := await asyncio.shield(self._next)) is not None:
            self._next = self._begin()
        return batch

    def _without_binaries(self, folder: Folder) -> Folder:
        """Leaves out large ones, except of names that are usually text: of these the search program reads a little."""
        path, files = folder.path, folder.files
        doubtful = [path + name for name in files if name[name.rfind(".") :].lower() not in ENDINGS]
        texts, num_unread = text_files(self.start, doubtful, unopened_bytes=_UNOPENED_BYTES)
        if len(texts) == len(doubtful):
            return folder
        self.num_unread += num_unread
        binaries = {*doubtful}.difference(texts)
        return Folder(path, [name for name in files if path + name not in binaries], is_whole=False, subfolders=folder.subfolders)

    async def close(self) -> None:
        """Stops looking for files."""
        self._looking.cancel()
        await asyncio.gather(self._next, return_exceptions=True)


async def _search(
    program: Sequence[str], args: GrepArgs, call: CallContext, batches: _FoundBatches, bounds: WalkLimits, lines: _ResultLines
) -> list[Gap]:
    """Searches batches in parallel, with hits in order, until the limit or the time is reached."""
    query = GrepQuery(
        args.pattern,
        args.output_mode,
        before=args.context if args.before is None else args.before,
        after=args.context if args.after is None else args.after,
        ignore_case=args.ignore_case,
        multiline=args.multiline,
        max_count=args.offset + args.head_limit + 1,
    )
    start, processes = batches.start, call.services.shell.processes
    running: deque[tuple[_Batch, asyncio.Task[Searched]]] = deque()
    num_unread, has_failed, has_more = 0, False, False
    held: list[list[str]] = []
    """Candidates that sort after files of later batches, by component."""
    try:
        at_once = 1  # a common word needs only the first batch
        while True:
            while len(running) < at_once and (batch := await batches.take()) is not None:
                running.append((batch, asyncio.create_task(_find_candidates(program, query, batch, start, processes, bounds))))
            if not running:
                break
            batch, task = running.popleft()
            named = await task
            at_once = _MAX_AT_ONCE
            num_unread += named.not_read
            held = sorted([*held, *(hit.path.split("/") for hit in named.hits)])
            num_ready = bisect_left(held, batch.end) if batch.end and bounds.seconds_left() else len(held)
            ready, held = ["/".join(each) for each in held[:num_ready]], held[num_ready:]
            for at in range(0, num_ready, MOST_HANDLES):
                if at and not bounds.seconds_left():
                    break
                matching, _ = await asyncio.to_thread(text_files, start, ready[at : at + MOST_HANDLES])
                left_s = bounds.seconds_left()
                found = await find_hits(program, query, matching, start=start, processes=processes, timeout_s=left_s)
                has_failed = has_failed or found.has_failed
                if has_more := not all(map(lines.add, found.hits)) or found.has_more:
                    break
            if has_more or named.has_more:
                upto = lines.skipped + len(lines.shown)
                note = f"There is more: narrow `pattern`, `path` or `glob`, or continue with offset={upto}."
                return [Gap(note, "there is more")]
            has_failed = has_failed or named.has_failed
            if not bounds.seconds_left():
                note = f"The search stopped after {bounds.max_s:g} s: narrow `pattern`, `path` or `glob`."
                return [Gap(note, f"stopped after {bounds.max_s:g} s")]
    finally:
        for _, task in running:
            task.cancel()
        await asyncio.gather(*(task for _, task in running), return_exceptions=True)
    num_unread += batches.num_unread
    gaps = [not_read(num_unread, "file")] if num_unread else []
    return [*gaps, Gap("Some files could not be searched.", "some files could not be searched")] if has_failed else gaps


async def _find_candidates(
    program: Sequence[str], query: GrepQuery, batch: _Batch, start: Path, processes: Processes, bounds: WalkLimits
) -> Searched:
    """Returns the files of a batch that match, among them binaries."""
    find = partial(find_names, program, query, start=start, processes=processes)
    named, num_unread = await find(batch.paths, timeout_s=bounds.seconds_left()), 0
    if named.has_failed:  # perhaps a file is unreadable: open all of them
        likely, num_unread = await asyncio.to_thread(text_files, start, batch.files)
        named = await find(likely, timeout_s=bounds.seconds_left())
    known = {*batch.files} if named.hits else ()  # the program may have come upon files that were made after the walk
    return replace(named, hits=tuple(hit for hit in named.hits if hit.path in known), not_read=num_unread)


class _ResultLines:
    """Collects the lines of the result up to the limit."""

    def __init__(self, args: GrepArgs, services: ToolServices, start: Path) -> None:
        self.shown: list[str] = []
        self.skipped = 0
        self._has_neighbours = bool(args.context or args.before or args.after)
        self._args = args
        self._workspace = services.workspace
        self._secrets = services.secrets
        self._start = start
        self._room_bytes = MAX_TEXT_BYTES
        self._last: GrepHit | None = None

    def add(self, hit: GrepHit) -> bool:
        """False when it did not fit."""
        follows = self._last is None or (self._last.path == hit.path and self._last.line == hit.line - 1)
        is_apart = self._has_neighbours and hit.line and not follows
        more = [*(["--"] if is_apart else []), self._line(hit)]
        if (skipping := min(self._args.offset - self.skipped, len(more))) > 0:
            self.skipped += skipping
            more = more[skipping:]
        size = sum(len(line.encode(errors="replace")) + 1 for line in more)
        if len(self.shown) + len(more) > self._args.head_limit or size > self._room_bytes:
            return False
        self.shown += more
        self._room_bytes -= size
        self._last = hit
        return True

    def _line(self, hit: GrepHit) -> str:
        name = printable_name(self._workspace.relative(self._start / hit.path))
        if hit.line:
            mark = ":" if hit.column else "-"
            number = f"{hit.line}{mark}" if self._args.line_numbers else ""
            text = self._secrets.hide_cut(hit.text) if hit.is_cut else self._secrets.hide(hit.text)
            return f"{name}{mark}{number}{_around(text, hit.column)}"
        return f"{name}:{hit.num_matches}" if hit.num_matches else name


def _around(text: str, column: int) -> str:
    """Shortens a line to the part around the match."""
    if len(text) <= _MAX_WIDTH:
        return text
    first = len(text.encode()[: max(0, column - 1)].decode(errors="ignore"))
    begin = max(0, min(first - _LEAD, len(text) - _MAX_WIDTH)) if first > _MAX_WIDTH - _LEAD else 0
    end = begin + _MAX_WIDTH
    return f"{'…' if begin else ''}{text[begin:end]}{'…' if end < len(text) else ''}"


def _batches(folders: Iterable[Folder]) -> Iterator[_Batch]:
    size, num_bytes = _FIRST_BATCH, 0
    batch = _Batch([], [], None)
    for folder in folders:
        path, files = folder.path, [folder.path + name for name in folder.files]
        step = len(files) if folder.is_whole and len(files) <= _MAX_BATCH else _FIRST_BATCH
        for at in range(0, len(files), step):
            if len(batch.files) >= size or num_bytes > _MAX_BATCH_BYTES:
                first = min(files[at], *(path + name for name in folder.subfolders[:1])) if at else path
                yield replace(batch, end=first.split("/"))
                batch, num_bytes, size = _Batch([], [], None), 0, min(size * 4, _MAX_BATCH)
            paths = [path] if step == len(files) and folder.is_whole else files[at : at + step]
            batch.paths.extend(paths)
            batch.files.extend(files[at : at + step])
            num_bytes += sum(len(os.fsencode(each)) + 3 for each in paths)
    if batch.files:
        yield batch


def text_files(start: Path, files: Sequence[str], *, unopened_bytes: int = 0) -> tuple[list[str], int]:
    """Returns the text files, and the number of unreadable files. Files below `unopened_bytes` count as text."""
    whole = [f"{start}/{path}" for path in files]
    kinds = [(unopened_bytes > 0 and _is_small(path, unopened_bytes)) or _is_text(path) for path in whole]
    return [path for path, is_text in zip(files, kinds, strict=True) if is_text], kinds.count(None)


def _is_small(path: str, most_bytes: int) -> bool:
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size < most_bytes


def _is_text(path: str) -> bool | None:
    """True without a NUL byte near the start, as in git. False also for a file that no longer exists; None: unreadable."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return False if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO) else None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return False
        head = os.read(handle, _SNIFF_BYTES)
    except OSError:
        return None
    finally:
        os.close(handle)
    return b"\0" not in head or head.startswith(_UTF16_MARKS)


def _refuse_unusable(args: GrepArgs) -> None:
    if not args.pattern:
        raise ToolError("The pattern is empty.")
    if "\0" in args.pattern:
        raise ToolError("The pattern contains a NUL character.")
    if len(args.pattern) > _MAX_PATTERN:
        raise ToolError(f"The pattern is too long: {len(args.pattern):,} characters.")
    try:
        os.fsencode(args.pattern)
    except UnicodeEncodeError as error:
        raise ToolError("The pattern contains half of a surrogate pair, which no text can hold.") from error
    most = {**dict.fromkeys(("context", "before", "after"), _MAX_CONTEXT), "offset": _MAX_OFFSET, "head_limit": _MAX_LIMIT}
    for name, limit in most.items():
        if not (name == "head_limit") <= (getattr(args, name) or 0) <= limit:
            raise ToolError(f"`{name}` must be {int(name == 'head_limit')} to {limit}.")
