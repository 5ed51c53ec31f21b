"""Docs that cannot lie: generated pages are fresh, links lead somewhere, the front door is tidy."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import tomllib
from pathlib import Path

import msgspec
import pytest

from tests.formats.histories import request
from wolo.formats.lint.linters import LINTERS
from wolo.messages.message import user
from wolo.models.catalog import Catalog
from wolo.models.format_selection import format_of
from wolo.models.provider import ModelChoice, Provider, ProviderSettings

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")))
AT_THE_ROOT = {
    "AGENTS.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Dockerfile",
    "LICENSE",
    "Makefile",
    "README.md",
    "action.yml",
    "benchmarks",
    "docs",
    "pyproject.toml",
    "tests",
    "wolo",
}


def load_generator() -> dict[str, str]:
    spec = importlib.util.spec_from_file_location("generate_docs", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    pages: dict[str, str] = module.pages()
    return pages


def test_the_reference_pages_are_what_the_code_says() -> None:
    for name, text in load_generator().items():
        assert (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8") == text, "run `make docs`"


def test_each_decision_has_its_own_number() -> None:
    pages = [page for page in PAGES if page.parent.name == "decisions" and page.name != "README.md"]
    numbers = [int(page.name[:4]) for page in pages]
    assert [number for number in numbers if numbers.count(number) > 1] == []
    titles = [re.match(r"# (\d+)", page.read_text(encoding="utf-8")) for page in pages]
    assert [int(title[1]) for title in titles if title] == numbers


def test_no_page_has_marks_of_a_merge() -> None:
    marks = re.compile(r"^(?:<{7}|>{7}) ", re.MULTILINE)
    assert [page.name for page in PAGES if marks.search(page.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_nothing_else_lies_at_the_root() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert {path.partition("/")[0] for path in tracked if not path.startswith(".")} <= AT_THE_ROOT


def test_the_house_names_every_room() -> None:
    house = (ROOT / "docs" / "house.md").read_text(encoding="utf-8")
    for room in (path.parent.name for path in ROOT.glob("wolo/*/__init__.py")):
        assert room in house, f"docs/house.md does not mention {room}"


def test_every_file_the_house_names_is_there() -> None:
    house = (ROOT / "docs" / "house.md").read_text(encoding="utf-8")
    present = [f"/{path.relative_to(ROOT)}" for folder in ("wolo", "docs", "benchmarks") for path in (ROOT / folder).rglob("*.*")]
    named = {name for name in re.findall(r"`([\w/]+\.(?:py|toml|sql))`", house) if "NAME" not in name}
    missing = {name for name in named if not any(path.endswith(f"/{name}") for path in present) and not (ROOT / name).exists()}
    assert not missing, "docs/house.md names files that are not there"


def test_the_providers_that_the_guide_shows_work() -> None:
    guide = (ROOT / "docs" / "guide" / "add-a-provider.md").read_text(encoding="utf-8")
    own, azure, file = (tomllib.loads(text) for text in re.findall(r"```toml\n(.*?)```", guide, re.DOTALL))
    settings = {
        name: msgspec.convert(table, ProviderSettings) for each in (own, azure) for name, table in each["providers"].items()
    }
    environ = {"ACME_API_KEY": "k", "ACME_TOKEN": "t", "AZURE_OPENAI_API_KEY": "a"}
    chosen = [Catalog(environ, settings).find(name) for name in ("acme/large:high", "azure-openai/my-gpt")]
    provider = msgspec.convert(file, Provider)
    chosen += [ModelChoice(provider, model, provider.base_url) for model in provider.models]
    assert len(chosen) > 2
    for choice in chosen:
        built = format_of(choice)
        body = json.loads(built.encode(request((user("go"),))))
        assert LINTERS[choice.format](body) == []


def test_every_promise_names_tests_that_exist() -> None:
    page = (ROOT / "docs/guide/security.md").read_text()
    named = set(re.findall(r"tests/[\w/]+\.py", page))
    assert len(named) > 15
    assert sorted(name for name in named if not (ROOT / name).is_file()) == []
