"""A command that prepares a prompt for another session."""

from wolo.extension import Extension, TurnEvent


def extend(ext: Extension) -> None:
    files: dict[str, None] = {}

    @ext.on("call_ended")
    def remember(event: TurnEvent) -> None:
        files.update(dict.fromkeys(event.data["files_changed"]))

    @ext.command("handoff", usage="<goal>")
    def hand_off(arguments: str) -> None:
        ext.prompt(f"Write a prompt for a new session. Goal: {arguments}. Files changed so far: {', '.join(files) or 'none'}.")
