"""Detects text encodings and edits text without re-encoding the rest of a file.

A guess only serves to show text and to encode new characters. Bytes outside a replaced piece are copied, so a wrong guess can
make an edit fail but cannot damage a file.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence

from msgspec import Struct

from wolo.errors import ToolError

_BOMS = (
    (codecs.BOM_UTF8, "utf-8", "UTF-8 with BOM"),
    (codecs.BOM_UTF32_LE, "utf-32-le", "UTF-32 LE"),  # before UTF-16, whose mark begins with the same bytes
    (codecs.BOM_UTF32_BE, "utf-32-be", "UTF-32 BE"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "UTF-16 LE"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "UTF-16 BE"),
)
_SAMPLE_BYTES = 64 * 1024
_DECLARED = rb"""(?:coding|charset|encoding)["']?\s*[=:]\s*["']?([A-Za-z0-9][-\w.]*)"""
_UNSUITABLE = r"utf|iso2022|idna|punycode|(raw)?unicodeescape|mbcs|oem|undefined|hz|ascii"
"""Stateful codecs and those that are not character encodings."""
_ASCII = bytes(range(128))
_MULTIBYTE_UTF8 = rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
_GBK_PAIR = rb"[\x81-\xfe][\x40-\xfe]"
_GBK_USUAL = rb"[\xa1-\xa3\xb0-\xd7][\xa1-\xfe]"
_JIS_PAIR = rb"[\x81-\x9f\xe0-\xfc][\x40-\xfc]"
_UNSENDABLE = "[\0\ud800-\udfff]"
_JIS_USUAL = rb"[\x81\x82\x88-\x97][\x80-\xfc]|\x83[\x40-\x96]"


class Encoding(Struct, frozen=True):
    codec: str
    label: str = "UTF-8"
    """For display."""
    bom: bytes = b""
    errors: str = "strict"
    """`surrogateescape` and `surrogatepass` preserve undecodable bytes."""

    def decode(self, data: bytes) -> str:
        return data[len(self.bom) :].decode(self.codec, self.errors)

    def encode(self, text: str) -> bytes:
        """Encodes without the byte order mark. Raises ToolError naming the first character that is not encodable."""
        try:
            return text.encode(self.codec)
        except UnicodeEncodeError as error:
            letter = text[error.start]
            shown = f"`{letter}` (U+{ord(letter):04X})" if letter.isprintable() else f"U+{ord(letter):04X}"
            raise ToolError(f"The file is {self.label}, which cannot hold {shown}; nothing was changed.") from error

    def size(self, text: str) -> int:
        """Bytes of a piece of decoded text in the file."""
        return len(text.encode(self.codec, self.errors))

    def fits(self, data: bytes) -> bool:
        """True when `data` decodes, and offsets in the text map to offsets in the bytes."""
        try:
            return self.size(self.decode(data)) == len(data) - len(self.bom)
        except (UnicodeError, LookupError):
            return False


UTF8 = Encoding("utf-8")
_DAMAGED_UTF8 = Encoding("utf-8", "UTF-8 with invalid bytes", errors="surrogateescape")
_WESTERN = Encoding("cp1252", "Windows-1252", errors="surrogateescape")
_LATIN1 = Encoding("latin-1", "Latin-1")


def find_encoding(data: bytes) -> Encoding | None:
    """None for binary data. `data` is the whole file, or its beginning when it is only read."""
    for bom, codec, label in _BOMS:
        marked = Encoding(codec, label, bom, "surrogateescape" if codec == "utf-8" else "surrogatepass")
        if data.startswith(bom) and marked.fits(data):
            return marked
    if b"\0" in data[:_SAMPLE_BYTES]:
        # Mostly-ASCII text in two bytes per character has NUL at every second byte
        sample = data[:4096]
        even, odd = sample[::2].count(0), sample[1::2].count(0)
        many, few = len(sample) * 0.35, len(sample) * 0.02
        if odd > many and even <= few:
            guess = Encoding("utf-16-le", "UTF-16 LE without BOM", errors="surrogatepass")
        elif even > many and odd <= few:
            guess = Encoding("utf-16-be", "UTF-16 BE without BOM", errors="surrogatepass")
        else:
            return None
        return guess if guess.fits(data) else None
    declared = _read_declaration(data)
    if data.isascii():
        return declared or UTF8
    if UTF8.fits(data):
        return UTF8
    return declared or _guess(data)


def splice(data: bytes, encoding: Encoding, text: str, pieces: Sequence[tuple[int, int, str]]) -> bytes:
    """Replaces pieces (start, end, new) of the decoded `text`, ordered and not overlapping, in `data`."""
    out = bytearray()
    done_bytes, done_text = 0, 0
    position = len(encoding.bom)
    for start, end, new in pieces:
        begin = position + encoding.size(text[done_text:start])
        position = begin + encoding.size(text[start:end])
        if data[begin:position].decode(encoding.codec, encoding.errors) != text[start:end]:
            raise ToolError(f"The text cannot be located in the bytes of the file ({encoding.label}); nothing was changed.")
        out += data[done_bytes:begin] + encoding.encode(new)
        done_bytes, done_text = position, end
    return bytes(out + data[done_bytes:])


def split_lines(text: str) -> list[str]:
    """Splits after LF or CRLF, and after CR only in a text without LF.

    Form feed and U+2028, at which `str.splitlines` splits, stay inside a line, as in editors.
    """
    end = "\r" if "\r" in text and "\n" not in text else "\n"
    lines = [line + end for line in text.split(end)]
    last = lines.pop()[: -len(end)]
    return [*lines, last] if last else lines


def newline_name(text: str) -> str:
    """Returns `LF`, `CRLF`, `CR` or `mixed`; empty without line endings."""
    pairs, feeds = text.count("\r\n"), text.count("\n")
    if not feeds:
        return "CR" if "\r" in text else ""
    return "LF" if not pairs else "CRLF" if pairs == feeds else "mixed"


def printable(text: str) -> str:
    """Replaces NUL and undecodable bytes with U+FFFD."""
    if text.isascii() and "\0" not in text:
        return text  # the usual case, faster than the pattern
    return re.sub(_UNSENDABLE, "\ufffd", text)


def _read_declaration(data: bytes) -> Encoding | None:
    if not (found := re.search(_DECLARED, data[:1024])):
        return None
    try:
        name = codecs.lookup(found[1].decode()).name
        if re.match(_UNSUITABLE, re.sub("[-_]", "", name)) or _ASCII.decode(name) != _ASCII.decode("ascii"):
            return None
    except (LookupError, UnicodeError):
        return None
    encoding = Encoding(name, name)
    return encoding if encoding.fits(data) else None


def _guess(data: bytes) -> Encoding:
    sample = data[:_SAMPLE_BYTES]
    for codec, label, pair, usual in (("gbk", "GBK", _GBK_PAIR, _GBK_USUAL), ("cp932", "Shift-JIS", _JIS_PAIR, _JIS_USUAL)):
        pairs = re.findall(pair, sample)
        encoding = Encoding(codec, label)
        # Western text can match by accident, but not with characters that are common in these scripts.
        if pairs and sum(map(bool, map(re.compile(usual).match, pairs))) >= 0.4 * len(pairs) and encoding.fits(data):
            return encoding
    characters = len(re.findall(_MULTIBYTE_UTF8, sample))
    strays = sum(1 for letter in sample.decode("utf-8", "surrogateescape") if "\udc80" <= letter <= "\udcff")
    if characters >= max(strays, 1):
        return _DAMAGED_UTF8
    return _LATIN1 if not re.search(rb"[\x80-\x9f]", data) else _WESTERN


_BINARIES = (
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive (or a document made of one)"),
    (b"PK\x05\x06", "an empty ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\0", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\x7fELF", "an ELF program or library"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O program"),
    (b"\xca\xfe\xba\xbe", "a Java class or Mach-O program"),
    (b"\0asm", "a WebAssembly module"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"OggS", "an Ogg recording"),
    (b"ID3", "an MP3 recording"),
    (b"fLaC", "a FLAC recording"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document"),
    (b"BM", "a BMP image"),
    (b"II*\0", "a TIFF image"),
    (b"MM\0*", "a TIFF image"),
)


def binary_kind(head: bytes) -> str:
    """Describes binary data; must not be used for text, which may begin with the same letters."""
    if head[4:8] == b"ftyp":
        return "a video or HEIF image"
    return next((words for magic, words in _BINARIES if head.startswith(magic)), "a binary file")
