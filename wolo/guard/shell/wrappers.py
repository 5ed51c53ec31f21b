"""Programs whose arguments are programs or code: what they run is looked for behind them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from wolo.guard.shell.words import name_of

_SHELLS = "sh bash dash zsh ksh mksh ash fish csh tcsh busybox toybox pwsh"
SHELLS = frozenset(_SHELLS.split())
"""What they are given as text, in a here-document or through a pipe is a command line."""

_WRAPPERS = """
env sudo doas su nohup timeout nice ionice chrt taskset stdbuf setsid time xargs parallel watch entr flock script expect
strace ltrace gdb unshare nsenter chroot firejail proot fakeroot command builtin exec eval source . trap coproc ssh
find fd fdfind npx bunx pnpx uvx pipx direnv dotenv rlwrap
"""
WRAPPERS = SHELLS | frozenset(_WRAPPERS.split())

_INTERPRETERS = re.compile(
    r"(?:python|pypy|perl|ruby|node|nodejs|deno|bun|php|lua|luajit|rscript|julia|java|jshell|tclsh|wish|guile|racket|ghci|runghc"
    r"|elixir|erl|iex|swift|osascript|ipython|irb|g?awk|mawk|nawk|sed|ed|ex|vim?|nvim|emacs)[\d.]*"
)
_RUNNERS = """
npm pnpm yarn uv poetry pipenv pdm hatch rye conda mamba pixi nix cargo go docker podman kubectl git hg bundle mix dotnet
make just task tox nox
"""
RUNNERS = frozenset(_RUNNERS.split())
"""Their first word says what they do; with some it is running whatever follows."""
_RUNS = frozenset({"run", "exec", "x", "dlx", "shell", "eval", "develop", "bisect"})
_RUNS_SCRIPTS_BY_NAME = frozenset({"npm", "pnpm", "yarn"})


def runs_anything(words: Sequence[str]) -> bool:
    """Whether further words after these could make any code run."""
    program = name_of(words[0]) if words else ""
    if program in WRAPPERS or _INTERPRETERS.fullmatch(program):
        return True
    if program not in RUNNERS:
        return False
    if len(words) == 1 or words[1].startswith("-"):
        return True
    return words[1] in _RUNS and not (words[1] == "run" and program in _RUNS_SCRIPTS_BY_NAME and len(words) == 2)


def behind(words: Sequence[str]) -> list[Sequence[str]]:
    """The command itself and whatever a wrapper may run of it: its options are many, so every rest counts."""
    if not words or name_of(words[0]) not in WRAPPERS:
        return [words]
    return [words[at:] for at in range(len(words))]
