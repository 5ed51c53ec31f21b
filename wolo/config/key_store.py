"""Stores API keys in `keys.toml` or in the system keyring: a row `PROVIDER`, and one `PROVIDER@ACCOUNT` for each further key.

The keyring is used only if the package `keyring` is installed, and only for rows marked so.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, Final, Literal, TypeVar

from msgspec import Struct

from wolo.config.files import find_line, lock_folder, open_document, parse_toml, read_toml, replace_file
from wolo.errors import ConfigError
from wolo.messages.terminal_text import clean_line
from wolo.places import Notices, Places

Where = Literal["keyring", "keys.toml"]
FILE: Final = "keys.toml"
IN_KEYRING: Final = {"keyring": True}
"""Value of a row whose key is in the keyring."""
PLUGIN: Final = "plugin:"
"""Begins the row of a plugin's secret."""
DEFAULT: Final = "default"
"""Account of a key that was saved without a name."""
ACCOUNT_NAME: Final = r"(?a)[\w.-]{1,32}"
"""Too short for a key in the wrong place."""


class StoredKey(Struct, frozen=True):
    where: Where
    key: str = ""
    """Empty if the keyring has it."""


def row_name(provider: str, account: str) -> str:
    """An empty account is the default one. Raises ConfigError for an invalid name, which may be a key and is not repeated."""
    if account in ("", DEFAULT):
        return provider
    if not re.fullmatch(ACCOUNT_NAME, account):
        raise ConfigError("That cannot be the name of an account.", hint="Use up to 32 letters, digits and . _ -")
    return f"{provider}@{account}"


def plugin_row(plugin: str, key: str) -> str:
    """The row of a plugin's secret."""
    return f"{PLUGIN}{plugin}@{key}"


def account_of(row: str) -> tuple[str, str]:
    """Provider and account of a row."""
    provider, _, account = row.partition("@")
    return provider, account or DEFAULT


def login_command(row: str) -> str:
    provider, account = account_of(row)
    if provider.startswith(PLUGIN):
        return f"wolo plugin settings {provider.removeprefix(PLUGIN)} {account}"
    return f"wolo auth login {provider}" + (f" --name {account}" if account != DEFAULT else "")


def unknown_account(account: str, provider: str, stored: Iterable[str]) -> ConfigError:
    """An empty provider: no provider has it."""
    known: dict[str, list[str]] = {}
    for each, name in sorted(map(account_of, stored)):
        known.setdefault(each, []).append(name)
    shown = {provider: known[provider]} if provider in known else known
    listed = "; ".join(f"{each} has {', '.join(names)}" for each, names in shown.items()) or "no key is saved"
    return ConfigError(
        f"{provider or 'No provider'} has {'no' if provider else 'an'} account `{clean_line(account)}`: {listed}.",
        hint=f"`wolo auth login {provider or 'PROVIDER'} --name NAME` saves one.",
    )


def read(places: Places, notices: Notices) -> dict[str, StoredKey]:
    """By provider name. Raises ConfigError for a file others can write, and for a row without a key."""
    path = places.config / FILE
    text, rows = read_toml(path, notices, is_secret=True)
    stored: dict[str, StoredKey] = {}
    for name, row in rows.items():
        if row == IN_KEYRING:
            stored[name] = StoredKey("keyring")
        elif isinstance(row, str) and row.strip():
            stored[name] = StoredKey(FILE, row.strip())
        else:
            line = find_line(text, (name,))
            raise ConfigError(f'{path}, line {line}: the key of {name} must be text: {name} = "…".')
    return stored


def fetch(name: str, stored: StoredKey, notices: Notices) -> str:
    """The key; empty, with a notice, if the keyring does not return it."""
    if stored.where == FILE:
        return stored.key
    try:
        if key := fetch_from_keyring(name).strip():
            return key
        notices.add(f"The key of {name} is no longer in the keyring: `{login_command(name)}` saves a new one.")
    except ConfigError as error:
        notices.add(f"The key of {name} is in the keyring. {error.message}")
    return ""


def values(places: Places) -> Iterator[tuple[str, str]]:
    """Every key by provider name, even if other rows are invalid. Raises ConfigError."""
    _, rows = read_toml(places.config / FILE, Notices(), is_secret=True)
    for name, row in rows.items():
        if isinstance(row, str):
            yield name, row
        elif row == IN_KEYRING:
            yield name, fetch(name, StoredKey("keyring"), Notices())


def save(places: Places, name: str, key: str, *, in_keyring: bool) -> Where:
    """Returns where the key is stored: in the file, unless the keyring is wanted and works.

    Raises ConfigError; then nothing has changed.
    """
    with lock_folder(places.config):
        before = read(places, Notices()).get(name)
        where: Where = "keyring" if in_keyring and has_keyring() and store_in_keyring(name, key) else FILE
        try:
            _set_row(places, name, IN_KEYRING if where == "keyring" else key)
        except ConfigError:
            if where == "keyring" and before != StoredKey("keyring"):
                with suppress(ConfigError):
                    remove_from_keyring(name)
            raise
        if before == StoredKey("keyring") and where == FILE:
            with suppress(ConfigError):
                remove_from_keyring(name)
    return where


def remove(places: Places, name: str) -> Where | None:
    """Returns where the key was; None if there was none. Raises ConfigError if it cannot be removed."""
    with lock_folder(places.config):
        if (stored := read(places, Notices()).get(name)) is None:
            return None
        if stored.where == "keyring":
            remove_from_keyring(name)
        _set_row(places, name, None)
    return stored.where


def _set_row(places: Places, name: str, row: str | dict[str, bool] | None) -> None:
    path = places.config / FILE
    document: Any = open_document(path, is_secret=True)
    if row is None:
        document.pop(name, None)
    else:
        import tomlkit  # noqa: PLC0415  # loaded with the file

        document[name] = tomlkit.inline_table().add("keyring", True) if row == IN_KEYRING else row
    text = document.as_string()
    _, rows = parse_toml(text.encode(), path)
    if rows.get(name) != row:
        raise ConfigError(f"{path} cannot be changed without losing other content.", hint=f"Change the row of {name} by hand.")
    replace_file(path, text)


T = TypeVar("T")
SERVICE: Final = "wolo"
ANSWER_S: Final = 15.0
"""A locked keyring asks for a password, possibly with no one there."""


def has_keyring() -> bool:
    return find_spec("keyring") is not None


def fetch_from_keyring(name: str) -> str:
    """Empty if the keyring has no such key. Raises ConfigError if the keyring cannot be read."""
    return _ask_keyring(lambda keyring: keyring.get_password(SERVICE, name) or "")


def store_in_keyring(name: str, key: str) -> bool:
    """Reads the key back, because some keyrings accept everything and store nothing."""

    def store(keyring: Any) -> bool:
        keyring.set_password(SERVICE, name, key)
        return bool(keyring.get_password(SERVICE, name) == key)

    try:
        return _ask_keyring(store)
    except ConfigError:
        return False


def remove_from_keyring(name: str) -> None:
    """Raises ConfigError if the key may still be there."""

    def delete(keyring: Any) -> None:
        if keyring.get_password(SERVICE, name) is not None:
            keyring.delete_password(SERVICE, name)

    _ask_keyring(delete)


def _ask_keyring(work: Callable[[Any], T]) -> T:
    """Uses a daemon thread, because a keyring may never answer."""
    if not has_keyring():
        raise ConfigError("The package `keyring` is not installed.", hint="pip install 'wolo-cli[keyring]'")
    answers: list[T] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            import keyring  # noqa: PLC0415  # 80 ms

            answers.append(work(keyring))
        except BaseException as error:  # keyrings are plugins: they raise what they like
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(ANSWER_S)
    if answers:
        return answers[0]
    why = type(failures[0]).__name__ if failures else f"no answer within {ANSWER_S:g} s"
    raise ConfigError(f"Cannot use the system keyring: {why}.", hint="Is it unlocked? `keyring diagnose` shows details.")
