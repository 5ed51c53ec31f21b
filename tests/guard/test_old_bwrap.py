"""A bwrap that is old, a fake, or never answers; the compiled launcher is out of the way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import components
from tests.guard.sandbox_setup import land
from wolo.guard.sandbox import bubblewrap, escape_probe
from wolo.guard.sandbox.profile import profile_for
from wolo.guard.sandbox.selection import find

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="these walls are Linux's")

OLD = """#!/bin/sh
if tr '\\0' '\\n' < "/proc/self/fd/$2" | grep -q -e --perms; then echo 'bwrap: Unknown option --perms' >&2; exit 1; fi
exec {bwrap} "$@"
"""


@pytest.fixture(autouse=True)
def without_compiled_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be chosen before bwrap."""
    monkeypatch.setattr(bubblewrap, "COMPILED_LAUNCHER", "/no/such/launcher")


def put_on_the_path(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = folder / "programs"
    programs.mkdir(mode=0o755)
    (programs / "bwrap").write_text(text)
    (programs / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")


def test_bwrap_without_modes_still_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    bwrap = components.require("bwrap")
    with land("root") as folder:
        work = folder / "work"
        work.mkdir()
        put_on_the_path(folder, OLD.format(bwrap=bwrap), monkeypatch)
        found = find((work,), folder / "state", None)
        assert found.backend == "bubblewrap"
        assert "--perms" in found.tried[0]
        assert found.make is not None
        walls = found.make(profile_for((work,), (), folder / "state"))
        enclosed = walls.wrap(["true"], work)
        assert subprocess.run(enclosed.argv, pass_fds=enclosed.pass_fds, check=False).returncode == 0
        enclosed.cleanup()
        walls.close()


def test_bwrap_that_confines_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with land("root") as folder:
        (folder / "work").mkdir()
        fake = '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"\n'
        put_on_the_path(folder, fake, monkeypatch)
        found = find((folder / "work",), folder / "state", None)
        assert found.backend != "bubblewrap"
        assert "bubblewrap: a command in it could write outside the workspace" in found.tried[0]


def test_workspace_bwrap_is_never_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    components.require("bwrap")
    with land("root") as folder:
        put_on_the_path(folder, "#!/bin/sh\nexit 0\n", monkeypatch)
        found = find((folder / "programs",), folder / "state", None)
        assert (found.backend, found.tried) == ("bubblewrap", ())


def test_failing_bwrap_is_not_tried_every_way(monkeypatch: pytest.MonkeyPatch) -> None:
    with land("root") as folder:
        put_on_the_path(folder, '#!/bin/sh\necho x >> "$0.log"\nexit 1\n', monkeypatch)
        found = find((folder / "state",), folder / "state", None)
        assert found.backend != "bubblewrap"
        assert len((folder / "programs" / "bwrap.log").read_text()) <= 8


@pytest.mark.sweep(every=2)
@pytest.mark.parametrize("does", ["sleep {0}", "trap '' TERM\nsleep {0} & sleep {0}", "yes {0} >&2", "sleep {0} & exit 0"])
def test_hanging_bwrap_is_given_up_without_remains(monkeypatch: pytest.MonkeyPatch, does: str) -> None:
    with land("root") as folder:
        (folder / "work").mkdir()
        mark = f"4711{os.getpid()}"  # the same test may run elsewhere at this moment
        put_on_the_path(folder, f"#!/bin/sh\n{does.format(mark)}\n", monkeypatch)
        monkeypatch.setattr(escape_probe, "_PATIENCE_S", 0.7)
        found = find((folder / "work",), folder / "state", None)
        assert found.backend != "bubblewrap"
        assert mark not in "".join(path.read_text() for path in Path("/proc").glob("[0-9]*/cmdline") if path.parent.exists())
