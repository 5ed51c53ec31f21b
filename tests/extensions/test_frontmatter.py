"""Front matter as users write it: valid settings are read, anything else is refused."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wolo.errors import ExtensionError
from wolo.extensions.markdown_files import MAX_BYTES, Document, decode, read_document


def read(settings_text: str, body: str = "Do it.\n") -> Document:
    return read_document(f"---\n{settings_text}\n---\n{body}", "x.md")


def test_settings_stand_above_a_body() -> None:
    document = read("name: pdf-tools\ndescription: Reads PDF files.\nversion: 2\nhidden: true\nnothing:")
    assert document.fields == {
        "name": "pdf-tools",
        "description": "Reads PDF files.",
        "version": 2,
        "hidden": True,
        "nothing": None,
    }
    assert document.body == "Do it."
    assert document.lines["version"] == 4


@pytest.mark.parametrize("text", ["", "Just words.", "\n\n# A title\n---\nand more", "----\nname: x\n---", "a\n---\nb: c\n---\n"])
def test_a_text_without_settings_is_all_body(text: str) -> None:
    assert read_document(text, "x.md") == Document({}, text.strip(), "x.md")


@pytest.mark.parametrize(
    "data",
    [b"---\r\nname: a\r\n---\r\nDo\r\nit.\r\n", b"\xef\xbb\xbf---\nname: a\n--- \nDo\nit.", b"\n---\nname: a\n...\nDo\nit."],
)
def test_foreign_line_ends_marks_and_spaces_are_forgiven(data: bytes) -> None:
    document = read_document(decode(data, "x.md"), "x.md")
    assert (document.fields, document.body) == ({"name": "a"}, "Do\nit.")


def test_first_body_line_keeps_its_indent() -> None:
    assert read("name: a", "\n\n    code\ntext\n\n").body == "    code\ntext"


def test_texts_may_be_quoted_folded_or_any_list() -> None:
    document = read("a: 'it''s'\nb: >\n  one\n  two\nc: |\n  one\n  two\nd: [x, y]\ne:\n  - x\n  - y\nf: x, Bash(a, b:*), y\n")
    assert [document.text(key) for key in "abc"] == ["it's", "one two", "one\ntwo"]
    assert document.items("d") == document.items("e") == ("x", "y")
    assert document.items("f") == ("x", "Bash(a, b:*)", "y")
    assert document.items("gone") == ()


@pytest.mark.parametrize("word", ["no", "on", "1.2.3", "2026-11-21", "12:30", "0x1F", "1_000", ".inf", "1e999", "9" * 400])
def test_plain_word_without_number_stays_text(word: str) -> None:
    assert read(f"a: {word}").fields["a"] == word


def test_yaml_lookalike_values_stay_as_written() -> None:
    document = read("version: 1.10\nargument-hint: [pull request]")
    assert (document.text("version"), document.text("argument-hint")) == ("1.10", "[pull request]")


@pytest.mark.parametrize(
    ("word", "is_true"), [("true", True), ("'Yes'", True), ("on", True), ("FALSE", False), ("no", False), ("~", True)]
)
def test_a_flag_may_be_said_in_several_words(word: str, is_true: bool) -> None:
    assert read(f"a: {word}").flag("a", default=True) is is_true


def test_a_flag_that_is_neither_names_its_line() -> None:
    with pytest.raises(ExtensionError, match=r"^x\.md:3: 'hidden' must be true or false\.$"):
        read("name: a\nhidden: maybe").flag("hidden", default=False)


@pytest.mark.parametrize(
    "value",
    [
        "Use it so: first read.",
        "[file] [more]",
        "*.py files",
        "@file then",
        "`cmd` runs",
        "%d",
        'say "x": y',
        "it's: so",
        "\"a\" and 'b'",
    ],
)
def test_line_unreadable_as_yaml_is_taken_literally(value: str) -> None:
    document = read(f"name: a\ndescription: {value}\nhidden: true")
    assert (document.text("description"), document.flag("hidden", default=False)) == (value, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("  name: 'a\nb", r"x\.md:\d: this is not YAML: "),
        ("- a\n- b", r"x\.md:2: the settings must be lines of the form 'name: value'\."),
        ("just words", r"x\.md:2: the settings must be lines"),
        ("name: a\nname: b", r"x\.md:3: 'name' is there twice\."),
        ("a: &x [b]\nc: d", r"x\.md:2: anchors and aliases"),
        ("a: !!python/object/apply:os.system [ls]", r"x\.md:2: tags"),
        ("a: !secret b", r"x\.md:2: tags"),
        ("? [a]\n: b", r"x\.md:2: a name must be a word\."),
        ("a: \x00", r"x\.md:2: the settings hold a character"),
        ("a: " + "[" * 50 + "]" * 50, r"x\.md:2: the settings hold too much\."),
        ("a: [" + "b, " * 5_000 + "]", r"x\.md:2: the settings hold too much\."),
        ("a: " + "b" * 40_000, r"x\.md:2: the settings are longer than 32 KiB\."),
    ],
)
def test_malformed_settings_are_one_sentence_with_the_line(text: str, said: str) -> None:
    with pytest.raises(ExtensionError, match=rf"^{said}[^\n]*$"):
        read(text)


EXAMPLES = """\
Use this agent when: tests fail.
<example>
Context: a user asks
user: "why: is it red?"
assistant: 'I look'
</example>"""


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        (f"name: a\ndescription: {EXAMPLES}\nmodel: sonnet", {"name": "a", "description": EXAMPLES, "model": "sonnet"}),
        ("name: a\ndescription: 'x\ntools:\n\t- Read\n\t- Grep", {"name": "a", "description": "'x", "tools": ["Read", "Grep"]}),
        ("name: a\ntools:\n\t- Read", {"name": "a", "tools": ["Read"]}),
        ("a: b: c\np:\n  bash:\n    *: ask\n    git *: allow", {"a": "b: c", "p": {"bash": {"*": "ask", "git *": "allow"}}}),
        ("a: 'x\nb: |\n  one: two\n  three\nc: [true, 2]", {"a": "'x", "b": "one: two\nthree\n", "c": [True, 2]}),
        ("a: 'x\nb:\n  c:\n    d: 1\n  e: y z", {"a": "'x", "b": {"c": {"d": 1}, "e": "y z"}}),
    ],
)
def test_settings_without_yaml_are_read_line_by_line(text: str, fields: dict[str, object]) -> None:
    document = read(text)
    assert document.fields == fields
    assert document.problem.startswith("x.md:")
    assert not read("name: a").problem


def test_settings_that_nothing_ends_are_an_error() -> None:
    with pytest.raises(ExtensionError, match=r"^x\.md:1: no second line of '---'"):
        read_document("---\nname: a\n", "x.md")


@pytest.mark.parametrize(
    ("data", "said"), [(b"a\nb\xff", r"x\.md:2: this is not UTF-8\."), (b"a" * (MAX_BYTES + 1), "longer than 256 KiB")]
)
def test_bytes_that_are_no_text_are_an_error(data: bytes, said: str) -> None:
    with pytest.raises(ExtensionError, match=said):
        decode(data, "x.md")


def test_alias_bomb_is_refused_before_building() -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    with pytest.raises(ExtensionError, match="anchors and aliases"):
        read("\n".join(rows))


@pytest.mark.parametrize("deep", ["[" * 30_000, "{a: " * 7_500, "b: " + "[" * 30_000])
def test_ten_thousand_brackets_in_a_line_stay_text(deep: str) -> None:
    """Made into values as YAML would, they would be as many calls within calls, and the end of the process."""
    assert read(f"description: {deep}").text("description") == deep.strip()


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_in_sentence(text: str) -> None:
    for whole in (text, f"---\n{text}\n---\nbody"):
        try:
            document = read_document(whole, "x.md")
        except ExtensionError as error:
            said = error.message
        else:
            said = "x.md:"
            assert set(document.fields) == set(document.written) == set(document.lines)
        assert said.startswith("x.md:")


def test_yaml_is_not_loaded_without_settings() -> None:
    import subprocess

    asked = (
        "import sys; from wolo.extensions.markdown_files import read_document as r; r('words', 'x'); print('yaml' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout == "False\n"
