"""The pictures of the docs come from real conversations: `python -m tests.end_to_end.test_pictures` draws them anew."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.fakes.picture import ON_DARK, ON_LIGHT, picture
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from tests.fakes.screen import pty_wolo

DOCS = Path(__file__).resolve().parents[2] / "docs"
PICTURES = {"wolo.svg": ("15;0", ON_DARK), "wolo-on-light.svg": ("0;15", ON_LIGHT)}
"""With what COLORFGBG says there, and the colours of the terminal."""
ROWS, COLUMNS = 34, 96
BEFORE = "def add(a, b):\n    return a - b\n\n\ndef subtract(a, b):\n    return a - b\n"
SLIP = "    return a - b\n\n\ndef subtract"
CHECK = 'from calculator import add\n\nassert add(2, 2) == 4\nprint("4 = 2 + 2")\n'


@pytest.mark.parametrize("name", PICTURES)
def test_the_picture_shows_wolo_as_it_is(name: str) -> None:
    drawn = (DOCS / name).read_text(encoding="utf-8")
    assert wolo_at_work(*PICTURES[name]) == drawn, "draw it anew: python -m tests.end_to_end.test_pictures"


def wolo_at_work(background: str, colours: Mapping[str, str]) -> str:
    """A person has a mistake mended and the work checked."""
    with tempfile.TemporaryDirectory(prefix="wolo-picture-") as home, ProviderServer() as provider:
        folder = Path(home).resolve() / "calculator"
        folder.mkdir()
        (folder / "calculator.py").write_text(BEFORE)
        (folder / "check.py").write_text(CHECK)
        provider.script(
            call("edit", {"path": "calculator.py", "old": SLIP, "new": SLIP.replace("-", "+")}),
            call("shell", {"command": "python check.py"}),
            text("`add` subtracted: a slip of the sign. It **adds** now, and `check.py` passes."),
        )
        env = {"HOME": str(folder.parent), "WOLO_HOME": f"{home}/wolo", "COLORTERM": "truecolor", "COLORFGBG": background}
        flags = ("--mode", "edit", "--sandbox", "off", "--allow", "shell:python check.py")
        with pty_wolo(*provider.flags, *flags, env=env, cwd=folder, rows=ROWS, columns=COLUMNS) as terminal:
            terminal.wait_for_prompt()
            terminal.enter("add(2, 2) gives 0. Mend it, and run check.py")
            terminal.wait_for(" out · ")
            terminal.wait_until(lambda: "Esc stops" not in "\n".join(terminal.lines))
            terminal.type("now write tests for both")
            terminal.wait_for("tests for both")
            return picture(terminal, colours=colours)


if __name__ == "__main__":
    for name, given in PICTURES.items():
        (DOCS / name).write_text(wolo_at_work(*given), encoding="utf-8")
