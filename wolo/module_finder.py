"""Finds modules by their names alone, and loads their bytecode, in a third of the system calls that Python makes."""

from __future__ import annotations

import marshal
import os
import sys
from _imp import _fix_co_filename  # type: ignore[attr-defined]  # as importlib does
from importlib._bootstrap_external import MAGIC_NUMBER
from importlib.machinery import ModuleSpec, SourceFileLoader
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType

PACKAGES = ("wolo.", "asyncio.")
"""Plain files in one folder."""


class ModuleFinder(SourceFileLoader):
    """Lists no folder. What is not simply there is left to Python."""

    cached: str
    head: bytes
    """Of bytecode that was made of the source as it is: version, kind, time and size."""

    @classmethod
    def find_spec(cls, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        last = name.rpartition(".")[2]
        places = ((path[0], last), (f"{path[0]}/{last}", "__init__")) if path and name.startswith(PACKAGES) else ()
        for folder, file in places:
            source = f"{folder}/{file}.py"
            try:
                status = os.stat(source)  # noqa: PTH116  # pathlib is not loaded yet
            except OSError:
                continue
            loader = cls(name, source)
            loader.head = MAGIC_NUMBER + bytes(4)
            loader.head += (int(status.st_mtime) & 0xFFFFFFFF | (status.st_size & 0xFFFFFFFF) << 32).to_bytes(8, "little")
            spec = ModuleSpec(name, loader, origin=source)
            spec.submodule_search_locations = [folder] if file == "__init__" else None
            spec.has_location = True
            spec.cached = loader.cached = f"{folder}/__pycache__/{file}.{sys.implementation.cache_tag}.pyc"
            return spec
        return None

    def get_code(self, fullname: str) -> CodeType | None:
        try:
            file = os.open(self.cached, os.O_RDONLY)
            data = os.read(file, os.fstat(file).st_size)
            os.close(file)
        except OSError:
            data = b""
        if not data.startswith(self.head):
            return super().get_code(fullname)
        code: CodeType = marshal.loads(memoryview(data)[len(self.head) :])
        _fix_co_filename(code, self.path)
        return code
