"""The package as an index shows it, and the sections of the documentation site."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
HOME = "https://git.example.com/someone/wolo"


@pytest.fixture(scope="module")
def metadata() -> Any:
    spec = importlib.util.spec_from_file_location("project_metadata", ROOT / ".ci" / "project_metadata.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_links_of_the_description_are_absolute(metadata: Any) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    text = metadata.describe(readme, HOME, "abc")
    assert f"![wolo at work]({HOME}/raw/abc/docs/wolo.svg)" in text
    assert f"[security]({HOME}/blob/abc/docs/guide/security.md)" in text
    assert not re.findall(r"\]\((?!https?:|#)", text)


def test_description_without_a_repository_has_no_dead_links(metadata: Any) -> None:
    text = metadata.describe("![a](docs/a.svg) [b](docs/b.md#c) [d](https://example.com) [e](#f)", "", "main")
    assert text == " b [d](https://example.com) [e](#f)"


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("git@git.example.com:someone/wolo.git", HOME),
        ("ssh://git@git.example.com/someone/wolo", HOME),
        (f"{HOME}.git", HOME),
        (f"{HOME}/", HOME),
        ("https://token@git.example.com/someone/wolo", ""),
        ("/srv/wolo", ""),
        ("", ""),
    ],
)
def test_address_comes_from_git(
    metadata: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, remote: str, address: str
) -> None:
    monkeypatch.delenv("WOLO_REPOSITORY", raising=False)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    if remote:
        subprocess.run(["git", "-C", tmp_path, "remote", "add", "origin", remote], check=True)
    assert metadata.find_repository(str(tmp_path)) == address
    monkeypatch.setenv("WOLO_REPOSITORY", HOME)
    assert metadata.find_repository(str(tmp_path)) == HOME


def test_package_names_its_authors() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["authors"]
    assert {"readme", "urls"} <= {*project["dynamic"]}


def test_sections_of_the_site_have_an_index() -> None:
    assert all((ROOT / "docs" / name / "index.md").is_file() for name in ("guide", "api", "reference", "formats", "design"))
    assert (ROOT / "docs" / "decisions" / "README.md").is_file()
    ranked = re.search(r"boost: ([0-9.]+)", (ROOT / "docs" / "decisions" / ".meta.yml").read_text(encoding="utf-8"))
    assert ranked is not None
    assert float(ranked[1]) < 1
