"""The prompt history of each directory, shared by several processes."""

from __future__ import annotations

import multiprocessing
import stat
from pathlib import Path

import pytest

from wolo.frontends.terminal.composer import prompt_storage
from wolo.frontends.terminal.composer.pastes import Pastes
from wolo.frontends.terminal.composer.prompt_storage import DirectoryHistory, Drafts, named_after


def opened(folder: Path, directory: str = "here") -> DirectoryHistory:
    return DirectoryHistory(folder, Path.cwd() / directory, Pastes())


def remembered(folder: Path, directory: str = "here") -> list[str]:
    return list(opened(folder, directory).load_history_strings())


def _write(folder: Path, name: str) -> None:
    kept = opened(folder)
    for number in range(200):
        kept.store_string(f"{name} {number} " + "x" * 500)


def test_newest_first_and_every_directory_for_itself(tmp_path: Path) -> None:
    folder = tmp_path / "history"
    opened(folder).store_string("one\ntwo")
    opened(folder).store_string("three")
    opened(folder, "there").store_string("elsewhere")
    assert remembered(folder) == ["three", "one\ntwo"]
    assert remembered(folder, "there") == ["elsewhere"]
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in folder.iterdir())
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_processes_at_once_lose_nothing_and_tear_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "history"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(folder, name)) for name in ("a", "b")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    found = remembered(folder)
    assert len(found) == 400
    for name in ("a", "b"):
        assert [int(text.split()[1]) for text in reversed(found) if text.startswith(name)] == list(range(200))


def test_a_torn_line_costs_that_line_alone(tmp_path: Path) -> None:
    folder = tmp_path / "history"
    opened(folder).store_string("whole")
    (path,) = folder.iterdir()
    with path.open("ab") as file:
        file.write(b'{"text": "to')
    opened(folder).store_string("after")
    assert remembered(folder) == ["after", "whole"]


@pytest.mark.parametrize("strange", ["{}", '{"pastes": {}}', '{"text": 5}', "[]", "nonsense", '{"text": "\\ud800"}', "\x00"])
def test_a_strange_line_costs_that_line_alone(tmp_path: Path, strange: str) -> None:
    folder = tmp_path / "history"
    opened(folder).store_string("before")
    (path,) = folder.iterdir()
    with path.open("a") as file:
        file.write(f"{strange}\n")
    opened(folder).store_string("after")
    assert remembered(folder) == ["after", "before"]


@pytest.mark.parametrize("strange", ["{}", '{"pastes": {}}', "[]", "nonsense"])
def test_a_strange_draft_is_none(tmp_path: Path, strange: str) -> None:
    drafts = Drafts(tmp_path, Path("here"), Pastes())
    drafts.save("half")
    drafts.close()
    (path,) = tmp_path.glob("*.json")
    path.write_text(strange)
    assert Drafts(tmp_path, Path("here"), Pastes()).left_behind() == ""


def test_a_file_that_has_grown_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompt_storage, "MOST_READ_BYTES", 1000)
    monkeypatch.setattr(prompt_storage, "MOST_KEPT_BYTES", 3000)
    folder = tmp_path / "history"
    for number in range(200):
        opened(folder).store_string(f"prompt {number}")
    (path,) = folder.iterdir()
    assert path.stat().st_size < 3100
    assert remembered(folder)[:2] == ["prompt 199", "prompt 198"]


def test_a_link_in_the_way_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "history"
    folder.mkdir()
    target = tmp_path / "target"
    target.write_text("mine")
    (folder / f"{named_after(Path.cwd() / 'here')}.jsonl").symlink_to(target)
    opened(folder).store_string("not there")
    assert target.read_text() == "mine"


def test_drafts_of_two_processes_do_not_meet(tmp_path: Path) -> None:
    first, second = (Drafts(tmp_path / "drafts", Path.cwd(), Pastes()) for _ in range(2))
    first.save("of the first")
    second.save("of the second")
    first.close()
    third = Drafts(tmp_path / "drafts", Path.cwd(), Pastes())
    assert third.left_behind() == "of the first"
    second.close()
    fourth = Drafts(tmp_path / "drafts", Path.cwd(), Pastes())
    assert fourth.left_behind() == "of the second"
    third.save("")
    third.close()
    fourth.close()


def test_a_draft_that_was_sent_is_gone(tmp_path: Path) -> None:
    drafts = Drafts(tmp_path / "drafts", Path.cwd(), Pastes())
    drafts.save("half a thought")
    drafts.save("")
    drafts.close()
    assert Drafts(tmp_path / "drafts", Path.cwd(), Pastes()).left_behind() == ""
