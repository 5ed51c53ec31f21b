"""A cassette comes from anywhere: it is played as far as it can be read, and writes where it may."""

from __future__ import annotations

import base64
import json
import random
from contextlib import suppress
from pathlib import Path

import pytest

from wolo.errors import SessionError
from wolo.replay.player import Replayed, ReplayOptions, replay
from wolo.replay.replay_setup import from_file, prepare_workspace
from wolo.workspace.landlock import ConfinedRunner

CASSETTES = Path(__file__).parent.parent / "cassettes"
WHOLE = (CASSETTES / "detours.cassette").read_bytes()


def play(data: bytes, folder: Path) -> Replayed:
    (folder / "stage").mkdir(parents=True)
    file = folder / "a.cassette"
    file.write_bytes(data)
    recording = from_file(file, folder)
    try:
        stage = prepare_workspace(recording, folder / "stage", None)
        info = recording.info
        rerun = ReplayOptions(tape=recording.tape, stage=stage, model=info.model, mode=info.mode, flags={}, is_strict=True)
        return ConfinedRunner(lambda: replay(rerun), stage.folder, only_writes=True).run()
    finally:
        recording.store.close()


def test_cut_cassette_is_played_or_refused(isolated: Path) -> None:
    for number, length in enumerate(range(0, len(WHOLE), 997)):
        with suppress(SessionError):
            play(WHOLE[:length], isolated / f"cut-{number}")
    assert list(Path.cwd().iterdir()) == []


def test_one_that_was_damaged_is_played_or_refused(isolated: Path) -> None:
    dice = random.Random(7)
    for number in range(40):
        data = bytearray(WHOLE)
        for _ in range(dice.choice((1, 3, 30))):
            at = dice.randrange(len(data))
            data[at : at + dice.choice((0, 1, 9))] = dice.choice((b"", b"\0", b"\xff\n", b'"', b"}\n{"))
        with suppress(SessionError):
            play(bytes(data), isolated / f"damaged-{number}")
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.parametrize("path", ["../out.txt", "/etc/out.txt", "a/../../out.txt", ".", "", "a\0b", "x" * 5_000])
def test_no_file_is_made_outside_its_workspace(path: str, isolated: Path) -> None:
    header, _, *session = WHOLE.split(b"\n")
    file = {"wolo": "file", "path": path, "data": base64.b64encode(b"x").decode()}
    with pytest.raises(SessionError):
        play(b"\n".join((header, json.dumps(file).encode(), *session)), isolated / "it")
    assert not any(found.name == "out.txt" for found in isolated.rglob("*"))


@pytest.mark.parametrize("path", [".git/config", "sub/.GIT/hooks/post-checkout", ".git"])
def test_cassette_yields_no_git_directory(path: str, isolated: Path) -> None:
    header, _, *session = WHOLE.split(b"\n")
    file = {"wolo": "file", "path": path, "data": base64.b64encode(b"x").decode()}
    played = play(b"\n".join((header, json.dumps(file).encode(), *session)), isolated / "it")
    assert any(path in notice for notice in played.notices)
    assert not any(found.name.lower() == ".git" for found in isolated.rglob("*"))


@pytest.mark.parametrize(
    ("root", "cwd"), [("/a/..", "/a/.."), ("/tmp/project", "/etc"), ("/", "/"), ("", ""), ("/a", "/a/gone/deep")]
)
def test_replay_stays_in_its_copy_despite_directories(root: str, cwd: str, isolated: Path) -> None:
    _, *rest = WHOLE.split(b"\n")
    header = {"wolo": "cassette", "version": 1, "root": root, "cwd": cwd, "files": 1}
    before = set(isolated.iterdir())
    play(b"\n".join((json.dumps(header).encode(), *rest)), isolated / "it")
    assert set(isolated.iterdir()) - before - {isolated / "wolo"} == {isolated / "it"}
    assert {path.name for path in (isolated / "it" / "stage").iterdir()} == {"scratch", "workspace"}


def test_one_of_a_newer_wolo_says_so(isolated: Path) -> None:
    with pytest.raises(SessionError, match="newer version of wolo"):
        play(WHOLE.replace(b'"version":1', b'"version":2', 1), isolated / "it")
