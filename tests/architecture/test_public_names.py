"""The names that `import wolo` offers: each is there, and documented."""

from __future__ import annotations

import inspect
import re
import typing
from pathlib import Path

import pytest

import wolo

PAGE = Path(__file__).parents[2] / "docs" / "api" / "names.md"


def test_every_public_name_is_there_and_documented() -> None:
    rows = [line.split(" | ")[0] for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    documented = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert sorted(documented) == wolo.__all__
    for name in wolo.__all__:
        assert getattr(wolo, name) is not None
        assert name == "tool" or getattr(wolo, name).__doc__
    assert sorted(name for names in wolo._ROOMS.values() for name in names) == wolo.__all__
    assert not hasattr(wolo, "no_such_name")


@pytest.mark.parametrize("name", sorted(set(wolo.__all__) - {"AgentMessage", "LLMMessage"}))
def test_types_of_public_names_are_readable(name: str) -> None:
    value = getattr(wolo, name)
    assert isinstance(typing.get_type_hints(value), dict)
    for member, function in inspect.getmembers(value, inspect.isfunction) if isinstance(value, type) else ():
        if not member.startswith("_") or member == "__init__":
            assert isinstance(typing.get_type_hints(function), dict)
