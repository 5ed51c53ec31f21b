"""The person's terminal: what is drawn, what is typed, and the signals that come from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from wolo.frontends.terminal.display.event_view import Screen
from wolo.frontends.terminal.io.keyboard import Keyboard
from wolo.frontends.terminal.io.signals import Signals
from wolo.frontends.terminal.io.stdout import Stdout


@dataclass(slots=True)
class Terminal:
    screen: Screen
    keyboard: Keyboard
    signals: Signals
    stays: bool = False
    """It is for more than one task: what is asked before a turn stands in panels, too."""
    beside: list[str] = field(default_factory=list)
    """What the person has asked for and a turn does not wait for."""
    kill: Callable[[], None] = lambda: None
    """Ends the processes of the conversation that is open now."""
    stop: Callable[[], object] = field(init=False)
    """Ends what is under way, as the key for it does."""
    settle: Callable[[], None] = lambda: None
    """Called before the process ends on the spot: what is being written is kept, and the terminal is told that nobody writes."""

    def __post_init__(self) -> None:
        self.stop = self.signals.stop

    @property
    def has_panels(self) -> bool:
        return self.stays and self.screen.stdout.can_move


@contextmanager
def hold_terminal() -> Iterator[Terminal]:
    """However the block ends, the terminal is left as it was found."""
    stdout, keyboard = Stdout(), Keyboard()
    screen = Screen(stdout)

    def suspend() -> None:
        screen.status.pause()
        keyboard.pause()

    def leave() -> None:
        screen.status.stop()
        keyboard.release()

    def last_act() -> None:
        terminal.settle()
        terminal.kill()
        leave()

    signals = Signals(hung_up=stdout.let_go, suspending=suspend, resumed=keyboard.resume, last_act=last_act)
    terminal = Terminal(screen, keyboard, signals)
    keyboard.hush()
    try:
        with signals:
            yield terminal
    finally:
        leave()
