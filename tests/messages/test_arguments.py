"""Argument text: what is read, what is repaired, and what goes back to the model."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wolo.messages.call_arguments import MAX_DEPTH, Unreadable, read_arguments

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(), JSON, max_size=4)


@given(OBJECTS)
def test_valid_arguments_are_read_as_they_stand(arguments: dict[str, object]) -> None:
    assert read_arguments(json.dumps(arguments)) == arguments


@given(OBJECTS)
def test_one_level_of_double_encoding_is_undone(arguments: dict[str, object]) -> None:
    assert read_arguments(json.dumps(json.dumps(arguments))) == arguments


@pytest.mark.parametrize("nothing", ["", " ", "\n\t", "null", " null ", "{}", '"{}"'])
def test_nothing_means_no_arguments(nothing: str) -> None:
    assert read_arguments(nothing) == {}


def test_control_characters_inside_strings_are_taken_literally() -> None:
    assert read_arguments('{"content": "a\n\tb\x01"}') == {"content": "a\n\tb\x01"}


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ('{"command":"touch X", description":"y"}', "property name"),
        ('{"path": "a"', "not valid JSON"),
        ('{"add":["x"]}}', "Extra data"),
        ('{"a":1}{"a":1}', "Extra data"),
        ('{"a":1,}', "not valid JSON"),
        ("{'a': 1}", "not valid JSON"),
        ('["a"]', "not a JSON object but an array"),
        ('"text"', "not valid JSON"),
        ("7", "not a JSON object but a number"),
        ("true", "not a JSON object but a boolean"),
        ('"\\"{}\\""', "not a JSON object but a string"),
        ('{"path": "a", "path": "b"}', "the key 'path' is duplicated"),
        ('{"a": [{"\\ud83d": 1, "\\ud83d": 1}]}', "is duplicated"),
        ("{" + ",".join(f'"{key}": 1' for key in [*range(3000), 7]) + "}", "the key '7' is duplicated"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('{"a": -Infinity}', "-Infinity is not a JSON number"),
        ('{"a": 1e999}', "too large"),
        ('{"a": ' + "9" * 5000 + "}", "too large"),
        ('{"a": "\\ud83d"}', "surrogate"),
        ('{"a":' * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1), "nested"),
        ("[" * 200_000, "nested"),
        ('{"a":' * 200_000, "nested"),
        ("\ud83d", "not valid JSON"),
    ],
)
def test_anything_else_is_explained_with_the_place(broken: str, said: str) -> None:
    with pytest.raises(Unreadable) as caught:
        read_arguments(broken)
    assert said in str(caught.value)
    str(caught.value).encode()


@given(st.text(max_size=60) | st.text(alphabet='{}[]":,\\ null1e+-\n', max_size=60))
def test_no_text_brings_the_reader_down(text: str) -> None:
    with contextlib.suppress(Unreadable):
        assert isinstance(read_arguments(text), dict)


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 123456789012345678901234567890, 10**400])
def test_a_whole_number_of_any_size_is_kept(number: int) -> None:
    assert read_arguments(f'{{"path": "a", "n": [{number}]}}') == {"path": "a", "n": [number]}
