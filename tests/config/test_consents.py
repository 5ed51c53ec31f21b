"""Consents are saved per folder and for exactly the content that was shown."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from wolo.config import consents
from wolo.config.configured_servers import find_unanswered, is_refused, save_server_consent
from wolo.errors import ConfigError
from wolo.mcp.server import ConfiguredServer, Server
from wolo.places import Notices, Places, find_places


@pytest.fixture
def places() -> Places:
    return find_places()


def answers(places: Places, root: Path, *asked: str) -> list[consents.Consent | None]:
    return [consents.consent_to(places, root, each, Notices()) for each in asked]


def test_answer_covers_one_thing_in_one_folder(places: Places) -> None:
    root = Path.cwd()
    other = root / "other"
    other.mkdir()
    consents.save_consent(places, root, "hooks a 1", "yes")
    consents.save_consent(places, root, "hooks b 1", "never")
    assert answers(places, root, "hooks a 1", "hooks b 1", "hooks a 2") == ["yes", "never", None]
    assert answers(places, other, "hooks a 1") == [None]
    consents.save_consent(places, root, "hooks a 1", "never")
    assert answers(places, root, "hooks a 1") == ["never"]


def test_replaced_folder_is_asked_about_anew(places: Places) -> None:
    root = Path.cwd() / "project"
    root.mkdir()
    consents.save_consent(places, root, "hooks a 1", "yes")
    (Path.cwd() / "beside").mkdir()  # so that the new one cannot be the same on the disk
    root.rename("moved")
    root.mkdir()
    assert answers(places, root, "hooks a 1") == [None]
    shutil.rmtree(root)
    assert answers(places, root, "hooks a 1") == [None]


def test_forgotten_answer_is_asked_again(places: Places) -> None:
    consents.forget(places, Path.cwd())
    consents.save_consent(places, Path.cwd(), "hooks a 1", "yes")
    consents.save_consent(places, Path("/"), "hooks a 1", "yes")
    consents.forget(places, Path.cwd())
    assert answers(places, Path.cwd(), "hooks a 1") == [None]
    assert answers(places, Path("/"), "hooks a 1") == ["yes"]


def test_the_oldest_answers_are_forgotten(places: Places) -> None:
    for number in range(consents.MOST_CONSENTS + 1):
        consents.save_consent(places, Path.cwd(), str(number), "yes")
    assert answers(places, Path.cwd(), "0", "1", str(consents.MOST_CONSENTS)) == [None, "yes", "yes"]


@pytest.mark.parametrize("content", ["{", "[]", '{"/x": 1}', "[" * 100_000])
def test_a_damaged_store_lets_nothing_run(places: Places, content: str) -> None:
    places.state.mkdir(parents=True)
    (places.state / "consents.json").write_text(content)
    with pytest.raises(ConfigError, match="is damaged"):
        answers(places, Path.cwd(), "hooks a 1")


def test_malformed_answer_is_none(places: Places) -> None:
    consents.save_consent(places, Path.cwd(), "hooks a 1", "yes")
    path = places.state / "consents.json"
    path.write_text(json.dumps(json.loads(path.read_text().replace('"yes"', '"perhaps"'))))
    assert answers(places, Path.cwd(), "hooks a 1") == [None]
    path.write_text(re.sub(r'"answers": \{[^}]*\}', '"answers": ["hooks a 1"]', path.read_text()))
    assert answers(places, Path.cwd(), "hooks a 1") == [None]
    consents.save_consent(places, Path.cwd(), "hooks a 1", "yes")
    assert answers(places, Path.cwd(), "hooks a 1") == ["yes"]


def test_project_server_is_asked_about_until_answered(places: Places) -> None:
    def server(name: str) -> ConfiguredServer:
        return ConfiguredServer(name=name, server=Server(command=name), source="the project", is_allowed=False)

    wanted, root = (server("one"), server("two")), Path.cwd()
    assert find_unanswered(wanted, places, root) == [*wanted]
    save_server_consent(places, root, wanted[0], allowed=False)
    assert [is_refused(places, root, each) for each in wanted] == [True, False]
    assert find_unanswered(wanted, places, root) == [wanted[1]]
    save_server_consent(places, root, wanted[1], allowed=True)
    assert not is_refused(places, root, wanted[1])
