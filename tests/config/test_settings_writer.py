"""Changing the user's settings: what was there stays, what makes no sense is not written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from wolo.config.layers import load
from wolo.config.settings_writer import save_rule, set_value
from wolo.errors import ConfigError
from wolo.places import Places, find_places
from wolo.workspace.root import find_site


@pytest.fixture
def places() -> Places:
    return find_places()


def test_value_is_set_read_back_without_other_changes(places: Places) -> None:
    places.config.mkdir(parents=True)
    path = places.config / "config.toml"
    path.write_text('# mine\nmodel = "a/b"  # the good one\n\n[limits]\nmax_turns = 3\n')
    set_value(places, "limits.max_cost", "0.5")
    set_value(places, "model", "c/d")
    set_value(places, "tools.offer", '["read", "write"]')
    settings = load(find_site()).settings
    assert (settings.model, settings.limits.max_turns, settings.limits.max_cost) == ("c/d", 3, 0.5)
    assert settings.tools.offer == ("read", "write")
    assert path.read_text().startswith('# mine\nmodel = "c/d"  # the good one\n')


def test_file_and_directory_are_private(places: Places) -> None:
    set_value(places, "model", "a/b")
    assert places.config.stat().st_mode & 0o777 == 0o700
    assert (places.config / "config.toml").stat().st_mode & 0o777 == 0o600
    assert [each.name for each in places.config.iterdir()] == ["config.toml"]


@pytest.mark.parametrize(
    ("key", "value"), [("modle", "x"), ("limits.max_turns", "ten"), ("limits", "1"), ("mode", "yolo"), ("", "x")]
)
def test_senseless_value_leaves_the_file_unchanged(places: Places, key: str, value: str) -> None:
    set_value(places, "model", "a/b")
    before = (places.config / "config.toml").read_bytes()
    with pytest.raises(ConfigError):
        set_value(places, key, value)
    assert (places.config / "config.toml").read_bytes() == before


def test_a_broken_file_is_not_replaced(places: Places) -> None:
    places.config.mkdir(parents=True)
    (places.config / "config.toml").write_text("model = ")
    with pytest.raises(ConfigError):
        set_value(places, "model", "a/b")
    assert (places.config / "config.toml").read_text() == "model = "


def test_a_link_stays_a_link(places: Places, isolated: Path) -> None:
    places.config.mkdir(parents=True)
    dotfile = isolated / "dotfiles.toml"
    dotfile.write_text('model = "a/b"\n')
    (places.config / "config.toml").symlink_to(dotfile)
    set_value(places, "model", "c/d")
    assert (places.config / "config.toml").is_symlink()
    assert dotfile.read_text() == 'model = "c/d"\n'


def test_always_persists_in_this_workspace_only(places: Places, isolated: Path) -> None:
    save_rule(places, Path.cwd(), "shell:npm test")
    save_rule(places, Path.cwd(), "write:/etc/x")
    save_rule(places, Path.cwd(), "shell:npm test")
    assert [str(rule) for rule in load(find_site()).rules] == ["shell:npm test", "write:/etc/x"]
    assert load(find_site(isolated)).rules == ()
    assert (places.config / "permissions.toml").stat().st_mode & 0o777 == 0o600


def test_always_in_a_subdirectory_covers_the_workspace(places: Places) -> None:
    (Path.cwd() / ".git").mkdir()
    (Path.cwd() / "sub").mkdir()
    save_rule(places, Path.cwd(), "shell:make")
    assert [str(rule) for rule in load(find_site(Path.cwd() / "sub")).rules] == ["shell:make"]


def test_a_rule_that_is_none_is_not_kept(places: Places) -> None:
    with pytest.raises(ConfigError):
        save_rule(places, Path.cwd(), "ls")
    assert not (places.config / "permissions.toml").exists()


def test_many_sessions_may_say_always_at_once(places: Places) -> None:
    script = (
        "import sys, tomlkit; from pathlib import Path; from wolo.config.settings_writer import save_rule;"
        "from wolo.places import find_places; print('ready', flush=True); sys.stdin.readline();"
        "[save_rule(find_places(), Path.cwd(), f'shell:x{sys.argv[1]}-{n}') for n in range(10)]"
    )
    argv = [sys.executable, "-c", script]
    pipe = subprocess.PIPE
    running = [subprocess.Popen([*argv, str(number)], stdin=pipe, stdout=pipe, text=True) for number in range(4)]
    for each in running:
        assert each.stdout
        assert each.stdout.readline() == "ready\n"
    for each in running:
        assert each.stdin
        each.stdin.write("go\n")
        each.stdin.flush()
    for each in running:
        each.communicate(timeout=60)
    assert [each.returncode for each in running] == [0] * 4
    assert len(load(find_site()).rules) == 40
