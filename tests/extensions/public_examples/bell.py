"""Runs a program when a turn has ended."""

from pathlib import Path

from wolo.extension import Extension, TurnEvent

EFFECTS = ["write"]


def extend(ext: Extension) -> None:
    @ext.on("turn_ended")
    def ring(event: TurnEvent) -> None:
        Path("bell").write_text("ready\n")
