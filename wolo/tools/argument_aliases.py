"""Other names that models give to arguments which several tools have in common."""

from __future__ import annotations

from collections.abc import Mapping

FILE: Mapping[str, str] = dict.fromkeys(("file_path", "filepath", "filename", "file", "absolute_path", "target_file"), "path")
FOLDER: Mapping[str, str] = dict.fromkeys(("dir", "directory", "dir_path", "target_directory"), "path")
