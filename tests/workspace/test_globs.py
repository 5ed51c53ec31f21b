"""Globs mean what git and ripgrep mean by them, and none of them can run away."""

from __future__ import annotations

import re

import pytest

from tests.clock import processor_time_below
from wolo.workspace.globs import BadPattern, compile_glob, ignore_line

MATCHES = [
    ("*.py", ["a.py", "deep/er/b.py", ".hidden.py"], ["a.pyc", "py", "a.py/b"]),
    ("src/*.py", ["src/a.py"], ["a.py", "src/x/a.py", "lib/src/a.py"]),
    ("src/**/*.py", ["src/a.py", "src/x/y/a.py"], ["a.py", "src.py"]),
    ("**/test_*.py", ["test_a.py", "x/test_b.py"], ["x/atest_b.py"]),
    ("/top.txt", ["top.txt"], ["x/top.txt"]),
    ("docs/**", ["docs/a", "docs/b/c"], ["docs", "x/docs/a"]),
    ("**", ["a", "b/c"], [""]),
    ("a/**/b/**/c", ["a/b/c", "a/x/b/y/z/c", "a/b/b/c"], ["a/c", "b/c", "a/b"]),
    ("*.{ts,tsx}", ["a.ts", "x/b.tsx"], ["a.t", "a.ts,tsx"]),
    ("{a,b{c,d}}.txt", ["a.txt", "bc.txt", "bd.txt"], ["b.txt", "abc.txt"]),
    ("x{y}z", ["x{y}z"], ["xyz"]),
    ("a\\{b,c\\}", ["a{b,c}"], ["ab", "ac"]),
    ("file?.txt", ["file1.txt", "fileé.txt"], ["file.txt", "file12.txt"]),
    ("[abc].txt", ["a.txt", "d/c.txt"], ["d.txt", "ab.txt"]),
    ("[!a-c].txt", ["d.txt"], ["a.txt", "b.txt"]),
    ("[[:digit:]].txt", ["7.txt"], ["x.txt"]),
    ("[]a].txt", ["].txt", "a.txt"], ["b.txt"]),
    ("app/\\[id\\]/*", ["app/[id]/page.tsx"], ["app/i/page.tsx"]),
    ("with space.txt", ["with space.txt"], []),
    ("*", ["a", "line\nbreak"], []),
]


@pytest.mark.parametrize(("glob", "yes", "no"), MATCHES)
def test_a_glob_matches_these_and_not_those(glob: str, yes: list[str], no: list[str]) -> None:
    pattern = compile_glob(glob)
    assert [path for path in yes if not pattern.fullmatch(path)] == []
    assert [path for path in no if pattern.fullmatch(path)] == []


@pytest.mark.parametrize("glob", ["", "/", "[abc", "a\\", "[[:nonsense:]]", "{a,b}{a,b}" * 10, "a" * 5000])
def test_meaningless_glob_is_refused_with_reason(glob: str) -> None:
    with pytest.raises(BadPattern, match=r"."):
        compile_glob(glob)


@pytest.mark.parametrize("line", ["", "# words", "   ", "/", "[open", "!"])
def test_empty_ignore_line_is_passed_over(line: str) -> None:
    assert ignore_line(line) is None


def test_trailing_ignore_blanks_count_only_escaped() -> None:
    assert ignore_line("name  ") == ignore_line("name")
    kept = ignore_line("name\\ ")
    assert kept is not None
    assert re.fullmatch(kept[0], "name ")


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("*a" * 40 + "b", "a" * 250),
        ("*" * 60 + "b", "a" * 250),
        ("**/a/" * 30 + "b", "/".join(["a"] * 200)),
        ("**/*a*a*a*a*a*a*a*a*b", "/".join(["a" * 60] * 40)),
        ("*?" * 30 + "x", "a" * 250),
        ("{" + ",".join(f"*a*a*a*a*{n}" for n in range(50)) + "}", "a" * 250),
        ("{" * 4000, "a"),
        ("{a," * 30 + "}" * 30 + "{" * 200, "b"),
        ("\\{" * 2000, "a"),
    ],
)
def test_no_glob_takes_long_however_it_is_made(glob: str, path: str) -> None:
    with processor_time_below(0.5):
        assert compile_glob(glob).fullmatch(path) is None
