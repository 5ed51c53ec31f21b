"""Completion: what a Tab offers, what it costs, and that real shells take it."""

from __future__ import annotations

import json
import os
import runpy
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pexpect
import pytest
from hypothesis import given
from hypothesis import strategies as some

from tests.architecture.test_start_up import HEAVY, imported_by
from tests.components import require
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import text
from tests.fakes.screen import Terminal
from wolo.cli.completion.answer import offer, read_line, spell
from wolo.cli.options import OPTIONS, SUBCOMMANDS
from wolo.guard.modes import MODES
from wolo.places import find_places

BREAKS = " \t\n\"'@><=;|&(:"


def offered(*words: str) -> list[str]:
    """What stands for the last of these words."""
    return [word.text for word in offer(words[:-1], words[-1]).words]


def kind(*words: str) -> str:
    return offer(words[:-1], words[-1]).kind


# What is offered


def test_every_option_of_the_table_has_help() -> None:
    found = {word.text: word.about for word in offer((), "-").words}
    assert found == {spelling: option.help for option in OPTIONS for spelling in option.spellings}


def test_every_subcommand_is_offered_with_a_description() -> None:
    found = {word.text: word.about for word in offer((), "").words}
    assert list(found) == list(SUBCOMMANDS)
    assert all(found.values())


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("--mode", "a"), ["ask", "auto"]),
        (("--mode=a",), ["--mode=ask", "--mode=auto"]),
        (("fix", "it", "--mode", ""), list(MODES)),
        (("--thinking", "m"), ["minimal", "medium", "max"]),
        (("--effort", "mi"), ["minimal"]),
        (("--output-format", ""), ["text", "json", "stream-json"]),
        (("--sandbox", ""), ["auto", "required", "off"]),
        (("--api", "open"), ["openai-chat", "openai-responses"]),
        (("-m", "zai-"), ["zai-coding/"]),
        (("-m", "zai/glm-5.1"), ["zai/glm-5.1"]),
        (("-m", "zai/glm-5.1:h"), ["zai/glm-5.1:high"]),
        (("-m", "deepseek-ch"), ["deepseek/deepseek-chat"]),
        (("--tools", "read,wr"), ["read,write"]),
        (("--allow", "sh"), ["shell:"]),
        (("--set", "limits.max_t"), ["limits.max_turns=", "limits.max_tokens="]),
        (("--set", "ui.theme=l"), ["ui.theme=light", "ui.theme=light-colorblind"]),
        (("--set=ui.plain=",), ["--set=ui.plain=true", "--set=ui.plain=false"]),
        (("--set", "mode=a"), ["mode=ask", "mode=auto"]),
        (("--set", "model=zai/glm-5.1"), ["model=zai/glm-5.1"]),
        (("--set", "thinking=mi"), ["thinking=minimal"]),
        (("--set", "limits.max_turns="), []),
        (("--set", "nothing.such="), []),
        (("config", "set", "ui.th"), ["ui.theme"]),
        (
            ("config", "set", "ui.theme", ""),
            ["auto", "dark", "light", "dark-colorblind", "light-colorblind", "high-contrast", "ansi"],
        ),
        (("config", "set", "ui.keys", "v"), ["vi"]),
        (("sess",), ["sessions"]),
        (("sessions", "ex"), ["export"]),
        (("sessions", "export", "--fo"), ["--format"]),
        (("sessions", "export", "--format", "m"), ["markdown"]),
        (("sessions", "export", "--format", "c"), ["claude-code", "codex"]),
        (("sessions", "import", "--from=co"), ["--from=codex"]),
        (("stats", "--by", ""), ["model", "tool", "project", "day"]),
        (("completion", ""), ["bash", "zsh", "fish"]),
        (("completion", "fish", "--"), ["--help", "--install"]),
        (("auth", "login", "openr"), ["openrouter"]),
        (("models", "show", "zai/glm-5.1"), ["zai/glm-5.1"]),
        (("permissions", "test", "fe"), ["fetch:"]),
        (("--nothing",), []),
        (("--nothing", "--verb"), ["--verbose"]),
        (("--", "--mode"), []),
        (("what", "is", "ses"), []),
        (("--print=",), []),
    ],
)
def test_offers_are_complete(words: tuple[str, ...], wanted: list[str]) -> None:
    assert offered(*words) == wanted


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("-f", "sr"), "files"),
        (("--file=sr",), "files"),
        (("-C", ""), "dirs"),
        (("--add-dir", ""), "dirs"),
        (("sessions", "export", "-o", ""), "files"),
        (("sessions", "import", ""), "files"),
        (("undo", ""), "files"),
        (("look", "at", "sr"), "files"),
        (("-m", "za"), "nospace"),
        (("--mode", ""), "words"),
    ],
)
def test_completion_is_left_to_the_shell_where_better(words: tuple[str, ...], wanted: str) -> None:
    assert kind(*words) == wanted


def test_files_behind_an_at_sign_are_offered() -> None:
    Path("src").mkdir()
    Path("src/app.py").touch()
    Path("src/.hidden").touch()
    assert offered("look", "at", "@s") == ["@src/"]
    assert offered("look", "at", "@src/") == ["@src/app.py"]


def test_control_characters_are_not_offered() -> None:
    Path("\x1b]0;owned\x07").touch()
    Path("plain").touch()
    assert tab("@") == "words\n@plain\n"


def test_own_provider_is_offered_with_its_models() -> None:
    configure('[providers.acme]\nbase_url = "http://127.0.0.1:1/v1"\nmodels = [{id = "large"}]\n')
    assert offered("-m", "ac") == ["acme/"]
    assert offered("-m", "acme/") == ["acme/large"]


def configure(text: str) -> None:
    path = find_places().config / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(text)


@pytest.fixture
def kept(provider: ProviderServer) -> str:
    """The id of a session of this directory."""
    provider.script(text("Done."))
    run_wolo("-p", *provider.flags, "-s", "fresh-paint", 'paint "it" $(touch owned) red')
    return str(run_wolo("sessions", "list", "--json").json[0]["id"])


def test_sessions_are_offered_by_id_name_and_title(kept: str) -> None:
    assert offered("-r", "") == [kept, "fresh-paint"]
    assert offered("--resume", "fresh") == ["fresh-paint"]
    assert offered("-r", "Paint") == ['paint "it" $(touch owned) red']
    assert offered("sessions", "show", kept[:12]) == [kept]
    assert offered("-r", "ses") == [kept]
    assert offered("-r", "--verb") == ["--verbose"]


def test_locked_or_damaged_database_offers_nothing_without_waiting(kept: str) -> None:
    path = find_places().data / "wolo.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        assert tab("-r", "ses").split()[0] == "words"
    path.write_bytes(b"no database")
    assert tab("-r", "session_") == "words\n"


def test_looking_for_sessions_leaves_no_file_behind(kept: str) -> None:
    before = sorted(find_places().data.iterdir())
    assert offered("-r", "session_") == [kept]
    assert sorted(find_places().data.iterdir()) == before


@pytest.mark.parametrize("words", [("-m", "za"), ("-r", ""), ("--set", "lim"), ("auth", "login", "z"), ("--mo",)])
def test_broken_settings_are_no_reason_to_say_anything(words: tuple[str, ...]) -> None:
    configure("[providers\nthis is no toml")
    assert tab(*words).startswith(("words\n", "nospace\n"))


def tab(*words: str) -> str:
    """What the shell reads; nothing else may be printed."""
    done = run_wolo("completion", "--line", "fish", *words)
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("argv", [(), ("bash",), ("fish",), ("bash", "a", "b", "c")])
def test_nothing_goes_wrong_aloud(argv: tuple[str, ...]) -> None:
    done = run_wolo("completion", "--line", *argv)
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")


# What it costs


def test_a_tab_loads_next_to_nothing() -> None:
    library = {"typer", "msgspec", "sqlite3", "httpx2", "asyncio", "tomllib", "logging"}
    assert not imported_by("completion", "--line", "zsh", "--mo") & {*HEAVY, *library, "json"}
    assert not imported_by("completion", "--line", "zsh", "sessions", "export", "--fo") & {*HEAVY, *library}
    assert not imported_by("completion", "--line", "zsh", "-m", "zai/") & {*HEAVY, "typer", "sqlite3", "httpx2"}
    assert not imported_by("completion", "--line", "zsh", "-r", "") & {*HEAVY, "typer", "httpx2"}


def test_the_table_of_subcommands_is_fresh() -> None:
    """Written by `python docs/generate.py`."""
    root = Path(__file__).parents[3]
    generated = runpy.run_path(str(root / "docs/generate.py"))["subcommands"]()
    assert json.loads((root / "wolo/cli/completion/subcommands.json").read_text("utf-8")) == generated


# Words of bash


@pytest.mark.parametrize(
    ("line", "words", "current", "quote"),
    [
        ("wolo ", (), "", ""),
        ("wolo --mo", (), "--mo", ""),
        ("A=1 wolo -m zai/", ("-m",), "zai/", ""),
        ("wolo 'two words' x", ("two words",), "x", ""),
        ('wolo -r "Fix th', ("-r",), "Fix th", '"'),
        (r"wolo -r Fix\ th", ("-r",), "Fix th", ""),
        ("wolo -r 'it", ("-r",), "it", "'"),
    ],
)
def test_a_line_is_read_as_bash_reads_it(line: str, words: tuple[str, ...], current: str, quote: str) -> None:
    typed = read_line(line, BREAKS)
    assert (typed.words, typed.current, typed.quote) == (words, current, quote)


@given(
    some.text(some.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=12), some.sampled_from(["", "'", '"'])
)
def test_every_offer_is_one_word_for_bash(word: str, quote: str) -> None:
    put_in = spell(word, read_line(f"wolo {quote}", BREAKS))
    if put_in is None:
        assert "!" in word
    else:
        said = subprocess.run(
            ["bash", "-c", f"printf '%s\\n' {quote}{put_in}{quote}"], capture_output=True, text=True, check=True
        )
        assert said.stdout == f"{word}\n"


# Real shells


@contextmanager
def shell(folder: Path, *argv: str) -> Iterator[Terminal]:
    """An interactive shell whose `wolo` is this one."""
    program = folder / "bin/wolo"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m wolo "$@"\n')
    program.chmod(0o755)
    env = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "TERM": "xterm", "PS1": "$ "}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the provider's threads do not matter: the child execs at once
        child = pexpect.spawn(argv[0], list(argv[1:]), env=env, dimensions=(40, 120))
    child.delaybeforesend = None
    child.ptyproc.delayafterclose = 0.01
    try:
        yield Terminal(child, 40, 120)
    finally:
        child.close(force=True)


@pytest.fixture(params=["bash", "zsh", "fish"])
def prompt(request: pytest.FixtureRequest, isolated: Path) -> Iterator[Terminal]:
    """A shell that has just taken the script in."""
    argv = {
        "bash": ("bash", "--noprofile", "--norc", "-i"),
        "zsh": (require("zsh"), "-f", "-i"),
        "fish": (require("fish"), "--no-config", "-i"),
    }[request.param]
    load = {
        "bash": 'eval "$(wolo completion bash)"',
        "zsh": 'autoload -U compinit; compinit -D -u; eval "$(wolo completion zsh)"',
        "fish": "wolo completion fish | source",
    }[request.param]
    with shell(isolated, *argv) as terminal:
        terminal.enter(f"{load}; echo re''ady")
        terminal.wait_for("ready\n")
        yield terminal


def test_a_shell_completes_an_option(prompt: Terminal) -> None:
    prompt.type("wolo --include\t")
    prompt.wait_for("wolo --include-partial-messages")


def test_shell_completes_the_value_behind_equals_sign(prompt: Terminal) -> None:
    prompt.type("wolo --thinking=mini\t")
    prompt.wait_for("wolo --thinking=minimal")


def test_a_shell_completes_a_model_in_two_steps(prompt: Terminal) -> None:
    prompt.type("wolo -m zai-c\t")
    prompt.wait_for("wolo -m zai-coding/")
    prompt.type("glm-5.1:hi\t")
    prompt.wait_for("wolo -m zai-coding/glm-5.1:high")


def test_a_shell_completes_subcommands_and_their_options(prompt: Terminal) -> None:
    prompt.type("wolo perm\t")
    prompt.wait_for("wolo permissions")
    prompt.type("rem\t--every\t")
    prompt.wait_for("wolo permissions remove --everywhere")


def test_a_shell_completes_files_itself(prompt: Terminal) -> None:
    Path("some file.txt").touch()
    prompt.type("wolo -f some\t")
    prompt.wait_until(lambda: "wolo -f some\\ file.txt" in prompt.text or "wolo -f 'some file.txt'" in prompt.text)


def test_title_is_inserted_without_running(kept: str, prompt: Terminal) -> None:
    prompt.type("wolo sessions show paint\t")
    prompt.wait_for("owned")
    prompt.press("enter")
    prompt.wait_for("Done.")
    assert not Path("owned").exists()


@pytest.mark.parametrize(
    ("name", "place", "words"),
    [
        ("bash", "data/bash-completion/completions/wolo", "bash-completion"),
        ("zsh", "data/zsh/site-functions/_wolo", "before compinit"),
        ("fish", "config/fish/completions/wolo.fish", "next fish"),
    ],
)
def test_the_script_is_put_where_the_shell_looks(isolated: Path, name: str, place: str, words: str) -> None:
    done = run_wolo("completion", "--install", env={"SHELL": f"/usr/bin/{name}"})
    assert done.exit_code == 0
    assert words in done.stderr
    written_to = isolated / "home" / place
    assert done.stdout == f"{written_to}\n"
    assert written_to.read_text() == run_wolo("completion", name).stdout


def test_an_unknown_shell_is_asked_about() -> None:
    done = run_wolo("completion", env={"SHELL": "/bin/tcsh"})
    assert (done.exit_code, done.stderr) == (2, "wolo: Unknown shell.\n      wolo completion bash|zsh|fish\n")


def test_a_place_that_cannot_be_written_is_named(isolated: Path) -> None:
    (isolated / "home/data").write_text("in the way")
    done = run_wolo("completion", "bash", "--install")
    assert done.exit_code == 2
    assert "Cannot write" in done.stderr
