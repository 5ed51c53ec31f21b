"""Resolves references to keys and headers in the settings, and reports missing ones."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from wolo.errors import ConfigError
from wolo.models import secret_references
from wolo.models.secret_references import is_reference, is_there, resolve, resolve_key
from wolo.places import find_places

SETTING = "providers.mine.api_key"
ENVIRON = {"MINE": " secret-1 ", "EMPTY": "  "}


def program(tmp_path: Path, text: str) -> str:
    path = tmp_path / "print key"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return f"!'{path}'"


def refusal(value: str, environ: dict[str, str] = ENVIRON) -> ConfigError:
    with pytest.raises(ConfigError) as refused:
        resolve_key(value, environ, setting=SETTING)
    assert SETTING in refused.value.message
    assert refused.value.hint
    return refused.value


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        ("sk-literal", "sk-literal"),
        ("$MINE", "secret-1"),
        (" ${MINE} ", "secret-1"),
        ("Bearer ${MINE}", "Bearer secret-1"),
        ("costs $5", "costs $5"),
        ("a$MINE", "a$MINE"),
        ("$", "$"),
        ("${MINE", "${MINE"),
    ],
)
def test_variables_are_filled_in(value: str, meant: str) -> None:
    assert resolve(value, ENVIRON, setting=SETTING) == meant


@pytest.mark.parametrize(
    ("value", "name"), [("$NONE", "NONE"), ("${NONE}", "NONE"), ("Bearer ${NONE}", "NONE"), ("$EMPTY", "EMPTY")]
)
def test_a_variable_that_is_not_set_is_named(value: str, name: str) -> None:
    assert not is_there(value, ENVIRON)
    assert f"${name}" in refusal(value).message


@pytest.mark.parametrize("command", ["!./print-key", "!sh print-key"])
def test_relative_program_lies_beside_the_settings(command: str) -> None:
    for folder, key in ((Path.cwd(), "of-the-checkout"), (find_places().config, "of-the-settings")):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "print-key").write_text(f"#!/bin/sh\necho {key}\n")
        (folder / "print-key").chmod(0o755)
    assert resolve_key(command, {}, setting=SETTING) == "of-the-settings"


def test_only_a_whole_variable_holds_no_secret_itself() -> None:
    assert is_reference("$MINE")
    assert is_reference("${MINE}")
    assert not is_reference("Bearer ${MINE}")
    assert not is_reference("!pass show mine")


def test_first_printed_line_is_the_key(tmp_path: Path) -> None:
    command = program(tmp_path, "echo ' key-of-$1 '; echo more; echo noise >&2")
    assert resolve_key(f"{command} 'a  b;c' $HOME", {}, setting=SETTING) == "key-of-$1"
    command = program(tmp_path, 'printf "%s|" "$@"')
    assert resolve_key(f"{command} 'a  b;c' $HOME *", {}, setting=SETTING) == "a  b;c|$HOME|*|", "no shell reads the words"


def test_program_gets_no_keys_of_others(tmp_path: Path) -> None:
    command = program(tmp_path, 'echo "key-${OTHER_API_KEY:-none}"')
    assert resolve_key(command, {"OTHER_API_KEY": "kept"}, setting=SETTING) == "key-none"


@pytest.mark.parametrize(
    ("text", "said"),
    [("exit 3", "failed with status 3"), ("true", "printed no key"), ("echo SECRET; exit 1", "failed with status 1")],
)
def test_program_without_key_is_an_error_without_output(tmp_path: Path, text: str, said: str) -> None:
    error = refusal(program(tmp_path, text))
    assert said in error.message
    assert "SECRET" not in error.message + error.hint


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("!", "names no program"),
        ("! ", "names no program"),
        ("!no-such-program-anywhere", "cannot be run: No such file"),
        ("!'open", "is not a command: no closing quotation"),
        ("!/", "cannot be run: Permission denied"),
        ("!a\0b", "cannot be run: embedded null byte"),
    ],
)
def test_unstartable_command_is_an_error(value: str, said: str) -> None:
    assert said in refusal(value).message


def test_waiting_program_is_ended_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_references, "COMMAND_S", 0.5)
    mark = tmp_path / "pid"
    command = program(tmp_path, f"sleep 3600 & echo $! > '{mark}'; wait")
    assert "did not end" in refusal(command).message
    wait_until(lambda: not is_running(int(mark.read_text())))


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


def wait_until(happens: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.01)
