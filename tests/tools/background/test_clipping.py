"""Output is made fit to read: no control codes, both ends when it is long, the whole in a file."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.clock import processor_time_below
from wolo.errors import SessionError
from wolo.tools.clipping import clean, clip, clip_and_keep


def cleaned(text: str | bytes) -> str:
    return b"".join(clean(text.encode() if isinstance(text, str) else text)).decode()


@pytest.mark.parametrize(
    ("raw", "readable"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[1;31mred\x1b[0m\n", "red\n"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP1;2|dcs\x1b\\x", "x"),
        ("\x1b(Bx\x1b=y\x1b7", "xy"),
        ("\x9b31mc1\x9b0m", "c1"),
        ("a\x00b\x01c\x7fd", "abcd"),
        ("one\r\ntwo\r\n", "one\ntwo\n"),
        ("10%\r20%\r100%\ndone\n", "100%\ndone\n"),
        ("10%\r20%\r", "20%"),
        ("loading\r       \rok\n", "ok\n"),
        ("|\x08/\x08-\x08\\\x08done", "done"),
        ("b\x08bo\x08ol\x08ld\x08d", "bold"),
        ("lone \x1b", "lone "),
        ("\x1b[", ""),
        ("unended \x1b]0;title\nnext", "unended \nnext"),
        ("日本語 ☃ 😀\n", "日本語 ☃ 😀\n"),
        ("", ""),
    ],
)
def test_output_shows_the_final_terminal_state(raw: str, readable: str) -> None:
    assert cleaned(raw) == readable


def test_binary_bytes_become_replacements_and_long_runs_short() -> None:
    assert cleaned(b"caf\xe9 \xff\n") == "caf\ufffd \ufffd\n"
    assert len(cleaned(b"\xff" * 100_000)) < 100


@given(st.text(max_size=400))
def test_line_ends_and_tabs_alone_survive_as_controls(text: str) -> None:
    assert not {character for character in cleaned(text) if character < " " or "\x7f" <= character <= "\x9f"} - {"\n", "\t"}


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n\t"), max_size=400))
def test_text_without_control_characters_stays_as_it_is(text: str) -> None:
    assert cleaned(text) == text


@pytest.mark.parametrize("noise", ["\x08", "\r", "\x1b", "\x1b]", "\x1b[", "a\x08", "a\r", "\x00", "\x9d", "a\x1b[0m"])
def test_no_noise_takes_long(noise: str) -> None:
    data = (noise * 3_000_000).encode()[:3_000_000]
    with processor_time_below(5):
        for _ in clean(data):
            pass


def test_character_is_never_split_in_long_lines() -> None:
    text = "x" + "é😀" * 400_000
    assert cleaned(text) == text


def test_a_short_text_is_not_touched() -> None:
    clipped = clip(b"a\nb\nc", max_lines=3, max_bytes=100)
    assert (clipped.text, clipped.is_cut) == ("a\nb\nc", False)


def test_text_of_many_lines_keeps_both_ends() -> None:
    data = b"".join(b"line %d\n" % number for number in range(1, 101))
    clipped = clip(data, max_lines=6, max_bytes=10_000)
    assert clipped.text == "line 1\nline 2\nline 3\n[… 94 lines, 746 bytes left out …]\nline 98\nline 99\nline 100\n"
    assert clipped.num_omitted_lines == 94


def test_one_long_line_is_cut_in_its_middle() -> None:
    clipped = clip("é".encode() * 50_000, max_lines=10, max_bytes=1001)
    head, note, tail = clipped.text.split("\n")
    assert set(head) == set(tail) == {"é"}
    assert note == "[… 99.0 kB left out …]"


@given(st.text(max_size=300), st.integers(2, 12), st.integers(8, 80))
def test_both_ends_stay_real_and_within_limits(text: str, max_lines: int, max_bytes: int) -> None:
    data = text.encode(errors="replace")
    text = data.decode()
    clipped = clip(data, max_lines=max_lines, max_bytes=max_bytes)
    if not clipped.is_cut:
        assert clipped.text == text
        return
    head, _, rest = clipped.text.partition("[… ")
    tail = rest.partition(" left out …]\n")[2]
    assert text.startswith(head) or text.startswith(head.removesuffix("\n"))
    assert text.endswith(tail)
    assert len((head + tail).encode()) <= max_bytes + 1
    assert (head + tail).count("\n") <= max_lines + 1


def test_cut_text_is_kept_whole_and_located(tmp_path: Path) -> None:
    data = b"".join(b"%d\n" % number for number in range(5000))

    def keep(name: str, content: bytes) -> Path:
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    text = clip_and_keep(data, name="out.txt", keep=keep)
    last = text.splitlines()[-1]
    assert last == f"[Whole output, 5,000 lines: {tmp_path}/out.txt — page it with read(path, offset, limit).]"
    assert (tmp_path / "out.txt").read_bytes() == data


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (OSError(28, "No space left on device"), "No space left on device."),
        (SessionError("The disk is full."), "The disk is full."),
    ],
)
def test_full_disk_costs_the_middle_not_the_answer(error: Exception, why: str) -> None:
    def keep(name: str, content: bytes) -> Path:
        raise error

    text = clip_and_keep(b"x\n" * 5000, name="out.txt", keep=keep)
    assert text.startswith("x\nx\n")
    assert text.endswith(f"[The rest could not be saved. {why}]\n")


def test_large_output_is_clipped_without_copying() -> None:
    output = b"a line of output\n" * 500_000
    tracemalloc.start()
    try:
        assert clip(output).num_omitted_lines == 499_000
        assert tracemalloc.get_traced_memory()[1] < len(output) / 10
    finally:
        tracemalloc.stop()
