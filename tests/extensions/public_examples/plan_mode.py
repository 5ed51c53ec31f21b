"""Reads only, until the plan is agreed."""

from wolo.extension import CheckedCall, CheckedPrompt, Extension


def extend(ext: Extension) -> None:
    @ext.command("explore", complete=["on", "off"])
    def switch(arguments: str) -> str:
        ext.save(arguments != "off")
        ext.status("exploring" if ext.state else "")
        return "Only reading." if ext.state else "Writing is allowed."

    @ext.on_prompt
    def remind(prompt: CheckedPrompt) -> None:
        if ext.state:
            prompt.add("Make a plan first; change nothing.")

    @ext.on_call("write", "edit", "shell")
    def check(call: CheckedCall) -> None:
        if ext.state:
            call.deny("Exploring: change nothing.")
