"""Reads functions, aliases and the PATH of the user's login shell, without running code of a project."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from wolo.operating_system import duplicate
from wolo.workspace.processes.command_environment import BUILTINS, CommandVariables, find_program
from wolo.workspace.processes.process_runner import Processes
from wolo.workspace.processes.run_with_input import run_with_input, unnamed_file
from wolo.workspace.root import Workspace, may_be_project

TIMEOUT_S = 5.0
MAX_BYTES = 512 * 1024
"""Of everything that the shell prints."""
_LOWEST_FD = 200
"""Commands use lower ones."""
_LISTINGS = {
    "bash": r"""
        for name in "${!BASH_ALIASES[@]}"; do printf '\0'; alias -- "$name"; done
        while read -r _ _ name; do printf '\0'; declare -f -- "$name"; done < <(declare -F)
    """,
    "zsh": r"""
        for name in ${(k)aliases}; do printf '\0'; alias -L -- "$name"; done
        for name in ${(k)functions}; do printf '\0'; functions -- "$name"; done
    """,
}
"""Each prints NUL before a definition; other shells have a PATH only."""
_CHECK = r"""while IFS= read -r -d '' one; do bash -n <<<"$one" 2>/dev/null && printf 1 || printf 0; done"""
_KEYWORDS = "if then else elif fi case esac for select while until do done in function time coproc"


class Definition(Struct, frozen=True):
    name: str
    text: str
    """As bash reads it."""
    is_alias: bool


class LoginShell(Struct, frozen=True):
    path: tuple[str, ...] = ()
    """Folders, absolute and outside of the workspace."""
    definitions: tuple[Definition, ...] = ()
    notices: tuple[str, ...] = ()

    def extend_path(self, path: str) -> str:
        """Folders of the user's PATH stay first, also those of the project."""
        first = path.split(os.pathsep)
        return os.pathsep.join([*first, *(each for each in self.path if each not in first)])

    def select(self, accept: Callable[[Definition], bool]) -> LoginShell:
        return replace(self, definitions=tuple(filter(accept, self.definitions)))

    @contextmanager
    def load(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Code by which bash reads the definitions, and the descriptor that it needs for it."""
        text = "shopt -s expand_aliases\n" + "".join(f"{each.text}\n" for each in self.definitions)
        with unnamed_file() as file:
            file.write(text.encode("utf-8", "surrogateescape"))
            file.seek(0)
            fd = duplicate(file.fileno(), _LOWEST_FD)
        try:
            yield f"IFS= read -r -d '' -u {fd} __wolo; exec {fd}<&-; eval \"$__wolo\"; ", (fd,)
        finally:
            os.close(fd)


async def read_login_shell(processes: Processes, workspace: Workspace, environ: Mapping[str, str]) -> LoginShell:
    """Starts the shell in `/`, with the variables of `core` and a PATH without the workspace; at most for `TIMEOUT_S`."""
    shell = environ.get("SHELL") or find_program("bash", workspace) or "/bin/sh"
    kind = Path(shell).name
    if not _outside([shell], workspace) or not os.access(shell, os.X_OK):
        return _without(f"SHELL names {shell}, which is no program outside of the workspace.")
    env = CommandVariables("core", environ=environ).select(is_outside=False)
    env["PATH"] = os.pathsep.join(_outside(env["PATH"].split(os.pathsep), workspace))
    mark = os.urandom(16).hex()
    path = "string join : $PATH" if kind == "fish" else "printf '%s' \"$PATH\""
    script = f"printf '\\0%s\\0' {mark}; {path}; {_LISTINGS.get(kind, '')}\nprintf '\\0%s\\0' {mark}"
    try:
        ended = await run_with_input(
            processes,
            [shell, "-l", "-i", "-c", script],
            b"",
            cwd=Path("/"),
            env=env,
            timeout_s=TIMEOUT_S,
            kept_bytes=MAX_BYTES // 2,
        )
    except OSError as error:
        return _without(f"{shell} cannot be started: {error.strerror}.")
    if ended.cause == "timed_out":
        return _without(f"{shell} took longer than {TIMEOUT_S:g} s to start.")
    parts = ended.stdout.decode("utf-8", "surrogateescape").split("\0")
    if len(ended.stdout) >= MAX_BYTES:
        return _without(f"{shell} prints and defines more than {MAX_BYTES // 1024} KiB.")
    if parts.count(mark) != 2:
        return _without(f"{shell} ended before it listed its definitions.")
    first, last = (at for at, part in enumerate(parts) if part == mark)
    folders, *texts = parts[first + 1 : last]
    definitions = [each for each in map(_read, texts) if each is not None]
    if kind == "zsh":
        # Leaves out functions of zsh that bash cannot parse.
        if (bash := find_program("bash", workspace)) is None:
            definitions = []
        else:
            data = b"".join(each.text.encode("utf-8", "surrogateescape") + b"\0" for each in definitions)
            argv = [bash, "--noprofile", "--norc", "-c", _CHECK]
            ended = await run_with_input(processes, argv, data, cwd=Path("/"), env=env, timeout_s=TIMEOUT_S, kept_bytes=MAX_BYTES)
            definitions = [each for each, verdict in zip(definitions, ended.stdout.decode(), strict=False) if verdict == "1"]
    return LoginShell(tuple(_outside(folders.strip().split(os.pathsep), workspace)), tuple(definitions))


def _without(reason: str) -> LoginShell:
    return LoginShell(notices=(f"shell.snapshot has no effect: {reason}",))


def _outside(paths: Sequence[str], workspace: Workspace) -> list[str]:
    """Absolute paths that do not lead into the workspace."""
    projects = [folder for folder in (workspace.root, *workspace.extra) if may_be_project(folder)]
    return [
        each
        for each in paths
        if each.startswith("/") and not any(Path(os.path.realpath(each)).is_relative_to(folder) for folder in projects)
    ]


def _read(text: str) -> Definition | None:
    """None for what would change the meaning of a judged word, and for helpers of completion."""
    text = text.strip("\n")
    alias = re.match(r"alias (?:-- )?([^\s=/'\"$`\\]+)=", text)
    match = alias or re.match(r"([^\s()/'\"$`\\]+) ?\(\)\s*\{", text)
    if match is None or match[1] in {*BUILTINS, *_KEYWORDS.split()} or re.match("_[^_]", match[1]):
        return None
    return Definition(match[1], text, alias is not None)
