"""Whatever the gate takes for plain, bash runs exactly that: programs that only write down what they were given say so."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wolo.guard.intents import RunIntent
from wolo.guard.judge import Judge
from wolo.guard.modes import MODES
from wolo.guard.rules import parse_rule
from wolo.guard.shell.parser import read_line

BASH = shutil.which("bash") or "bash"
PROGRAMS = ("aa", "bb", "cc")
RECORDER = """#!/bin/sh
printf '%s\\0' "$PWD" "${0##*/}" "$@" > "$RECORD/$$"
case "$1" in no) exit 1;; esac
"""

program = st.sampled_from([*PROGRAMS, "cd", "echo", "true", "false", "ls"])
blank = st.sampled_from([" "] * 80 + ["\t", "  ", "\xa0", "\u2003", "\u200b", "\r", "\x0b", "\x0c", "\\\n"])
operator = st.sampled_from(
    [" && ", " || ", "; ", " | ", "\n", "&&", "|", ";"] * 8 + [" & ", " |& ", " > f ", ";;", "\n\n", " # ", "\\", "!"]
)
quoted = st.one_of(
    st.text(st.sampled_from('ab $`\\"*;|&#~{}\n'), max_size=5).map(lambda text: f"'{text}'"),
    st.text(st.sampled_from("ab '$`\\*;|&#~{}!\n"), max_size=5).map(lambda text: f'"{text}"'),
)
bare = st.text(st.sampled_from("abcno-./=+%@:,1é*?[]~{}!$#\\^"), min_size=1, max_size=5)
simple = st.sampled_from(["a", "no", "-x", "src", "..", "a/b", "A=1", "--", "-", "é", *PROGRAMS])
strange = st.sampled_from(
    ["$X", "$(aa)", "`aa`", "{a,b}", "~", "2>f", "if", "then", "fi", "time", "!", "{", "}", "(", ")", "[[", "coproc"]
)
word = st.one_of(*[simple] * 8, quoted, bare, st.tuples(bare, quoted, bare).map("".join), strange)
command = st.lists(st.tuples(word, blank).map("".join), max_size=4).flatmap(
    lambda words: program.map(lambda first: f"{first} {''.join(words)}")
)
lines = st.tuples(command, st.lists(st.tuples(operator, command).map("".join), max_size=3).map("".join)).map("".join)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs that note where and with what they were run; no other can be found."""
    bench = tmp_path_factory.mktemp("bench")
    (bench / "bin").mkdir()
    for name in (*PROGRAMS, "ls", "no", "a"):
        (bench / "bin" / name).write_text(RECORDER)
        (bench / "bin" / name).chmod(0o755)
    (bench / "work" / "src" / "a").mkdir(parents=True)
    return bench


def what_ran(text: str, bench: Path) -> list[list[str]]:
    """Each program: the directory, its name, its words. Those of a pipe may come in any order."""
    record = bench / "record"
    shutil.rmtree(record, ignore_errors=True)
    record.mkdir()
    subprocess.run(
        [BASH, "--noprofile", "--norc", "-c", text],
        cwd=bench / "work",
        env={"PATH": str(bench / "bin"), "RECORD": str(record), "HOME": "/"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
        check=False,
    )
    return [each.read_bytes().decode("utf-8", "surrogateescape").split("\0")[:-1] for each in record.iterdir()]


@given(lines)
@example("aa 'b c'\"d e\"f && bb || cc\naa | bb; cc")
@example("cd src && aa; bb || cd .. && cc")
def test_plain_line_runs_these_commands_in_bash(bench: Path, text: str) -> None:
    found = read_line(text, bench / "work", "/").commands
    if found is None or any(word.has_glob for command in found for word in command.words):
        return
    for place, *words in what_ran(text, bench):
        places = {where for command in found if [word.text for word in command.words] == words for where in command.directories}
        assert place in places or None in places


@given(lines)
@example("aa $(bb)")
@example("aa\\\nbb")
def test_allowing_rule_runs_nothing_else(bench: Path, text: str) -> None:
    """Of `aa *` and `cd *` whatever is allowed runs no `bb`, no `cc` and nothing outside the workspace."""
    rules = [parse_rule("shell:aa *", "allow"), parse_rule("shell:cd *", "allow")]
    judge = Judge(MODES["ask"], rules, bench / "work")
    if judge.judge("shell", [RunIntent(text, bench / "work")]).decision != "allow":
        return
    for place, name, *_ in what_ran(text, bench):
        assert name in ("aa", "ls")
        assert Path(place).is_relative_to(os.path.realpath(bench / "work"))


def test_the_recorder_sees_what_these_tests_look_for(bench: Path) -> None:
    """Otherwise they would pass whatever the gate said."""
    ran = what_ran("aa 'x y' | cc; cd src && bb $(echo z); aa no || cc no", bench)
    assert sorted(words for _, *words in ran) == [["aa", "no"], ["aa", "x y"], ["bb", "z"], ["cc"], ["cc", "no"]]
    assert {place for place, *words in ran if words == ["bb", "z"]} == {os.path.realpath(bench / "work" / "src")}
