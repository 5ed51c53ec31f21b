"""Denies writes to protected paths."""

from wolo.extension import CheckedCall, Extension

PROTECTED = (".env", ".git/", "node_modules/")


def extend(ext: Extension) -> None:
    @ext.on_call("write", "edit")
    def protect(call: CheckedCall) -> None:
        path = call.arguments["path"]
        if any(each in path for each in PROTECTED):
            call.deny(f"{path} is protected.")
            ext.notify(f"Denied a write to {path}.")
