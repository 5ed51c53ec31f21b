"""Loads a recording and prepares the workspace for its replay."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from wolo.conversation.resources.request_prefix import saved_options
from wolo.errors import SessionError
from wolo.messages.terminal_text import clean_line
from wolo.replay import cassette
from wolo.replay.cassette import Cassette
from wolo.replay.recording import RecordedTurns, read_recording
from wolo.replay.workspace_copy import ReplayWorkspace, rewind
from wolo.sessions.entries import BranchEntry
from wolo.sessions.exchange import importer
from wolo.sessions.listing import SessionInfo
from wolo.sessions.loading import Loaded
from wolo.sessions.store import Store
from wolo.workspace.directory_copy import copy_tree
from wolo.workspace.root import find_root


class Recording(Struct, frozen=True, kw_only=True):
    info: SessionInfo
    tape: RecordedTurns
    store: Store
    """Holds the session; to be closed."""
    root: Path
    """The recorded workspace."""
    cassette: Cassette | None = None
    """Contains the initial files."""
    notices: tuple[str, ...] = ()
    is_from_file: bool = False
    """Its directories do not exist here."""
    is_foreign: bool = False
    """Not recorded here: a file, or a session that was imported from one, or its fork."""


def from_store(store: Store, info: SessionInfo) -> Recording:
    loaded = store.load(info.id)
    root = find_root(Path(info.cwd))
    return Recording(
        info=info,
        tape=read_recording(loaded.entries),
        store=store,
        root=root,
        notices=tuple(_remarks(loaded)),
        is_foreign=_is_imported(store, info),
    )


def from_file(path: Path, folder: Path) -> Recording:
    """Reads a cassette or any importable session, through a temporary store in `folder`."""
    session = folder / "session.jsonl"
    parts = cassette.split(path, session)
    source = importer.read(session if parts else path)
    cwd = parts.header.cwd if parts else source.cwd or str(folder)
    store = Store.open(folder / "data")
    try:
        info = importer.import_session(store, source, cwd).info
        loaded = store.load(info.id)
    except BaseException:
        store.close()
        raise
    root = Path(os.path.normpath(parts.header.root)) if parts else Path(info.cwd)
    return Recording(
        info=info,
        tape=read_recording(loaded.entries),
        store=store,
        root=root,
        cassette=parts,
        notices=tuple(_remarks(loaded)),
        is_from_file=True,
        is_foreign=True,
    )


def _is_imported(store: Store, info: SessionInfo) -> bool:
    """A fork whose original is gone may have been imported."""
    each: SessionInfo | None = info
    while each is not None and not store.raw.origin(each.id):
        if not each.parent:
            return False
        each = store.exactly(each.parent.partition("/")[0])
    return True


def _remarks(loaded: Loaded) -> Iterator[str]:
    if loaded.warning:
        yield loaded.warning
    if any(isinstance(entry, BranchEntry) for entry in loaded.entries):
        yield "This session has branches: the last one is replayed, and file changes of the others are not reverted."


def prepare_workspace(recording: Recording, folder: Path, at: Path | None) -> ReplayWorkspace:
    """Copies the directory `at`, the files of the cassette, or the workspace with the session's changes reverted.

    Raises SessionError if there is nothing to start from.
    """
    cwd = Path(recording.info.cwd)
    if at is not None and not at.is_dir():
        raise SessionError(f"No such directory: {at}.", hint="--at names the directory to start from.")
    if at is None and not recording.is_from_file and not cwd.is_dir():
        raise SessionError(
            f"The directory of this session does not exist any more: {cwd}.",
            hint="Name another one to start from, such as a checkout: --at DIR.",
        )
    settings_from = at or (folder if recording.is_from_file else cwd)
    # Added directories that are neither inside the workspace nor inside each other
    named = {Path(each) for turn in recording.tape.turns if (options := saved_options(turn.opened)) for each in options.add_dirs}
    add_dirs: list[Path] = []
    for path in sorted(each for each in named if each.is_absolute() and each.name):
        if not any(path.is_relative_to(other) or other.is_relative_to(path) for other in (recording.root, *add_dirs)):
            add_dirs.append(path)
    stage = ReplayWorkspace(
        folder, recording.root, cwd, settings_from=settings_from, blobs_dir=recording.store.blobs_dir, add_dirs=add_dirs
    )
    stage.temporary.mkdir(mode=0o700, parents=True)
    stage.notices += recording.notices
    for original, copy in stage.added.items():
        # A recording that was not made here gets no directories of this machine.
        if original.is_dir() and not recording.is_foreign:
            stage.notices += copy_tree(Path(os.path.realpath(original)), copy).notices
        else:
            copy.mkdir(parents=True)
            stage.notices += (f"The directory {original}, which was added to the workspace, does not exist; its copy is empty.",)
    if at is None and recording.is_from_file:
        if recording.cassette is not None:
            if left_out := recording.cassette.unpack(stage.root):
                stage.notices += (f"Left out of the copy, because git acts on it: {clean_line(', '.join(left_out))}.",)
        else:
            stage.root.mkdir(parents=True)
            stage.notices += ("The file contains no workspace, so the replay starts in an empty one; --at DIR selects another.",)
        return stage
    copied = copy_tree(Path(os.path.realpath(at or recording.root)), stage.root)
    stage.notices += copied.notices
    if at is None:
        stage.notices += rewind(recording.tape, stage)
    return stage
