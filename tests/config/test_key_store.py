"""The keys that wolo keeps: in a file of its own, or in the system's keyring."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import keyring
import keyring.core
import pytest

from tests import unprivileged
from tests.fakes import keyring_in_a_file
from tests.fakes.sites import site_with
from wolo.config import key_store, keys
from wolo.config.key_store import StoredKey
from wolo.errors import ConfigError
from wolo.places import Notices, Places, find_places

KEEP = "import sys; from wolo.config import key_store as kept_keys; from wolo.places import find_places\n"


@pytest.fixture
def places() -> Places:
    return find_places()


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file in which the system's keyring lies."""
    return use_keyring("InAFile", monkeypatch, tmp_path)


def use_keyring(kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("KEYRING_FILE", str(tmp_path / "keyring.json"))
    monkeypatch.setattr(keyring.core, "_keyring_backend", getattr(keyring_in_a_file, kind)())
    return tmp_path / "keyring.json"


def file_of(places: Places) -> Path:
    return places.config / "keys.toml"


def test_key_is_kept_private_and_found_again(places: Places) -> None:
    assert key_store.save(places, "zai", "key-one-1234", in_keyring=False) == "keys.toml"
    assert file_of(places).stat().st_mode & 0o777 == 0o600
    assert key_store.read(places, Notices()) == {"zai": StoredKey("keys.toml", "key-one-1234")}
    assert keys.with_stored_keys(site_with(places, {}))["ZAI_API_KEY"] == "key-one-1234"


def test_comments_order_and_other_keys_stay(places: Places) -> None:
    places.config.mkdir(parents=True)
    file_of(places).write_text('# mine\nopenai = "one" # work\nzai = "old"  # home\n')
    file_of(places).chmod(0o600)
    key_store.save(places, "zai", "new", in_keyring=False)
    key_store.save(places, "my.host", "third", in_keyring=False)
    assert file_of(places).read_text() == '# mine\nopenai = "one" # work\nzai = "new"  # home\n"my.host" = "third"\n'
    assert key_store.remove(places, "openai") == "keys.toml"
    assert key_store.remove(places, "openai") is None
    assert list(key_store.read(places, Notices())) == ["zai", "my.host"]


def test_the_keyring_is_taken_where_there_is_one(places: Places, ring: Path) -> None:
    assert key_store.save(places, "zai", "key-in-the-ring", in_keyring=True) == "keyring"
    assert "key-in-the-ring" in ring.read_text()
    assert "key-in-the-ring" not in file_of(places).read_text()
    assert keys.with_stored_keys(site_with(places, {}))["ZAI_API_KEY"] == "key-in-the-ring"
    assert [each.value for each in keys.written_down(places, {})] == ["key-in-the-ring"]
    assert key_store.remove(places, "zai") == "keyring"
    assert "key-in-the-ring" not in ring.read_text()


def test_key_moved_to_the_file_leaves_keyring(places: Places, ring: Path) -> None:
    key_store.save(places, "zai", "key-in-the-ring", in_keyring=True)
    assert key_store.save(places, "zai", "key-in-the-file", in_keyring=False) == "keys.toml"
    assert ring.read_text() == "{}"
    assert key_store.read(places, Notices()) == {"zai": StoredKey("keys.toml", "key-in-the-file")}
    assert key_store.save(places, "zai", "back-again", in_keyring=True) == "keyring"
    assert "key-in-the-file" not in file_of(places).read_text()


@pytest.mark.parametrize("kind", ["Forgetful", "Locked", "Silent"])
def test_a_keyring_that_keeps_nothing_is_none(kind: str, places: Places, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use_keyring(kind, monkeypatch, tmp_path)
    monkeypatch.setattr(key_store, "ANSWER_S", 0.2)
    assert key_store.save(places, "zai", "key-one-1234", in_keyring=True) == "keys.toml"


def test_locked_keyring_is_a_notice_without_failure(places: Places, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use_keyring("InAFile", monkeypatch, tmp_path)
    key_store.save(places, "zai", "key-in-the-ring", in_keyring=True)
    use_keyring("Locked", monkeypatch, tmp_path)
    notices = Notices()
    assert "ZAI_API_KEY" not in keys.with_stored_keys(site_with(places, {}, notices=notices))
    assert "The key of zai is in the keyring" in next(iter(notices))


def test_keyring_is_not_asked_for_environment_keys(places: Places, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use_keyring("InAFile", monkeypatch, tmp_path)
    key_store.save(places, "zai", "key-in-the-ring", in_keyring=True)
    use_keyring("Locked", monkeypatch, tmp_path)
    notices = Notices()
    assert keys.with_stored_keys(site_with(places, {"ZAI_API_KEY": "mine"}, notices=notices)) == {"ZAI_API_KEY": "mine"}
    assert not notices


def test_unwritable_store_leaves_nothing_in_the_keyring() -> None:
    with unprivileged.folder() as folder:
        assert unprivileged.call(_keep_where_nothing_can_be_written, folder) == ("The file is unchanged.", "{}")


def _keep_where_nothing_can_be_written(folder: Path) -> tuple[str, str]:
    places = find_places({"WOLO_HOME": str(folder)})
    places.config.mkdir()
    places.config.chmod(0o500)
    os.environ["KEYRING_FILE"] = str(folder / "keyring.json")
    keyring.set_keyring(keyring_in_a_file.InAFile())
    try:
        key_store.save(places, "zai", "key-in-the-ring", in_keyring=True)
    except ConfigError as error:
        return error.hint, (folder / "keyring.json").read_text()
    return "", ""


def test_concurrent_logins_all_keep_their_key(places: Places) -> None:
    names = ["zai", "openai", "anthropic", "gemini", "mistral", "groq"]
    call = KEEP + "kept_keys.save(find_places(), sys.argv[1], 'key-of-' + sys.argv[1], in_keyring=False)"
    processes = [subprocess.Popen([sys.executable, "-c", call, name]) for name in names]
    assert [process.wait(30) for process in processes] == [0] * len(names)
    assert {name: kept.key for name, kept in key_store.read(places, Notices()).items()} == {
        name: f"key-of-{name}" for name in names
    }


def test_file_writable_by_others_stays_unread_and_unchanged(places: Places) -> None:
    places.config.mkdir(parents=True)
    file_of(places).write_text('zai = "theirs"\n')
    file_of(places).chmod(0o606)
    with pytest.raises(ConfigError, match="every user"):
        key_store.save(places, "zai", "mine", in_keyring=False)
    assert file_of(places).read_text() == 'zai = "theirs"\n'


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_file_of_somebody_else_is_left_alone(places: Places) -> None:
    places.config.mkdir(parents=True)
    file_of(places).write_text('zai = "theirs"\n')
    os.chown(file_of(places), 12345, 12345)
    with pytest.raises(ConfigError, match="belongs to another user"):
        key_store.save(places, "zai", "mine", in_keyring=False)
