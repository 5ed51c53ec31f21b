"""Properties of the import from every agent, for whole and damaged sessions."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sessions.foreign.sources import CWD, HERE, LINED, SAMPLES, Sample, calls, complaints, in_view
from wolo.errors import SessionError
from wolo.messages.message import MESSAGES
from wolo.messages.parts import ImagePart
from wolo.sessions.exchange.format_table import recognise
from wolo.sessions.exchange.json_files import Imported, preview

every = pytest.mark.parametrize("sample", SAMPLES, ids=[each.name for each in SAMPLES])
lined = pytest.mark.parametrize("sample", LINED, ids=[each.name for each in LINED])
OPENCODE = next(each for each in SAMPLES if each.name == "opencode")
ODD_VALUES: list[Any] = [None, True, 0, -1, 1e300, 10**30, "", "\ud83d", "\0", [], [[]], {}, [None], {"type": None}, "x" * 300]


@every
def test_session_is_recognised_by_content(sample: Sample) -> None:
    shape = recognise(preview(sample.path()))
    assert shape is not None
    assert shape.name == sample.name.removesuffix("-2025").removesuffix("-code" if sample.name == "kimi-code" else "!")


@every
def test_work_can_go_on_in_every_format(sample: Sample) -> None:
    imported = sample.read(sample.path())
    assert complaints(imported.messages) == []
    assert complaints(in_view(imported)) == []


@every
def test_every_call_has_ended_and_stands_once(sample: Sample) -> None:
    found = calls(sample.read(sample.path()))
    assert found
    assert all(call.status in ("completed", "failed") and call.outcome for call in found)
    assert max(Counter(call.id for call in found).values()) == 1
    assert max(Counter(call.call_id for call in found).values()) == 1


@every
def test_read_session_can_be_kept(sample: Sample) -> None:
    for message in sample.read(sample.path()).messages:
        assert MESSAGES.decode(MESSAGES.encode(message)) == message


@every
def test_times_are_original_and_nothing_is_skipped(sample: Sample) -> None:
    imported = sample.read(sample.path())
    assert imported.skipped == 0
    assert 1.7e9 < imported.created < 1.8e9
    assert all(message.timestamp < 1.8e9 for message in imported.messages)


@every
def test_maker_only_data_has_a_maker(sample: Sample) -> None:
    for message in sample.read(sample.path()).messages:
        if any(part.blobs for part in message.parts):
            assert message.producer is not None


@pytest.mark.parametrize("sample", [each for each in SAMPLES if each.name != "codex-2025"], ids=lambda each: each.name)
def test_title_directory_images_and_the_summary_come_along(sample: Sample) -> None:
    imported = sample.read(sample.path())
    assert (imported.title, imported.cwd) == ("Repair the sum", CWD)
    images = [part for message in imported.messages for part in message.parts if isinstance(part, ImagePart)]
    assert images
    assert all(part.media_type == "image/png" and len(part.data) == 70 for part in images)
    if sample.name != "vibe":  # which begins a new session behind a summary
        (summary,) = (message for message in in_view(imported) if message.role == "compaction_summary")
        assert "skip" in summary.text
        assert imported.left_out or sample.name == "kimi"


@every
def test_their_files_stay_as_they_are(sample: Sample, tmp_path: Path) -> None:
    path = sample.copied(tmp_path)
    before = state(tmp_path)
    sample.read(path)
    assert state(tmp_path) == before


@lined
def test_torn_lines_are_counted_and_others_read(sample: Sample, tmp_path: Path) -> None:
    path = sample.copied(tmp_path)
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for damage in (b'{"type":"us', b"\0" * 40 + b"\n", b'{"type":"user","message":"\xff\xfe"}\n', b"[1, 2]\n", b"null\n"):
        damage = damage if damage.endswith(b"\n") else damage + b"\n"
        middle = len(lines) // 2
        path.write_bytes(b"".join([*lines[:middle], damage, *lines[middle:]]))
        imported = sample.read(path)
        assert imported.skipped == 1, damage
        assert said(imported) == said(sample.read(sample.path()))
    path.write_bytes(whole + lines[-1][: len(lines[-1]) // 2])
    assert sample.read(path).skipped == 1


@lined
def test_types_that_nobody_knows_are_passed_over(sample: Sample, tmp_path: Path) -> None:
    path = sample.copied(tmp_path)
    known = sample.read(path)
    strange = {"type": "of-tomorrow", "role": "_of_tomorrow", "payload": {"type": "of_tomorrow"}, "data": [1]}
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(each for line in lines for each in (line, json.dumps(strange) + "\n")), encoding="utf-8")
    imported = sample.read(path)
    assert said(imported) == said(known)
    assert imported.skipped == 0


@lined
@given(data=st.data())
def test_any_damaged_file_imports_or_fails_clearly(
    sample: Sample, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lines = sample.path().read_bytes().splitlines(keepends=True)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(lines) - 1)) if lines else 0
        if not lines:
            break
        match data.draw(st.sampled_from(["drop", "cut", "swap", "garble", "twice", "value"])):
            case "drop":
                del lines[at]
            case "cut":
                lines[at] = lines[at][: data.draw(st.integers(0, len(lines[at])))] + b"\n"
            case "swap":
                other = data.draw(st.integers(0, len(lines) - 1))
                lines[at], lines[other] = lines[other], lines[at]
            case "garble":
                place = data.draw(st.integers(0, len(lines[at]) - 1))
                lines[at] = lines[at][:place] + data.draw(st.binary(max_size=3)) + lines[at][place + 1 :]
            case "twice":
                lines.insert(at, lines[at])
            case "value":
                lines[at] = with_another_value(lines[at], data)
    path = tmp_path_factory.mktemp("damaged") / sample.path().relative_to(HERE)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"".join(lines))
    try:
        imported = sample.read(path)
    except SessionError:
        return
    assert complaints(imported.messages) == []
    assert complaints(in_view(imported)) == []
    assert imported.skipped >= 0


@given(data=st.data())
def test_any_export_content_imports_or_fails_clearly(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    export = OPENCODE.path().read_bytes()
    for _ in range(data.draw(st.integers(1, 4))):
        export = with_another_value(export, data)
    path = tmp_path_factory.mktemp("damaged") / "export.json"
    path.write_bytes(export)
    try:
        imported = OPENCODE.read(path)
    except SessionError:
        return
    assert complaints(imported.messages) == []


@every
def test_any_file_imports_or_fails_clearly(sample: Sample) -> None:
    for path in (Path("/"), Path("/nowhere"), Path("/dev/null"), Path("relative"), Path()):
        with pytest.raises(SessionError):
            sample.read(path)


def with_another_value(line: bytes, data: st.DataObject) -> bytes:
    """One value somewhere in the record becomes one of another kind."""
    try:
        record = json.loads(line)
    except ValueError:
        return line
    places = []
    waiting = [record]
    while waiting:
        value = waiting.pop()
        keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
        for key in keys:
            places.append((value, key))
            waiting.append(value[key])
    if not places:
        return line
    holder, key = data.draw(st.sampled_from(places))
    holder[key] = data.draw(st.sampled_from(ODD_VALUES))
    return json.dumps(record).encode() + b"\n"


def said(imported: Imported) -> list[tuple[str, str, list[tuple[str, str]]]]:
    return [(each.role, each.text, [(call.tool, call.output) for call in each.calls]) for each in imported.messages]


def state(folder: Path) -> dict[str, tuple[str, int]]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns) for path in files}
