"""Runs ripgrep, or its small replacement, and parses the output."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from wolo.errors import ToolError
from wolo.operating_system import hold_open, inherited_number, os
from wolo.workspace.files.safe_open import open_folder, open_regular_in
from wolo.workspace.processes import command_environment
from wolo.workspace.processes.output_capture import CapturedOutput
from wolo.workspace.processes.process_runner import Finished, Processes, ProgramStart
from wolo.workspace.root import Workspace

Mode = Literal["content", "files", "files_with_matches", "count"]
"""Other agents call `files_with_matches` `files`."""

_OUTPUT_BYTES = 4 * 1024 * 1024
_MAX_COLUMNS = 2000
"""Longer lines are cut."""
_NOTHING_FOUND = 1
_FAULT = 2
"""An invalid pattern or an unreadable file."""
_HANDLES = "/dev/fd/"
"""Folder of open file handles."""
MOST_HANDLES = 200
_LEAST_S = 1.0
"""Minimum time for the second search, even after a timeout."""
_STAND_IN = Path(__file__).with_name("plain_grep.py")

# Reproducible results: no user settings, no detection of binary files, one thread so that the order stays, every file of the
# given folders and none below, and `$` matches before a Windows line end.
_RIPGREP_ONLY = (
    *("--no-ignore", "--hidden", "--max-depth=1"),
    *("--no-config", "--no-messages", "--text", "--threads=1", "--crlf", "--engine=auto", "--multiline-dotall"),
    *("--with-filename", "--no-heading", "--line-number", "--column", "--null", "--color=never", "--no-context-separator"),
    *("--max-columns-preview", f"--max-columns={_MAX_COLUMNS}"),
)

# Not compiled here, to keep the start of wolo fast; `re` caches them later.
_LINE_BREAK = r"\n|(?<!\\)(?:\\\\)*\\n"
_LINE = rb"(?:\./|/dev/fd/)([^\0]*)\0(\d+)(?::(\d+):|(:)|-)([^\n]*)\n"
_COUNT = rb"(?:\./|/dev/fd/)([^\0]*)\0(\d+)\r?\n"
_NAME = rb"(?:\./|/dev/fd/)([^\0]*)\0"
_CUT_MARK = r" \[\.\.\. (?:omitted end of long line|\d+ more match(?:es)?)\]$"


class GrepQuery(Struct, frozen=True):
    pattern: str
    mode: Mode = "content"
    before: int = 0
    after: int = 0
    ignore_case: bool = False
    multiline: bool = False
    max_count: int = 1000
    """Matching lines per file after which the search of the file stops."""

    @property
    def names_only(self) -> bool:
        return self.mode in ("files", "files_with_matches")

    @property
    def crosses_lines(self) -> bool:
        return self.multiline or re.search(_LINE_BREAK, self.pattern) is not None


class GrepHit(Struct, frozen=True):
    """A matching or neighbouring line; or a matching file, with the number of its matches if requested."""

    path: str
    line: int = 0
    text: str = ""
    column: int = 0
    """Start of the match in bytes, from 1; 0 for a neighbour."""
    num_matches: int = 0
    is_cut: bool = False
    """The line continues."""


class Searched(Struct, frozen=True):
    """Result of searching some files."""

    hits: tuple[GrepHit, ...] = ()
    has_more: bool = False
    """Output was truncated."""
    not_read: int = 0
    """Number of unreadable files."""
    has_failed: bool = False
    """Some files could not be searched."""


def find_program(workspace: Workspace) -> list[str]:
    """Finds `rg` next to the running Python (from its wheel) or on the PATH, but never inside the workspace."""
    if not hasattr(os, "killpg"):
        return stand_in()  # reads open files of Windows by their handles
    beside = Path(sys.executable).with_name("rg")
    if os.access(beside, os.X_OK):
        return ripgrep(beside)
    found = command_environment.find_program("rg", workspace)
    return ripgrep(Path(found)) if found else stand_in()


def ripgrep(path: Path) -> list[str]:
    return [str(path), *_RIPGREP_ONLY]


def stand_in() -> list[str]:
    return [sys.executable, "-I", "-S", str(_STAND_IN)]


async def find_names(
    program: Sequence[str], query: GrepQuery, paths: Sequence[str], *, start: Path, processes: Processes, timeout_s: float
) -> Searched:
    """Returns the files of `paths`, and of folders in `paths`, that match or are binaries. Raises ToolError for a bad pattern.

    A file may be replaced by a link before it is opened, so only results of `find_hits` may be shown.
    """
    if not paths:
        return Searched()
    names = replace(query, mode="files")
    return await _run(program, names, [f"./{path}" for path in paths], start, processes, timeout_s, also=(r"--regexp=\x00",))


async def find_hits(
    program: Sequence[str], query: GrepQuery, files: Sequence[str], *, start: Path, processes: Processes, timeout_s: float
) -> Searched:
    """Searches up to MOST_HANDLES files through handles opened without following links. Returns hits in the order of `files`."""
    with _open_files(start, files) as opened:
        if not opened:
            return Searched()
        numbers = {inherited_number(handle): name for handle, name in opened.items()}
        handles = [f"{_HANDLES}{number}" for number in numbers]
        found = await _run(program, query, handles, start, processes, max(timeout_s, _LEAST_S), tuple(opened))
        return replace(found, hits=tuple(replace(hit, path=numbers[int(hit.path)]) for hit in found.hits))


@contextmanager
def _open_files(start: Path, names: Sequence[str]) -> Iterator[dict[int, str]]:
    """Opens regular files; returns names by handle."""
    opened: dict[int, str] = {}
    try:
        for name in names:
            path = start / name
            with suppress(OSError, ToolError), hold_open(open_folder(path.parent)) as folder:
                opened[open_regular_in(folder, path.name)] = name
        yield opened
    finally:
        for handle in opened:
            os.close(handle)


async def _run(
    program: Sequence[str],
    query: GrepQuery,
    paths: Sequence[str],
    start: Path,
    processes: Processes,
    timeout_s: float,
    handles: tuple[int, ...] = (),
    also: tuple[str, ...] = (),
) -> Searched:
    printed = CapturedOutput(_OUTPUT_BYTES)
    try:
        options = [*also, f"--regexp={query.pattern}"]
        if query.ignore_case:
            options.append("--ignore-case")
        if query.crosses_lines:
            options.append("--multiline")
        elif query.mode == "content":
            options.append(f"--max-count={query.max_count}")
        if query.names_only:
            options.append("--files-with-matches")
        elif query.mode == "content":
            options += [f"--before-context={query.before}", f"--after-context={query.after}"]
        elif not query.crosses_lines:
            options.append("--count")
        argv = [*program, *options, "--", *paths]
        env = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"}
        if hasattr(os, "killpg"):
            finished = await processes.run(ProgramStart(argv=argv, cwd=start, env=env, pass_fds=handles), timeout_s, printed)
        else:
            running = partial(run_single, argv, cwd=start, env=env, timeout_s=timeout_s, pass_fds=handles)
            found, exit_code = await asyncio.to_thread(running)
            printed.add(found)
            finished = Finished(exit_code or 0, timeout_s, "timed_out" if exit_code is None else "exited")
    except OSError as error:
        raise ToolError(f"The search could not be started: {error.strerror}.") from error
    output, tail = printed.take()
    if finished.exit_code == _FAULT and output and not output.startswith((b"./", _HANDLES.encode())):
        lines = [line.strip() for line in output.decode(errors="replace").splitlines() if line.strip()]
        error_line = next((line for line in lines if line.startswith("error:")), lines[-1])
        reason = error_line.removeprefix("error:").removeprefix("rg:").strip().rstrip(".")
        raise ToolError(f"The pattern cannot be used: {reason}. Escape literal characters with \\.")
    has_failed = finished.cause == "exited" and finished.exit_code not in (0, _NOTHING_FOUND)
    return Searched(tuple(_read(query, output)), bool(tail), has_failed=has_failed)


def _read(query: GrepQuery, output: bytes) -> Iterator[GrepHit]:
    """Drops a last line that was cut off."""
    if query.names_only:
        return (GrepHit(os.fsdecode(match[1])) for match in re.finditer(_NAME, output))
    if query.mode == "content":
        return _read_lines(output)
    if not query.crosses_lines:
        return (GrepHit(os.fsdecode(match[1]), num_matches=int(match[2])) for match in re.finditer(_COUNT, output))
    counts: dict[str, int] = {}
    for hit in _read_lines(output):
        counts[hit.path] = counts.get(hit.path, 0) + 1
    return (GrepHit(path, num_matches=count) for path, count in counts.items())


def _read_lines(output: bytes) -> Iterator[GrepHit]:
    for match in re.finditer(_LINE, output):
        # An empty match at the end of the file has no column.
        path, line, column, no_column, text = match.groups()
        shown = text.removesuffix(b"\r").decode(errors="replace")
        is_cut = len(text) >= _MAX_COLUMNS
        if is_cut:
            shown = re.sub(_CUT_MARK, "", shown)[:_MAX_COLUMNS]
        yield GrepHit(os.fsdecode(path), int(line), shown, int(column or bool(no_column)), is_cut=is_cut)


def run_single(
    argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout_s: float, pass_fds: Sequence[int]
) -> tuple[bytes, int | None]:
    """The output and the exit code; None: it was ended after that time. Raises OSError when it cannot be started."""
    passed: dict[str, Any] = {"pass_fds": pass_fds}
    if sys.platform == "win32":
        numbers = [inherited_number(descriptor) for descriptor in pass_fds]
        for number in numbers:
            os.set_handle_inheritable(number, True)
        passed = {"startupinfo": subprocess.STARTUPINFO(lpAttributeList={"handle_list": numbers})}
        env = {**env, "SYSTEMROOT": os.environ.get("SYSTEMROOT", "")}  # Python does not start without it
    try:
        done = subprocess.run(
            argv, cwd=cwd, env=env, timeout=timeout_s, input=b"", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **passed
        )
    except subprocess.TimeoutExpired as late:
        return late.output or b"", None
    return done.stdout, done.returncode
