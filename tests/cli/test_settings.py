"""`wolo config set` and `wolo config edit`: checked before anything is written."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.screen import pty_wolo
from wolo.places import find_places


def settings_file() -> Path:
    return find_places().config / "config.toml"


def write(text: str) -> None:
    settings_file().parent.mkdir(parents=True, exist_ok=True)
    settings_file().write_text(text)


def test_setting_is_written_and_shown_as_effective() -> None:
    write("# mine\n[limits]\nmax_turns = 3 # few\n")
    done = run_wolo("config", "set", "limits.max_turns", "20")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "limits.max_turns = 20\n", "")
    assert settings_file().read_text() == "# mine\n[limits]\nmax_turns = 20 # few\n"


def test_stronger_source_is_named() -> None:
    done = run_wolo("config", "set", "model", "zai/glm-5.2", env={"WOLO_MODEL": "zai/glm-5.1"})
    assert done.stdout == 'model = "zai/glm-5.1"\n'
    assert "overridden here by WOLO_MODEL" in done.stderr


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("fallbackmodel", "x", "Did you mean fallback_model?"),
        ("limits.max_turns", "many", "limits.max_turns"),
        ("limits.max_turns", "0", "must be above 0"),
        ("mode", "yolo", "cannot be set in a file"),
        ("permissions.deny", "shell", "shell"),
        ("providers.zai.api_key", "sk-zai-0123456789abcdef", "cannot be arguments"),
        ("headers.extra.Host", "x", "cannot be set as a header"),
    ],
)
def test_senseless_value_is_not_written(key: str, value: str, words: str) -> None:
    write("mode = 'ask'\n")
    done = run_wolo("config", "set", key, value)
    assert done.exit_code == 2
    assert words in done.stderr
    assert "sk-zai" not in done.stderr
    assert settings_file().read_text() == "mode = 'ask'\n"


@pytest.mark.parametrize(
    ("key", "value", "written"),
    [
        ("permissions.allow", '["shell:ls", "read:src/**"]', 'allow = ["shell:ls", "read:src/**"]'),
        (
            "providers.acme.models",
            '[{id = "large", context = 1000}]',
            '[[providers.acme.models]]\nid = "large"\ncontext = 1000\n',
        ),
        ("providers.zai.api_key", "$MY_KEY", 'api_key = "$MY_KEY"'),
        ("ui.plain", "true", "plain = true"),
    ],
)
def test_every_kind_of_value_can_be_set(key: str, value: str, written: str) -> None:
    assert run_wolo("config", "set", key, value).exit_code == 0
    assert written in settings_file().read_text()
    assert run_wolo("config", "show").exit_code == 0


def editor(folder: Path, *texts: str) -> dict[str, str]:
    """An editor that writes these texts, one each time it is opened."""
    script = folder / "editor.py"
    script.write_text(
        f"import pathlib, sys\ncount = pathlib.Path({str(folder / 'count')!r})\n"
        "turn = int(count.read_text()) if count.exists() else 0\ncount.write_text(str(turn + 1))\n"
        f"pathlib.Path(sys.argv[1]).write_text({list(texts)!r}[turn])\n"
    )
    return {"VISUAL": f"{sys.executable} {script}"}


def test_settings_are_edited_and_checked(tmp_path: Path) -> None:
    write("mode = 'ask'\n")
    with pty_wolo("config", "edit", env=editor(tmp_path, "mode = 'edit'\n")) as terminal:
        assert terminal.wait_for_exit() == 0
    assert settings_file().read_text() == "mode = 'edit'\n"


def test_broken_settings_lead_back_into_the_editor(tmp_path: Path) -> None:
    write("mode = 'ask'\n")
    with pty_wolo("config", "edit", env=editor(tmp_path, "mode = \n", "mode = 'plan'\n")) as terminal:
        terminal.wait_for("Edit again?")
        terminal.wait_for("line 1")
        assert settings_file().read_text() == "mode = 'ask'\n"
        terminal.press("enter")
        assert terminal.wait_for_exit() == 0
    assert settings_file().read_text() == "mode = 'plan'\n"


def test_one_can_leave_it_as_it_was(tmp_path: Path) -> None:
    write("mode = 'ask'\n")
    with pty_wolo("config", "edit", env=editor(tmp_path, "modle = 'x'\n")) as terminal:
        terminal.wait_for("Edit again?")
        terminal.enter("n")
        assert terminal.wait_for_exit() == 2
    assert settings_file().read_text() == "mode = 'ask'\n"


def test_broken_file_can_be_mended(tmp_path: Path) -> None:
    write("mode = \n")
    with pty_wolo("config", "edit", env=editor(tmp_path, "mode = 'ask'\n")) as terminal:
        assert terminal.wait_for_exit() == 0
    assert run_wolo("config", "show").exit_code == 0


def test_foreign_concurrent_change_is_not_overwritten(tmp_path: Path) -> None:
    write("mode = 'ask'\n")
    own = editor(tmp_path, "mode = 'edit'\n")
    script = Path(own["VISUAL"].split()[1])
    script.write_text(script.read_text() + f"pathlib.Path({str(settings_file())!r}).write_text(\"mode = 'plan'\\n\")\n")
    with pty_wolo("config", "edit", env=own) as terminal:
        assert terminal.wait_for_exit() == 2
        terminal.wait_for("changed by another program")
    assert settings_file().read_text() == "mode = 'plan'\n"
    assert settings_file().with_name("config.toml.edited").read_text() == "mode = 'edit'\n"


def test_without_a_terminal_there_is_no_editor() -> None:
    done = run_wolo("config", "edit")
    assert (done.exit_code, done.stderr.splitlines()[0]) == (2, "wolo: An editor needs a terminal.")
