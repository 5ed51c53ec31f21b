"""Makes a stash commit before each prompt, and lists them."""

import subprocess

from wolo.extension import CheckedPrompt, Extension

EFFECTS = ["write"]


def extend(ext: Extension) -> None:
    @ext.on_prompt
    def checkpoint(prompt: CheckedPrompt) -> None:
        made = subprocess.run(["git", "stash", "create"], cwd=ext.cwd, capture_output=True, text=True).stdout.strip()
        if made:
            subprocess.run(["git", "update-ref", f"refs/checkpoints/{len(prompt.text)}", made], cwd=ext.cwd, check=True)
