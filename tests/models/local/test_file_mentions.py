"""Finds the file that a request means, from the names in it and the existing files."""

from __future__ import annotations

from pathlib import Path

import pytest

from wolo.models.local.simple_context import free_name, list_names, meant_file, named_files


@pytest.fixture
def here() -> Path:
    for name in ("calc.py", "README.md", "data", "src/x.py", "src/deep/y.py", ".hidden.py", "node_modules/z.js"):
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return Path.cwd()


def test_it_sees_one_level_deep_and_no_heaps(here: Path) -> None:
    assert list_names(here).files == ("README.md", "calc.py", "data", "src/x.py")


def test_a_directory_that_cannot_be_listed_is_empty(here: Path) -> None:
    assert list_names(here / "gone").files == ()


def test_links_to_folders_are_not_followed(here: Path, tmp_path: Path) -> None:
    Path("elsewhere").symlink_to(tmp_path)
    assert not [name for name in list_names(here).files if name.startswith("elsewhere")]


@pytest.mark.parametrize(
    ("request_text", "expected"),
    [
        ("fix the bug in calc.py", ["calc.py"]),
        ("create hello.py that prints hello.", ["hello.py"]),
        ("explain src/x.py, please", ["src/x.py"]),
        ("what is in `data`?", ["data"]),
        ("write ./out/page.html!", ["./out/page.html"]),
        ("make a web page with Node.js", []),
        ("version 1.2 of example.com, e.g. that", []),
        ("write a Makefile", ["Makefile"]),
        ("create über.py", ["über.py"]),
        ("create a calculator", []),
        (".py", []),
        ("look at src", []),
        ("~nobody-here/x.py", ["~nobody-here/x.py"]),
        ("a" * 5000 + ".py", ["a" * 5000 + ".py"]),
    ],
)
def test_names_in_a_request(here: Path, request_text: str, expected: list[str]) -> None:
    assert named_files(request_text, list_names(here)) == expected


def test_word_may_mean_exactly_one_file(here: Path) -> None:
    assert meant_file("explain the calc to me", list_names(here)) == "calc.py"
    Path("calc.js").touch()
    assert meant_file("explain the calc to me", list_names(here)) == ""


def test_the_next_free_name(here: Path) -> None:
    assert free_name("new.py", list_names(here)) == "new.py"
    assert free_name("calc.py", list_names(here)) == "calc_2.py"
    Path("calc_2.py").touch()
    assert free_name("calc.py", list_names(here)) == "calc_3.py"


def test_impossible_names_do_not_exist(here: Path) -> None:
    names = list_names(here)
    for name in ("a\0b", "a" * 5000, "~nobody-here/x"):
        assert not names.exists(name)
        assert not names.is_folder(name)
