"""Characters that no JSON, database or terminal takes: halves of pairs, and NUL."""

from __future__ import annotations

from typing import Any


def is_whole(text: str) -> bool:
    """Whether it can be written as UTF-8: there is no half of a pair in it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def whole(text: str) -> str:
    """The same text with pairs of surrogates joined, and lone ones replaced by a mark."""
    return text if is_whole(text) else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def whole_throughout(value: Any) -> Any:
    """The same for every text in a JSON value, names included."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, dict):
        return {whole_throughout(name): whole_throughout(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [whole_throughout(each) for each in value]
    return value


def clean(text: str) -> str:
    """Without what breaks a server's JSON or its tokenizer: halves of characters and NUL."""
    if text.isascii():
        return text if "\0" not in text else text.replace("\0", "\ufffd")
    return whole(text).replace("\0", "\ufffd")
