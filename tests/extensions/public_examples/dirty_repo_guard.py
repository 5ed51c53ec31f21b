"""Sends no prompt while the repository has changes that are not committed."""

import subprocess

from wolo.extension import CheckedPrompt, Extension


def extend(ext: Extension) -> None:
    @ext.on_prompt
    def check(prompt: CheckedPrompt) -> None:
        changes = subprocess.run(["git", "status", "--porcelain"], cwd=ext.cwd, capture_output=True, text=True).stdout
        if changes.strip():
            prompt.block(f"{len(changes.splitlines())} files are not committed.")
