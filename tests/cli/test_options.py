"""Parses the command line: options anywhere, joined words, subcommands only where intended."""

from __future__ import annotations

from typing import Any

import pytest

from wolo.cli.options import OPTIONS, SUBCOMMANDS, parse
from wolo.errors import UsageError


@pytest.mark.parametrize(
    ("argv", "words", "values"),
    [
        (["create", "a", "calculator"], ("create", "a", "calculator"), {}),
        (["-p", "hi"], ("hi",), {"print": True}),
        (["hi", "-p"], ("hi",), {"print": True}),
        (["fix", "-m", "zai/glm-5.2", "it"], ("fix", "it"), {"model": "zai/glm-5.2"}),
        (["--model=zai/glm-5.2", "x"], ("x",), {"model": "zai/glm-5.2"}),
        (["-mzai/glm-5.2", "x"], ("x",), {"model": "zai/glm-5.2"}),
        (["-pc", "x"], ("x",), {"print": True, "continue": True}),
        (["-pm", "a/b", "x"], ("x",), {"print": True, "model": "a/b"}),
        (["-r"], (), {"resume": ""}),
        (["-r", "session_123"], (), {"resume": "session_123"}),
        (["-r", "-p", "x"], ("x",), {"resume": "", "print": True}),
        (["-r", "--", "x"], ("x",), {"resume": ""}),
        (["--resume=abc", "go", "on"], ("go", "on"), {"resume": "abc"}),
        (["--allow", "shell:ls", "--allow=read:**", "x"], ("x",), {"allow": ["shell:ls", "read:**"]}),
        (["-W", "x"], ("x",), {"mode": "yolo"}),
        (["--dangerously-skip-permissions", "x"], ("x",), {"mode": "yolo"}),
        (["--permission-mode", "acceptEdits", "x"], ("x",), {"mode": "acceptEdits"}),
        (["--json", "x"], ("x",), {"output_format": "json"}),
        (["--max-budget-usd", "1", "--max-steps", "3", "x"], ("x",), {"max_cost": "1", "max_turns": "3"}),
        (["--effort", "high", "--cwd", "d", "x"], ("x",), {"thinking": "high", "cd": "d"}),
        (["--", "--mode=yolo", "-p"], ("--mode=yolo", "-p"), {}),
        (["--system-prompt", "--mode=yolo", "x"], ("x",), {"system_prompt": "--mode=yolo"}),
        (["--append-system-prompt=two words", "x"], ("x",), {"append_system_prompt": "two words"}),
        (["- fix this list"], ("- fix this list",), {}),
        (["--mode yolo please"], ("--mode yolo please",), {}),
        (["-"], ("-",), {}),
        (["review", "-"], ("review", "-"), {}),
        (["", "x"], ("", "x"), {}),
        (["undo", "the", "last", "edit"], ("undo", "the", "last", "edit"), {}),
        (["models", "of", "sports", "cars"], ("models", "of", "sports", "cars"), {}),
        (["-p", "models"], ("models",), {"print": True}),
        (["-i", "sessions", "list"], ("sessions", "list"), {"interactive": True}),
        (["--", "doctor"], ("doctor",), {}),
        (["the", "sessions", "list"], ("the", "sessions", "list"), {}),
    ],
)
def test_a_prompt_line(argv: list[str], words: tuple[str, ...], values: dict[str, Any]) -> None:
    line = parse(argv)
    assert (line.words, line.values, line.subcommand) == (words, values, ())


@pytest.mark.parametrize(
    ("argv", "subcommand"),
    [
        (["doctor"], ("doctor",)),
        (["attach"], ("attach",)),
        (["attach", "http://127.0.0.1:1/?token=t", "session_1"], ("attach", "http://127.0.0.1:1/?token=t", "session_1")),
        (["doctor", "--json"], ("doctor", "--json")),
        (["--json", "doctor"], ("doctor", "--json")),
        (["sessions", "list", "--all"], ("sessions", "list", "--all")),
        (["sessions", "--all", "list"], ("sessions", "list", "--all")),
        (["sessions", "show", "abc", "--json"], ("sessions", "show", "abc", "--json")),
        (["sessions"], ("sessions",)),
        (["sessions", "--help"], ("sessions", "--help")),
        (["models", "pull", "local/x"], ("models", "pull", "local/x")),
        (["config", "show"], ("config", "show")),
        (["login", "zai"], ("login", "zai")),
        (["logout"], ("logout",)),
        (["update"], ("update",)),
        (["help"], ("help",)),
        (["help", "mcp", "add"], ("help", "mcp", "add")),
        (["sessions", "fork", "abc"], ("sessions", "fork", "abc")),
        (["sessions", "delete", "--yet-unknown", "value", "abc"], ("sessions", "delete", "--yet-unknown", "value", "abc")),
        (["sessions", "search", "--", "-x"], ("sessions", "search", "--", "-x")),
        (["stats", "--by", "model", "--days", "7"], ("stats", "--by", "model", "--days", "7")),
        (["-m", "list", "sessions", "list"], ("sessions", "list", "-m", "list")),
    ],
)
def test_a_subcommand(argv: list[str], subcommand: tuple[str, ...]) -> None:
    assert parse(argv).subcommand == subcommand


@pytest.mark.parametrize(
    ("argv", "said", "hint"),
    [
        (["--modell", "x"], "Unknown option --modell", "--model?"),
        (["--modell=x"], "Unknown option --modell", "--model?"),
        (["-x", "go"], "Unknown option -x", "--help"),
        (["--print=yes"], "takes no value", ""),
        (["-m"], "needs a value", "PROVIDER/MODEL"),
        (["hi", "--max-turns"], "needs a value", "--max-turns N"),
        (["-px", "hi"], "Unknown option -px", "--help"),
    ],
)
def test_senseless_line_is_refused_with_the_nearest_option(argv: list[str], said: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse(argv)
    assert said in refused.value.message
    assert hint in refused.value.hint


def test_no_spelling_stands_for_two_options() -> None:
    spellings = [spelling for option in OPTIONS for spelling in (*option.spellings, *option.also)]
    assert len(spellings) == len(set(spellings))


def test_help_page_offers_exactly_the_table_subcommands() -> None:
    from wolo.cli.subcommands import build_app

    app = build_app()
    groups = {
        group.name: {
            *(command.name for command in group.typer_instance.registered_commands),
            *(inner.name for inner in group.typer_instance.registered_groups),
        }
        for group in app.registered_groups
    }
    commands = {command.name for command in app.registered_commands}
    assert groups == {name: set(words) for name, words in SUBCOMMANDS.items() if name not in commands}
    assert {*groups, *commands} == set(SUBCOMMANDS)


def test_several_files_of_servers_may_follow_one_option() -> None:
    line = parse(["--mcp-config", "a.json", "b.json", '{"mcpServers": {}}', "go", "c.json"])
    assert line.values["mcp_config"] == ["a.json", "b.json", '{"mcpServers": {}}']
    assert line.words == ("go", "c.json")
