"""`wolo permissions`: what is in force, what it decides, why, and how to take it back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.command import run_wolo
from wolo.cli.options import parse
from wolo.config.settings_writer import save_rule
from wolo.places import find_places

CHAIN = "shell:cd src && git diff | head -30"
ALLOWED = ("--allow", "shell:cd *", "--allow", "shell:git diff *", "--allow", "shell:head *")


@pytest.fixture
def settings() -> Path:
    path = find_places().config / "config.toml"
    path.parent.mkdir(parents=True, mode=0o700)
    path.write_text('[permissions]\nallow = ["shell:make *"]\ndeny = ["shell:git push *"]\nask = ["shell:make deploy *"]\n')
    return path


def test_rules_are_listed_in_deciding_order(settings: Path) -> None:
    save_rule(find_places(), Path.cwd(), "shell:npm test")
    save_rule(find_places(), None, "fetch:docs.python.org")
    listed = run_wolo("permissions", "list", "--json").json
    assert [(each["decision"], each["rule"]) for each in listed] == [
        ("deny", "shell:git push *"),
        ("ask", "shell:make deploy *"),
        ("allow", "shell:make *"),
        ("allow", "shell:npm test"),
        ("allow", "fetch:docs.python.org"),
    ]
    assert [each["source"].rpartition("/")[2] for each in listed[2:]] == [
        "config.toml",
        "permissions.toml, line 2",
        "permissions.toml, line 5",
    ]
    lines = run_wolo("permissions", "list").stdout.splitlines()
    assert lines[0].split() == ["deny", "shell:git", "push", "*", str(settings)]


def test_without_rules_the_list_says_so() -> None:
    assert run_wolo("permissions", "list").stdout == "No rules; the mode decides.\n"
    assert run_wolo("permissions", "list", "--json").json == []


@pytest.mark.parametrize(
    ("call", "verdict", "rule"),
    [
        ("shell:git push", "deny", "shell:git push *"),
        ("shell:sudo git push origin", "deny", "shell:git push *"),
        ("shell:make test", "allow", "shell:make *"),
        ("shell:make deploy", "ask", "shell:make deploy *"),
        ("shell:npm test", "ask", ""),
        ("shell:ls", "allow", ""),
        ("read:a.py", "allow", ""),
        ("read:/etc/hosts", "ask", ""),
        ("read:.env", "ask", ""),
        ("write:a.py", "allow", ""),
        ("write:.git/config", "ask", ""),
        ("fetch:docs.python.org", "ask", ""),
        ("fetch:https://docs.python.org/3", "ask", ""),
        ("mcp:github/get_issue", "ask", ""),
    ],
)
def test_a_call_can_be_tried_out(settings: Path, call: str, verdict: str, rule: str) -> None:
    told = run_wolo("permissions", "test", call, "--json", "--mode", "edit").json
    assert (told["verdict"], told["rule"]) == (verdict, rule)
    assert (told["source"] == str(settings)) == bool(rule)
    assert run_wolo("permissions", "test", call, "--mode", "edit").stdout.startswith(f"{verdict}: ")


def test_rules_can_be_tried_before_writing() -> None:
    assert run_wolo("permissions", "test", CHAIN, "--mode", "ask", "--json").json["verdict"] == "ask"
    told = run_wolo("permissions", "test", CHAIN, "--mode", "ask", *ALLOWED, "--json").json
    assert (told["verdict"], told["source"]) == ("allow", "--allow")


def test_explanation_goes_part_by_part_and_stepwise() -> None:
    steps = run_wolo("permissions", "explain", CHAIN, "--mode", "ask", *ALLOWED[:4], "--json").json["steps"]
    parts = [step for step in steps if not step.startswith("  ") and " in " in step and ":" not in step]
    assert [part.partition(", in ")[0] for part in parts] == ["cd src", "git diff", "head -30"]
    assert parts[2].endswith("/src")
    assert "  allow rules: `git diff` is allowed by the rule shell:git diff *." in steps
    assert steps[-1].startswith("→ allow: ")
    text = run_wolo("permissions", "explain", "shell:echo $(id)", "--mode", "ask").stdout
    assert "not a sequence of plain commands" in text
    assert "→ ask: " in text


def test_a_kept_rule_can_be_taken_back() -> None:
    save_rule(find_places(), Path.cwd(), "shell:npm test")
    save_rule(find_places(), None, "shell:npm test")
    told = run_wolo("permissions", "remove", "shell:npm test", "--json").json
    assert told == {"rule": "shell:npm test", "removed": ["allow"], "workspace": str(Path.cwd())}
    assert len(run_wolo("permissions", "list", "--json").json) == 1
    assert run_wolo("permissions", "remove", "--everywhere", "shell:npm test").stdout == "Removed shell:npm test.\n"
    assert run_wolo("permissions", "list", "--json").json == []
    again = run_wolo("permissions", "remove", "shell:npm test")
    assert (again.exit_code, again.stdout) == (2, "")
    assert "wolo permissions list" in again.stderr


@pytest.mark.parametrize("call", ["ls", "bash:ls", "shell:", "shell", ""])
def test_invalid_call_is_reported_in_words(call: str) -> None:
    done = run_wolo("permissions", "test", call)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "tool:what" in done.stderr


def test_a_prompt_about_permissions_is_a_prompt() -> None:
    assert parse(["permissions", "are", "odd", "here"]).words == ("permissions", "are", "odd", "here")
