"""Finds the tests that drive a terminal: those that reach `pty_wolo`, directly or through what they call."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import CodeType, FunctionType

import pytest

from tests.fakes.screen import pty_wolo


def drives_a_terminal(test: pytest.Function) -> bool:
    fixtures = [fixture.func for found in test._fixtureinfo.name2fixturedefs.values() for fixture in found]
    return any(_comes_to_a_terminal(function, set()) for function in (test.function, *fixtures))


def _comes_to_a_terminal(function: object, seen: set[object]) -> bool:
    function = inspect.unwrap(function) if callable(function) else function
    if not isinstance(function, FunctionType) or function in seen:
        return False
    seen.add(function)
    if function is inspect.unwrap(pty_wolo):
        return True
    called = (function.__globals__.get(name) for name in _names(function.__code__))
    return function.__module__.startswith("tests.") and any(_comes_to_a_terminal(each, seen) for each in called)


def _names(code: CodeType) -> Iterator[str]:
    """Also those in functions within it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
