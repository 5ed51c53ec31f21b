"""Splits shell text into words exactly as bash would, and knows programs that run other programs.

Text that is not provably plain is not plain. This is a convenience: the sandbox is what confines commands.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from msgspec import Struct

MAX_BYTES = 16 * 1024

_PIECE = re.compile(
    r"""'(?P<single>[^']*)'"""
    r"""|"(?P<double>[^"$`\\]*)\""""
    r"""|(?P<bare>[^\s'"$`\\{}~!<>&;|()]+)"""
)
_SIMPLE = re.compile(r"[\w./:=@%+,-]+(?=[ \t]|\Z)")
"""A word without any special meaning."""
_BLANKS = re.compile(r"[ \t]+")
_GLOB = r"[*?\[]"
_BLANK_LOOKING = "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
"""Invisible characters that `str.isprintable` accepts."""

_KEYWORDS = "if then elif else fi for in while until do done case esac select function time coproc [[ ]] { } !"
KEYWORDS = frozenset(_KEYWORDS.split())

_BUILTINS = """
. : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown echo enable eval
exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf pushd pwd read readarray
readonly return set shift shopt source suspend test times trap true type typeset ulimit umask unalias unset wait
"""
BUILTINS = frozenset(_BUILTINS.split())
"""Builtins of bash. Some take code in place of a name or number: `test -v 'a[$(cmd)]'` runs cmd."""
TAKES_LITERAL_WORDS = frozenset({":", "cd", "echo", "exit", "false", "pwd", "true"})


class Word(Struct, frozen=True):
    text: str
    """Without quotes."""
    has_glob: bool = False
    """Contains an unquoted `*`, `?` or `[`."""


def plain_words(text: str) -> tuple[Word, ...] | None:
    """The words of one plain command; None if `text` is anything else."""
    words = split_words(text)
    if not words or not words[0].text or words[0].has_glob or "=" in words[0].text or words[0].text in KEYWORDS:
        return None
    program = words[0].text
    # A `$` or a backtick left here was in single quotes: inert, except for builtins that evaluate it.
    may_evaluate = program in BUILTINS and program not in TAKES_LITERAL_WORDS
    return None if may_evaluate and any("$" in word.text or "`" in word.text for word in words) else words


def split_words(text: str) -> tuple[Word, ...] | None:
    """Like `plain_words`, but the first word need not be a program."""
    words: list[Word] = []
    position = _skip_blanks(text, 0)
    while position < len(text):
        end, word = _word(text, position)
        if word is None:
            return None
        words.append(word)
        position = _skip_blanks(text, end)
    return tuple(words)


def name_of(word: str) -> str:
    """The program that a word would run: the last part of a path, in lower case because some volumes ignore case."""
    return word.rpartition("/")[2].casefold()


def unquote(text: str) -> str:
    """Removes quotes and backslashes as bash does before it looks up a program."""
    return re.sub(r"\\\n|[\\'\"]", "", text)


def print_escapes(text: str) -> str:
    """The text as `printf`, `echo -e` and `$'…'` print it; both ends of a line are line feeds."""
    return re.sub(_ESCAPE, _print_one, text) if "\\" in text else text


def _print_one(escape: re.Match[str]) -> str:
    code = escape[1]
    if code[0] in "xuU" and len(code) > 1:
        return chr(min(int(code[1:], 16), sys.maxunicode))
    return chr(int(code, 8) % 256) if code[0].isdigit() and code < "8" else _CONTROLS.get(code, code)


def printable(text: str) -> str:
    """Escapes control and invisible characters in a name, so that it cannot change what the user reads."""
    if text.isprintable() and not re.search(_BLANK_LOOKING, text):
        return text
    return "".join(
        letter if letter.isprintable() and not re.match(_BLANK_LOOKING, letter) else letter.encode("unicode_escape").decode()
        for letter in text
    )


_ESCAPE = r"(?s)\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|0[0-7]{1,3}|[0-7]{1,3}|.)"
_CONTROLS = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\n", "t": "\t", "v": "\v"}


def is_reviewable(text: str) -> bool:
    """False: so long, or with such characters, that even a human could not judge it."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES or "\\\n" in text:
        return False
    return text.replace("\n", "").replace("\t", "").isprintable() and not re.search(_BLANK_LOOKING, text)


def _skip_blanks(text: str, position: int) -> int:
    blanks = _BLANKS.match(text, position)
    return blanks.end() if blanks else position


def _word(text: str, start: int) -> tuple[int, Word | None]:
    if simple := _SIMPLE.match(text, start):
        return simple.end(), Word(simple[0])
    if text[start] == "#":
        return start, None
    position = start
    letters: list[str] = []
    has_glob = False
    while position < len(text) and text[position] not in " \t":
        if (piece := _PIECE.match(text, position)) is None:
            return position, None
        letters.append(piece[piece.lastgroup or 0])
        has_glob = has_glob or (piece.lastgroup == "bare" and re.search(_GLOB, piece[0]) is not None)
        position = piece.end()
    return position, Word("".join(letters), has_glob)


_SHELLS = "sh bash dash zsh ksh mksh ash fish csh tcsh busybox toybox pwsh"
SHELLS = frozenset(_SHELLS.split())
"""Text they receive as argument, here-document or pipe is a command line."""

_WRAPPERS = """
env sudo doas su nohup timeout nice ionice chrt taskset stdbuf setsid time xargs parallel watch entr flock script expect
strace ltrace gdb unshare nsenter chroot firejail proot fakeroot command builtin exec eval source . trap coproc ssh
find fd fdfind npx bunx pnpx uvx pipx direnv dotenv rlwrap
"""
WRAPPERS = SHELLS | frozenset(_WRAPPERS.split())

_INTERPRETERS = (
    r"(?:python|pypy|perl|ruby|node|nodejs|deno|bun|php|lua|luajit|rscript|julia|java|jshell|tclsh|wish|guile|racket|ghci|runghc"
    r"|elixir|erl|iex|swift|osascript|ipython|irb|g?awk|mawk|nawk|sed|ed|ex|vim?|nvim|emacs)[\d.]*"
)
_RUNNERS = """
npm pnpm yarn uv poetry pipenv pdm hatch rye conda mamba pixi nix cargo go docker podman kubectl git hg bundle mix dotnet
make just task tox nox
"""
RUNNERS = frozenset(_RUNNERS.split())
"""The first argument says what they do; some run whatever follows."""
_RUNS = frozenset({"run", "exec", "x", "dlx", "shell", "eval", "develop", "bisect"})
_RUNS_SCRIPTS_BY_NAME = frozenset({"npm", "pnpm", "yarn"})


def runs_anything(words: Sequence[str]) -> bool:
    """Tells whether further words after these could make any code run."""
    program = name_of(words[0]) if words else ""
    if program in WRAPPERS or re.fullmatch(_INTERPRETERS, program):
        return True
    if program not in RUNNERS:
        return False
    if len(words) == 1 or words[1].startswith("-"):
        return True
    return words[1] in _RUNS and not (words[1] == "run" and program in _RUNS_SCRIPTS_BY_NAME and len(words) == 2)


def unwrap(words: Sequence[str]) -> list[Sequence[str]]:
    """The command, and every rest of it that a wrapper may run; options of wrappers are too many to know."""
    if not words or name_of(words[0]) not in WRAPPERS:
        return [words]
    return [words[at:] for at in range(len(words))]
