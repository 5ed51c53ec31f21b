"""A page of the database that rots silently costs no run."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import text
from tests.sessions.test_salvage import fill, rot
from wolo.places import find_places
from wolo.sessions.store import Store


def test_run_saves_readable_parts_and_continues(provider: ProviderServer, isolated: Path) -> None:
    rot(fill(find_places().data))
    provider.script(text("Hello."))
    done = run_wolo("-p", *provider.flags, "hi")
    assert (done.exit_code, done.stdout) == (0, "Hello.\n")
    assert "was damaged" in done.stderr
    with Store.open(find_places().data) as store:
        assert len(store.load("session_2").entries) == 81
        session = store.latest(Path.cwd())
        assert session is not None
        assert session.turns == 1
    assert run_wolo("sessions", "list", "--all").stderr == ""


def test_command_saves_readable_parts_and_answers(isolated: Path) -> None:
    rot(fill(find_places().data))
    done = run_wolo("sessions", "show", "session_1")
    assert done.exit_code == 0
    assert "prompt 1" in done.stdout
    assert "was damaged" in done.stderr
