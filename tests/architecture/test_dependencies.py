"""Every library that wolo imports is a declared dependency: what another library happens to bring may stay away tomorrow."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parents[2]


def imported() -> set[str]:
    found: set[str] = set()
    for path in (ROOT / "wolo").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names - {"wolo"}


def test_every_imported_library_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [*project["dependencies"], *(line for group in project["optional-dependencies"].values() for line in group)]
    declared = {re.sub(r"[-_.]+", "-", re.split(r"[\s<>=~!\[;]", line)[0]).lower() for line in lines}
    brought_by = packages_distributions()
    missing = {
        name: owners
        for name in imported()
        if (owners := brought_by.get(name)) and not declared & {re.sub(r"[-_.]+", "-", owner).lower() for owner in owners}
    }
    assert not missing
