"""The pictures of the docs come from real conversations: `python -m tests.end_to_end.test_pictures` draws them anew."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fakes.picture import ON_DARK, ON_LIGHT, picture
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Reply, call, text
from tests.fakes.screen import Terminal, pty_wolo

DOCS = Path(__file__).resolve().parents[2] / "docs"
DARK, LIGHT = ("15;0", ON_DARK), ("0;15", ON_LIGHT)
"""What COLORFGBG says there, and the colours of the terminal."""
ROWS, COLUMNS = 34, 80
"""High enough that nothing scrolls away, which would depend on the time that commands take."""
BEFORE = "def add(a, b):\n    return a - b\n\n\ndef subtract(a, b):\n    return a - b\n"
SLIP = "    return a - b\n\n\ndef subtract"
CHECK = 'from calculator import add\n\nassert add(2, 2) == 4\nprint("4 = 2 + 2")\n'


@contextmanager
def conversation(background: str, *replies: Reply, flags: Sequence[str]) -> Iterator[Terminal]:
    with tempfile.TemporaryDirectory(prefix="wolo-picture-") as home, ProviderServer() as provider:
        folder = Path(home).resolve() / "calculator"
        folder.mkdir()
        (folder / "calculator.py").write_text(BEFORE)
        (folder / "check.py").write_text(CHECK)
        provider.script(*replies)
        env = {"HOME": str(folder.parent), "WOLO_HOME": f"{home}/wolo", "COLORTERM": "truecolor", "COLORFGBG": background}
        given = (*provider.flags, "--sandbox", "off", *flags)
        with pty_wolo(*given, env=env, cwd=folder, rows=ROWS, columns=COLUMNS) as terminal:
            terminal.wait_for_prompt()
            yield terminal


def a_turn(background: str, colours: Mapping[str, str]) -> str:
    """A mistake is fixed and the work checked."""
    replies = (
        call("edit", {"path": "calculator.py", "old": SLIP, "new": SLIP.replace("-", "+")}),
        call("shell", {"command": "python check.py"}),
        text("`add` subtracted: a slip of the sign. It **adds** now, and `check.py` passes."),
    )
    flags = ("--mode", "edit", "--allow", "shell:python check.py")
    with conversation(background, *replies, flags=flags) as terminal:
        terminal.enter("add(2, 2) gives 0. Fix it, and run check.py")
        terminal.wait_for(" out · ")
        terminal.wait_until(lambda: "Esc stops" not in "\n".join(terminal.lines))
        terminal.type("now write tests for both")
        terminal.wait_for("tests for both")
        terminal.wait_until(lambda: terminal.lines[terminal.cursor[0] - 1] == "", complaint="no blank row above the composer")
        return picture(terminal, colours=colours)


def an_approval(background: str, colours: Mapping[str, str]) -> str:
    """A command that deletes files is about to run."""
    with conversation(background, call("shell", {"command": "rm -rf build && make"}), flags=("--mode", "ask")) as terminal:
        terminal.enter("clean up and build")
        terminal.wait_for("stop the turn")
        return picture(terminal, colours=colours)


PICTURES: dict[str, tuple[Callable[[str, Mapping[str, str]], str], tuple[str, Mapping[str, str]]]] = {
    "wolo.svg": (a_turn, DARK),
    "wolo-on-light.svg": (a_turn, LIGHT),
    "wolo-approval.svg": (an_approval, DARK),
}


@pytest.mark.parametrize("name", PICTURES)
def test_the_picture_shows_wolo_as_it_is(name: str) -> None:
    draw, on = PICTURES[name]
    assert draw(*on) == (DOCS / name).read_text(encoding="utf-8"), "draw it anew: python -m tests.end_to_end.test_pictures"


if __name__ == "__main__":
    for name, (draw, on) in PICTURES.items():
        (DOCS / name).write_text(draw(*on), encoding="utf-8")
