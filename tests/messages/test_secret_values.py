"""Exact values are found in every form, whatever a text was cut into, and nothing else is touched."""

from __future__ import annotations

import base64
import html
import json
import os
import re
import shlex
import subprocess
import tracemalloc
from itertools import pairwise
from urllib.parse import quote, quote_plus
from xml.sax import saxutils

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.clock import processor_time_below
from wolo.messages.secret_values import MIN_CHARS, ValueRedactor, base64_cores, encoded_forms

K = 'pa"ss\\wörd/+&?=1'
PLAIN = K.replace("ö", "o")
values = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=MIN_CHARS, max_size=40)


def hiding(*secrets: str) -> ValueRedactor:
    return ValueRedactor((form for each in secrets for form in encoded_forms(each)), lambda found: "<hidden>")


IN_ADDRESSES = {
    "python": lambda value: quote(value, safe=""),
    "python's path": quote,
    "a form": quote_plus,
    "javascript": lambda value: quote(value, safe="!'()*"),
    "javascript's address": lambda value: quote(value, safe=";,/?:@&=+$-_.!~*'()#"),
    "java": lambda value: quote_plus(value, safe="*").replace("~", "%7E"),
    "small letters": lambda value: re.sub("%..", lambda found: found[0].lower(), quote(value, safe="")),
    "each letter": lambda value: "".join(f"%{byte:02X}" for byte in value.encode()),
    "one letter": lambda value: f"%{ord(value[0]):02x}{value[1:].replace('%', '%25')}",
}


@pytest.mark.parametrize("way", IN_ADDRESSES)
@pytest.mark.parametrize("value", ["p/a ss+w~rd=1", "it's (a*secret)!", "wörd&pass/1", "plainsecret", "a100%25 sure it is"])
def test_value_is_found_in_addresses_of_any_encoding(way: str, value: str) -> None:
    encoded = IN_ADDRESSES[way](value)
    for text in (f"https://a.test/cb?x=50%25&token={encoded}&y=%2F", f"see /dl/{encoded}/b%20c"):
        assert hiding(value).text(text) == text.replace(encoded, "<hidden>")


@pytest.mark.parametrize("before", [0, 1, 4_000, 4_090, 4_096, 4_100, 8_195, 20_000])
def test_value_is_found_in_addresses_of_any_length(before: int) -> None:
    for filler in ("a", "%20"):
        front = "%2F" + filler * before
        assert hiding("p/a ss+w~rd=1").text(f"{front}{quote('p/a ss+w~rd=1', safe='')}%20b") == f"{front}<hidden>%20b"


def test_percent_signs_alone_hide_nothing() -> None:
    text = "100% of a%20b, %zz and 5%"
    assert hiding("a secret value", "other%20value").text(text) is text


def test_value_is_found_in_every_program_notation() -> None:
    data = K.encode()
    written = [
        K,
        json.dumps(K),
        json.dumps(K, ensure_ascii=False),
        json.dumps(json.dumps({"a": K})),
        json.dumps(json.dumps({"a": K}, ensure_ascii=False), ensure_ascii=False),
        repr({"a": repr(f"it's {K}")}),
        saxutils.escape(K, {"'": "&apos;", '"': "&quot;"}),
        saxutils.escape(K, {"'": "&#39;", '"': "&#34;"}),
        saxutils.quoteattr(f"it's {K}"),
        *(
            subprocess.run(
                ["bash", "-c", script, "-", f"it's {K}"[skipped:]],
                capture_output=True,
                check=True,
                text=True,
                env={**os.environ, "LC_ALL": locale},
            ).stdout
            for script in ('x="$1"; declare -p x', 'printf %q "$1"')
            for skipped in (0, 5)
            for locale in ("C", "C.UTF-8")
        ),
        repr(K),
        repr(data),
        html.escape(K),
        html.escape(K, quote=False),
        shlex.quote(f"it's {K}"),
        subprocess.run(["bash", "-c", 'printf %q "$1"', "-", PLAIN], capture_output=True, check=True, text=True).stdout,
        quote(K),
        quote(K, safe=""),
        quote(K, safe="").lower(),
        quote_plus(K),
        base64.b64encode(data).decode(),
        base64.urlsafe_b64encode(b"x" + data + b"yz").decode(),
        data.hex(),
        data.hex().upper(),
    ]
    exact = hiding(K, PLAIN)
    assert [text for text in written if "<hidden>" not in exact.text(f"before {text} after")] == []


@given(values, st.binary(max_size=5), st.binary(max_size=5))
def test_base64_text_reveals_no_value(value: str, before: bytes, after: bytes) -> None:
    encoded = base64.b64encode(before + value.encode() + after).decode()
    shown = hiding(value).text(encoded)
    assert not any(core in shown for core in base64_cores(value.encode()))
    wrapped = "\n".join(encoded[at : at + 60] for at in range(0, len(encoded), 60))
    assert len(encoded) <= 60 or "<hidden>" in hiding(value).text(f"{'A' * 60}\n{wrapped}")


@pytest.mark.parametrize("before", range(193_555, 193_585, 3))  # the value is around 256 KB and a line break
def test_value_in_base64_lines_survives_any_division(before: int) -> None:
    encoded = base64.b64encode(b"x" * before + K.encode() + b"x" * 60_000)
    lines = b"\n".join(encoded[at : at + 64] for at in range(0, len(encoded), 64))
    assert b"<hidden>" in hiding(K).data(lines)


def test_base64_lines_without_a_value_are_not_copied() -> None:
    data = base64.encodebytes(os.urandom(3_000_000))
    tracemalloc.start()
    assert hiding(K).data(data) is data
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 2_000_000


@given(values, st.text(max_size=20), st.lists(st.integers(0, 80), max_size=6))
def test_no_stream_cut_lets_a_value_through(value: str, around: str, cuts: list[int]) -> None:
    text = f"{around}{value}{around}{value}"
    hidden = hiding(value).stream()
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    shown = "".join(hidden.feed(text[one:other]) for one, other in pairwise(places)) + hidden.close()
    assert value not in shown
    if value not in "<hidden>":
        assert shown == hiding(value).text(text)


def test_secretless_value_is_the_same_object() -> None:
    exact = hiding(K)
    for value in ("plain text", ["a", {"b": 1}], {"name": "x", "list": [1, None, "y"]}):
        assert exact.value(value) is value
    assert exact.value({K: [K, 1]}) == {"<hidden>": ["<hidden>", 1]}
    assert exact.data(data := b"\xff\x00 binary") is data


def test_binary_bytes_keep_everything_in_place() -> None:
    data = b"\x89PNG\xff" + K.encode() + b"\x00end"
    masked = hiding(K).data(data)
    assert K.encode() not in masked
    assert (len(masked), masked[:5], masked[-4:]) == (len(data), data[:5], data[-4:])


def test_the_longest_value_wins() -> None:
    exact = ValueRedactor(["abcdefgh", "abcdefghij"], lambda found: f"<{len(found)}>")
    assert exact.text("abcdefghij abcdefgh") == "<10> <8>"


@pytest.mark.parametrize("text", ["wk-7f3a9c2" * 40_000, "w" * 400_000, "w\n" * 200_000, ("A" * 60 + "\n") * 6_000])
def test_hostile_text_takes_linear_time(text: str) -> None:
    exact = hiding(*(f"wk-7f3a9c21bb-{number:03}" for number in range(50)))
    with processor_time_below(3):
        exact.text(text)
        stream = exact.stream()
        for at in range(0, len(text), 4000):
            stream.feed(text[at : at + 4000])


def test_large_data_without_a_value_is_not_decoded() -> None:
    data = "a line of output … and more\n".encode() * 100_000
    redactor = hiding(K)
    tracemalloc.start()
    try:
        assert redactor.data(data) is data
        assert tracemalloc.get_traced_memory()[1] < len(data) / 100
    finally:
        tracemalloc.stop()
