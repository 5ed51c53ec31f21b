"""The safe list against the real programs: whatever runs unasked opens only files that were judged inside and not sensitive."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.components import require
from wolo.guard.boundaries import Boundaries
from wolo.guard.safe_commands import PROGRAMS, SafeList
from wolo.guard.shell.parser import read_line

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_LONG = """
regexp file max-count after-context before-context context color count recursive include exclude-from exclude-dir directories
devices binary-files line-number ignore-case lines bytes quiet verbose follow pid files0-from fields delimiter characters format
printf file-system dereference show-all number all directory hide ignore width sort body-numbering output-delimiter complement
"""
LONG = _LONG.split()
PATHS = [
    "a.txt",
    "src/b.py",
    "src",
    "{out}/key",
    "../outside/key",
    ".env",
    "sub/.env",
    ".git/config",
    "link",
    "-n",
    "-e",
    "3",
    "-",
]
VALUES = [*PATHS, "hello", "--", "", "x", "1,2", "/", ".", "%n", "--regexp", "-5", "+2", "a"]

value = st.sampled_from(VALUES)
short = st.one_of(
    st.text(st.sampled_from(LETTERS), min_size=1, max_size=3).map("-{}".format),
    st.tuples(st.text(st.sampled_from("ABCcdefimnsxz"), min_size=1, max_size=2), value).map(lambda pair: f"-{pair[0]}{pair[1]}"),
)
long = st.one_of(
    st.sampled_from(LONG).map("--{}".format),
    st.tuples(st.sampled_from(LONG), st.integers(2, 8)).map(lambda pair: f"--{pair[0][: pair[1]]}"),
    st.tuples(st.sampled_from(LONG), value).map("=".join).map("--{}".format),
)
words = st.lists(st.one_of(value, value, short, short, long, st.just("--")), min_size=1, max_size=5)
commands = st.tuples(st.sampled_from([*sorted(PROGRAMS), *["grep"] * 12]), words).map(lambda pair: [pair[0], *pair[1]])


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace, `outside` beside it, and links from one into the other, also such as look like an option or a number."""
    ground = tmp_path_factory.mktemp("ground")
    (ground / "outside").mkdir()
    (ground / "outside" / "key").write_text("hello x 3 a\n")
    work = ground / "work"
    for folder in ("src", "sub", ".git"):
        (work / folder).mkdir(parents=True)
    for name in ("a.txt", "src/b.py", ".env", "sub/.env", ".git/config"):
        (work / name).write_text("hello x 3 a\n")
    for name in ("link", "-n", "-e", "3"):
        (work / name).symlink_to("../outside/key")
    return ground


def is_safe(words: list[str], ground: Path) -> bool:
    work = ground / "work"
    safe = SafeList(Boundaries([work], [], [], ground), os.environ["PATH"])
    line = read_line(shlex.join(words), work)
    return line.commands is not None and all(map(safe.has, line.commands))


def opened_by(commands: list[list[str]], ground: Path, **environment: str) -> set[str]:
    """The real paths of the test's own files that were opened, all commands taken together."""
    script = "\n".join(f"{shlex.join(words)} </dev/null" for words in commands)
    log = ground / "log"
    subprocess.run(
        [
            require("strace"),
            "-f",
            "-qq",
            "-s",
            "4096",
            "-e",
            "trace=open,openat,openat2",
            "-o",
            str(log),
            "bash",
            "--norc",
            "-c",
            script,
        ],
        cwd=ground / "work",
        env={"PATH": os.environ["PATH"], "HOME": str(ground), **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    named = re.findall(r'open(?:at2?)?\((?:AT_FDCWD, )?"((?:[^"\\]|\\.)*)".*\) = \d', log.read_text())
    real = {os.path.realpath(ground / "work" / name) for name in named}
    return {path for path in real if path.startswith(f"{ground}/")}


def forbidden(ground: Path) -> set[str]:
    return {str(ground / name) for name in ("outside/key", "outside", "work/.env", "work/sub/.env", "work/.git/config")}


def spelt(commands: list[list[str]], ground: Path) -> list[list[str]]:
    return [[word.replace("{out}", str(ground / "outside")) for word in words] for words in commands]


@pytest.mark.parametrize("environment", [{}, {"POSIXLY_CORRECT": "1"}], ids=["gnu", "posix"])
@given(st.lists(commands, min_size=40, max_size=120))
@settings(deadline=None, max_examples=12, suppress_health_check=list(HealthCheck))
@example([["grep", "-e", "--", "{out}/key"], ["grep", "hello", "{out}/key"]])
@example([["grep", "--regexp", "--", ".env"], ["grep", "-ie", "--", "../outside/key"]])
@example([["grep", "{out}/key", "-e", "hello"], ["grep", "link", "a.txt", "-ce", "hello"]])
@example([["cat", "a.txt", "-n"], ["head", "a.txt", "-n", "3"], ["grep", "hello", "a.txt", "-e", "3"]])
def test_every_file_a_safe_command_opens_was_judged(ground: Path, environment: dict[str, str], commands: list[list[str]]) -> None:
    safe = [words for words in spelt(commands, ground) if is_safe(words, ground)]
    assert not opened_by(safe, ground, **environment) & forbidden(ground)


def test_strace_sees_what_the_property_looks_for(ground: Path) -> None:
    """Otherwise it would pass whatever the list said."""
    commands = spelt([["cat", "link"], ["grep", "-e", "--", ".env"], ["ls", "{out}"]], ground)
    assert opened_by(commands, ground) == {str(ground / name) for name in ("outside/key", "work/.env", "outside")}


@pytest.mark.parametrize("words", [["ls", "-R"], ["ls", "-lR", "."], ["ls", "--recursive", "src"], ["ls", "-aR1", "src"]])
def test_a_whole_tree_is_not_listed_unasked(ground: Path, words: list[str]) -> None:
    """It may hold folders that are asked about when they are named."""
    assert str(ground / "work/.git") in opened_by([["ls", "-AR", "."]], ground)
    assert not is_safe(["ls", ".git"], ground)
    assert not is_safe(words, ground)
