"""Runs the functions of a freshly written calculator and says where the file is: `try_calculator.py FOLDER`."""

from __future__ import annotations

import importlib.util
import io
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType

CHECKS = (("add", 7, 4, 11), ("subtract", 7, 4, 3), ("multiply", 7, 4, 28), ("divide", 8, 4, 2))
NEEDED = {"add", "subtract"}


def find_calculator(folder: Path) -> Path | None:
    files = sorted(folder.glob("*.py"), key=lambda path: ("calc" not in path.name, path.name))
    return files[0] if files else None


def load(path: Path) -> ModuleType:
    """The module, imported with nobody at the keyboard, so that a forgotten `input()` ends at once."""
    spec = importlib.util.spec_from_file_location("calculator_under_trial", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    stdin, sys.stdin = sys.stdin, io.StringIO("")
    try:
        with redirect_stdout(io.StringIO()):
            spec.loader.exec_module(module)
    except (EOFError, SystemExit):
        pass
    finally:
        sys.stdin = stdin
    return module


def try_functions(module: ModuleType) -> list[tuple[str, str, bool]]:
    """Each function that is there: its call, what it gave, and whether that is right."""
    tried = []
    for name, first, second, expected in CHECKS:
        function = _find(module, name)
        if function is not None:
            value = function(first, second)
            tried.append((f"{name}({first}, {second})", repr(value), value == expected))
    return tried


def _find(module: ModuleType, name: str) -> Callable[[float, float], float] | None:
    for spelling in (name, name[:3], f"{name}_numbers"):
        if callable(function := getattr(module, spelling, None)):
            return function
    return None


def main() -> int:
    path = find_calculator(Path(sys.argv[1]))
    if path is None:
        print(f"no Python file was written in {sys.argv[1]}")
        return 1
    tried = try_functions(load(path))
    for call, value, right in tried:
        print(f"  {call} = {value}" + ("" if right else "   <- wrong"))
    names = {call.partition("(")[0] for call, _, right in tried if right}
    print(f"The calculator is {path}")
    return 0 if names >= NEEDED else 1


if __name__ == "__main__":
    sys.exit(main())
