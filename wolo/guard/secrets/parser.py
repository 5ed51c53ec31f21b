"""Reads the secret values out of a text that holds settings: NAME=value lines, JSON, netrc, npmrc, keys in PEM.

The shape is told from the text, not from its name, and nothing of it is ever run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from wolo.messages.secret_values import SHORTEST, Known, is_telling

MAX_VALUES = 200
"""Of one file."""
MAX_CHARACTERS = 20_000
"""Of one value."""
_MAX_DEPTH = 20

_PEM = r"-----BEGIN ([A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10})-----(.*?)(?:-----END|\Z)"
_LINE = r"""(?mx)
    ^[ \t]* (?:export[ \t]+|set[ \t]+|-[ \t]+)?
    ["']? (?P<name>[A-Za-z_/@$][\w./:@$-]{0,120}?) ["']? [ \t]* (?:=>?|:(?=[ \t]|$)) [ \t]*
    (?: "(?P<double>(?:[^"\\]|\\.)*)" | '(?P<single>[^']*)' | `(?P<back>[^`]*)` | (?P<bare>[^\r\n]*) )
"""
_WORDS = r"(?m)\b(password|passwd|account|_authToken|_auth|_password)[ \t=]+(\S+)"
_ADDRESS = r"[A-Za-z][A-Za-z0-9+.-]{0,20}://([^\s/@\"'<>]{1,200}?)(?::([^\s/@\"'<>]{1,500}))?@"
_QUERY = r"[?&;]([A-Za-z_][\w.-]{0,60})=([^\s&\"'<>#;]{8,2000})"
_COMMENT = r"[ \t]+#.*\Z"

_PLAIN = (
    r"[A-Za-z][A-Za-z0-9+.-]*://\S*",  # an address: what is secret in it is found on its own
    r"(?:~|\.{1,2})?/[\w./ @+~-]*|[A-Za-z]:\\[^\n]*",  # a path
    r"[-+]?[\d_,. :/TZ+-]+[smhdkKMGB%]{0,2}",  # a number, a date, a version, an address of four numbers
    r"\$\{?[A-Za-z_]\w*\}?|<[^<>]*>|\{\{.*\}\}|%\w+%",  # it stands elsewhere
)
_PLAIN_UNLESS_TOLD = (
    r"[\w.-]+(?:/[\w.-]+)+",  # a path again
    r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+",  # a person
    r"(?:[\w-]+\.)+[A-Za-z]{2,24}(?::\d{1,5})?|[\w-]+:\d{1,5}",  # a host
)
_AUTHOR = "author(?!i)"
_COMMON = """
changeme change-me change_me password passw0rd secretkey localhost development production staging testing disabled enabled
undefined required optional keycloak username database postgres postgresql example placeholder redacted
"""
_ORDINARY = frozenset(_COMMON.split())


def read_values(text: str, source: str = "") -> list[Known]:
    """`source` names what has no name of its own."""
    found: dict[str, Known] = {}
    for known in _all(text, source):
        value = known.value.strip()
        if SHORTEST <= len(value) <= MAX_CHARACTERS and len(found) < MAX_VALUES:
            found.setdefault(value, Known(known.name, value))
    return list(found.values())


def is_ordinary(name: str, value: str) -> bool:
    """Whether this is what settings say without telling a secret: words, paths, numbers, addresses."""
    if len(value) < SHORTEST or value.lower() in _ORDINARY or len(set(value)) < 3:
        return True
    if any(re.fullmatch(plain, value) for plain in _PLAIN):
        return True
    if is_telling(re.sub(_AUTHOR, "", name, flags=re.IGNORECASE)):
        return False
    return any(re.fullmatch(plain, value) for plain in _PLAIN_UNLESS_TOLD) or all(map(_is_word, re.split(r"[\W_]+", value)))


def _is_word(token: str) -> bool:
    """`eu`, `central`, `1`, `v2`: what names are made of."""
    return token.isalpha() or len(token) <= 3 - token.isdigit()


def _all(text: str, source: str) -> Iterator[Known]:
    yield from _keys(text, source)
    yield from _in_addresses(text, source)
    if (document := _as_json(text)) is not None:
        yield from _leaves(document, source, 0)
        return
    for name, value in re.findall(_WORDS, text):
        yield Known(name, value)
    yield from _lines(text, source)


def _keys(text: str, source: str) -> Iterator[Known]:
    """Line by line: whoever shows a part of a key shows whole lines."""
    for name, body in re.findall(_PEM, text, re.DOTALL):
        for line in re.split(r"\\n|\s", body):
            if re.fullmatch(r"[A-Za-z0-9+/=]{8,}", line):
                yield Known(source or name, line)


def _in_addresses(text: str, source: str) -> Iterator[Known]:
    for user, password in re.findall(_ADDRESS, text):
        if password and not password.startswith(("$", "<", "{")):
            yield Known(f"{source}_PASSWORD", password)
            yield Known(f"{source}_PASSWORD", unquote(password))
            if len(password) < SHORTEST:
                yield Known(f"{source}_LOGIN", f"{user}:{password}@")
        elif not password and len(user) >= 16 and not is_ordinary("", user):
            yield Known(f"{source}_KEY", user)
    for name, value in re.findall(_QUERY, text):
        if is_telling(name) or name.lower() in ("sig", "signature"):
            yield Known(name, value)
            yield Known(name, unquote(value))


def _as_json(text: str) -> Any:
    """None: it is no object and no list."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            pass  # much that looks like JSON is none
    return None


def _leaves(value: Any, name: str, depth: int) -> Iterator[Known]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _leaves(each, str(key), depth + 1)
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(each, name, depth + 1)
    elif isinstance(value, str):
        yield from _value(name, value)


def _lines(text: str, source: str) -> Iterator[Known]:
    named = False
    for found in re.finditer(_LINE, text):
        named = True
        quoted = next((found[kind] for kind in ("double", "single", "back") if found[kind] is not None), None)
        value = re.sub(_COMMENT, "", found["bare"]).strip() if quoted is None else quoted
        name = re.split("[:/]", found["name"])[-1] or source
        yield from _value(name, value)
        if found["double"] is not None and "\\" in value:
            yield from _value(name, _unescaped(value))
    for line in text.splitlines():
        fields = line.strip().split(":")
        if len(fields) == 5 and "/" not in line and fields[1].strip("*").isdigit() | (fields[1] == "*"):
            yield Known("PGPASSWORD", fields[4])
        elif len(fields) == 2 and re.fullmatch(r"\$(?:apr1|2[aby]|5|6)\$\S+|\{SHA\}\S+", fields[1]):
            yield Known("HTPASSWD", fields[1])
    if not named and len(text.split()) == 1 and not is_ordinary(source, text.strip()):
        yield Known(source, text.strip())


def _value(name: str, value: str) -> Iterator[Known]:
    """A value of several lines is known by its lines too: tools show text line by line."""
    if "\n" in value.strip():
        for line in value.splitlines():
            if not line.startswith("-----") and not is_ordinary(name, line.strip()):
                yield Known(name, line)
    elif not is_ordinary(name, value):
        yield Known(name, value)
    if (document := _as_json(value)) is not None:
        yield from _leaves(document, name, 1)


def _unescaped(value: str) -> str:
    letters = {"n": "\n", "r": "\r", "t": "\t"}
    return re.sub(r"\\(.)", lambda found: letters.get(found[1], found[1]), value)
