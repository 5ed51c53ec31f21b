"""Fills in what the index shows of the package: the description, and the addresses of the project.

Links in README.md are relative, for readers of the repository. On the index they lead to the repository that was built, at its
commit: the address is `WOLO_REPOSITORY`, else the remote `origin` of git. Without one, the texts of links stay and the images go.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = r"(!?)\[([^\]]*)\]\((?!https?:|mailto:|#)([^)\s]+)\)"


class ProjectMetadata(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        repository = find_repository(self.root)
        commit = _git(self.root, "rev-parse", "HEAD") or "main"
        text = describe(Path(self.root, "README.md").read_text(encoding="utf-8"), repository, commit)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        if repository:
            pages = {"Documentation": "docs/index.md", "Changelog": "CHANGELOG.md"}
            blobs = {name: f"{repository}/blob/HEAD/{path}" for name, path in pages.items()}
            metadata["urls"] = {"Homepage": repository, "Source": repository, "Issues": f"{repository}/issues", **blobs}


def describe(readme: str, repository: str, commit: str) -> str:
    """The text with absolute links."""

    def absolute(match: re.Match[str]) -> str:
        is_image, text, path = match.groups()
        if not repository:
            return "" if is_image else text
        return f"{is_image}[{text}]({repository}/{'raw' if is_image else 'blob'}/{commit}/{path})"

    return re.sub(_LINK, absolute, readme)


def find_repository(root: str) -> str:
    """The web address; empty: unknown."""
    address = os.environ.get("WOLO_REPOSITORY") or _git(root, "remote", "get-url", "origin")
    address = re.sub(r"^(?:ssh://)?git@([^:/]+)[:/]", r"https://\1/", address).removesuffix("/").removesuffix(".git")
    return address if re.fullmatch(r"https://[^/@\s]+/\S+", address) else ""


def _git(root: str, *arguments: str) -> str:
    """Empty where this is no repository of its own."""
    if not Path(root, ".git").exists():
        return ""
    try:
        done = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def get_metadata_hook() -> type[MetadataHookInterface]:
    return ProjectMetadata
