"""Runs several versions of a Python file and compares their functions: the source of a command, never imported.

`sys.argv[1]` is JSON: `versions`, the first of which was written; `old`, the file before a repair; `functions` by name, with
the kinds of values that each parameter may take; `examples` of the only function, as pairs of argument and result; `mark`,
before the verdict. Without functions the output of the whole file is compared. Ends with status 1 where the first version should
not stand.
"""

from __future__ import annotations

import contextlib
import copy
import io
import itertools
import json
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any

FEWEST = 2
"""Results that say something."""
VALUES: dict[str, tuple[Any, ...]] = {
    "number": (2, 7, 0, 12, 3),
    "text": ("level", "Hello World", "a1 b2, b2", "x", ""),
    "numbers": ([4, 1, 4, 9], [5], [3, -2], []),
    "texts": (["kiwi", "Apple", "fig", "fig"], ["b"], []),
    "table": ({"a": 1, "b": 2}, {}),
    "nested": ([[1, 2], [3]], [[]]),
    "truth": (True, False),
}


class Version:
    """What one text defines."""

    def __init__(self, text: str, name: str = "version") -> None:
        self.names: dict[str, Any] = {"__name__": name}
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.suppress(Exception):
            exec(text, self.names)
        self.numbers = re.findall(r"-?\d+(?:\.\d+)?", printed.getvalue())
        """Of the output, however they are set."""

    def result(self, name: str, args: Sequence[Any]) -> Any:
        """What is returned, or else printed; an exception where it is raised."""
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                value = self.names[name](*copy.deepcopy(args))
                value = list(value) if isinstance(value, Iterator) else value
        except Exception as error:
            return error
        return printed.getvalue() if value is None else value


class ComparedCall:
    """A call, and its result in each version."""

    def __init__(self, name: str, args: Sequence[Any], versions: Sequence[Version]) -> None:
        self.name, self.args = name, args
        self.results = [version.result(name, args) for version in versions]
        self.raises = [isinstance(result, Exception) for result in self.results]

    def description(self, num_results: int = 9) -> str:
        texts = [f"an error, {result!r}" if isinstance(result, Exception) else repr(result)[:80] for result in self.results]
        return f"{self.name}({', '.join(map(repr, self.args))}) gives {' / '.join(texts[:num_results])}"

    def is_same(self, one: int, other: int) -> bool:
        first, second = self.results[one], self.results[other]
        if isinstance(first, float) and isinstance(second, int | float):
            return abs(first - second) < 1e-6
        return type(first) is type(second) and (self.raises[one] or bool(first == second))


def calls_of(name: str, kinds: Sequence[Sequence[str]], versions: Sequence[Version]) -> list[ComparedCall]:
    """Calls with the kinds of values that most of the versions take."""
    best: list[ComparedCall] = []
    for each in itertools.product(*kinds):
        calls = [ComparedCall(name, args, versions) for args in itertools.product(*(VALUES[kind] for kind in each))]
        best = max(best, [call for call in calls if not all(call.raises)], key=len)
    return best


def example_fault(version: Version, name: str, argument: str, value: str) -> str:
    """How an example of the request comes out wrong; empty if it is right."""
    call = ComparedCall(name, (argument,), [version])
    if argument.lstrip("-").isdigit() and call.raises[0]:
        call = ComparedCall(name, (int(argument),), [version])
    return "" if value in (str(call.results[0]), repr(call.results[0])) else f"{call.description()}, not {value}"


def verdict_on_output(texts: Sequence[str]) -> tuple[str, bool]:
    outputs = [Version(text, "__main__").numbers for text in texts]
    if len(outputs[0]) < FEWEST:
        return "", True  # words may differ
    if outputs[0] in outputs[1:]:
        return "the same output", True
    example = f"it prints {' / '.join(' '.join(each)[:80] or 'no numbers' for each in outputs)}"
    return f"version 2 is right, {example}" if outputs[1:2] == outputs[2:] else f"they disagree, {example}", False


def verdict(order: dict[str, Any]) -> tuple[str, bool]:
    """The verdict, and whether the first version stands."""
    if not order["functions"]:
        return verdict_on_output(order["versions"])
    versions, names = [Version(text) for text in order["versions"]], [*order["functions"]]
    faults = [[example_fault(version, names[0], *each) for each in order["examples"]] for version in versions]
    if any(faults[0]):
        right = next((at for at, each in enumerate(faults) if not any(each)), 0)
        return f"version {right + 1} is right, " * bool(right) + next(filter(None, faults[0])), False
    calls = [
        call for name, kinds in order["functions"].items() for call in calls_of(name, kinds, [*versions, Version(order["old"])])
    ]
    last = len(versions)  # the place of the old version
    if order["old"] and calls and all(call.is_same(0, last) for call in calls):
        return f"it behaves as before, {calls[0].description(1)}", False
    pairs = [(one, other) for other in range(last) for one in range(other)]
    returned = [call for call in calls if not any(call.raises[:last])]
    counted = returned if len(returned) >= FEWEST else calls  # one that always raises has no results to compare
    split = {pair: call for call in counted for pair in pairs if not call.is_same(*pair)}
    agreed = [pair for pair in pairs if pair not in split]
    if len(counted) < FEWEST or not pairs or any(pair[0] == 0 for pair in agreed):
        return f"the same results of {len(counted)} calls" * (len(counted) >= FEWEST and bool(pairs)), True
    example = next(iter(split.values())).description(last)
    return f"version 2 is right, {example}" if agreed else f"they disagree, {example}", False


def main(text: str) -> None:
    order = json.loads(text)
    said, stands = verdict(order)
    if said:
        sys.stdout.write(f"{order['mark']}{said}\n")
    sys.exit(not stands)


if __name__ == "__main__":
    main(sys.argv[1])
