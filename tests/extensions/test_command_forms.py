"""Commands in the forms of other agents: TOML with `{{args}}`, named arguments, and places to shell out and attach."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from wolo.config.project import read_file
from wolo.extensions.command_files import Commands, fill, find_commands
from wolo.extensions.command_templates import InsertedCommand, Piece
from wolo.extensions.markdown_files import ExtensionFolder


def found(namespace: str = "") -> Commands:
    root = Path.cwd()
    return find_commands([ExtensionFolder(root / "commands", partial(read_file, root=root), root, namespace=namespace)])


def filled(file: str, content: str, typed: str = "", namespace: str = "") -> tuple[Piece, ...]:
    path = Path("commands", file)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    (only,) = found(namespace).commands
    return fill(only, typed)


def toml(prompt: str) -> str:
    return f"description = 'Says it.'\nprompt = '''\n{prompt}\n'''\n"


# Gemini CLI


def test_a_toml_file_is_a_command() -> None:
    assert filled("git/say.toml", toml("Say {{args}} twice: {{args}}."), "a b") == ("Say ", "a b", " twice: ", "a b", ".")
    (only,) = found().commands
    assert (only.name, only.description) == ("git:say", "Says it.")


def test_arguments_without_a_place_are_appended() -> None:
    assert filled("say.toml", toml("Say it."), "now") == ("Say it.", "\n\nnow")
    assert filled("say.toml", toml("Say it.")) == ("Say it.",)


@pytest.mark.parametrize(
    ("command", "typed", "line"),
    [
        ("git diff --staged", "x", "git diff --staged"),
        ("grep -r {{args}} .", "a'; rm -rf ~", "grep -r 'a'\"'\"'; rm -rf ~' ."),
        ("grep --include='*.py' {{args}}", "it", "grep --include='*.py' it"),
        ("awk '{print $1}' {{args}}", "a b", "awk '{print $1}' 'a b'"),
        ("ls {{args}}", "", "ls "),
        ('grep "{{args}}" x', "$(id)", ""),
        ("grep '{{args}}' x", "' ; id", ""),
        ("echo $(cat {{args}})", "x", ""),
        ("echo `cat {{args}}`", "x", ""),
        ("cat <<E\n{{args}}\nE", "x", ""),
        ("[[ {{args}} -eq 1 ]]", "a[$(id)]", ""),
        ("echo \\{{args}}", "x", ""),
        ("true # {{args}}", "x", ""),
    ],
)
def test_shell_command_arguments_are_one_quoted_word(command: str, typed: str, line: str) -> None:
    pieces = filled("run.toml", toml(f"See !{{{command}}}, then stop."), typed)
    assert InsertedCommand(f"!{{{command}}}", line) in pieces


def test_braced_file_attaches_and_unbalanced_braces_are_text() -> None:
    assert filled("a.toml", toml("See @{docs/a b.md} and !{echo {a,b}} and !{open")) == (
        "See ",
        '@"docs/a b.md"',
        " and ",
        InsertedCommand("!{echo {a,b}}", "echo {a,b}"),
        " and !{open",
    )


@pytest.mark.parametrize("content", ["prompt = ", "description = 'x'", "prompt = 1", "prompt = 'x'\ndescription = 2"])
def test_a_broken_toml_file_costs_itself_only(content: str) -> None:
    Path("commands").mkdir()
    Path("commands/bad.toml").write_text(content)
    Path("commands/good.toml").write_text(toml("x"))
    bad, good = found().commands
    assert not bad.is_usable
    assert "bad.toml" in bad.description
    assert good.is_usable


# Claude Code, Codex, OpenCode


def test_arguments_have_names_and_indices() -> None:
    text = "---\narguments: [issue, branch]\n---\n$issue on $branch, $ARGUMENTS[0], $other, $HOME, !`git log $branch`"
    assert filled("fix.md", text, "12 main") == (
        "12 on main, 12, $other, $HOME, ",
        InsertedCommand("!`git log $branch`", "git log main"),
        "",
    )


def test_codex_prompts_take_named_values_and_double_dollar() -> None:
    pieces = filled("draft.md", "Draft $FILES: $TITLE for $$5, $1.", 'FILES="a b" TITLE=New', namespace="prompts")
    assert pieces == ("Draft a b: New for $5, FILES=a b.",)
    assert [each.name for each in found("prompts").commands] == ["prompts:draft"]


def test_a_name_that_no_argument_has_is_text() -> None:
    assert filled("say.md", "Cost: $$ and $PRICE.", "x") == ("Cost: $$ and $PRICE.", "\n\nx")


def test_tools_are_separated_by_commas_or_blanks() -> None:
    filled("a.md", "---\nallowed-tools: Read Bash(git log:*), Edit\n---\nx")
    assert found().commands[0].tools == ("Read", "Bash(git log:*)", "Edit")


# Copilot


@pytest.mark.parametrize(
    ("body", "typed", "pieces"),
    [
        ("Make ${input:what:a component}.", "a small button", ("Make a small button.",)),
        ("Move ${input:from} to ${input:to}; not ${input:from}.", "a 'b c'", ("Move a to b c; not a.",)),
        ("Make ${input:what} in ${workspaceFolder}.", "", ("Make  in ${workspaceFolder}.",)),
        ("Review.", "now", ("Review.", "\n\nnow")),
        ("Say ${input:x}.", "!`touch made` ${input:x}", ("Say !`touch made` ${input:x}.",)),
    ],
)
def test_inputs_of_a_prompt_file_are_arguments(body: str, typed: str, pieces: tuple[str, ...]) -> None:
    assert filled("new.prompt.md", f"---\nmode: agent\n---\n{body}", typed) == pieces
    assert [each.name for each in found().commands] == ["new"]
