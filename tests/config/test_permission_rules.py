"""Rules as they stand in settings files, with examples that must fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.command import run_wolo
from wolo.config.layers import load
from wolo.config.settings_writer import delete_rule, save_rule
from wolo.errors import ConfigError
from wolo.places import find_places
from wolo.workspace.root import find_site


@pytest.fixture
def user_file() -> Path:
    folder = find_places().config
    folder.mkdir(parents=True, mode=0o700)
    return folder / "config.toml"


def test_a_rule_may_carry_examples(user_file: Path) -> None:
    user_file.write_text(
        """[permissions]
allow = ["shell:ls *", { rule = "shell:git diff *", match = ["git diff", "shell:git diff HEAD"], no_match = ["git diff | sh"] }]
deny = [{ rule = "shell:git push *", match = ["sudo git push", "/usr/bin/git push -f", "git push > x"], no_match = ["git pull"] }]
ask = [
  { rule = "write:**/*.lock", match = ["a/b.lock", "write:c.lock"], no_match = ["a.py"] },
  { rule = "fetch:*.a.org", match = ["b.a.org", "https://c.a.org/x"], no_match = ["a.org"] },
  { rule = "mcp:github/*", match = ["github/x"], no_match = ["gitlab/x"] },
]
"""
    )
    rules = load(find_site()).rules
    assert [str(rule) for rule in rules if rule.decision == "allow"] == ["shell:ls *", "shell:git diff *"]
    assert len(rules) == 6


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('{ rule = "shell:git diff *", match = ["git log"] }', "the rule does not match its example `git log`"),
        ('{ rule = "shell:git *", no_match = ["git log"] }', "the rule matches its example `git log`"),
        ('{ rule = "shell:a *", match = ["a; b"] }', "the rule does not match its example `a; b`"),
        ('{ match = ["git log"] }', "rule is missing"),
        ('{ rule = "shell:a", matches = ["a"] }', "there is no matches; there are rule, match, no_match"),
        ('{ rule = "shel:a" }', '"shel" is not a rule tool'),
        ("5", "it takes"),
    ],
)
def test_unfitting_example_is_an_error_with_its_line(user_file: Path, written: str, said: str) -> None:
    user_file.write_text(f"[permissions]\n\nallow = [\n  {written},\n]\n")
    with pytest.raises(ConfigError) as caught:
        load(find_site())
    assert said in caught.value.message
    assert f"{user_file}, line" in caught.value.message
    done = run_wolo("-p", "go")
    assert done.exit_code == 2


def test_a_kept_rule_may_carry_examples_too(user_file: Path) -> None:
    kept = user_file.with_name("permissions.toml")
    kept.write_text('["*"]\nallow = ["shell:a", { rule = "shell:b *", match = ["b c"] }]\n')
    assert [str(rule) for rule in load(find_site()).rules] == ["shell:a", "shell:b *"]
    kept.write_text('["*"]\nallow = [{ rule = "shell:b *", match = ["c"] }]\n')
    with pytest.raises(ConfigError, match="line 2: the rule does not match"):
        load(find_site())
    kept.write_text('["*"]\nallow = [5]\n')
    with pytest.raises(ConfigError, match="must be a list of rules"):
        load(find_site())


def test_rule_is_kept_and_forgotten_in_one_place() -> None:
    places, here = find_places(), Path.cwd()
    save_rule(places, here, "shell:a")
    save_rule(places, None, "shell:b")
    assert [str(rule) for rule in load(find_site()).rules] == ["shell:a", "shell:b"]
    assert [str(rule) for rule in load(find_site(here.parent)).rules] == ["shell:b"]
    assert delete_rule(places, here, "shell:b") == []
    assert delete_rule(places, None, "shell:b") == ["allow"]
    assert [str(rule) for rule in load(find_site()).rules] == ["shell:a"]
