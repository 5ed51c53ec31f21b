"""Almost-commands are usage errors that name the command that was meant; and what help and update print."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import product

import pytest
from typer.testing import CliRunner

from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import text
from wolo.cli.near_misses import OTHER_NAMES
from wolo.cli.options import OPTIONS, SUBCOMMANDS, parse
from wolo.cli.subcommands import OTHERS, build_app, option_groups, run_subcommand
from wolo.config.layers import load
from wolo.diagnostics.installation import plan_update, this_installation
from wolo.errors import UsageError
from wolo.workspace.root import find_site

GROUPS = tuple(name for name, words in SUBCOMMANDS.items() if words and name != "help")


def slips(word: str) -> list[str]:
    """One key missed, doubled, swapped or wrong, another case, and a letter left out at the end."""
    middle = len(word) // 2
    return [
        word[:middle] + word[middle + 1 :],
        word[:middle] + word[middle] + word[middle:],
        word[: middle - 1] + word[middle] + word[middle - 1] + word[middle + 1 :],
        f"{word}x",
        word.upper(),
    ]


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_a_lone_slip_of_a_subcommand_is_refused(name: str) -> None:
    for slip in slips(name):
        if slip in SUBCOMMANDS:
            continue
        with pytest.raises(UsageError) as refused:
            parse([slip])
        assert "Did you mean" in refused.value.hint, slip
        assert f"wolo -- {slip}" in refused.value.hint


@pytest.mark.parametrize("group", GROUPS)
def test_group_with_an_unknown_word_is_refused(group: str) -> None:
    unknown = ["zzz", "whatever it", *(slip for word in SUBCOMMANDS[group] for slip in slips(word))]
    for said, before in product(unknown, ([], ["-m", "a/b"], ["--json"])):
        words = [word for word in said.split() if word not in SUBCOMMANDS[group]]
        if not words:
            continue
        with pytest.raises(UsageError) as refused:
            parse([*before, group, *words])
        assert refused.value.exit_code == 2
        assert f"wolo {group}" in refused.value.hint


@pytest.mark.parametrize(
    ("argv", "meant"),
    [
        (["session", "list"], "wolo sessions list"),
        (["sesions", "lst"], "wolo sessions list"),
        (["model", "probe", "zai/glm-5.2"], "wolo models probe"),
        (["mcp", "lst"], "wolo mcp list"),
        (["sessions", "exprot", "abc"], "wolo sessions export"),
        (["help", "sesions"], "wolo help sessions"),
        (["sessions", "zzz"], "wolo sessions --help"),
        (["mcp", "ad", "github", "--", "npx", "server", "--stdio"], "wolo mcp add"),
        (["exec"], 'wolo -p "…"'),
        (["upgrade"], "wolo update"),
        (["resume"], "wolo --resume"),
        (["fork"], "wolo sessions fork ID"),
    ],
)
def test_intended_command_is_named(argv: list[str], meant: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse(argv)
    assert f"`{meant}`" in refused.value.hint


@pytest.mark.parametrize("word", OTHER_NAMES)
def test_foreign_command_names_are_refused_alone_only(word: str) -> None:
    with pytest.raises(UsageError):
        parse([word])
    assert parse([word, "the", "tests"]).words == (word, "the", "tests")


@pytest.mark.parametrize(
    "argv",
    [
        ["hello"],
        ["test"],
        ["fix"],
        ["continue"],
        ["review"],
        ["read"],
        ["start"],
        ["undo", "the", "last", "edit"],
        ["models", "that", "drive", "cars"],
        ["models", "that drive cars"],
        ["update", "the", "readme"],
        ["help", "me"],
        ["login", "page", "is", "broken"],
        ["login", "page is broken"],
        ["session", "handling", "is", "broken"],
        ["mcp lst"],
        ["sesions "],
        ["-p", "sesions"],
        ["-p", "mcp", "lst"],
        ["-i", "mcp", "lst"],
        ["--", "mcp", "lst"],
        ["--", "sesions"],
        ["mcp", "--", "lst"],
    ],
)
def test_prompt_stays_a_prompt(argv: list[str]) -> None:
    line = parse(argv)
    assert not line.subcommand
    assert line.words == tuple(word for word in argv if word not in ("-p", "-i", "--"))


def test_an_almost_command_sends_nothing(provider: ProviderServer) -> None:
    provider.script(text("I should not have been asked."))
    options = ["--base-url", provider.base_url, "-m", "test-model", "--api-key", "sk-0123456789abcdef"]
    ran = subprocess.run(
        [sys.executable, "-m", "wolo", *options, "--json", "mcp", "lst"], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert ran.returncode == 2
    assert json.loads(ran.stdout)["error"]["kind"] == "usage"
    assert "`wolo mcp list`" in ran.stderr
    assert not provider.requests


@pytest.mark.parametrize("slip", ["--yol", "--yollo", "--yoyo", "--yolo-mode", "--wilde", "--dangerous-skip-permissions", "-Wx"])
def test_slip_never_suggests_the_unattended_option(slip: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse([slip, "go"])
    assert not any(said in refused.value.hint for said in ("yolo", "wild", "dangerously"))


def test_setting_slip_never_suggests_the_unattended_mode() -> None:
    with pytest.raises(UsageError) as refused:
        load(find_site(), {}, ["mode=yoloo"])
    assert "Did you mean" not in f"{refused.value.message} {refused.value.hint}"


def test_help_takes_the_name_of_a_subcommand(capsys: pytest.CaptureFixture[str]) -> None:
    for argv, shown in (
        (["help"], "wolo --resume ID"),
        (["help", "mcp", "add"], "wolo mcp add"),
        (["help", "undo"], "--dry-run"),
    ):
        assert run_subcommand(list(parse(argv).subcommand)) == 0
        assert shown in capsys.readouterr().out


def test_update_prints_the_command_for_this_installation(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_subcommand(["update"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == plan_update(this_installation()).text


def test_help_shows_subcommands_first_and_options_by_heading() -> None:
    groups = option_groups()
    assert sorted(option.name for _, options in groups for option in options) == sorted(option.name for option in OPTIONS)
    assert OTHERS not in dict(groups)
    page = CliRunner().invoke(build_app(), ["--help"]).output
    headings = ["Commands:", *(f"{heading}:" for heading, _ in groups)]
    assert sorted(headings, key=page.index) == headings
    assert "..." not in page.partition("Commands:")[2].partition("\n\n")[0]


@pytest.mark.parametrize(("name", "meant"), [("exec", "wolo -p 'fix the tests'"), ("run", "wolo 'fix the tests'")])
def test_another_agents_subcommand_is_no_prompt(name: str, meant: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse([name, "fix the tests"])
    assert f"`{meant}`" in refused.value.hint
    assert parse(["--", name, "fix the tests"]).words == (name, "fix the tests")
