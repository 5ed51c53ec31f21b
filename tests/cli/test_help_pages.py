"""Pages of `--help` have whole sentences in any window."""

from __future__ import annotations

import re

import pytest

from tests.fakes.command import run_wolo
from wolo.cli.subcommands import TABLE

GROUPS = [name for name, row in TABLE.items() if row.entry == "app"]


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("columns", ["40", "80", "100"])
@pytest.mark.parametrize("name", ["", *GROUPS])
def test_help_never_cuts_a_sentence(name: str, columns: str) -> None:
    page = run_wolo(*filter(None, [name]), "--help", env={"COLUMNS": columns}).stdout
    cut = [line for line in page.splitlines() if re.search(r"[\w,]\.\.\.$", line) and "Usage" not in line and "[" not in line]
    assert not cut
    assert "Commands:" in page
