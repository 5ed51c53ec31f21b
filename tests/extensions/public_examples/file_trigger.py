"""Gives the model the content of a file whenever it changes."""

from wolo.extension import CheckedCall, CheckedPrompt, Extension


def extend(ext: Extension) -> None:
    seen = ""

    def look() -> None:
        nonlocal seen
        path = ext.cwd / "trigger.txt"
        if path.exists() and (text := path.read_text()) != seen:
            seen = text
            ext.add_context(f"trigger.txt: {text}")

    @ext.on_prompt
    def before_prompt(prompt: CheckedPrompt) -> None:
        look()

    @ext.on_call()
    def before_call(call: CheckedCall) -> None:
        look()
