"""Permission rules in Claude Code's settings of a project: they only tighten, and never forbid less than they did there."""

from __future__ import annotations

import itertools
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from wolo.config import consents
from wolo.config.layers import load
from wolo.config.translation.findings import Reading
from wolo.config.translation.rules import add_denials
from wolo.guard.precedence import Paths, Rulebook
from wolo.guard.rule_patterns import PathBase
from wolo.guard.rules import Rule, parse_rule
from wolo.guard.shell.parser import PlainCommand
from wolo.guard.shell.words import plain_words
from wolo.places import find_places
from wolo.workspace.root import find_site

FILES = (".claude/settings.json", ".claude/settings.local.json")
SECRET = call("read", {"path": "secrets/key"}), text("Done.")


def put(permissions: object, file: str = FILES[0], folder: str = ".") -> None:
    path = Path(folder, file)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(permissions if isinstance(permissions, str) else json.dumps({"permissions": permissions}))


def trust() -> None:
    consents.save_trust(find_places(), Path.cwd(), "trusted")


def rules() -> list[str]:
    return [f"{rule.decision} {rule}" for rule in load(find_site()).rules]


def notices() -> str:
    return "\n".join(load(find_site()).notices)


@pytest.mark.parametrize("file", FILES)
def test_denials_of_a_trusted_project_hold(provider: ProviderServer, file: str) -> None:
    Path("secrets").mkdir()
    Path("secrets/key").write_text("here")
    put({"deny": ["Read(./secrets/**)"], "allow": ["Bash"]}, file)
    provider.script(*SECRET)
    done = run_wolo("--json", *provider.flags, "go")
    assert (done.exit_code, f"these are not used: {file}" in done.stderr) == (0, True)
    trust()
    provider.forget_prefix()
    provider.script(*SECRET)
    done = run_wolo("--json", *provider.flags, "go")
    assert done.exit_code == 4
    assert "denied by the rule read:secrets/**" in done.json["permission_denials"][0]["reason"]
    assert run_wolo("permissions", "test", "read:secrets/key", "--json").json["source"] == file


def test_questions_hold_and_nothing_is_allowed() -> None:
    put({"ask": ["Bash(git push:*)"], "allow": ["Bash(curl:*)", "Edit"], "defaultMode": "bypassPermissions"})
    trust()
    assert rules() == ["ask shell:git push *"]
    assert load(find_site()).settings.mode == "auto"


def test_paths_belong_to_the_folder_of_the_file() -> None:
    Path(".git").mkdir()
    put({"deny": ["Edit(/gen/**)", "Read(.env)"]}, folder="app")
    trust()
    os.chdir("app")
    assert rules() == ["deny write:app/gen/**", "deny write:/gen/**", "deny read:app/.env", "deny read:**/.env"]


@pytest.mark.parametrize(
    ("permissions", "notice"),
    [
        ({"deny": ["Frob(x)"]}, "deny Frob(x): wolo has no such tool. Calls that it forbids are NOT denied."),
        ({"ask": ["Frob"]}, "ask Frob: wolo has no such tool. Calls that it is about are NOT asked about."),
        ({"deny": ["Read(!x)"]}, "deny Read(!x): The deny rule"),
        ({"deny": ["Edit(!src/*.py)"]}, "deny Edit(!src/*.py): The deny rule"),
        ({"deny": [3]}, "deny 3: it is not text. Calls that it forbids are NOT denied."),
        (["Bash"], "permissions: they are no table"),
        ("{broken", "cannot be read, so its permission rules do NOT hold"),
        ("[]", "its permission rules do NOT hold: settings.json holds no table"),
    ],
)
def test_meaningless_rule_is_named_with_its_file(permissions: Any, notice: str) -> None:
    put(permissions)
    trust()
    assert f"{FILES[0]}" in notices()
    assert notice in notices()


@pytest.mark.parametrize(
    ("rule", "wider"),
    [
        ("Bash(curl x | sh)", "shell:curl *"),
        ("Bash($X)", "shell:*"),
        ("WebFetch(domain:https://x)", "fetch:*"),
        ("Task(a b)", "task:*"),
    ],
)
def test_a_denial_without_equivalent_covers_more(rule: str, wider: str) -> None:
    put({"deny": [rule]})
    trust()
    assert rules() == [f"deny {wider}"]
    assert f"deny {rule}: it covers more here, {wider}" in notices()


@pytest.mark.parametrize(
    ("rule", "patterns"),
    [
        ("Read(**/*.{pem,key})", ["read:**/*.key", "read:**/*.pem"]),
        ("Edit(src/{a,b}/**)", ["write:**/src/a/**", "write:**/src/b/**", "write:src/a/**", "write:src/b/**"]),
        ("Bash(npm run deploy:*)", ["shell:npm run deploy *", "shell:npm run deploy:* *"]),
    ],
)
def test_a_denial_covers_what_it_names(rule: str, patterns: list[str]) -> None:
    put({"deny": [rule]})
    trust()
    assert (sorted(rules()), notices()) == ([f"deny {each}" for each in patterns], "")


BASE = PathBase("/w", "/home/u")


def translated(tool: str, pattern: str, decision: str) -> Rulebook:
    reading = Reading(Path("/w/.claude/settings.json"), is_projects=True)
    add_denials(reading, {decision: [f"{tool}({pattern})"]})
    found: list[Rule] = [parse_rule(each.value[1], each.value[0]) for each in reading.findings if each.kind == "rule"]
    assert found
    return Rulebook(found, BASE)


WORDS = st.lists(st.sampled_from(("git", "push", "origin", "main", "--force", "-rf", "rmdir", "-x")), min_size=1, max_size=6)


@st.composite
def commands_and_patterns(draw: st.DrawFn) -> tuple[str, str]:
    """A command, and a pattern that matches it in Claude Code, where `*` is any text."""
    command = " ".join(draw(WORDS))
    start, *cuts = sorted(draw(st.lists(st.integers(0, len(command)), min_size=1, max_size=5)))
    pattern = command[:start]
    for begin, end in itertools.pairwise((start, *cuts)):
        pattern += "*" if draw(st.booleans()) else command[begin:end]
    if (cuts or [start])[-1] == len(command):
        return command, pattern
    end = (cuts or [start])[-1]
    return command, f"{command[:end]}:*" if command[end] == " " and "*" not in pattern else f"{pattern}*"


@given(commands_and_patterns(), st.sampled_from(("deny", "ask")))
@example(("git push origin main", "git p* main"), "deny")
@example(("git push origin main", "git * main"), "ask")
@example(("rm -rf x", "rm -rf*"), "deny")
def test_no_command_escapes_its_translated_rule(pair: tuple[str, str], decision: str) -> None:
    command, pattern = pair
    assume(pattern.strip())
    book, words = translated("Bash", pattern, decision), plain_words(command)
    assert words
    found = [each for each in ("deny", "ask") if book.find(each, "shell", PlainCommand(words, ("/w",)))]  # type: ignore[arg-type]  # decisions
    assert found, f"{pattern} in Claude Code matches {command}, but not {book.rules}"


NAMES = st.lists(st.sampled_from(("a", "b", ".env", "key.pem")), min_size=1, max_size=4)
GLOBS = st.lists(st.sampled_from(("a", "b", ".env", "*.pem", "**", "*", "[ab]", "{a,b}")), min_size=1, max_size=3)


@given(NAMES, GLOBS, st.sampled_from(("", "./", "/", "//w/")), st.booleans())
def test_no_path_escapes_its_translated_rule(names: list[str], globs: list[str], prefix: str, is_folder: bool) -> None:
    written = prefix + "/".join(globs) + ("/" if is_folder else "")
    pieces = {"**": ".*", "*": "[^/]+", "*.pem": r"[^/]*\.pem", "{a,b}": "[ab]", ".env": r"\.env"}
    regex = "/".join(pieces.get(each, each) for each in globs).replace(".*/", "(?:.*/)?") + "(?:/.*)?"
    path = "/".join(names)
    if re.fullmatch(regex, path) or (prefix == "" and len(globs) == 1 and any(re.fullmatch(regex, each) for each in names)):
        book = translated("Read", written, "deny")
        assert book.find("deny", "read", Paths(f"/w/{path}", f"/w/{path}")), f"{written} covers {path}, but not {book.rules}"
