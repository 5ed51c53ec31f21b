"""Asks before dangerous commands."""

import re

from wolo.extension import CheckedCall, Extension


def extend(ext: Extension) -> None:
    @ext.on_call("shell")
    def gate(call: CheckedCall) -> None:
        if re.search(r"\brm\s+(-\w*[rf]\w*)|\bsudo\b|\bchmod\b.*777", call.arguments["command"]):
            call.ask("This command is dangerous.")
