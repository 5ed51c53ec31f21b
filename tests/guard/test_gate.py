"""The gate as a whole: hundreds of command lines, what each mode makes of them, and what bash really does."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from tests.guard.command_tables import HOSTILE_LINES, MARKER, NOT_SAFE, SAFE, table
from wolo.guard.intents import RunIntent
from wolo.guard.judge import Judge
from wolo.guard.modes import MODES
from wolo.guard.rules import Rule, parse_rule


@pytest.fixture
def root() -> Path:
    """What the commands of the tables find; `evil/ls` is a program that leaves the marker."""
    root = Path.cwd()
    (root / "src" / "deep").mkdir(parents=True)
    (root / "sub").mkdir()
    for name in ("a.txt", "with blank.txt", "src/b.py", "größe.txt", "names", "a.json", ".env", "sub/.env"):
        (root / name).write_text("hello\nworld\n")
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("[core]\n")
    (root / "out").symlink_to("..")
    (root / "link-to-env").symlink_to(".env")
    (root / "evil").mkdir()
    (root / "evil" / "ls").write_text(f"#!/bin/sh\n/usr/bin/touch {root}/{MARKER}\n")
    (root / "evil" / "ls").chmod(0o755)
    return root


def judge(root: Path, mode: str, *rules: Rule) -> Judge:
    return Judge(MODES[mode], rules, root, confine="unless_allowed" if mode == "auto" else "never")


def verdict(root: Path, mode: str, command: str, *rules: Rule) -> str:
    return judge(root, mode, *rules).judge("shell", [RunIntent(command, root)]).decision


def run_in_bash(command: str, root: Path) -> None:
    """As the shell tool runs it, without walls."""
    subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", command],
        cwd=root,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
        check=False,
        env={"PATH": os.environ["PATH"], "HOME": str(root)},
    )


def fingerprint(root: Path) -> str:
    names = sorted(str(path.relative_to(root)) for path in root.rglob("*"))
    contents = [(root / name).read_bytes() for name in names if (root / name).is_file()]
    return hashlib.sha256("\0".join(names).encode() + b"\0".join(contents)).hexdigest()


def test_the_tables_are_long_enough() -> None:
    assert len(table(SAFE)) + len(table(NOT_SAFE)) + len(HOSTILE_LINES) >= 250


@pytest.mark.parametrize("mode", ["plan", "ask", "edit", "auto", "yolo"])
def test_safe_commands_run_unasked_in_every_mode(root: Path, mode: str) -> None:
    for command in table(SAFE):
        assert verdict(root, mode, command) == "allow", command


def test_safe_commands_change_nothing(root: Path) -> None:
    before = fingerprint(root)
    for command in table(SAFE):
        run_in_bash(command, root)
        assert fingerprint(root) == before, command


@pytest.mark.parametrize("command", table(NOT_SAFE))
def test_unlisted_command_asks_and_plan_refuses_it(root: Path, command: str) -> None:
    assert verdict(root, "ask", command) == "ask"
    assert verdict(root, "edit", command) == "ask"
    assert verdict(root, "plan", command) in ("deny", "ask")
    assert judge(root, "plan").judge("shell", [RunIntent(command, root)]).without_person().decision == "deny"


@pytest.mark.parametrize("command", HOSTILE_LINES)
def test_no_way_around_the_list_is_allowed(root: Path, command: str) -> None:
    assert verdict(root, "plan", command) == "deny"
    assert verdict(root, "ask", command) == "ask"
    assert verdict(root, "edit", command) == "ask"
    found = judge(root, "auto").judge("shell", [RunIntent(command, root)])
    assert found.decision == "ask" or found.confined
    everything = parse_rule("shell:ls *", "allow"), parse_rule("shell:echo *", "allow"), parse_rule("shell:cat *", "allow")
    assert verdict(root, "edit", command, *everything) == "ask"


@pytest.mark.parametrize("command", HOSTILE_LINES)
def test_each_of_them_does_harm_where_nobody_asks(root: Path, command: str) -> None:
    """Otherwise the test above would prove nothing."""
    assert verdict(root, "yolo", command) == "allow"
    run_in_bash(command, root)
    assert os.path.lexists(root / MARKER)


# Lines of several commands


CHAINS = r"""
allow | cd src && git diff | head -30
allow | cd src && git diff
allow | cd src && git diff && cd .. && git diff
ask   | cd src; git diff; cd ..; git diff
allow | git diff | grep hello
allow | git diff | tail -n 20
allow | cd ./src/.. && git diff
allow | cd src⏎git diff⏎
ask   | cd ../.. && git diff
ask   | cd .. && ls
ask   | cd / && git diff
ask   | cd && git diff
ask   | cd - && git diff
ask   | cd out && git diff
ask   | cd src && cd ../.. && git diff
ask   | cd .git && git diff
deny  | cd $X && git diff $Y
ask   | git diff && npm test
ask   | git diff | sh
ask   | git diff > x
ask   | git diff | cat a.txt
ask   | cd src && cat ../../x
ask   | cd src && cat ../.env
ask   | cd s* && git diff
ask   | git diff & ls
deny  | cd src && git push
deny  | ls | git push
deny  | ls; git diff; git push origin
deny  | git diff > x; git push
deny  | echo $(git push)
"""


@pytest.mark.parametrize("line", CHAINS.strip("\n").split("\n"))
def test_every_line_part_is_judged_in_its_folder(root: Path, line: str) -> None:
    rules = [parse_rule(text, "allow") for text in ("shell:cd *", "shell:git diff *", "shell:head *")]
    rules.append(parse_rule("shell:git push *", "deny"))
    expected, _, command = line.partition(" | ")
    assert verdict(root, "ask", command.replace("⏎", "\n"), *rules) == expected.strip()


def test_deny_holds_over_the_part_limit(root: Path) -> None:
    rules = parse_rule("shell:git push *", "deny"), parse_rule("shell:ls *", "allow")
    assert verdict(root, "ask", ";".join(["ls"] * 60), *rules) == "allow"
    assert verdict(root, "ask", ";".join(["ls"] * 59 + ["git push"]), *rules) == "deny"
    for mode in ("ask", "auto", "yolo"):
        assert verdict(root, mode, ";".join(["ls"] * 500), *rules) == "deny"
        assert verdict(root, mode, ";".join(["ls"] * 500 + ["git push"]), *rules) == "deny"


def test_workspace_program_makes_no_command_safe(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An active environment puts its own directory first, and the model can write there."""
    monkeypatch.setenv("PATH", f"{root / 'evil'}:{os.environ['PATH']}")
    assert verdict(root, "ask", "ls") == "ask"
    assert verdict(root, "ask", "wc a.txt") == "allow"
    monkeypatch.setenv("PATH", f"evil::{os.environ['PATH']}")
    assert verdict(root, "ask", "ls") == "ask"


# Inside the walls

CONFINED = r"""
run     | make
run     | npm test > log 2>&1
run     | for i in 1 2; do echo $i; done
run     | cat <<EOF > notes.md⏎see .env.example⏎EOF
run     | cat > notes.md <<'EOF'⏎put the key into .env⏎EOF
run     | cd .. && ls
run     | cd /tmp && make
run     | cat /etc/hosts
run     | python3 -c 'print(1)' | tee x
run     | git status
run     | find . -path ./.git -prune -o -print
run     | grep -rn hello . --exclude-dir=.git
run     | echo $((1+1)) $HOME
run     | ls
ask     | cat .env
ask     | cat .env > x
ask     | x=.env; cat $x
ask     | cat sub/../.env | head
ask     | cat .e*
ask     | cat ~/.ssh/id_rsa
ask     | cat "$HOME/.aws/credentials"
ask     | echo x > .git/config
ask     | cp a.txt .git/hooks/pre-commit
ask     | echo x >> .bashrc
ask     | cat <<EOF | sh⏎cat .env⏎EOF
ask     | git reset --hard
ask     | rm -rf src
ask     | (cd src && rm -rf deep)
"""


@pytest.mark.parametrize("line", CONFINED.strip("\n").split("\n"))
def test_confined_command_asks_only_beyond_sandbox_reach(root: Path, line: str) -> None:
    expected, _, command = line.partition(" | ")
    found = judge(root, "auto").judge("shell", [RunIntent(command.replace("⏎", "\n"), root)])
    assert found.decision == ("ask" if expected.strip() == "ask" else "allow"), found.reason
    assert found.confined or found.decision == "ask"


def test_allowed_command_runs_free_and_others_inside(root: Path) -> None:
    rule = parse_rule("shell:make *", "allow")
    expected = {
        "make": False,
        "make | head -3": False,
        "make && ls": False,
        "make && npm test": True,
        "ls": True,
        "npm test": True,
    }
    for command, confined in expected.items():
        found = judge(root, "auto", rule).judge("shell", [RunIntent(command, root)])
        assert (found.decision, found.confined) == ("allow", confined), command


def test_ask_and_deny_rules_hold_inside_the_walls(root: Path) -> None:
    rules = parse_rule("shell:curl *", "deny"), parse_rule("shell:npm publish *", "ask"), parse_rule("read:names", "deny")
    assert verdict(root, "auto", "curl x", *rules) == "deny"
    assert verdict(root, "auto", "x=1; curl $x > y", *rules) == "deny"
    assert verdict(root, "auto", "make && npm publish", *rules) == "ask"
    assert verdict(root, "auto", "cat names", *rules) == "ask"
    assert verdict(root, "auto", "cat < names > x", *rules) == "ask"


def test_file_rules_hold_for_commands_naming_them(root: Path) -> None:
    rules = parse_rule("read:names", "ask"), parse_rule("read:src/**", "deny"), parse_rule("write:*.json", "ask")
    for mode in ("ask", "edit", "auto", "yolo"):
        assert verdict(root, mode, "cat names", *rules) == "ask", mode
        assert verdict(root, mode, "cat a.txt src/b.py", *rules) == "ask", mode
        assert verdict(root, mode, "cat a.txt", *rules) == "allow", mode
        assert verdict(root, mode, "cat a.json", *rules) == "allow", mode
    assert verdict(root, "auto", "touch a.json", *rules) == "ask"
