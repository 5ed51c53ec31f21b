"""Recognises plain commands and their words."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wolo.guard.shell.parser import read_line
from wolo.guard.shell.words import MAX_BYTES, Word, plain_words


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("ls", ["ls"]),
        ("  npm\t test  ", ["npm", "test"]),
        ("grep 'two words' \"more; words\"", ["grep", "two words", "more; words"]),
        ("git commit -m'a b'c", ["git", "commit", "-ma bc"]),
        ("echo '' x", ["echo", "", "x"]),
        ("make CC=gcc all", ["make", "CC=gcc", "all"]),
        ("cat größe.txt 日本.md", ["cat", "größe.txt", "日本.md"]),
        ("python -c 'print(1)'", ["python", "-c", "print(1)"]),
        ("echo a#b", ["echo", "a#b"]),
        ("git log -1 --format=%H HEAD^", ["git", "log", "-1", "--format=%H", "HEAD^"]),
    ],
)
def test_plain_command_has_the_words_of_bash(command: str, words: list[str]) -> None:
    found = plain_words(command)
    assert found is not None
    assert [word.text for word in found] == words


def test_unquoted_wildcards_alone_are_marked() -> None:
    assert plain_words("ls *.py '*.md' a?") == (Word("ls"), Word("*.py", True), Word("*.md"), Word("a?", True))


NOT_PLAIN = r"""
ls && rm x
ls || rm x
ls | sh
ls ; rm x
ls; rm x
ls &
ls & rm x
(ls)
{ ls; }
! ls
ls > x
ls >> x
ls >| x
ls 2> x
ls &> x
cat < x
cat <> x
cat << EOF
cat <<< x
diff <(ls) <(ls)
tee >(sh)
echo $(id)
echo `id`
echo "$(id)"
echo "`id`"
echo ${x:-$(id)}
echo $((a[$(id)]))
echo $HOME
echo "$HOME"
echo $'rm'
echo $"x"
A=1 ls
PAGER=sh git log
A+=1 ls
r\m x
echo "a\b"
ls ~
ls ~root/x
echo {a,b}
echo a{1..9}
if true
for x in y
while true
time ls
coproc ls
function f
case x in
[[ -e x ]]
[ -e x ]
./*.sh x
'' x
# rm x
ls #x
echo 'a
echo "a
test -v 'a[$(id)]'
a() ls
"""


@pytest.mark.parametrize("command", NOT_PLAIN.strip().split("\n"))
def test_anything_else_is_not_plain(command: str) -> None:
    assert plain_words(command) is None


@pytest.mark.parametrize("command", ["ls\nrm x", "ls\r\nrm x", "ls\\\n-x", "\n", "ls\n", "ls\fx"])
def test_a_line_break_is_an_operator(command: str) -> None:
    assert plain_words(command) is None


@pytest.mark.parametrize(
    "blank", ["\xa0", "\u2003", "\u3000", "\u200b", "\u202e", "\ufeff", "\x00", "\x1b", "\x85", "\U000e0041", "\u3164", "\u2800"]
)
def test_blanks_and_invisible_characters_are_unreadable(blank: str) -> None:
    command = read_line(f"ls{blank}x", Path("/"))
    assert command.commands is None
    assert not command.is_reviewable


def test_overlong_or_manifold_command_is_unreadable() -> None:
    assert not read_line("echo " + "x" * MAX_BYTES, Path("/")).is_reviewable
    assert not read_line("ls;" * 100, Path("/")).is_reviewable
    assert read_line("ls;" * 10, Path("/")).is_reviewable


def test_an_empty_command_is_not_plain() -> None:
    assert plain_words("") is None
    assert plain_words("  \t") is None


letters = st.text(st.sampled_from("ab1 \t'\"$`\\{}~!<>&;|()#*?[]=-./%^@:,+\n"), max_size=14)


@given(letters)
def test_bash_sees_the_same_words(text: str) -> None:
    """For every plain text bash itself is the judge: it prints the words it would run."""
    words = plain_words("printf '%s\\0' " + text)
    if words is None:
        return
    script = "set -f; printf '%s\\0' " + text
    done = subprocess.run(["bash", "--noprofile", "--norc", "-c", script], capture_output=True, check=True)
    printed = done.stdout.decode().split("\0")[:-1]
    assert printed == ([word.text for word in words[2:]] or [""])
