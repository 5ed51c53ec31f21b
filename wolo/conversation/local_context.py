"""Tells the model with a prompt what the user sees: the date, the branch, changes, last commits and runtimes.

Numbers and lengths are limited so that the block has at most 150 tokens.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from wolo.errors import WoloError
from wolo.messages.message import Message
from wolo.messages.parts import TextPart

if TYPE_CHECKING:
    from wolo.workspace.git_repository import TreeState

P = TypeVar("P", bound=Message)

CONTEXT = "local_context"
"""Metadata key of prompts: the date and the branch that they tell."""
WAIT_S = 0.05
"""From the start of the look at the repository until a prompt goes without it."""
STALE_S = 30.0
"""An older look is repeated, because the user may have worked on between the start and the first prompt."""
GIT_S = 5.0
"""Then git is killed."""
RUNTIMES = (
    *("python3", "node", "go", "cargo", "java", "dotnet", "ruby", "php", "docker", "make", "uv", "npm", "pnpm", "yarn", "bun"),
    *("deno", "mvn", "gradle", "swift", "elixir", "gcc", "cmake", "podman"),
)
"""Programs whose presence tells how a project can be built and run."""
NUM_FILES = 5
NUM_RUNTIMES = 10
_NAME_CHARS = 40
_FILE_CHARS = 30
_SUBJECT_CHARS = 44
_MOST_TRIED = 50
"""Changed files that are looked at for readable ones."""
_MOST_FOLDERS = 40
_LOOKALIKES = str.maketrans({'"': "'", "<": "‹", ">": "›"})
BLOCK = "\n\n<context>\n{text}\n</context>"


class LocalContext:
    """The facts of one directory. They are looked up in a thread beside the start, and never waited for longer than `WAIT_S`."""

    def __init__(self, cwd: Path, *, clock: Callable[[], float] = time.time) -> None:
        """`cwd` must be a real path."""
        self._cwd, self._clock = cwd, clock
        self._look: _Look | None = None

    def begin(self) -> None:
        """Starts to look things up."""
        self._look = _Look(self._cwd)

    async def add_to(self, prompt: P, sent: Sequence[Message], is_readable: Callable[[Path], bool]) -> P:
        """The prompt with what the `sent` messages do not tell: all facts, or a date or a branch that has changed.

        Files that are not readable are counted, not named.
        """
        known = next((each.metadata[CONTEXT] for each in reversed(sent) if CONTEXT in each.metadata), None)
        now = time.localtime(self._clock())
        date, zone = time.strftime("%Y-%m-%d", now), time.strftime("%z", now)
        today = f"Date: {date} ({time.strftime('%A', now)}, UTC{zone[:3]}:{zone[3:]})"
        if not isinstance(known, dict):
            look = self._look
            if look is None or look.age_s > STALE_S:
                look = self._look = _Look(self._cwd)
            if (left_s := WAIT_S - look.age_s) > 0 and not look.is_done:
                await asyncio.to_thread(look.wait, left_s)
            branch, lines = look.branch, [today, *look.lines(is_readable)]
        else:
            branch = await asyncio.to_thread(_branch, self._cwd) or str(known.get("branch", ""))
            lines = [today] if known.get("date") != date else []
            if branch and known.get("branch") != branch:
                lines.append(f"The branch is {_quote(branch, _NAME_CHARS)} now.")
            if not lines:
                return prompt
        text = BLOCK.format(text="\n".join(lines))
        metadata = {**prompt.metadata, CONTEXT: {"date": date, "branch": branch}}
        return replace(prompt, parts=(*prompt.parts, TextPart(text=text, is_notice=True)), metadata=metadata)


class _Look:
    """One look at the directory, in a thread of its own; what is known so far can be read at any time."""

    def __init__(self, cwd: Path) -> None:
        self._cwd = cwd
        self.branch = ""
        self._top = cwd
        self._tree: TreeState | None = None
        self._runtimes: tuple[str, ...] = ()
        self._done = threading.Event()
        self._began_at = time.monotonic()
        threading.Thread(target=self._run, name="wolo-context", daemon=True).start()

    @property
    def age_s(self) -> float:
        return time.monotonic() - self._began_at

    @property
    def is_done(self) -> bool:
        return self._done.is_set()

    def wait(self, timeout_s: float) -> None:
        self._done.wait(timeout_s)

    def _run(self) -> None:
        try:
            self._runtimes = find_runtimes(os.environ.get("PATH", ""))
            self.branch = _branch(self._cwd)
            if self.branch:
                from wolo.workspace.git_repository import find_own_repository, read_tree_state  # noqa: PLC0415  # in a repository only

                if (repository := find_own_repository(self._cwd)) is not None:
                    self._top = repository.top
                    self._tree = read_tree_state(repository, self.branch, GIT_S)
        except (OSError, WoloError, ValueError):
            pass  # the facts so far
        finally:
            self._done.set()

    def lines(self, is_readable: Callable[[Path], bool]) -> list[str]:
        tree, top = self._tree, self._top
        readable = [name for name in tree.changed[:_MOST_TRIED] if is_readable(top / name)] if tree else []
        lines = describe_tree(self.branch, tree, readable) if self.branch else []
        return [*lines, f"On the PATH: {' '.join(self._runtimes)}"] if self._runtimes else lines


def find_runtimes(path: str) -> tuple[str, ...]:
    """The first of `RUNTIMES` in the folders of a PATH; nothing is started."""
    folders = [folder for folder in path.split(os.pathsep) if folder.startswith("/")][:_MOST_FOLDERS]
    present = (name for name in RUNTIMES if any(os.access(f"{folder}/{name}", os.X_OK) for folder in folders))
    return tuple(islice(present, NUM_RUNTIMES))


def _branch(cwd: Path) -> str:
    from wolo.workspace.git_branch import current_branch  # noqa: PLC0415  # not before the thread runs

    return current_branch(cwd)


def describe_tree(branch: str, tree: TreeState | None, readable: Sequence[str]) -> list[str]:
    """A line each about the branch, the changes and the last commits; `tree` None: only the branch is known."""
    if tree is None:
        return [f"Branch: {_quote(branch, _NAME_CHARS)}"]
    counts = ", ".join(f"{count} {way}" for count, way in ((tree.ahead, "ahead"), (tree.behind, "behind")) if count)
    names = [_quote(name, _FILE_CHARS, keeps_end=True) for name in readable[:NUM_FILES]]
    listed = ", ".join([*names, *(["…"] if len(tree.changed) > len(names) else [])]) if names else ""
    count = f"{len(tree.changed):,}{'' if tree.is_whole else ' or more'}{f' ({listed})' if listed else ''}"
    subjects = ", ".join(_quote(subject, _SUBJECT_CHARS) for subject in tree.subjects)
    return [
        f"Branch: {_quote(branch, _NAME_CHARS)}{f' ({counts})' if counts else ''}",
        f"Changed files: {count}" if tree.changed else "No file is changed.",
        *([f"Last commits: {subjects}"] if subjects else []),
    ]


def _quote(text: str, most_chars: int, *, keeps_end: bool = False) -> str:
    """A name on one line, in quotes that it cannot close: it may hold orders to the model."""
    line = "".join(char if char.isprintable() else "\ufffd" for char in text.translate(_LOOKALIKES))
    if len(line) > most_chars:
        line = f"…{line[1 - most_chars :]}" if keeps_end else f"{line[: most_chars - 1]}…"
    return f'"{line}"'
