"""Shows the number of the turn and whether it is done."""

from wolo.extension import Extension, TurnEvent


def extend(ext: Extension) -> None:
    turns = 0

    @ext.on("turn_started")
    def start(event: TurnEvent) -> None:
        nonlocal turns
        turns += 1
        ext.status(f"● turn {turns}")

    @ext.on("turn_ended")
    def end(event: TurnEvent) -> None:
        ext.status(f"✓ turn {turns}")
