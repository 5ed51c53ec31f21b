"""Wolo's own form: what goes out comes in again as the same bytes, and what cannot be read is left out and counted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sessions.exchange.histories_kept import SECRET, keep, said, steps
from tests.sessions.samples import tool_turn
from wolo.diagnostics.session_check import check_kept
from wolo.messages.message import Message, user
from wolo.messages.parts import FilePart, ImagePart, TextPart, ToolPart
from wolo.sessions import replay_entries
from wolo.sessions.entries import AnyEntry, BranchEntry, MessageEntry, PartialEntry
from wolo.sessions.exchange import importer, jsonl, jsonl_import
from wolo.sessions.exchange.jsonl import check
from wolo.sessions.exchange.jsonl_import import survey
from wolo.sessions.exchange.redaction import Redactor
from wolo.sessions.store import Store


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "other") as opened:
        yield opened


def exported(store: Store, session_id: str, redactor: Redactor | None = None) -> bytes:
    pieces: list[bytes] = []
    jsonl.write(store, store.find(session_id), pieces.append, redactor)
    return b"".join(pieces)


def imported(store: Store, path: Path, content: bytes | None = None, cwd: str = "") -> importer.ImportReport:
    if content is not None:
        path.write_bytes(content)
    return importer.import_session(store, importer.read(path), cwd or str(Path.cwd()))


def texts(store: Store, session_id: str) -> list[str]:
    return [message.text for message in replay_entries.messages(store.load(session_id).entries)]


def test_a_session_moves_to_another_machine_and_back(store: Store, other: Store, tmp_path: Path) -> None:
    session_id = keep(store, Path.cwd(), said(user("Hello"), user("again")))
    store.append(session_id, tool_turn(1, output="z" * 200_000))
    store.append(session_id, [BranchEntry(left=4), MessageEntry(message=user("another way"))], behind=1)
    path = store.store_blob(session_id, "shell.txt", b"\xff\x00 output")

    first = exported(store, session_id)
    report = imported(other, tmp_path / "a.jsonl", first)

    assert (report.info.id, report.skipped, report.notices) == (session_id, 0, ())
    assert exported(other, session_id) == first
    assert texts(other, session_id) == ["Hello", "another way"]
    assert (other.blobs_dir / path.name).read_bytes() == b"\xff\x00 output"
    assert other.latest(Path.cwd()) == report.info
    assert check(other, session_id).broken is None


@settings(max_examples=20)
@given(found=steps())
def test_session_exports_the_bytes_of_its_import(found: list[tuple[AnyEntry, int | None]]) -> None:
    with TemporaryDirectory() as folder, Store.open(Path(folder) / "a") as one, Store.open(Path(folder) / "b") as two:
        session_id = keep(one, Path.cwd(), found)
        content = exported(one, session_id)
        report = imported(two, Path(folder) / "x.jsonl", content, cwd=folder)
        assert report.skipped == 0
        assert exported(two, session_id) == content
        assert two.load(session_id).entries == one.load(session_id).entries
        assert check(two, session_id).broken is None


@settings(max_examples=20)
@given(found=steps(), where=st.floats(0, 0.999), length=st.integers(1, 30), noise=st.binary(max_size=10))
def test_damage_is_counted_and_the_rest_imported(
    found: list[tuple[AnyEntry, int | None]], where: float, length: int, noise: bytes
) -> None:
    with TemporaryDirectory() as folder, Store.open(Path(folder) / "a") as one, Store.open(Path(folder) / "b") as two:
        content = bytearray(exported(one, keep(one, Path.cwd(), [*found, *said(user("last"))])))
        at = int(where * len(content))
        content[at : at + length] = noise
        path = Path(folder) / "x.jsonl"
        path.write_bytes(content)
        if not survey(path).kept:
            return
        report = imported(two, path)
        assert not two.load(report.info.id).skipped
        assert check(two, report.info.id).broken is None


@pytest.mark.parametrize(
    "damage",
    [b"\0\0\0\0", b'{"seq":3,"par', b'{"half":"\xed\xa0\xbd"}', b'{"seq":99,"time":1.0,"hash":"00","body":{"kind":"new"}}'],
)
def test_unreadable_line_is_left_out_and_counted(store: Store, other: Store, tmp_path: Path, damage: bytes) -> None:
    lines = exported(store, keep(store, Path.cwd(), said(user("a"), user("b"), user("c")))).splitlines()
    lines[2] = damage
    report = imported(other, tmp_path / "x.jsonl", b"\n".join(lines))
    assert report.skipped == 1
    assert texts(other, report.info.id) == ["a", "c"]
    checked = survey(tmp_path / "x.jsonl").checked
    assert checked.broken
    assert checked.broken.seq == 2


def test_results_of_a_torn_answer_go_with_it(store: Store, other: Store, tmp_path: Path) -> None:
    session_id = keep(store, Path.cwd(), said(user("Hello")))
    for number in (1, 2):
        store.append(session_id, tool_turn(number))
    lines = exported(store, session_id).split(b"\n")
    report = imported(other, tmp_path / "torn.jsonl", b"\n".join([*lines[:2], lines[2][:40], *lines[3:]]))
    assert (report.entries, report.skipped) == (3, 2)
    assert not [each for each in check_kept(other.load(report.info.id)) if each.severity == "error"]


def test_early_ending_file_names_the_missing_part(store: Store, other: Store, tmp_path: Path) -> None:
    lines = exported(store, keep(store, Path.cwd(), said(user("a"), user("b"), user("c")))).splitlines()
    report = imported(other, tmp_path / "x.jsonl", b"\n".join(lines[:-1]))
    assert (report.skipped, texts(other, report.info.id)) == (1, ["a", "b"])


def test_file_without_first_line_is_imported(store: Store, other: Store, tmp_path: Path) -> None:
    lines = exported(store, keep(store, Path.cwd(), said(user("a"), user("b")))).splitlines()
    report = imported(other, tmp_path / "x.jsonl", b"\n".join(lines[1:]))
    assert (report.info.title, texts(other, report.info.id)) == ("a", ["a", "b"])


def test_the_same_file_is_known_again(store: Store, other: Store, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    first = imported(other, path, exported(store, keep(store, Path.cwd(), said(user("a")))))
    again = imported(other, path)
    assert (again.was_there, again.info.id) == (True, first.info.id)
    assert len(other.list()) == 1
    other.delete(first.info.id)
    assert not imported(other, path).was_there


def test_taken_id_is_replaced_with_both_named(store: Store, tmp_path: Path) -> None:
    session_id = keep(store, Path.cwd(), said(user("a")))
    report = imported(store, tmp_path / "x.jsonl", exported(store, session_id))
    assert report.wanted_id == session_id != report.info.id
    assert not report.was_there
    assert texts(store, report.info.id) == ["a"]


def test_a_name_that_is_taken_is_given_up(store: Store, other: Store, tmp_path: Path) -> None:
    session_id = keep(store, Path.cwd(), said(user("a")))
    store.rename(session_id, "mine")
    other.create(Path.cwd(), name="mine")
    report = imported(other, tmp_path / "x.jsonl", exported(store, session_id))
    assert report.info.name is None
    assert "mine" in report.notices[0]


def test_messages_after_an_import_go_out_too(store: Store, other: Store, tmp_path: Path) -> None:
    session_id = keep(store, Path.cwd(), said(user("a")))
    imported(other, tmp_path / "x.jsonl", exported(store, session_id))
    other.append(session_id, [MessageEntry(message=user("b"))])
    with Store.open(tmp_path / "third") as third:
        report = imported(third, tmp_path / "y.jsonl", exported(other, session_id))
        assert texts(third, report.info.id) == ["a", "b"]


def test_broken_import_leaves_nothing_and_can_repeat(store: Store, other: Store, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(exported(store, keep(store, Path.cwd(), said(*(user(str(number)) for number in range(200))))))
    source = importer.read(path)

    def breaks() -> Iterator[object]:
        yield from list(source_rows)[:150]
        raise KeyboardInterrupt

    source_rows = jsonl_import.rows(path, source.survey)  # type: ignore[arg-type]  # it is wolo's own
    with pytest.raises(KeyboardInterrupt):
        other.raw.import_rows(source.facts, b"{}", breaks())  # type: ignore[arg-type]  # rows
    assert other.list() == []
    assert imported(other, path).entries == 200


# Secrets


SAID = [
    user(f"my key is {SECRET}"),
    Message(
        role="assistant",
        parts=(
            TextPart(text="I see."),
            ToolPart(
                tool="shell", raw_input=json.dumps({"command": f"curl -H {SECRET}"}), input={"command": f"curl -H {SECRET}"}
            ),
        ),
    ),
    Message(role="user", parts=(ImagePart(media_type="image/png", data=b"\x89PNG" + b"known-value-1" + b"\xff"),)),
    Message(role="user", parts=(FilePart(name=".env", data=b"A=known-value-1"),)),
]


def test_no_secret_leaves_and_the_chain_still_holds(store: Store, other: Store, tmp_path: Path) -> None:
    session_id = keep(store, Path.cwd(), said(*SAID))
    store.store_blob(session_id, "shell.txt", b"known-value-1")
    store.append(
        session_id, [PartialEntry(message_id="m", text=f"so {SECRET[:20]}"), PartialEntry(message_id="m", text=SECRET[20:])]
    )
    path = tmp_path / "x.jsonl"
    content = exported(store, session_id, Redactor(["known-value-1"]))
    for secret in (SECRET, SECRET[:20], SECRET[20:], "known-value-1", "a25vd24tdmFsdWUt"):
        assert secret.encode() not in content
    path.write_bytes(content)
    checked = survey(path).checked
    assert (checked.broken, checked.redacted) == (None, 6)
    assert texts(store, session_id)[0] == SAID[0].text
    assert "[redacted]" in texts(other, imported(other, path).info.id)[0]


def test_secretless_session_exports_equally_both_ways(store: Store) -> None:
    session_id = keep(store, Path.cwd(), said(user("nothing here"), user("\ud83d half")))
    assert exported(store, session_id, Redactor(["known-value-1"])) == exported(store, session_id)


@pytest.mark.parametrize(
    ("old", "new"), [(b"[redacted]", b"[whatever]"), (b"nothing here", b"something it"), (b'"seq":2', b'"seq":7')]
)
def test_whoever_changes_an_export_is_found_out(store: Store, tmp_path: Path, old: bytes, new: bytes) -> None:
    session_id = keep(store, Path.cwd(), said(user("nothing here"), *SAID[:1]))
    content = exported(store, session_id, Redactor())
    head, _, rest = content.partition(b"\n")
    path = tmp_path / "x.jsonl"
    path.write_bytes(head + b"\n" + rest.replace(old, new, 1))
    assert survey(path).checked.broken


def test_a_change_in_the_store_is_named(store: Store) -> None:
    session_id = keep(store, Path.cwd(), said(user("a"), user("b"), user("c")))
    with store._database.writing() as connection:
        connection.execute("UPDATE entries SET body = replace(body, '\"b\"', '\"x\"') WHERE seq = 2")
    broken = check(store, session_id).broken
    assert broken
    assert broken.seq == 2


def test_an_output_that_is_gone_is_named(store: Store) -> None:
    session_id = keep(store, Path.cwd(), said(user("a")))
    path = store.store_blob(session_id, "shell.txt", b"output")
    path.write_bytes(b"changed")
    changed = check(store, session_id).broken
    path.unlink()
    gone = check(store, session_id).broken
    assert changed
    assert gone
    assert path.name in changed.text
    assert path.name in gone.text


@pytest.mark.parametrize(
    "facts", [{"created": 1e300}, {"updated": -5}, {"id": "../up"}, {"id": "\x1b[2J"}, {"name": "a/b"}, {"cwd": "\0"}]
)
def test_nonsense_in_the_first_line_spoils_no_listing(
    store: Store, other: Store, tmp_path: Path, facts: dict[str, object]
) -> None:
    head, _, rest = exported(store, keep(store, Path.cwd(), said(user("a")))).partition(b"\n")
    content = json.dumps({**json.loads(head), **facts}).encode() + b"\n" + rest
    info = imported(other, tmp_path / "x.jsonl", content).info
    assert 0 < info.created < 1e11
    assert 0 < info.updated < 1e11
    assert info.name is None
    assert other.list() == [info]


def test_recording_parts_beside_its_session_are_passed_over(store: Store, other: Store, tmp_path: Path) -> None:
    content = exported(store, keep(store, Path.cwd(), said(user("a"))))
    beside = b'{"wolo":"cassette","version":1,"root":"/r","cwd":"/r","files":1}\n{"wolo":"file","path":"a","data":""}\n'
    report = imported(other, tmp_path / "x", beside + content)
    assert (report.skipped, texts(other, report.info.id)) == (0, ["a"])


def test_a_place_that_stands_twice_counts_once(store: Store, other: Store, tmp_path: Path) -> None:
    lines = exported(store, keep(store, Path.cwd(), said(user("a"), user("b")))).splitlines()
    unknown = lines[1].replace(b'"kind":"message"', b'"kind":"novelty"')
    report = imported(other, tmp_path / "x.jsonl", b"\n".join([lines[0], unknown, *lines[1:], lines[1]]))
    assert (report.skipped, texts(other, report.info.id)) == (2, ["a", "b"])
    assert not other.load(report.info.id).skipped
