"""Commands that a person wrote: what they are called, and what becomes of the words typed behind them."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.written import command
from wolo.config.project import read_file
from wolo.errors import ExtensionError
from wolo.extensions.command_files import Commands, fill, find_commands
from wolo.extensions.command_templates import InsertedCommand
from wolo.extensions.markdown_files import ExtensionFolder


def shelf(name: str = "commands") -> ExtensionFolder:
    return ExtensionFolder(Path.cwd() / name, partial(read_file, root=Path.cwd()), Path.cwd())


def found(*names: str) -> Commands:
    return find_commands([shelf(name) for name in names or ("commands",)])


def filled(body: str, typed: str = "") -> str:
    command(Path("commands"), "x", body)
    (only,) = found().commands
    return "".join(piece if isinstance(piece, str) else piece.written for piece in fill(only, typed))


def test_file_is_a_command_and_folder_a_word() -> None:
    command(
        Path("commands"), "fix", "---\ndescription: Fix it\nargument-hint: [issue]\nmodel: a/b\nallowed-tools: Read\n---\nFix $1."
    )
    command(Path("commands"), "git/daily/commit", "# Commit the work\n\nNow.")
    Path("commands/notes.txt").write_text("No command.")
    Path("commands/.hidden.md").write_text("No command.")
    fix, commit = found().commands
    assert (commit.name, commit.description) == ("git:daily:commit", "Commit the work")
    assert (fix.name, fix.description, fix.hint, fix.model, fix.tools) == ("fix", "Fix it", "[issue]", "a/b", ("Read",))


def test_the_first_shelf_wins() -> None:
    near = command(Path("near").absolute(), "fix", "near")
    command(Path("far").absolute(), "fix", "far")
    assert [each.path for each in found("gone", "near", "far").commands] == [near]


@pytest.mark.parametrize(
    ("body", "typed", "sent"),
    [
        ("Fix $ARGUMENTS now.", "a 'b c'", "Fix a 'b c' now."),
        ("Fix $@ now.", "a 'b c'", "Fix a 'b c' now."),
        ("$2 before $1", "a 'b c'", "b c before a"),
        ("[$1] [$3]", "a b", "[a] []"),
        ("${@:2} | ${@:2:1}", "a b c", "b c | b"),
        ("${@:0} ${@:9}.", "a b", "a b ."),
        ("Review it.", "the tests", "Review it.\n\nthe tests"),
        ("Review it.", "", "Review it."),
        (r"Print \$1 and \$ARGUMENTS", "a", "Print $1 and $ARGUMENTS\n\na"),
        ("It costs $100, $10, \\$0 and $ARGUMENTSX, $HOME.", "a", "It costs $100, $10, $0 and $ARGUMENTSX, $HOME.\n\na"),
        ("Move $0 to $1.", "a b", "Move a to b."),
        ("$1|$2", "it's don't", "it's|don't"),
        ("$1", "'$2' $ARGUMENTS", "$2"),
        ("<$1> <$2>", "it's fine", "<it's> <fine>"),
        ("$1", "größe", "größe"),
    ],
)
def test_typed_text_fills_the_place_in_the_prompt(body: str, typed: str, sent: str) -> None:
    assert filled(body, typed) == sent


@given(st.text(alphabet="$@{}:12ARGUMENTS\\' \"`!\n", max_size=60), st.text(max_size=30))
def test_typed_text_is_never_read_as_a_place(before: str, typed: str) -> None:
    assert filled("$ARGUMENTS", typed) == typed
    filled(f"x{before}", typed)  # whatever stands there


@pytest.mark.parametrize(
    ("line", "typed", "run"),
    [
        ("git status", "", "git status"),
        ("git log $1 | head", "'a b'", "git log 'a b' | head"),
        ("git log $1", "'$(touch x)'", "git log '$(touch x)'"),
        ("git log $1", "'; touch x'", "git log '; touch x'"),
        ("ls $ARGUMENTS", "a 'b c' $(d)", "ls a 'b c' '$(d)'"),
        ("ls ${@:2}", "a 'b c' d", "ls 'b c' d"),
        ("ls $2 -a", "x", "ls  -a"),
        (r"awk '{print \$1}' x", "typed", "awk '{print $1}' x"),
        ("git log '$1'", "a", ""),
        ('git log "$1"', "$(touch x)", ""),
        ("echo $(cat $1)", "a", ""),
        ("echo x=$1", "a", ""),
        ("cat <<< $1", "a", ""),
        ("ls # $1", "a", ""),
        (r"awk '{print \$1}' $1", "a", ""),
    ],
)
def test_run_line_takes_typed_text_quoted_or_never(line: str, typed: str, run: str) -> None:
    command(Path("commands"), "x", f"Look: !`{line}` and go on. $1")
    (only,) = found().commands
    before, wanted, _behind = fill(only, typed)
    assert (before, wanted) == ("Look: ", InsertedCommand(f"!`{line}`", run))


def test_typed_text_is_no_line_to_run() -> None:
    command(Path("commands"), "x", "Look:\n!`git status`\n! `no` and $ARGUMENTS")
    (only,) = found().commands
    assert fill(only, "!`rm -rf /`") == ("Look:\n", InsertedCommand("!`git status`", "git status"), "\n! `no` and !`rm -rf /`")


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=12), min_size=1, max_size=3)
)
def test_no_typed_word_becomes_a_command(words: list[str]) -> None:
    """A shell that prints its arguments gets exactly these."""
    command(Path("commands"), "x", "!`printf %s\\\\0 $ARGUMENTS`".replace("\\\\", ""))
    (only,) = found().commands
    run = fill(only, shlex.join(words))[1]
    assert isinstance(run, InsertedCommand)
    assert shlex.split(run.line) == ["printf", "%s0", *words]


def test_unusable_command_is_listed_with_the_reason() -> None:
    command(Path("commands"), "broken", "---\nname: x\n")
    command(Path("commands"), "empty", "---\ndescription: x\n---\n")
    command(Path("commands"), "fine", "ok")
    command(Path("commands"), "two words", "ok")
    broken, empty, _fine, words = found().commands
    assert not broken.is_usable
    assert "no second line of '---'" in broken.description
    with pytest.raises(ExtensionError, match="has no text"):
        fill(empty, "")
    assert words.name == "two-words"
    (notice,) = found().notices
    assert "two words.md: a name has no blanks" in notice


def test_path_leading_out_of_project_is_not_read(isolated: Path) -> None:
    command(isolated / "outside", "secret", "SECRET")
    Path("commands").mkdir()
    Path("commands/secret.md").symlink_to(isolated / "outside" / "secret.md")
    Path("commands/deeper").symlink_to(isolated / "outside")
    commands = found()
    assert [each.name for each in commands.commands] == ["secret"]
    assert "SECRET" not in str(commands)
    assert not commands.commands[0].is_usable
    assert "outside" in commands.notices[0]


def test_folders_that_lead_into_themselves_end() -> None:
    command(Path("commands"), "x", "ok")
    for number in range(300):  # four deep, eight billion ways through them
        Path(f"commands/again{number}").symlink_to(".")
    Path("commands/itself").symlink_to("itself")
    assert [each.name for each in found().commands] == ["x"]


def test_invisible_characters_are_spelled_out() -> None:
    assert filled("a\u202eb") == "a\\u{202e}b"


def test_recipe_of_goose_takes_words_and_defaults() -> None:
    folder = Path(".goose/recipes")
    folder.mkdir(parents=True)
    parameters = "parameters:\n  - {key: who, input_type: string, requirement: required}\n  - {key: how, default: kindly}\n"
    extensions = "extensions:\n  - type: builtin\n    name: developer\n"
    text = "description: Greets\nprompt: Greet {{ who }} {{how}}.\n"
    (folder / "greet.yaml").write_text(text + parameters + extensions)
    (folder / "branch.yaml").write_text("title: b\nprompt: '{% if x %}a{% endif %}'\n")
    (folder / "notes.md").write_text("Notes.")
    branch, greet, notes = found(".goose/recipes").commands
    assert (branch.is_usable, notes.is_usable, greet.description) == (False, True, "Greets (its extensions are not started)")
    assert "fills in no conditions" in branch.description
    assert fill(greet, "Ann") == ("Greet Ann kindly.",)
    assert fill(greet, "Ann loudly") == ("Greet Ann loudly.",)
