"""Asks before git forgets work."""

from wolo.extension import CheckedCall, Extension

DESTRUCTIVE = ("git reset --hard", "git clean", "git checkout .", "push --force")


def extend(ext: Extension) -> None:
    @ext.on_call("shell")
    def confirm(call: CheckedCall) -> None:
        if any(each in call.arguments["command"] for each in DESTRUCTIVE):
            call.ask("Work that is not committed would be lost.")
