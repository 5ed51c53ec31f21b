"""Output styles: chosen by a setting, of the user, a project or a plugin, and the same in every request of a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import text
from tests.fakes.repositories import files
from wolo.places import find_places

TERSE = "---\nname: Terse Words\ndescription: Says little.\nkeep-coding-instructions: true\n---\n\nAnswer in three words.\n"


def system(provider: ProviderServer) -> str:
    return str(provider.requests[-1].messages[0]["content"])


def ask(provider: ProviderServer, *flags: str) -> str:
    """The notices of a run."""
    provider.script(text("Done."))
    done = run_wolo("-p", *provider.flags, *flags, "hi")
    assert done.exit_code == 0, done.stderr
    return done.stderr


@pytest.fixture(autouse=True)
def styles() -> None:
    files(find_places().config / "output-styles", {"terse.md": TERSE, "long.md": "Answer at length."})


def test_chosen_style_is_part_of_the_prompt(provider: ProviderServer) -> None:
    ask(provider)
    assert "three words" not in system(provider)
    provider.forget_prefix()
    (find_places().config / "config.toml").write_text('output_style = "terse-words"\n')
    provider.script(text("One."), text("Two."))
    assert run_wolo("-p", *provider.flags, "-s", "styled", "hi").exit_code == 0
    first = system(provider)
    assert "# Output style: Terse-Words\n\nAnswer in three words." in first
    assert "You are Wolo" in first
    assert run_wolo("-p", *provider.flags, "-s", "styled", "again").exit_code == 0
    assert system(provider) == first
    provider.forget_prefix()
    assert ask(provider, "--set", "output_style=LONG", "--append-system-prompt", "And last.") == ""
    assert system(provider).endswith("# Output style: long\n\nAnswer at length.\n\nAnd last.")
    provider.forget_prefix()
    ask(provider, "--safe-mode")
    assert "three words" not in system(provider)


def test_plugin_style_is_chosen_by_last_name(provider: ProviderServer, tmp_path: Path) -> None:
    style = {"output-styles/pirate.md": "Talk like a pirate, see ${CLAUDE_PLUGIN_ROOT}/words.md."}
    added = run_wolo("plugin", "add", str(files(tmp_path / "acme", style)))
    assert "styles       output-styles" in added.stdout
    ask(provider, "--set", "output_style=pirate")
    root = next(find_places().data.glob("plugins/store/acme-*"))
    assert f"# Output style: acme:pirate\n\nTalk like a pirate, see {root}/words.md." in system(provider)


def test_project_style_needs_trust(provider: ProviderServer) -> None:
    files(Path(".claude/output-styles"), {"terse.md": "Of the project."})
    ask(provider, "--set", "output_style=terse")
    assert "Of the project" not in system(provider)
    provider.forget_prefix()
    ask(provider, "--set", "output_style=terse", "--trust")
    assert "# Output style: terse\n\nOf the project." in system(provider)


def test_unknown_or_broken_style_is_a_notice(provider: ProviderServer) -> None:
    (find_places().config / "output-styles/binary.md").write_bytes(b"\xff\xfe\x00")
    said = " ".join(ask(provider, "--set", "output_style=none").split())
    assert "The output style none is not used: there is none of this name. Styles: long, Terse-Words." in said
    assert "This output style is left out:" in said
    assert "not UTF-8" in said
