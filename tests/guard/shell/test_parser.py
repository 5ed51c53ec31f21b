"""A command line becomes plain commands, each with the directories it may run in; or it is not plain."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from wolo.guard.intents import RunIntent
from wolo.guard.judge import Judge
from wolo.guard.modes import MODES
from wolo.guard.rules import parse_rule
from wolo.guard.shell.parser import MAX_COMMANDS, PlainCommand, read_line


def commands(text: str, cwd: Path | None = None) -> tuple[PlainCommand, ...] | None:
    return read_line(text, cwd or Path.cwd(), "/home/me").commands


def test_a_line_is_its_plain_commands() -> None:
    found = commands("cd src && git diff | head -30")
    assert found is not None
    assert [command.text for command in found] == ["cd src", "git diff", "head -30"]


PLAIN = r"""
ls                                | 1
ls;                               | 1
ls; pwd                           | 2
ls && pwd || id                   | 3
ls | head | wc                    | 3
ls⏎pwd                            | 2
ls⏎⏎pwd⏎                          | 2
ls &&⏎pwd                         | 2
ls |⏎head                         | 2
grep -n '^a$' src                 | 1
awk '{print $1}' a.txt            | 1
echo 'a;b' "c|d" e\               | 0
git log -1 --format='%H %s'       | 1
set -e; ls                        | 2
set -euo pipefail⏎make            | 2
printf '%s' a; ls                 | 2
make || exit 1                    | 2
: ; ls                            | 2
cd a; cd b                        | 2
"""


@pytest.mark.parametrize("line", PLAIN.strip("\n").split("\n"))
def test_operators_and_line_breaks_join_plain_commands(line: str) -> None:
    text, _, count = line.rpartition("|")
    found = commands(text.rstrip().replace("⏎", "\n"))
    assert len(found or ()) == int(count)


NOT_PLAIN = r"""
ls & pwd
ls |& cat
(ls; pwd)
{ ls; }
! ls
ls > x; pwd
ls 2>&1 | head
A=1; ls
A=1 ls && pwd
export A=1; ls
ls && $x
ls; echo "$x"
ls; echo `id`
ls # pwd
# pwd⏎ls
ls;; pwd
&& ls
ls &&
| ls
ls | | pwd
if ls; then pwd; fi
for i in a; do ls; done
while ls; do pwd; done
case x in x) ls;; esac
f() { ls; }; f
time ls; pwd
coproc ls; pwd
[[ -e x ]] && ls
[ -e x ] && ls
((1)) && ls
cat <<EOF⏎x⏎EOF
ls; cat <<< x
alias ls=rm; ls
hash -p ./evil ls; ls
enable -f ./evil.so ls; ls
printf -v PATH ./evil; ls
read PATH; ls
mapfile PATH; ls
getopts a PATH; ls
declare PATH=./evil; ls
unset PATH; ls
shopt -s expand_aliases; ls
set -k; ls PATH=./evil
set -- a; ls
set -o posix; ls
trap ls EXIT; pwd
source x; ls
. ./x; ls
eval ls; pwd
exec ls; pwd
builtin cd /; ls
command cd /; ls
pushd /; ls
popd; ls
test -v 'a[$(touch M)]'; ls
wait -p PATH; ls
let PATH=1; ls
ls \⏎-la
"""


@pytest.mark.parametrize("text", NOT_PLAIN.strip("\n").split("\n"))
def test_syntax_beyond_plain_words_is_not_plain(text: str) -> None:
    assert commands(text.replace("⏎", "\n")) is None


def test_a_line_has_a_limit_of_commands() -> None:
    assert commands("ls;" * (MAX_COMMANDS - 1)) is not None
    assert commands("ls;" * (MAX_COMMANDS + 1)) is None


WHERE = r"""
cd src && ls                      | src
cd src && cd a && ls              | src/a
cd src; ls                        | src .
cd src⏎ls                         | src .
cd src || ls                      | .
cd src && make || ls              | src .
cd src | ls                       | .
ls | cd src && pwd                | .
cd src && ls | wc                 | src
cd -P src && ls                   | src
cd -- src && ls                   | src
cd src/../src && ls               | src
cd ./src/ && ls                   | src
cd new-one && ls                  | new-one
cd && ls                          | /home/me
cd / && ls                        | /
cd .. && ls                       | ..
cd - && ls                        | ?
cd src a && ls                    | ?
cd s* && ls                       | ?
cd link && ls                     | src
cd link && cd .. && ls            | .
cd deep && cd .. && ls            | ?
cd src && cd .. && ls             | .
make && cd src || cd src/a; ls    | src src/a .
"""


@pytest.mark.parametrize("line", WHERE.strip("\n").split("\n"))
def test_a_cd_moves_the_commands_behind_it(line: str) -> None:
    """The last command of each line may run in these directories and in no other; `?` is one that nobody can tell."""
    root = Path.cwd()
    (root / "src" / "a").mkdir(parents=True)
    (root / "link").symlink_to("src")
    (root / "deep").symlink_to("src/a")
    text, _, expected = line.rpartition("|")
    found = commands(text.rstrip().replace("⏎", "\n"))
    assert found is not None
    directories = {None if each == "?" else str((root / each).resolve()) for each in expected.split()}
    assert set(found[-1].directories) == directories


@pytest.mark.parametrize("text", ["pushd src", "popd", "unalias x", "source x"])
def test_a_command_alone_is_plain_whatever_it_changes(text: str) -> None:
    assert commands(text) is not None
    assert commands(f"{text}; ls") is None


@pytest.mark.parametrize("text", ["pushd src", "pushd", "popd", "cd -"])
def test_nobody_can_tell_where_these_lead(text: str) -> None:
    found = commands(text)
    assert found is not None
    assert found[0].moves_to == (None,)
    allowed = [parse_rule(f"shell:{program} *", "allow") for program in ("pushd", "popd", "cd")]
    verdict = Judge(MODES["edit"], allowed, Path.cwd()).judge("shell", [RunIntent(text, Path.cwd())])
    assert (verdict.decision, "leave the workspace" in verdict.reason) == ("ask", True)


NESTED = {
    "substitution": ("echo ", "$(", "rm -r x", ")"),
    "unclosed": ("echo ", "$(", "", ""),
    "quoted substitution": ("echo ", '"$(', "rm -r x", ')"'),
    "process substitution": ("cat ", "<(", "rm -r x", ")"),
    "subshell": ("", "(", "rm -r x", ")"),
    "group": ("", "{ ", "rm -r x", "; }"),
    "condition": ("", "if ", "rm -r x", "; then :; fi"),
    "loop": ("", "while ", "rm -r x", "; do :; done"),
    "default value": ("echo ", "${x:-", "rm", "}"),
    "arithmetic": ("echo $((", "(", "1", ")"),
    "sum": ("rm $((", "1+", "1))", ""),
    "test": ("rm x; [[ ", "( ", "a", " )"),
    "chain": ("rm x", " && rm x", "", ""),
    "text for a shell": ("bash -c '", "$(", "rm -r x", ")"),
    "its own name": ("wolo ", "$(", "rm -r x", ")"),
}


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("form", NESTED)
@pytest.mark.parametrize(
    ("mode", "rules"),
    [
        ("auto", ()),
        ("yolo", ("shell:rm *",)),
        *(pytest.param(*case, marks=pytest.mark.soak) for case in [("plan", ()), ("yolo", ()), ("auto", ("shell:rm *",))]),
    ],
)
def test_deep_nesting_is_refused_in_words(form: str, mode: str, rules: tuple[str, ...]) -> None:
    before, opening, inner, closing = NESTED[form]
    judge = Judge(MODES[mode], [parse_rule(rule, "deny") for rule in rules], Path.cwd(), confine="unless_allowed")
    for depth in (300, 2_000, 20_000):
        text = f"{before}{opening * depth}{inner}{closing * depth}" + ("'" if form == "text for a shell" else "")
        verdict = judge.judge("shell", [RunIntent(text, Path.cwd())])
        assert verdict.decision == "deny" or (mode == "yolo" and not rules), depth
        assert verdict.reason.endswith(".")
        judge.suggest_rule([RunIntent(text, Path.cwd())])


def test_line_passed_through_many_shells_is_refused() -> None:
    text = "rm -r ."
    for _ in range(7):
        text = f"bash -c {shlex.quote(text)}"
    verdict = Judge(MODES["auto"], [], Path.cwd(), confine="unless_allowed").judge("shell", [RunIntent(text, Path.cwd())])
    assert verdict.decision == "deny"
    assert "too many shells" in verdict.reason


def test_few_brackets_with_an_error_are_judged() -> None:
    text = f"echo (a b) (c d) {'x' * 80} ((("
    verdict = Judge(MODES["auto"], [], Path.cwd(), confine="unless_allowed").judge("shell", [RunIntent(text, Path.cwd())])
    assert verdict.decision == "allow"


def test_everyday_nesting_is_judged() -> None:
    text = 'x="$(cd "$(dirname "$(readlink -f "$0")")" && echo "$(( (1 + (2 * (3 + 4))) ))")"; if true; then (echo "$x"); fi'
    verdict = Judge(MODES["auto"], [], Path.cwd(), confine="unless_allowed").judge("shell", [RunIntent(text, Path.cwd())])
    assert verdict.decision == "allow"
