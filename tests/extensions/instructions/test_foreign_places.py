"""Instructions and rules of other agents: each place is read, each condition holds, each bad file costs itself only."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wolo.extensions.instructions.instruction_files import Instructions, read_instructions
from wolo.extensions.instructions.nested_files import NestedFiles
from wolo.foreign_places import MAIN_FILES, MORE_FILES, RULES, TABLE, USERS_FILES, USERS_RULES
from wolo.places import Notices, find_home

ALWAYS = "---\nalwaysApply: true\napplyTo: '**'\ntrigger: always_on\ninclusion: always\n---\n"
NAMES = {".github/instructions": "a.instructions.md", ".copilot/instructions": "a.instructions.md", ".cursor/rules": "a.mdc"}


def put(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(**options: object) -> Instructions:
    root = Path.cwd()
    return read_instructions(root, root, root / "no-config")


def touched(name: str) -> list[str]:
    root, notices = Path.cwd(), Notices()
    files = NestedFiles((root,), root, lambda path: True, 99_999).for_files([root / name], notices)
    assert list(notices) == []
    return [each.text for each in files]


@pytest.mark.parametrize("name", [*MAIN_FILES, *MORE_FILES])
def test_each_file_of_a_project_is_read(name: str) -> None:
    put(Path(name), "Say ahoy.")
    assert "Say ahoy." in read().text
    assert read().notices == ()


@pytest.mark.parametrize("place", RULES)
def test_each_folder_of_rules_is_read(place: str) -> None:
    put(Path(place, "sub", NAMES.get(place, "a.md")), f"{ALWAYS}Say ahoy.")
    assert read().text.endswith("Say ahoy.")
    assert read().notices == ()


@pytest.mark.parametrize("name", USERS_FILES)
def test_each_file_of_the_user_is_read(name: str) -> None:
    put(find_home() / name, "Say ahoy.")
    assert read().text == f"# Instructions from your own ~/{name}\n\nSay ahoy."


@pytest.mark.parametrize("place", USERS_RULES)
def test_rules_of_the_user_are_read(place: str) -> None:
    put(find_home() / place / NAMES.get(place, "a.md"), f"{ALWAYS}Say ahoy.")
    put(find_home() / place / f"b{NAMES.get(place, 'a.md')}", "---\npaths: '**/*.py'\n---\nType it.")
    assert read().text.endswith("Say ahoy.")
    assert touched("src/a.py") == ["Type it."]
    assert touched("src/a.ts") == []


def test_table_has_each_file_that_is_read() -> None:
    read_ones = {(path, row.is_users) for row in TABLE if not row.why for path in row.paths}
    assert {(path, False) for path in (*MAIN_FILES, *MORE_FILES, *RULES)} <= read_ones
    assert {(path, True) for path in (*USERS_FILES, *USERS_RULES)} <= read_ones


@pytest.mark.parametrize(
    ("place", "settings"),
    [
        (".cursor/rules/a.mdc", "description: Python\nglobs: *.py,src/**/*.pyi\nalwaysApply: false"),
        (".cursor/rules/a.mdc", "globs:\n  - '**/*.py'"),
        (".github/instructions/a.instructions.md", "applyTo: '**/*.ts,**/*.py'"),
        (".windsurf/rules/a.md", "trigger: glob\nglobs: **/*.py"),
        (".clinerules/a.md", "paths:\n  - 'src/**'"),
        (".continue/rules/a.md", "globs: ['**/*.{py,pyi}']"),
        (".kiro/steering/a.md", "inclusion: fileMatch\nfileMatchPattern: 'src/**/*.py'"),
        (".kiro/steering/a.md", "inclusion: fileMatch\nfileMatchPattern: ['src/']"),
    ],
)
def test_rule_with_pattern_comes_with_its_files(place: str, settings: str) -> None:
    put(Path(place), f"---\n{settings}\n---\nType it.")
    assert read() == Instructions("")
    assert touched("src/a.py") == ["Type it."]
    assert touched("docs/a.md") == []


@pytest.mark.parametrize(
    ("place", "settings"),
    [
        (".cursor/rules/a.mdc", "description: How to release\nalwaysApply: false"),
        (".github/instructions/a.instructions.md", "description: How to release"),
        (".windsurf/rules/a.md", "trigger: model_decision\ndescription: How to release"),
        (".kiro/steering/a.md", "inclusion: auto\ndescription: How to release"),
    ],
)
def test_rule_by_subject_is_listed_for_the_model(place: str, settings: str) -> None:
    put(Path(place), f"---\n{settings}\n---\nTag first.")
    assert "Tag first." not in read().text
    assert read().text.endswith(f"as soon as its subject comes up:\n- {place}: How to release")


@pytest.mark.parametrize(
    ("place", "settings"),
    [
        (".cursor/rules/a.mdc", "alwaysApply: false"),
        (".windsurf/rules/a.md", "trigger: manual"),
        (".kiro/steering/a.md", "inclusion: manual"),
    ],
)
def test_rule_for_mentions_is_a_remark(place: str, settings: str) -> None:
    put(Path(place), f"---\n{settings}\n---\nTag first.")
    assert (read().text, read().notices) == ("", ())
    assert read().remarks == (f"{Path.cwd() / place} is read only when you mention it.",)


def test_left_out_file_that_differs_is_a_remark() -> None:
    put(Path("AGENTS.md"), "one")
    put(Path("CLAUDE.md"), "one")
    put(Path("GEMINI.md"), "@AGENTS.md")
    assert read().remarks == ()
    put(Path("CLAUDE.md"), "another")
    assert read().text.endswith("one")
    assert [each.partition(": ")[0] for each in read().remarks] == [f"{Path.cwd()}/CLAUDE.md is not read"]
    put(Path("AGENTS.md"), "one and @CLAUDE.md")
    assert read().remarks == ()
    assert "another" in read().text


def test_same_text_for_several_agents_is_sent_once() -> None:
    for name in ("AGENTS.md", ".cursorrules", ".github/copilot-instructions.md", ".clinerules"):
        put(Path(name), "Say ahoy.")
    assert read().text.count("Say ahoy.") == 1


@pytest.mark.parametrize(
    ("place", "settings"),
    [
        ("opencode.json", '{"instructions": ["CONTRIBUTING.md", "docs/*.md"]}'),
        ("opencode.jsonc", '{\n// ours\n"instructions": ["CONTRIBUTING.md", "./docs/*.md",],}'),
        (".gemini/settings.json", '{"context": {"fileName": ["CONTRIBUTING.md", "docs/a.md"]}}'),
        (".qwen/settings.json", '{"contextFileName": ["CONTRIBUTING.md", "docs/a.md"]}'),
    ],
)
def test_files_that_settings_name_are_read(place: str, settings: str) -> None:
    put(Path(place), settings)
    put(Path("CONTRIBUTING.md"), "Sign off.")
    put(Path("docs/a.md"), "Say ahoy.")
    assert [path.name for path in read().files] == ["CONTRIBUTING.md", "a.md"]
    assert read().notices == ()


def test_settings_name_nothing_outside_the_project(isolated: Path) -> None:
    put(isolated / "secret.md", "SECRET")
    put(Path(".env"), "TOKEN=1")
    Path("link.md").symlink_to(isolated / "secret.md")
    put(
        Path("opencode.json"),
        '{"instructions": ["../secret.md", "~/x.md", "https://example.org/a.md", ".env", "link.md", "*.md"]}',
    )
    assert read().text == ""
    assert len(read().notices) == 5


BAD = {
    "cut": b'---\nglobs: ["*.py"\n',
    "huge": b"x" * (40 << 20),
    "deep": b"---\nglobs: " + b"[" * 100_000 + b"\n---\nbody",
    "deep json": b'{"a":' * 100_000,
    "binary": bytes(range(256)) * 64,
    "utf-16": "---\nglobs: '*.py'\n---\nbody".encode("utf-16"),
    "comments": b"/*" * 100_000,
    "empty": b"",
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("place", [*MORE_FILES, *RULES, "opencode.json", ".gemini/settings.json"])
def test_bad_file_costs_itself_only(place: str, bad: str) -> None:
    put(Path(place) if place not in RULES or place in MORE_FILES else Path(place, NAMES.get(place, "a.md")), BAD[bad])
    put(Path("AGENTS.md"), "Say ahoy.")
    found = read()
    assert "Say ahoy." in found.text
    assert len(found.text) < 60_000
    is_json, is_rule = place.endswith("json"), place in RULES and place not in MORE_FILES
    silent = {"empty"} if is_json or is_rule else {"empty", "cut"}
    assert (found.notices == ()) == (bad in silent)


def test_pipe_and_folder_among_rules_are_skipped() -> None:
    Path(".cursor/rules/folder.mdc").mkdir(parents=True)
    os.mkfifo(".cursor/rules/pipe.mdc")
    put(Path(".cursor/rules/z.mdc"), f"{ALWAYS}Say ahoy.")
    assert read().text.endswith("Say ahoy.")
    assert len(read().notices) == 1


def test_rule_of_one_long_line_is_cut() -> None:
    put(Path(".github/instructions/a.instructions.md"), f"---\napplyTo: '**'\n---\nSay ahoy. {'x' * 40_000}")
    assert "Say ahoy. xxx" in read().text
    assert "is longer than 32 KiB" in read().notices[0]
