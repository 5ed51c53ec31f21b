"""Changes each command before it is judged and run."""

from wolo.extension import CheckedCall, Extension


def extend(ext: Extension) -> None:
    @ext.on_call("shell")
    def prepare(call: CheckedCall) -> None:
        call.arguments["command"] = f"STAGE=test {call.arguments['command']}"
