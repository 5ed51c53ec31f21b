"""Finds workspace files that usually contain secrets and reads the values from them.

The search is bounded in files, bytes and time, follows no links, opens regular files only and runs nothing. Formats are
recognised by content: NAME=value lines, JSON, netrc, npmrc, PEM keys.
"""

from __future__ import annotations

import json
import re
import stat
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from wolo.guard import protected_paths
from wolo.messages.secret_values import MIN_CHARS, Secret, is_secret_name
from wolo.operating_system import os
from wolo.workspace.root import resolve_path

NEAR_LEVELS = 3
NEAR_ENTRIES = 4_000
NEAR_S = 0.05
FAR_ENTRIES = 100_000
FAR_S = 1.0
MAX_BYTES = 128 * 1024
"""Per file."""
_SKIPPED = frozenset(
    {".git", ".hg", ".svn", "node_modules", "__pycache__", "site-packages", ".venv", "venv", ".tox", ".mypy_cache", ".ruff_cache"}
)
_SETTINGS_OF_GIT = ".git/config"
"""URLs in it may contain a password."""

_UTF_16 = (b"\xff\xfe", b"\xfe\xff")

Signature = tuple[int, int, int, int]
_SETTLED_NS = 2_000_000_000
"""Age of a folder's time stamp from which a later change is certain to alter it: file systems count in up to two seconds."""


class SecretFiles:
    """Reads a file again only if it has changed."""

    def __init__(self, roots: Iterable[Path] = ()) -> None:
        self._roots = tuple(os.path.realpath(root) for root in roots)
        self._seen: dict[str, Signature] = {}
        self._listed: dict[str, tuple[Signature, list[tuple[str, bool]]]] = {}
        """Secret names directly in a folder, and whether each is a link; listed again when the folder has changed."""

    def scan_top(self) -> list[Secret]:
        """Scans the upper levels of the workspace quickly."""
        stop_at = time.monotonic() + NEAR_S
        found = self._read((f"{root}/{_SETTINGS_OF_GIT}" for root in self._roots), stop_at)
        return found + self._read(_find(self._roots, NEAR_LEVELS, NEAR_ENTRIES, stop_at), stop_at)

    def scan_deep(self) -> list[Secret]:
        """Scans the whole workspace."""
        stop_at = time.monotonic() + FAR_S
        return self._read(_find(self._roots, None, FAR_ENTRIES, stop_at), stop_at)

    def rescan(self, paths: Iterable[str] = (), *, real_paths: Sequence[str] = (), folders: Iterable[str] = ()) -> list[Secret]:
        """Reads changed files again, paths that may contain secrets, and files directly in `folders`."""
        stop_at = time.monotonic() + FAR_S
        targets = {os.path.abspath(path): resolve_path(path) for path in paths}  # links stay
        secret = frozenset(protected_paths.secrets_among([*real_paths, *targets, *targets.values()]))
        named = [*(path for path in real_paths if path in secret)]
        named += [real for path, real in targets.items() if path in secret or real in secret]
        found = (path for folder in (*self._roots, *folders) for path in self._directly_in(folder))
        return self._read((*sorted(found, key=_size), *named, *self._seen), stop_at)

    def _directly_in(self, folder: str) -> list[str]:
        try:
            status = os.stat(folder)  # text all along
            signature = (status.st_ino, status.st_dev, status.st_mtime_ns, status.st_ctime_ns)
            known, names = self._listed.get(folder, (None, []))
            if known != signature:
                is_settled = time.time_ns() - status.st_mtime_ns > _SETTLED_NS
                with os.scandir(folder) as scanned:
                    here = {entry.path: entry for entry in islice(scanned, NEAR_ENTRIES)}
                names = [(path, here[path].is_symlink()) for path in protected_paths.secrets_among([*here])]
                if is_settled:
                    self._listed[folder] = (signature, names)
        except OSError:
            return []
        return list(filter(None, (_within(path, self._roots) if is_link else path for path, is_link in names)))

    def _read(self, paths: Iterable[str], stop_at: float) -> list[Secret]:
        secrets: list[Secret] = []
        for path in paths:
            if data := self._read_if_changed(path):
                secrets += read_values(_decode(data), Path(path).name)
            if time.monotonic() > stop_at:
                break
        return secrets

    def _read_if_changed(self, path: str) -> bytes:
        """Empty for an unchanged file, and for one that contains no text."""
        try:
            status = os.lstat(path)
            signature = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            if self._seen.get(path) == signature or not stat.S_ISREG(status.st_mode):
                return b""
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(handle, "rb") as file:
                data = file.read(MAX_BYTES) if stat.S_ISREG(os.fstat(handle).st_mode) else b""
        except (OSError, ValueError):
            return b""
        self._seen[path] = signature
        return b"" if b"\0" in data[:1024] and not data.startswith(_UTF_16) else data


def _decode(data: bytes) -> str:
    if data.startswith(_UTF_16):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        is_cut = error.end == len(data) == MAX_BYTES
        return data.decode("utf-8-sig", "ignore") if is_cut else data.decode("latin-1")


def _find(roots: Sequence[str], num_levels: int | None, most_entries: int, stop_at: float) -> Iterator[str]:
    """Searches level by level, small files first, so that large trees do not hide what matters."""
    waiting = deque((root, 0) for root in roots)
    entries = 0
    while waiting and entries < most_entries and time.monotonic() < stop_at:
        folder, level = waiting.popleft()
        try:
            with os.scandir(folder) as scanned:
                here = list(islice(scanned, most_entries - entries))
        except OSError:
            continue
        entries += len(here)
        folders: list[str] = []
        links: set[str] = set()
        for entry in here:
            with suppress(OSError):
                if entry.is_symlink():
                    links.add(entry.path)
                elif entry.is_dir(follow_symlinks=False) and entry.name not in _SKIPPED:
                    folders.append(entry.path)
        secret = protected_paths.secrets_among([entry.path for entry in here])
        yield from sorted(filter(None, (_within(path, roots) if path in links else path for path in secret)), key=_size)
        if num_levels is None or level + 1 < num_levels:
            waiting += ((path, level + 1) for path in folders)


def _within(link: str, roots: Sequence[str]) -> str:
    """The target of a link if it is in the workspace; otherwise empty."""
    real = resolve_path(link)
    return real if any(real.startswith(f"{root}/") for root in roots) else ""


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


MAX_VALUES = 200
"""Per file."""
MAX_CHARACTERS = 20_000
"""Per value."""
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
_EMBEDDED = r"""(?ix)
    (?: (?:password|passwd|pwd|secret|token|(?:account|access|api|private)[_.-]?key) ["']? \s{0,2} [=:] \s{0,2} ["']?
      | authorization: \s{0,2} (?:basic|bearer|token) \s )
    ([^\s;,&"']{8,2000})
"""
_COMMENT = r"[ \t]+#.*\Z"
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}

_PLAIN = (
    r"[A-Za-z][A-Za-z0-9+.-]*://\S*",  # an address: what is secret in it is found on its own
    r"(?:~|\.{1,2})?/[\w./ @+~-]*|[A-Za-z]:\\[^\n]*",  # a path
    r"[-+]?[\d_,. :/TZ+-]+[smhdkKMGB%]{0,2}",  # a number, a date, a version, an address of four numbers
    r"\$\{?[A-Za-z_]\w*\}?|<[^<>]*>|\{\{.*\}\}|%\w+%",  # it stands elsewhere
)
_PLAIN_UNLESS_NAMED = (
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


def read_values(text: str, source: str = "") -> list[Secret]:
    """`source` names values that have no name."""
    by_value: dict[str, Secret] = {}
    for known in (*_keys(text, source), *_in_addresses(text, source), *_settings(text, source)):
        value = known.value.strip()
        if MIN_CHARS <= len(value) <= MAX_CHARACTERS and len(by_value) < MAX_VALUES:
            by_value.setdefault(value, Secret(known.name, value))
    return list(by_value.values())


def read_embedded(text: str, source: str) -> Iterator[Secret]:
    """Yields keys, and passwords of addresses and settings, in a text that is no secret as a whole."""
    if "://" in text or "PRIVATE KEY" in text:
        yield from _keys(text, source)
        yield from (each for each in _in_addresses(text, source) if not is_ordinary(each.name, each.value))
    if "=" in text or ":" in text:
        named = (Secret(f"{source}_SECRET", value) for value in re.findall(_EMBEDDED, text))
        yield from (each for each in named if not is_ordinary(each.name, each.value))


def is_ordinary(name: str, value: str) -> bool:
    """Tells whether a setting is not a secret: words, paths, numbers, addresses."""
    if len(value) < MIN_CHARS or value.lower() in _ORDINARY or len(set(value)) < 3:
        return True
    if any(re.fullmatch(plain, value) for plain in _PLAIN):
        return True
    if is_secret_name(re.sub(_AUTHOR, "", name, flags=re.IGNORECASE)):
        return False
    if any(re.fullmatch(plain, value) for plain in _PLAIN_UNLESS_NAMED):
        return True
    # Parts of ordinary names: `eu`, `central`, `1`, `v2`.
    return all(token.isalpha() or len(token) <= 3 - token.isdigit() for token in re.split(r"[\W_]+", value))


def _keys(text: str, source: str) -> Iterator[Secret]:
    """Yields each line, because tools show parts of a key in whole lines."""
    for name, body in re.findall(_PEM, text, re.DOTALL):
        for line in re.split(r"\\n|\s", body):
            if re.fullmatch(r"[A-Za-z0-9+/=]{8,}", line):
                yield Secret(source or name, line)


def _in_addresses(text: str, source: str) -> Iterator[Secret]:
    for user, password in re.findall(_ADDRESS, text):
        if password and not password.startswith(("$", "<", "{")):
            yield Secret(f"{source}_PASSWORD", password)
            yield Secret(f"{source}_PASSWORD", unquote(password))
            if len(password) < MIN_CHARS:
                yield Secret(f"{source}_LOGIN", f"{user}:{password}@")
        elif not password and len(user) >= 16 and not is_ordinary("", user):
            yield Secret(f"{source}_KEY", user)
    for name, value in re.findall(_QUERY, text):
        if is_secret_name(name) or name.lower() in ("sig", "signature"):
            yield Secret(name, value)
            yield Secret(name, unquote(value))


def _as_json(text: str) -> Any:
    """None if the text is not an object or a list."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            pass  # much that looks like JSON is none
    return None


def _leaves(value: Any, name: str, depth: int) -> Iterator[Secret]:
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


def _settings(text: str, source: str) -> Iterator[Secret]:
    if (document := _as_json(text)) is not None:
        yield from _leaves(document, source, 0)
        return
    for name, value in re.findall(_WORDS, text):
        yield Secret(name, value)
    is_named = False
    for setting in re.finditer(_LINE, text):
        is_named = True
        quoted = next((setting[kind] for kind in ("double", "single", "back") if setting[kind] is not None), None)
        value = re.sub(_COMMENT, "", setting["bare"]).strip() if quoted is None else quoted
        name = re.split("[:/]", setting["name"])[-1] or source
        yield from _value(name, value)
        if setting["double"] is not None and "\\" in value:
            yield from _value(name, re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), value))
    for line in text.splitlines():
        fields = line.strip().split(":")
        if len(fields) == 5 and "/" not in line and fields[1].strip("*").isdigit() | (fields[1] == "*"):
            yield Secret("PGPASSWORD", fields[4])
        elif len(fields) == 2 and re.fullmatch(r"\$(?:apr1|2[aby]|5|6)\$\S+|\{SHA\}\S+", fields[1]):
            yield Secret("HTPASSWD", fields[1])
    if not is_named and len(text.split()) == 1 and not is_ordinary(source, text.strip()):
        yield Secret(source, text.strip())


def _value(name: str, value: str) -> Iterator[Secret]:
    """Yields multi-line values line by line, because tools show text in lines."""
    if "\n" in value.strip():
        for line in value.splitlines():
            if not line.startswith("-----") and not is_ordinary(name, line.strip()):
                yield Secret(name, line)
    elif not is_ordinary(name, value):
        yield Secret(name, value)
    if (document := _as_json(value)) is not None:
        yield from _leaves(document, name, 1)
