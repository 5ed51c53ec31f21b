"""Commits everything when the conversation ends, with the last answer as the message."""

import subprocess

from wolo.extension import Extension, TurnEvent

EFFECTS = ["write"]


def extend(ext: Extension) -> None:
    answers = ["Work"]

    @ext.on("answer_ended")
    def remember(event: TurnEvent) -> None:
        answers.append("".join(part.get("text", "") for part in event.data["message"]["parts"]))

    @ext.on_end
    def commit() -> None:
        subprocess.run(["git", "add", "-A"], cwd=ext.cwd, check=True)
        subprocess.run(["git", "commit", "-qm", answers[-1]], cwd=ext.cwd, check=True)
