"""Work begun with another agent is gone on with."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import text
from tests.sessions.foreign.sources import CWD, SAMPLES, Sample, sample

CLAUDE = sample("claude-code")


@pytest.fixture
def there() -> Path:
    """Claude Code's session of this very directory, in this test's home."""
    here = Path.cwd()
    folder = Path(os.environ["HOME"]) / ".claude" / "projects" / "".join(c if c.isalnum() else "-" for c in str(here))
    folder.mkdir(parents=True)
    path = Path(shutil.copyfile(CLAUDE.path(), folder / CLAUDE.path().name))
    path.write_text(path.read_text(encoding="utf-8").replace(CWD, str(here)), encoding="utf-8")
    return path


@pytest.mark.parametrize("sample", SAMPLES[::2], ids=[each.name for each in SAMPLES[::2]])
def test_session_of_any_agent_is_imported_and_continues(sample: Sample, provider: ProviderServer) -> None:
    taken = run_wolo("sessions", "import", str(sample.path()), "--json")
    assert taken.exit_code == 0, taken.stderr
    assert (taken.json["skipped"], taken.json["already_imported"]) == (0, False)
    provider.script(text("on we go"))
    assert run_wolo("-p", *provider.flags, "-c", "go on").stdout == "on we go\n"
    assert "go on" in str(provider.requests[0].messages[-1])
    assert len(provider.requests[0].messages) > 2
    again = run_wolo("sessions", "import", str(sample.path()), "--json").json
    assert again["id"] == taken.json["id"]


def test_imported_session_passes_the_session_check() -> None:
    run_wolo("sessions", "import", str(CLAUDE.path()))
    checked = run_wolo("sessions", "lint", "--as", "all", "--json")
    assert checked.exit_code == 0
    assert checked.json["findings"] == []


def test_messages_behind_a_summary_are_kept_not_sent(provider: ProviderServer) -> None:
    run_wolo("sessions", "import", str(CLAUDE.path()))
    provider.script(text("ok"))
    run_wolo("-p", *provider.flags, "-c", "go on")
    sent = str(provider.requests[0].messages)
    assert "The sum skipped its first number" in sent
    assert "Off by one" not in sent
    assert "Off by one" in run_wolo("sessions", "show", run_wolo("sessions", "list", "--json").json[0]["id"]).stdout


def test_sessions_of_an_agent_are_listed_and_imported(there: Path) -> None:
    (listed,) = run_wolo("sessions", "import", "--from", "claude-code", "--json").json
    assert (listed["id"], listed["title"], listed["file"]) == (there.stem, "Repair the sum", str(there))
    assert there.stem in run_wolo("sessions", "import", "--from", "claude-code").stdout
    taken = run_wolo("sessions", "import", "--from", "claude-code", there.stem[:8])
    assert (taken.exit_code, "Repair the sum" in taken.stdout) == (0, True)
    assert run_wolo("sessions", "import", "--from", "claude-code", "repair").exit_code == 0


def test_unknown_or_ambiguous_ids_are_named(there: Path) -> None:
    shutil.copyfile(there, there.with_name(f"{there.stem[:8]}-other.jsonl"))
    several = run_wolo("sessions", "import", "--from", "claude-code", there.stem[:8])
    assert several.exit_code != 0
    assert several.stderr.count("Repair the sum") == 2
    none = run_wolo("sessions", "import", "--from", "claude-code", "zzz")
    assert "has no session zzz" in none.stderr
    assert "Traceback" not in none.stderr + several.stderr
    unknown = run_wolo("sessions", "import", "--from", "vim")
    assert (unknown.exit_code, "claude-code" in unknown.stderr) == (2, True)
    assert run_wolo("sessions", "import").exit_code == 2
