"""The system's keyring: asked only where the package `keyring` is installed, and only for keys that are marked as kept there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib.util import find_spec
from typing import Final, TypeVar

from wolo.errors import ConfigError

T = TypeVar("T")
SERVICE: Final = "wolo"
ANSWER_S: Final = 15.0
"""A locked keyring asks somebody for its password, and perhaps nobody sits there."""


def is_installed() -> bool:
    return find_spec("keyring") is not None


def fetch(name: str) -> str:
    """The key kept under a provider's name; empty: there is none. Raises ConfigError when the keyring cannot be read."""

    def ask() -> str:
        import keyring  # noqa: PLC0415  # 80 ms

        return keyring.get_password(SERVICE, name) or ""

    return _answered(ask)


def keep(name: str, key: str) -> bool:
    """Whether it lies there now: some keyrings take everything and keep nothing."""

    def store() -> bool:
        import keyring  # noqa: PLC0415  # as above

        keyring.set_password(SERVICE, name, key)
        return keyring.get_password(SERVICE, name) == key

    try:
        return _answered(store)
    except ConfigError:
        return False


def remove(name: str) -> None:
    """Raises ConfigError when it may still be there."""

    def delete() -> None:
        import keyring  # noqa: PLC0415  # as above

        if keyring.get_password(SERVICE, name) is not None:
            keyring.delete_password(SERVICE, name)

    _answered(delete)


def _answered(work: Callable[[], T]) -> T:
    """In a thread of its own, which ends with wolo: a keyring can be silent for ever."""
    if not is_installed():
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
