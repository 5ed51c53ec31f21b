"""Trust: whose folder it is, what becomes of it when the folder is another one, and who may have written the answer."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from tests import unprivileged
from wolo.config import consents
from wolo.errors import ConfigError
from wolo.places import Notices, Places, find_places
from wolo.workspace.root import find_root


@pytest.fixture
def places() -> Places:
    return find_places()


def answer(places: Places, root: Path) -> str | None:
    return consents.trust_in(places, Path(os.path.realpath(root)), Notices())


def test_answer_holds_for_this_folder_until_forgotten(places: Places) -> None:
    root = Path.cwd()
    assert answer(places, root) is None
    consents.save_trust(places, root, "trusted")
    assert answer(places, root) == "trusted"
    consents.save_trust(places, root, "never")
    assert answer(places, root) == "never"
    consents.forget(places, root)
    assert answer(places, root) is None
    consents.forget(places, root)


def test_no_neighbouring_folder_is_trusted(places: Places) -> None:
    root = Path("project").absolute()
    for folder in (root, Path("project-evil"), Path("project/inner"), Path("projec")):
        folder.mkdir()
    consents.save_trust(places, root, "trusted")
    others = [Path("project-evil"), Path("project/inner"), Path("projec"), root.parent, Path("/")]
    assert [answer(places, other) for other in others] == [None] * len(others)


def test_moved_or_replaced_folder_is_asked_anew(places: Places) -> None:
    root = Path("project").absolute()
    root.mkdir()
    consents.save_trust(places, root, "trusted")
    root.rename("moved")
    assert (answer(places, root), answer(places, Path("moved"))) == (None, None)
    root.mkdir()
    assert answer(places, root) is None
    root.rmdir()
    Path("moved").rename(root)
    assert answer(places, root) == "trusted"


def test_reused_folder_number_is_another_folder(places: Places) -> None:
    """A file system gives the inode of a folder that was removed to the next one."""
    root = Path("project").absolute()
    for _ in range(20):
        root.mkdir()
        consents.save_trust(places, root, "trusted")
        root.rmdir()
        root.mkdir()
        assert answer(places, root) is None
        root.rmdir()


def test_link_is_trusted_only_with_its_trusted_target(places: Places) -> None:
    good, evil, alias = Path("good").absolute(), Path("evil").absolute(), Path("alias")
    for folder in (good, evil):
        folder.mkdir()
    alias.symlink_to(good)
    consents.save_trust(places, find_root(alias), "trusted")
    assert (answer(places, alias), answer(places, good)) == ("trusted", "trusted")
    alias.unlink()
    alias.symlink_to(evil)
    assert answer(places, alias) is None


def test_home_and_root_cannot_be_trusted(places: Places, isolated: Path) -> None:
    for folder in (isolated / "home", Path("/")):
        consents.save_trust(places, folder, "trusted")
        assert answer(places, folder) is None


def test_a_name_in_no_encoding_can_be_trusted(places: Places) -> None:
    root = Path(os.fsdecode(os.fsencode(Path.cwd()) + b"/caf\xe9\n"))
    root.mkdir()
    consents.save_trust(places, root, "trusted")
    assert answer(places, root) == "trusted"


def test_store_is_private_and_keeps_concurrent_answers(places: Places) -> None:
    before = os.umask(0)
    try:
        roots = [Path(f"p{number}").absolute() for number in range(16)]
        for root in roots:
            root.mkdir()
        givers = [threading.Thread(target=consents.save_trust, args=(places, root, "trusted")) for root in roots]
        for giver in givers:
            giver.start()
        for giver in givers:
            giver.join()
    finally:
        os.umask(before)
    assert [answer(places, root) for root in roots] == ["trusted"] * 16
    assert {path.name: path.stat().st_mode & 0o777 for path in places.state.iterdir()} == {"trust.json": 0o600}
    assert places.state.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("said", ["", "[]", "{", '{"/x": 3}', "[" * 100_000, "\x00\xff"])
def test_a_damaged_store_trusts_nobody_and_says_so(places: Places, said: str) -> None:
    consents.save_trust(places, Path.cwd(), "trusted")
    store = places.state / "trust.json"
    store.write_text(said)
    if not said:
        assert answer(places, Path.cwd()) is None
        return
    with pytest.raises(ConfigError, match="damaged"):
        answer(places, Path.cwd())


@pytest.mark.parametrize("word", ["yes", "", "TRUSTED", 1, None])
def test_a_word_that_is_no_answer_is_none(places: Places, word: object) -> None:
    consents.save_trust(places, Path.cwd(), "trusted")
    store = places.state / "trust.json"
    kept = json.loads(store.read_text())
    kept[str(Path.cwd())]["answer"] = word
    store.write_text(json.dumps(kept))
    assert answer(places, Path.cwd()) is None


def test_without_its_identity_an_answer_is_none(places: Places) -> None:
    consents.save_trust(places, Path.cwd(), "trusted")
    store = places.state / "trust.json"
    store.write_text(json.dumps({str(Path.cwd()): {"answer": "trusted"}}))
    assert answer(places, Path.cwd()) is None
    gone = Path("gone").absolute()
    store.write_text(json.dumps({str(gone): {"answer": "trusted", "identity": ""}}))
    assert answer(places, gone) is None


def test_store_writable_by_others_is_refused(places: Places) -> None:
    with unprivileged.folder() as folder:
        assert unprivileged.call(_complaint_about_a_store_of_all, folder) == "every user of this machine"


def _complaint_about_a_store_of_all(folder: Path) -> str:
    places = Places(folder, folder, folder, folder / "state")
    consents.save_trust(places, folder, "trusted")
    (folder / "state" / "trust.json").chmod(0o666)
    try:
        consents.trust_in(places, folder, Notices())
    except ConfigError as error:
        return "every user of this machine" if "every user of this machine" in error.message else error.message
    return "it was read"
