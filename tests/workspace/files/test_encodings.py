from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wolo.errors import ToolError
from wolo.workspace.files.encodings import Encoding, find_encoding, newline_name, printable, splice, split_lines

CHINESE = "# 计算器\nname = '你好，世界'\nhello = 1\n"
JAPANESE = "# 電卓プログラム\nname = 'こんにちは、表示'\nhello = 1\n"
FRENCH = "# Où était-il ? Déjà vu, naïve façade\nhello = 1\n"


def encoding_of(data: bytes) -> Encoding:
    encoding = find_encoding(data)
    assert encoding is not None
    return encoding


@pytest.mark.parametrize(
    ("data", "codec"),
    [
        (b"", "utf-8"),
        (b"plain", "utf-8"),
        ("héllo → 你".encode(), "utf-8"),
        (codecs.BOM_UTF8 + "é".encode(), "utf-8"),
        (codecs.BOM_UTF16_LE + "é".encode("utf-16-le"), "utf-16-le"),
        (codecs.BOM_UTF16_BE + "é".encode("utf-16-be"), "utf-16-be"),
        (codecs.BOM_UTF32_LE + "é".encode("utf-32-le"), "utf-32-le"),
        ("hello world, no mark\n".encode("utf-16-le"), "utf-16-le"),
        (CHINESE.encode("gbk"), "gbk"),
        (JAPANESE.encode("cp932"), "cp932"),
        ("日本語".encode("cp932"), "cp932"),
        ("你好".encode("gbk"), "gbk"),
        (FRENCH.encode("latin-1"), "latin-1"),
        ("café\n".encode("latin-1"), "latin-1"),
        ("it’s “quoted” – don’t\n".encode("cp1252"), "cp1252"),
        ("é → 你 ok ".encode() + b"\xe9 end", "utf-8"),
        ("# -*- coding: koi8-r -*-\nx = 'привет мир'\n".encode("koi8-r"), "koi8-r"),
        (b"# -*- coding: latin-1 -*-\nx = 1\n", "iso8859-1"),
        ('<?xml version="1.0" encoding="windows-1251"?><a>Привет</a>'.encode("cp1251"), "cp1251"),
        ('<meta charset="iso-8859-1"><p>été'.encode(), "utf-8"),
    ],
)
def test_the_encoding_is_found(data: bytes, codec: str) -> None:
    assert encoding_of(data).codec == codec


@pytest.mark.parametrize("data", [b"\0\1\2\3", b"\x7fELF\2\1\1\0", b"text then \0 nothing", codecs.BOM_UTF16_LE + b"a\0b"])
def test_nul_outside_utf16_is_no_text(data: bytes) -> None:
    assert find_encoding(data) is None


@pytest.mark.parametrize("name", ["utf-7", "hz", "iso-2022-jp", "rot13", "zip", "idna", "nonsense", "unicode_escape", "cp037"])
def test_declared_unspliceable_codec_is_not_believed(name: str) -> None:
    assert encoding_of(f"# coding: {name}\n~{{ +AGE-\n".encode()).codec == "utf-8"


ENCODINGS = {
    "utf-8": "ascii é→你😀\n",
    "utf-8-sig": "ascii é→你😀\n",
    "utf-16": "ascii é→你😀\n",
    "utf-32": "ascii é→你😀\n",
    "latin-1": "ascii éüß\n",
    "cp1252": "ascii é’“”–\n",
    "gbk": "ascii 你好世界计算\n",
    "cp932": "ascii 表示こんにちはｱﾎﾟ能\n",
    "euc-kr": "ascii 안녕하세요\n",
    "big5": "ascii 許功蓋中文\n",
    "koi8-r": "ascii привет\n",
}


@given(data=st.data(), name=st.sampled_from(sorted(ENCODINGS)))
def test_unreplaced_bytes_stay(data: st.DataObject, name: str) -> None:
    letters = ENCODINGS[name]
    head, tail = (data.draw(st.text(letters, max_size=60)) for _ in range(2))
    before = f"{head}\nMARK one\n{tail}".encode(name)
    encoding = encoding_of(before)
    text = encoding.decode(before)
    start = text.index("\nMARK one\n") + 1
    after = splice(before, encoding, text, [(start, start + 4, "other")])
    unit = {"utf-16": "utf-16-le", "utf-32": "utf-32-le"}.get(name, "ascii")
    place = len(f"{head}\n".encode(name))
    assert after == before[:place] + "other".encode(unit) + before[place + len("MARK".encode(unit)) :]


@given(
    data=st.binary(max_size=80).filter(lambda data: b"\0" not in data),
    noise=st.binary(max_size=80).map(lambda data: data.replace(b"\0", b"")),
)
def test_even_in_noise_only_the_replaced_bytes_change(data: bytes, noise: bytes) -> None:
    before = data + b"\nMARK\n" + noise
    encoding = find_encoding(before)
    if encoding is None or encoding.codec.startswith(("utf-16", "utf-32")):
        return
    text = encoding.decode(before)
    start = text.find("\nMARK\n") + 1
    if start == 0:
        return  # the noise before it swallowed the newline as the second byte of a character
    after = splice(before, encoding, text, [(start, start + 4, "x")])
    place = before.index(b"\nMARK\n") + 1
    if text.count("\nMARK\n") == before.count(b"\nMARK\n") == 1:
        assert after == before[:place] + b"x" + before[place + 4 :]


@pytest.mark.parametrize(
    ("data", "new", "shown"),
    [
        (FRENCH.encode("latin-1"), "→", "Latin-1, which cannot hold `→` \\(U\\+2192\\)"),
        (CHINESE.encode("gbk"), "né😀", "GBK, which cannot hold `😀`"),
        (b"plain", "a\udce9", "UTF-8, which cannot hold U\\+DCE9"),
        ("é".encode() + b"\xe9", "\udce9", "cannot hold U\\+DCE9"),
    ],
)
def test_character_unknown_to_the_file_is_named(data: bytes, new: str, shown: str) -> None:
    encoding = encoding_of(data)
    with pytest.raises(ToolError, match=shown):
        splice(data, encoding, encoding.decode(data), [(0, 1, new)])


def test_new_text_takes_the_encoding_of_the_file() -> None:
    before = FRENCH.encode("latin-1")
    encoding = encoding_of(before)
    text = encoding.decode(before)
    after = splice(before, encoding, text, [(text.index("hello"), text.index("hello") + 5, "hélas")])
    assert after.decode("latin-1") == FRENCH.replace("hello", "hélas")


def test_several_pieces_are_replaced_in_one_pass() -> None:
    before = codecs.BOM_UTF8 + "ä1 ö2 ü3".encode()
    encoding = encoding_of(before)
    assert splice(before, encoding, "ä1 ö2 ü3", [(1, 2, "A"), (2, 2, "|"), (7, 8, "")]) == codecs.BOM_UTF8 + "äA| ö2 ü".encode()


def test_lines_end_where_editors_end_them() -> None:
    assert split_lines("") == []
    assert split_lines("a\nb") == ["a\n", "b"]
    assert split_lines("a\r\nb\n\n") == ["a\r\n", "b\n", "\n"]
    assert split_lines("a\rb\r") == ["a\r", "b\r"]
    assert split_lines("10%\r20%\nx\x0cy\u2028z\n") == ["10%\r20%\n", "x\x0cy\u2028z\n"]


@given(st.text("ab\r\n\x0b\u2028", max_size=30))
def test_lines_join_to_the_text(text: str) -> None:
    assert "".join(split_lines(text)) == text


def test_line_endings_have_names() -> None:
    assert [newline_name(text) for text in ("a", "a\n", "a\r\n", "a\r", "a\r\nb\n")] == ["", "LF", "CRLF", "CR", "mixed"]


def test_unsendable_character_is_replaced() -> None:
    assert printable("a\udce9b\0c") == "a\ufffdb\ufffdc"
