"""Handle characters that JSON, databases and terminals reject: lone surrogates and NUL."""

from __future__ import annotations

from typing import Any


def is_whole(text: str) -> bool:
    """Check for lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def whole(text: str) -> str:
    """Join surrogate pairs and replace lone surrogates."""
    return text if is_whole(text) else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def whole_throughout(value: Any) -> Any:
    """Apply `whole` to every string in a JSON value, keys included."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, dict):
        return {whole_throughout(name): whole_throughout(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [whole_throughout(each) for each in value]
    return value


def clean(text: str) -> str:
    """Also replace NUL, which breaks some servers and tokenizers."""
    if text.isascii():
        return text if "\0" not in text else text.replace("\0", "\ufffd")
    return whole(text).replace("\0", "\ufffd")
