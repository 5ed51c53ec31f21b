"""The private members of prompt_toolkit that wolo relies on."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from wolo.frontends.terminal.io import prompt_toolkit_adapter
from wolo.frontends.terminal.io.prompt_toolkit_adapter import PRIVATE_MEMBERS

MEMBERS = [(owner, name) for owner, names in PRIVATE_MEMBERS.items() for name in names]


@pytest.mark.parametrize(("owner", "name"), MEMBERS)
def test_the_installed_prompt_toolkit_has_it(owner: type, name: str) -> None:
    assert re.search(rf"(?:self\.|def ){name}\b", inspect.getsource(owner))


def test_only_the_adapter_uses_private_members() -> None:
    adapter = Path(prompt_toolkit_adapter.__file__)
    private = "|".join(name for _, name in MEMBERS)
    for path in (each for each in adapter.parents[1].rglob("*.py") if each != adapter):
        source = path.read_text()
        assert not re.search(r"from prompt_toolkit[\w.]* import [^\n]*\b_[A-Za-z]", source), path
        assert "prompt_toolkit" not in source or not re.search(rf"\.(?:{private})\b", source), path
