"""Shows the model that answers."""

from wolo.extension import Extension, TurnEvent


def extend(ext: Extension) -> None:
    @ext.on("request_started")
    def show(event: TurnEvent) -> None:
        ext.status(f"asks {event.data['model']}")
