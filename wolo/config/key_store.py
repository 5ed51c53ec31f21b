"""The API keys that wolo keeps: one row a provider in `keys.toml`, which holds the key itself or says that the keyring does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, Final, Literal, NamedTuple, TypeVar

from wolo.config.files import find_line, locked, parse_toml, read_toml, replace_file
from wolo.config.settings_writer import open_document
from wolo.errors import ConfigError
from wolo.places import Places

Where = Literal["keyring", "keys.toml"]
FILE: Final = "keys.toml"
IN_KEYRING: Final = {"keyring": True}
"""What stands in the file instead of a key."""


class Kept(NamedTuple):
    where: Where
    key: str = ""
    """Empty where the keyring has it."""


def read(places: Places, notices: list[str]) -> dict[str, Kept]:
    """By the names of providers. Raises ConfigError for a file others can write, and for a row that holds no key."""
    path = places.config / FILE
    text, rows = read_toml(path, notices, is_secret=True)
    kept: dict[str, Kept] = {}
    for name, row in rows.items():
        if row == IN_KEYRING:
            kept[name] = Kept("keyring")
        elif isinstance(row, str) and row.strip():
            kept[name] = Kept(FILE, row.strip())
        else:
            line = find_line(text, (name,))
            raise ConfigError(f'{path}, line {line}: the key of {name} must be text: {name} = "…".')
    return kept


def fetch(name: str, kept: Kept, notices: list[str]) -> str:
    """The key itself; empty, with a word among the notices, when the keyring does not give it."""
    if kept.where == FILE:
        return kept.key
    try:
        if key := fetch_from_keyring(name).strip():
            return key
        notices.append(f"The key of {name} is not in the keyring any more: `wolo auth login {name}` keeps a new one.")
    except ConfigError as error:
        notices.append(f"The key of {name} lies in the keyring. {error.message}")
    return ""


def values(places: Places) -> Iterator[tuple[str, str]]:
    """Every key there is by the name of its provider, also beside rows that are wrong. Raises ConfigError."""
    _, rows = read_toml(places.config / FILE, [], is_secret=True)
    for name, row in rows.items():
        if isinstance(row, str):
            yield name, row
        elif row == IN_KEYRING:
            yield name, fetch(name, Kept("keyring"), [])


def keep(places: Places, name: str, key: str, *, in_keyring: bool) -> Where:
    """Where it lies now: the file, unless the keyring is wanted and works. Raises ConfigError; then all is as it was."""
    with locked(places.config):
        before = read(places, []).get(name)
        where: Where = "keyring" if in_keyring and has_keyring() and store_in_keyring(name, key) else FILE
        try:
            _set_row(places, name, IN_KEYRING if where == "keyring" else key)
        except ConfigError:
            if where == "keyring" and before != Kept("keyring"):
                with suppress(ConfigError):
                    remove_from_keyring(name)
            raise
        if before == Kept("keyring") and where == FILE:
            with suppress(ConfigError):
                remove_from_keyring(name)
    return where


def forget(places: Places, name: str) -> Where | None:
    """Where it lay; None: wolo keeps no key of this provider. Raises ConfigError when it cannot be removed."""
    with locked(places.config):
        kept = read(places, []).get(name)
        if kept is None:
            return None
        if kept.where == "keyring":
            remove_from_keyring(name)
        _set_row(places, name, None)
    return kept.where


def _set_row(places: Places, name: str, row: str | dict[str, bool] | None) -> None:
    path = places.config / FILE
    document: Any = open_document(path, is_secret=True)
    if row is None:
        document.pop(name, None)
    else:
        document[name] = _inline(row) if isinstance(row, dict) else row
    text = document.as_string()
    _, rows = parse_toml(text.encode(), path)
    if rows.get(name) != row:
        raise ConfigError(
            f"{path} cannot be changed without losing what else it says.", hint=f"Change the row of {name} by hand."
        )
    replace_file(path, text)


def _inline(row: dict[str, bool]) -> object:
    import tomlkit  # noqa: PLC0415  # loaded with the file

    table = tomlkit.inline_table()
    table.update(row)
    return table


T = TypeVar("T")
SERVICE: Final = "wolo"
ANSWER_S: Final = 15.0
"""A locked keyring asks somebody for its password, and perhaps nobody sits there."""


def has_keyring() -> bool:
    return find_spec("keyring") is not None


def fetch_from_keyring(name: str) -> str:
    """The key kept under a provider's name; empty: there is none. Raises ConfigError when the keyring cannot be read."""

    def ask() -> str:
        import keyring  # noqa: PLC0415  # 80 ms

        return keyring.get_password(SERVICE, name) or ""

    return _ask_keyring(ask)


def store_in_keyring(name: str, key: str) -> bool:
    """Whether it lies there now: some keyrings take everything and keep nothing."""

    def store() -> bool:
        import keyring  # noqa: PLC0415  # as above

        keyring.set_password(SERVICE, name, key)
        return keyring.get_password(SERVICE, name) == key

    try:
        return _ask_keyring(store)
    except ConfigError:
        return False


def remove_from_keyring(name: str) -> None:
    """Raises ConfigError when it may still be there."""

    def delete() -> None:
        import keyring  # noqa: PLC0415  # as above

        if keyring.get_password(SERVICE, name) is not None:
            keyring.delete_password(SERVICE, name)

    _ask_keyring(delete)


def _ask_keyring(work: Callable[[], T]) -> T:
    """In a thread of its own, which ends with wolo: a keyring can be silent for ever."""
    if not has_keyring():
        raise ConfigError("The package `keyring` is not installed.", hint="pip install 'wolo-cli[keyring]'")
    found: list[T] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:  # keyrings are plugins: they raise what they like
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(ANSWER_S)
    if found:
        return found[0]
    why = type(failures[0]).__name__ if failures else f"no answer within {ANSWER_S:g} s"
    raise ConfigError(f"The system's keyring cannot be used: {why}.", hint="Is it unlocked? `keyring diagnose` says more.")
