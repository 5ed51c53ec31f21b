"""Updates the index from the sessions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from wolo.errors import SessionError
from wolo.sessions.index import FILE, Index, IndexDamaged
from wolo.sessions.store import Store

log = logging.getLogger(__name__)

T = TypeVar("T")
Progress = Callable[[int, int], None]
"""Called with the number of changed sessions done, and their total."""

BATCH_BYTES = 4_000_000
"""Size of entries per commit."""


def ask(store: Store, question: Callable[[Index], T], progress: Progress | None = None) -> T:
    """Answers a question about all sessions from an up-to-date index. Raises SessionError."""
    with suppress(IndexDamaged), _up_to_date(store, progress) as index:
        return question(index)
    with _up_to_date(store, progress) as index:  # the damaged one was replaced
        return question(index)


@contextmanager
def _up_to_date(store: Store, progress: Progress | None) -> Iterator[Index]:
    with _index_of(store) as index:
        try:
            marks, ends = index.marks(), store.ends()
            for session_id in marks.keys() - ends.keys():
                index.forget(session_id, wait_s=2.0)
            changed = [session_id for session_id, end in ends.items() if marks.get(session_id) != end]
            for done, session_id in enumerate(changed):
                mark = marks.get(session_id)
                while index.add_next(store, session_id, mark, most_bytes=BATCH_BYTES, wait_s=2.0):
                    mark = index.mark(session_id)
                    if progress is not None:
                        progress(done, len(changed))
            if progress is not None:
                progress(len(changed), len(changed))
        except IndexDamaged:
            raise
        except SessionError as error:
            # Another process is updating it; the present state is better than no answer.
            log.info("%s", error)
        yield index


@contextmanager
def _index_of(store: Store) -> Iterator[Index]:
    """Opens the index; a temporary copy where the sessions are read-only."""
    if not store.is_read_only:
        with Index.open(store.data_dir) as index:
            yield index
        return
    import shutil  # noqa: PLC0415  # for read-only sessions

    from wolo.workspace.files.unfinished import unfinished_folder  # noqa: PLC0415  # the same

    with unfinished_folder() as folder:
        with suppress(OSError):
            shutil.copyfile(store.data_dir / FILE, folder / FILE)
        with Index.open(folder) as index:
            yield index
