"""Fetches a source into a folder, without running anything in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from wolo.errors import UsageError
from wolo.extensions.sources.archive import unpack
from wolo.extensions.sources.git_checkout import check_out
from wolo.extensions.sources.source import Source
from wolo.extensions.sources.tree_copy import copy_tree, tree_digest


class FetchedSource(Struct, frozen=True):
    folder: Path
    pin: str
    """The commit; without git a hash of the contents."""


def fetch(source: Source, into: Path, files: Sequence[str] = ()) -> FetchedSource:
    """Copies it, or some files of it, below `into`, an empty folder. Raises WoloError; nothing in it is run."""
    raw, tree = into / "raw", into / "tree"
    if source.kind == "git":
        checkout = check_out(source.location, source.ref, raw)
        root, folder, pin = raw, source.folder or checkout.folder, checkout.commit
    elif source.kind == "archive":
        root, folder, pin = unpack(source.location, raw, into), source.folder, ""
    else:
        root, folder, pin = Path(source.location), source.folder, ""
        if not root.exists():
            raise UsageError(f"There is nothing at {root} any more.")
    wanted = root / folder
    if not wanted.is_dir() or not wanted.resolve().is_relative_to(root.resolve()):
        raise UsageError(f"{source.location} has no folder {folder}.")
    copy_tree(wanted, tree, inside=root, files=files)
    return FetchedSource(tree, pin or tree_digest(tree))
