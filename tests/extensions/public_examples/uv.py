"""Says what to use in place of pip."""

from wolo.extension import CheckedCall, Extension


def extend(ext: Extension) -> None:
    @ext.on_call("shell")
    def check(call: CheckedCall) -> None:
        if call.arguments["command"].startswith("pip install"):
            call.deny("Use `uv add` in place of pip.")
