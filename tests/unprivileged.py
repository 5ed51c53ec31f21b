"""Runs a function as an ordinary user even when the tests were started by root, whom no mode stops."""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ParamSpec, TypeVar

NOBODY = 65534

P = ParamSpec("P")
T = TypeVar("T")


@contextmanager
def folder() -> Iterator[Path]:
    """An empty directory that belongs to the ordinary user and that it can reach (pytest's own are closed to it)."""
    path = Path(tempfile.mkdtemp(prefix="wolo-test-", dir="/tmp")).resolve()
    if os.getuid() == 0:
        os.chown(path, NOBODY, NOBODY)
    try:
        yield path
    finally:
        for each in (path, *path.rglob("*")):
            if each.is_dir() and not each.is_symlink():
                each.chmod(0o700)
        shutil.rmtree(path)


def call(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What `function` returns or raises when an ordinary user calls it; both must be picklable."""
    if os.getuid() != 0:
        return function(*args, **kwargs)
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        # The child calls one function and exits: threads of the parent do not matter to it.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _run_and_exit(writer, lambda: function(*args, **kwargs))
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    worked, value = pickle.loads(said)
    if not worked:
        raise value
    return value  # type: ignore[no-any-return]  # it was a T before it was pickled


def _run_and_exit(writer: int, work: Callable[[], object]) -> None:
    try:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        try:
            said = pickle.dumps((True, work()))
        except BaseException as error:
            said = pickle.dumps((False, error))
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(said)
    finally:
        os._exit(0)
