"""The text of a page: by its byte-order mark, by what the server says, by what the page says, or as well as can be."""

from __future__ import annotations

import codecs
import re

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_NAMED = re.compile(
    rb"""<(?:meta\b[^>]{0,500}?\bcharset|\?xml\b[^>]{0,200}?\bencoding)\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE
)
_LOOKED_AT_BYTES = 4096
_KNOWN = re.compile(
    r"(?:utf-(?:8|16|16-le|16-be|32)|iso8859-\d+|cp\d+|koi8-[rtu]|gb\w+|big5\w*|euc_\w+|shift_jis\w*|johab|mac-\w+|ascii)\Z"
)
"""Python knows more under such names, and not all of it is text."""
_BROADER = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "shift_jis": "cp932",
}
"""What browsers read in place of these."""


def decode(data: bytes, charset: str, *, is_cut: bool = False) -> str:
    """`charset` is what the server says; a page that `is_cut` may end within a letter. What cannot be read is replaced."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(name, "replace")
    named = _NAMED.search(data[:_LOOKED_AT_BYTES])
    for said in (charset, named[1].decode("ascii", "replace") if named else ""):
        if codec := _codec(said):
            return data.decode(codec, "replace")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        is_half_a_letter = is_cut and error.start >= len(data) - 3
        return data.decode("utf-8" if is_half_a_letter else "cp1252", "replace")


def is_binary(data: bytes) -> bool:
    """No text holds a NUL near its beginning, unless it is in UTF-16."""
    return b"\0" in data[:8000] and not data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def _codec(charset: str) -> str:
    """Empty for one that is none, or not known."""
    try:
        name = codecs.lookup(charset).name if charset else ""
    except (LookupError, ValueError):
        return ""
    return _BROADER.get(name, name) if _KNOWN.match(name) else ""
