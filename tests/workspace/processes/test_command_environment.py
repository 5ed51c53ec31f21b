"""The variables that commands get, where a run of wolo would show them only on some machines."""

from __future__ import annotations

import pytest

from wolo.workspace.processes.command_environment import CommandVariables

GIT = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "a.b", "GIT_CONFIG_VALUE_0": "c"}


def test_named_loader_path_spares_the_sandbox() -> None:
    variables = CommandVariables(passed=("LD_LIBRARY_PATH",), environ={"LD_LIBRARY_PATH": "/opt/lib"})
    assert "LD_LIBRARY_PATH" not in variables.select(is_outside=False)
    assert variables.set_inside() == ("/usr/bin/env", "LD_LIBRARY_PATH=/opt/lib")
    assert variables.select(is_outside=True)["LD_LIBRARY_PATH"] == "/opt/lib"


@pytest.mark.parametrize(("hide", "num"), [((), 3), (("GIT_CONFIG_VALUE_0",), 0)])
def test_settings_for_git_pass_together_or_never(hide: tuple[str, ...], num: int) -> None:
    selected = CommandVariables(hide=hide, environ=GIT).select(is_outside=True)
    assert len(GIT.keys() & selected.keys()) == num


def test_three_hidden_variables_are_explained_at_most() -> None:
    environ = {f"MY_TOKEN_{number}": "x" for number in range(9)}
    assert len(CommandVariables(environ=environ).explain(" ".join(environ), is_outside=True)) == 3


def test_placeholder_of_several_words_is_not_shown() -> None:
    variables = CommandVariables(environ={"MY_TOKEN": "a b"}, redact=lambda text: text.replace("a", "[secret]"))
    (note,) = variables.explain("MY_TOKEN is missing", is_outside=True)
    assert "stands for its value" not in note


@pytest.mark.parametrize("value", ["two\nlines", "\udcff\udcfe", "", "x" * 200_000])
def test_value_of_any_form_passes_unchanged(value: str) -> None:
    assert CommandVariables(environ={"ANY": value}).select(is_outside=False)["ANY"] == value
