"""API keys and what must stay secret."""

from __future__ import annotations

import pytest

from tests.fakes.sites import site_with
from wolo.config.keys import in_environment, unique_secrets, with_stored_keys
from wolo.errors import ConfigError
from wolo.messages.secret_values import Secret
from wolo.places import Notices, Places, find_places


@pytest.fixture
def places() -> Places:
    places = find_places()
    places.config.mkdir(parents=True)
    return places


def write_keys(places: Places, text: str, mode: int = 0o600) -> None:
    path = places.config / "keys.toml"
    path.write_text(text)
    path.chmod(mode)


def test_the_environment_comes_before_the_file(places: Places) -> None:
    write_keys(places, 'zai = " key-of-the-file "\nopenai = "another"')
    notices = Notices()
    assert with_stored_keys(site_with(places, {"ZAI_API_KEY": "key-b"}, notices=notices)) == {
        "ZAI_API_KEY": "key-b",
        "OPENAI_API_KEY": "another",
    }
    assert with_stored_keys(site_with(places, {"ZAI_API_KEY": ""}, notices=notices))["ZAI_API_KEY"] == "key-of-the-file"
    assert list(notices) == []


def test_without_a_file_there_is_no_key(places: Places) -> None:
    assert with_stored_keys(site_with(places, {})) == {}


def test_file_readable_by_others_becomes_private_with_notice(places: Places) -> None:
    write_keys(places, 'zai = "key"', mode=0o644)
    notices = Notices()
    assert with_stored_keys(site_with(places, {}, notices=notices))
    assert "could be read by other users" in next(iter(notices))
    assert (places.config / "keys.toml").stat().st_mode & 0o777 == 0o600


def test_a_file_others_can_write_is_refused(places: Places) -> None:
    write_keys(places, 'zai = "key"', mode=0o606)
    with pytest.raises(ConfigError):
        with_stored_keys(site_with(places, {}))


@pytest.mark.parametrize("text", ["zai = 1", 'openai = "b"\nzai = " "', "zai = ["])
def test_a_key_that_is_none_is_an_error(places: Places, text: str) -> None:
    write_keys(places, text)
    with pytest.raises(ConfigError) as caught:
        with_stored_keys(site_with(places, {}))
    assert "line " in caught.value.message


def test_secrets_are_exact_values_of_telling_names_only() -> None:
    environ = {
        "GITHUB_TOKEN": "ghp_1234567890",
        "DB_PASSWORD": " hunter2-hunter2 ",
        "SHORT_KEY": "abc",
        "EDITOR": "nano-nano-nano",
        "SSH_AUTH_SOCK": "/tmp/ssh-1/agent.1",
        "AGAIN_TOKEN": "ghp_1234567890",
    }
    assert unique_secrets([Secret("API_KEY", "sk-123456789"), Secret("API_KEY", "")], in_environment(environ)) == (
        Secret("API_KEY", "sk-123456789"),
        Secret("GITHUB_TOKEN", "ghp_1234567890"),
        Secret("DB_PASSWORD", "hunter2-hunter2"),
    )
