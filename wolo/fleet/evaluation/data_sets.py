"""Data sets of `wolo eval` as task files: a folder of tasks of one's own, SWE-bench, and Aider's polyglot exercises."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from wolo.errors import UsageError

TASKS = "tasks.jsonl"
SWE_BENCH = "swe-bench-verified"
Line = dict[str, Any]
_GITHUB = "https://github.com"


class DataSet(Struct, frozen=True):
    name: str
    folder: Path
    """Relative paths of its tasks start there."""
    lines: list[Line]
    """Of a task file."""
    is_graded: bool
    """Its tasks have a verify command."""
    data: Path | None = None
    """File for the program that grades the patches; None: there is none."""


def read_data_set(source: str, data: Path | None, repos: Path | None, *, images: bool = False) -> DataSet:
    """`source` is a name or a folder; `data` the file or checkout of a named set; `images`: of SWE-bench. Raises UsageError."""
    if images and repos:
        raise UsageError("--repos has no effect with --images: the repositories are in the images.")
    if reader := READERS.get(source):
        if data is None:
            raise UsageError(f"{source} needs its data.", hint=NEEDS[source])
        found = reader(data, repos)
        return replace(found, lines=[_in_image(line) for line in found.lines]) if images and source == SWE_BENCH else found
    folder = Path(source)
    if not (folder / TASKS).is_file():
        known = ", ".join(READERS)
        raise UsageError(
            f"{source} is no data set, and no folder with a {TASKS}.", hint=f"Data sets: {known}; a folder of tasks."
        )
    lines = [*_json_lines(folder / TASKS)]
    return DataSet(folder.resolve().name, folder, lines, all(line.get("verify") for line in lines))


def _swe_bench(data: Path, repos: Path | None) -> DataSet:
    """Patches are graded by the program of SWE-bench: what a test needs is in its images only.

    Fields: https://www.swebench.com/SWE-bench/guides/datasets/
    """
    lines = []
    for number, row in enumerate(_json_lines(data), 1):
        try:
            id, repo, commit, problem = (row[name] for name in ("instance_id", "repo", "base_commit", "problem_statement"))
        except KeyError as error:
            raise UsageError(
                f"{data}:{number}: the field {error} is missing.", hint="The file of SWE-bench, as JSON Lines."
            ) from error
        local = repos / str(repo).replace("/", "__") if repos else None
        meta = {"instance_id": id, "repo": repo, "version": row.get("version")}
        address = str(local.absolute()) if local and local.is_dir() else f"{_GITHUB}/{repo}.git"
        lines.append({"id": id, "prompt": problem, "repo": address, "ref": commit, "meta": meta})
    return DataSet(SWE_BENCH, data.absolute().parent, lines, is_graded=False, data=data)


def _in_image(line: Line) -> Line:
    """The image as the program of SWE-bench names it, which has the repository and its packages.

    Names: https://github.com/SWE-bench/SWE-bench/blob/main/swebench/harness/test_spec/test_spec.py
    """
    machine = "arm64" if platform.machine() in ("aarch64", "arm64") else "x86_64"
    image = f"swebench/sweb.eval.{machine}.{line['id'].lower()}:latest".replace("__", "_1776_")
    rest = {name: value for name, value in line.items() if name not in ("repo", "ref")}
    return {**rest, "prompt": f"{line['prompt']}\n\n{_ACTIVATE}", "image": image, "workdir": "/testbed"}


_ACTIVATE = "The Python of this repository, with its packages: `PATH=/opt/miniconda3/envs/testbed/bin:$PATH`."
_COMMANDS = {
    "cpp": "cmake -S . -B build -DEXERCISM_RUN_ALL_TESTS=1 && cmake --build build",
    "go": "go test ./...",
    "java": "./gradlew test",
    "javascript": "npm test",
    "python": "python3 -m pytest -q",
    "rust": "cargo test -- --include-ignored",
}
"""How each language runs its tests, by the name of its folder."""


def _polyglot(data: Path, repos: Path | None) -> DataSet:
    """Exercises lie in `LANGUAGE/exercises/practice/NAME`; `.meta/config.json` names the solution and its tests.

    Format: https://exercism.org/docs/building/tracks/practice-exercises
    """
    lines: list[Line] = []
    for config in sorted(data.glob("*/exercises/practice/*/.meta/config.json")):
        exercise = config.parent.parent
        language = exercise.relative_to(data).parts[0]
        if language in _COMMANDS:
            lines.append(_exercise(exercise, language, config))
    if not lines:
        raise UsageError(f"{data} holds no exercises.", hint=NEEDS["aider-polyglot"])
    return DataSet("aider-polyglot", data, lines, is_graded=True)


def _exercise(exercise: Path, language: str, config: Path) -> Line:
    try:
        files = json.loads(config.read_text("utf-8"))["files"]
        solution, tests = list(files["solution"]), list(files["test"])
        notes = [exercise / ".docs" / name for name in ("introduction.md", "instructions.md", "instructions.append.md")]
        prompt = "\n\n".join(path.read_text("utf-8") for path in notes if path.is_file())
        hidden = {name: (exercise / name).read_text("utf-8") for name in tests}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{config} cannot be used: {error}.") from error
    task = f"{prompt}\n\nImplement this in {', '.join(solution)}. Keep the names that are there; the tests come later."
    return {
        "id": f"{language}-{exercise.name}",
        "prompt": task,
        "repo": str(exercise.absolute()),
        "verify": _COMMANDS[language],
        "verify_files": hidden,
        "tags": [language],
    }


READERS: dict[str, Callable[[Path, Path | None], DataSet]] = {SWE_BENCH: _swe_bench, "aider-polyglot": _polyglot}
NEEDS = {
    SWE_BENCH: "--data FILE: its rows as JSON Lines.",
    "aider-polyglot": "--data DIR: a checkout of the polyglot benchmark.",
}


def _json_lines(file: Path) -> Iterator[Line]:
    try:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                row = json.loads(line)
                if not isinstance(row, dict):
                    raise UsageError(f"{file}:{number}: a row is a JSON object.")
                yield row
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise UsageError(f"{file} is not JSON Lines: {error}.") from error
