"""Changes the system prompt after a command."""

from wolo.extension import CheckedRequest, Extension


def extend(ext: Extension) -> None:
    is_on = False

    @ext.command("pirate", help="Speak like a pirate, or stop it")
    def toggle(arguments: str) -> str:
        nonlocal is_on
        is_on = not is_on
        return f"Pirate mode is {'on' if is_on else 'off'}."

    @ext.on_request
    def speak(request: CheckedRequest) -> None:
        if is_on:
            request.system += "\n\nSpeak like a pirate."
