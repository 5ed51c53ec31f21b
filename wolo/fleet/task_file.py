"""Reads task files and checks them whole: every mistake is reported with its line and column."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

import msgspec
from msgspec import Struct

from wolo.errors import UsageError
from wolo.fleet.json_places import JsonMistake, JsonPlace, parse_line
from wolo.fleet.mirrors import is_missing
from wolo.fleet.tasks import MAX_ID, BatchTask, Resources, TaskBudget, is_folder_name
from wolo.fleet.worktrees import is_repository
from wolo.guard.modes import MODES, is_looser
from wolo.workspace.processes.command_environment import rule_against

MAX_LINE_BYTES = 4 << 20
MAX_PROMPT_BYTES = 4 << 20
"""Size of a prompt file."""
_URL = r"(?:https?|ssh|git|file)://[^\s/]*/?\S+|[\w.-]+@[\w.-]+:\S+"
_MIN_MEMORY_MB = 64

TASK = "a task"

CheckModel = Callable[[str, bool], str]
"""Tells why a model cannot be used; empty: it can. The second argument: its price must be known."""


class Mistake(Struct, frozen=True, order=True):
    line: int
    column: int
    message: str


class TaskFileError(UsageError):
    """The mistakes of a task file, one a line: `FILE:LINE:COL: message`."""

    def __init__(self, name: str, mistakes: Sequence[Mistake]) -> None:
        lines = [f"{name}:{one.line}:{one.column}: {one.message}" for one in sorted(mistakes)]
        super().__init__("\n".join(lines))
        self.mistakes = tuple(sorted(mistakes))


def read_tasks(
    name: str,
    file: IO[bytes],
    folder: Path,
    check_model: CheckModel = lambda model, priced: "",
    mode: str = "auto",
    images: Sequence[str] = (),
    setup_env: Sequence[str] = (),
) -> list[BatchTask]:
    """Reads JSON Lines. Relative paths start at `folder`; no task may have a looser mode than `mode`, another image, or get
    another variable of `setup_env`.

    Raises TaskFileError with all mistakes.
    """
    reader = _TaskFileReader(folder, check_model, mode, images, setup_env)
    for number, line in _lines(file):
        reader.read(number, line)
        if reader.mistakes and reader.mistakes[-1].message == _ARRAY:
            break
    if not reader.tasks and not reader.mistakes:
        reader.mistakes.append(Mistake(1, 1, "the file holds no task"))
    if reader.mistakes:
        raise TaskFileError(name, reader.mistakes)
    return reader.tasks


def check_saved(task: BatchTask) -> None:
    """A ledger may come from others, and holds what no task file may. Raises UsageError for such a task."""
    fields = parse_line(msgspec.json.encode(task).decode()).fields
    wrong = "" if task.repo.startswith("/") or not task.repo or re.fullmatch(_URL, task.repo) else f"repo: {task.repo}"
    try:
        for name, place in fields.items():
            _SAVED[name](place)
    except _Wrong as error:
        wrong = f"{name}: {error}"
    if wrong:
        raise UsageError(f"Task {task.id} of the run could be in no task file: {wrong}.", hint="The ledger was changed by hand.")


def _lines(file: IO[bytes]) -> Iterator[tuple[int, bytes | None]]:
    """Numbers the lines; None for one that is too long."""
    number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        too_long = len(line) > MAX_LINE_BYTES
        while too_long and line and not line.endswith(b"\n"):
            line = file.readline(MAX_LINE_BYTES)
        yield number, None if too_long else line


class _Wrong(Exception):
    """A mistake at one value."""


class _TaskFileReader:
    def __init__(self, folder: Path, check_model: CheckModel, mode: str, images: Sequence[str], setup_env: Sequence[str]) -> None:
        self.tasks: list[BatchTask] = []
        self.mistakes: list[Mistake] = []
        self._folder = folder
        self._check_model = check_model
        self._mode = mode
        self._images, self._setup_env = images, setup_env
        self._models: dict[tuple[str, bool], str] = {}
        self._repos: dict[str, str] = {}
        self._refs: dict[tuple[str, str], bool] = {}
        self._ids: dict[str, tuple[str, int]] = {}
        self._line = 0

    def read(self, number: int, data: bytes | None) -> None:
        self._line = number
        if data is None:
            return self._mistake(1, f"the line is longer than {MAX_LINE_BYTES >> 20} MiB; put long prompts into a prompt_file")
        if number == 1:
            data = data.removeprefix(b"\xef\xbb\xbf")
        try:
            text = data.decode().rstrip("\r\n")
        except UnicodeDecodeError as error:
            return self._mistake(len(data[: error.start].decode()) + 1, "not valid UTF-8")
        if not text.strip():
            return None
        try:
            whole = parse_line(text)
        except JsonMistake as error:
            array = number == 1 and text.lstrip().startswith("[")
            return self._mistake(1, _ARRAY) if array else self._mistake(error.column, error.message)
        if isinstance(whole.value, list) and number == 1:
            return self._mistake(1, _ARRAY)
        if not isinstance(whole.value, dict):
            return self._mistake(whole.column, f"a task is a JSON object, not {_name_of(whole.value)}")
        return self._read_task(whole)

    def _read_task(self, whole: JsonPlace) -> None:
        before = len(self.mistakes)
        values = self._fields(whole, _FIELDS, TASK)
        for name, kind, fields in (("budget", TaskBudget, _BUDGET), ("resources", Resources, _RESOURCES)):
            if isinstance(values.get(name), dict):
                values[name] = kind(**self._fields(whole.fields[name], fields, name))
        id = values.get("id")
        if id is None:
            if "id" not in whole.fields or whole.fields["id"].value is None:
                self._mistake(whole.column, "the field 'id' is missing")
        else:
            other, line = self._ids.setdefault(id.casefold(), (id, self._line))
            if line != self._line:
                also = "" if other == id else f" as {other!r}, and differs in case only"
                self._mistake(whole.fields["id"].column, f"id: {id!r} is already in line {line}{also}")
        self._check_prompt(whole, values)
        self._check_repo(whole, values)
        self._check_task_model(whole, values)
        # A file loosens nothing: whoever runs it chooses
        mode = values.get("mode", "")
        if mode and is_looser(mode, self._mode):
            problem = f"mode: {mode} is looser than {self._mode}, the mode of this run; --mode {mode} allows it"
            self._mistake(whole.fields["mode"].column, problem)
        # The program in it gets the keys of providers: whoever runs the file chooses
        image = values.get("image", "")
        if image and image not in self._images:
            problem = f"image: {image} would get your keys and the network; --image {image} allows it"
            self._mistake(whole.fields["image"].column, problem)
        if values.get("workdir") and (not image or "repo" in values):
            wrong = "workdir is a repository in the image, so repo has no meaning" if image else "workdir needs an image"
            self._mistake(whole.fields["workdir"].column, wrong)
        for name in values.get("setup_env", ()):
            if name not in self._setup_env:
                problem = f"setup_env: {name} would reach setup and verify; --setup-env {name} allows it"
                self._mistake(whole.fields["setup_env"].column, problem)
        if (values.get("verify_files") or values.get("test_patch")) and not values.get("verify"):
            column = whole.fields["verify_files" if "verify_files" in values else "test_patch"].column
            self._mistake(column, "verify_files and test_patch need a verify command")
        if isinstance(values.get("verify_files"), tuple):
            values["verify_files"] = self._read_files(whole.fields["verify_files"], values["verify_files"])
        if len(self.mistakes) == before:
            self.tasks.append(BatchTask(**values))

    def _read_files(self, place: JsonPlace, names: tuple[str, ...]) -> dict[str, str]:
        """Content of files beside the task file."""
        contents = {}
        for name in names:
            try:
                contents[name] = self._content(name)
            except _Wrong as wrong:
                self._mistake(place.column, f"verify_files: {wrong}")
        return contents

    def _content(self, name: str) -> str:
        """Of a file in the folder of the task file, whose author is not the user."""
        path = Path(os.path.realpath(self._folder / name))
        if not path.is_relative_to(os.path.realpath(self._folder)):
            raise _Wrong(f"{name} is not below the folder of the task file")
        try:
            if not path.is_file():
                raise _Wrong(f"{path} is not a file")
            if path.stat().st_size > MAX_PROMPT_BYTES:
                raise _Wrong(f"{path} is larger than {MAX_PROMPT_BYTES >> 20} MiB")
            text = path.read_bytes().decode("utf-8-sig")
        except OSError as error:
            raise _Wrong(f"{path} cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise _Wrong(f"{path} is not valid UTF-8") from error
        if not text.strip():
            raise _Wrong(f"{path} is empty")
        if "\0" in text:
            raise _Wrong(f"{path} holds a NUL character")
        return text

    def _mistake(self, column: int, message: str) -> None:
        self.mistakes.append(Mistake(self._line, column, message))

    def _fields(self, whole: JsonPlace, known: dict[str, Callable[[JsonPlace], Any]], owner: str) -> dict[str, Any]:
        """The values of the known fields; null counts as absent."""
        fields: dict[str, Any] = {}
        for name, place in whole.fields.items():
            check = known.get(name)
            if check is None:
                self._mistake(place.column, f"{owner} has no field {name!r}{_suggestion(name, known)}")
            elif place.value is not None:
                try:
                    fields[name] = check(place)
                except _Wrong as wrong:
                    self._mistake(place.column, f"{name if owner == TASK else f'{owner}.{name}'}: {wrong}")
        return fields

    def _check_prompt(self, whole: JsonPlace, fields: dict[str, Any]) -> None:
        if fields.get("until") and not fields.get("goal"):
            self._mistake(whole.fields["until"].column, "until needs a goal")
        given = [name for name in ("prompt", "prompt_file") if whole.fields.get(name, _NOTHING).value is not None]
        if len(given) != 1:
            column = whole.fields["prompt_file"].column if given else whole.column
            self._mistake(column, "prompt and prompt_file exclude each other" if given else "a prompt is missing")
        elif (named := fields.pop("prompt_file", None)) is not None:
            try:
                fields["prompt"] = self._content(named)
            except _Wrong as wrong:
                self._mistake(whole.fields["prompt_file"].column, f"prompt_file: {wrong}")

    def _check_repo(self, whole: JsonPlace, fields: dict[str, Any]) -> None:
        repo = fields.get("repo")
        if not repo:
            if "ref" in fields and "repo" not in whole.fields:
                self._mistake(whole.fields["ref"].column, "ref: needs a repo")
            return
        if re.fullmatch(_URL, repo):
            return
        if "://" in repo or "::" in repo:
            self._mistake(whole.fields["repo"].column, "repo: only https, http, ssh, git and file addresses can be fetched")
            return
        if repo not in self._repos:
            path = Path(os.path.abspath(self._folder / Path(repo).expanduser()))  # noqa: PTH100  # links stay as they are
            self._repos[repo] = str(path) if path.is_dir() else ""
        if not self._repos[repo]:
            self._mistake(whole.fields["repo"].column, f"repo: {repo} is not a folder")
        fields["repo"] = self._repos[repo]
        # Only where the repository is at hand and git can read it
        folder = fields["repo"]
        ref = fields.get("ref", "")
        if (folder, ref) not in self._refs:
            self._refs[folder, ref] = bool(folder) and is_repository(Path(folder)) and is_missing(Path(folder), ref or "HEAD")
        if self._refs[folder, ref]:
            name = "ref" if ref else "repo"
            said = f"{folder} has no branch, tag or commit {ref}" if ref else f"{folder} has no commit yet"
            self._mistake(whole.fields[name].column, f"{name}: {said}")

    def _check_task_model(self, whole: JsonPlace, fields: dict[str, Any]) -> None:
        budget = fields.get("budget")
        priced = isinstance(budget, TaskBudget) and budget.usd is not None
        asked = fields.get("model", ""), priced
        if not asked[0] and not priced:
            return
        if asked not in self._models:
            self._models[asked] = self._check_model(*asked)
        if said := self._models[asked]:
            name = "model" if "model" in whole.fields else "budget"
            self._mistake(whole.fields[name].column, f"{name}: {said}")


_NOTHING = JsonPlace(None, 1)
_ARRAY = "the file is a JSON array; write one object a line (`jq -c '.[]' FILE` does)"


def _text(place: JsonPlace) -> str:
    if not isinstance(place.value, str):
        raise _Wrong(f"text is expected, not {_name_of(place.value)}")
    if not place.value.strip():
        raise _Wrong("the text is empty")
    return place.value


def _id(place: JsonPlace) -> str:
    text = _text(place)
    if len(text) > MAX_ID:
        raise _Wrong(f"longer than {MAX_ID} characters")
    if not is_folder_name(text):
        raise _Wrong(f"{text!r} cannot be the name of a folder; letters, digits and . _ + - can, without a dot or dash in front")
    return text


def _text_like(pattern: str, problem: str) -> Callable[[JsonPlace], str]:
    def check(place: JsonPlace) -> str:
        text = _text(place)
        if not re.fullmatch(pattern, text):
            raise _Wrong(f"{text!r} {problem}")
        return text

    return check


def _mode(place: JsonPlace) -> str:
    text = _text(place)
    if text not in MODES:
        raise _Wrong(f"{text!r} is not a mode{_suggestion(text, MODES)}; modes are {', '.join(MODES)}")
    return text


def _workdir(place: JsonPlace) -> str:
    text = _text(place)
    if not text.startswith("/") or not text.strip("/") or ".." in text.split("/") or re.search(r"[:,\0]", text):
        raise _Wrong(f"{text!r} is not the absolute path of a folder in the image")
    return text.rstrip("/")


def _flag(place: JsonPlace) -> bool:
    if not isinstance(place.value, bool):
        raise _Wrong(f"true or false is expected, not {_name_of(place.value)}")
    return place.value


def _texts(place: JsonPlace) -> tuple[str, ...]:
    if not isinstance(place.value, list):
        raise _Wrong(f"a list of texts is expected, not {_name_of(place.value)}")
    return tuple(_text(item) for item in place.items)


def _env(place: JsonPlace) -> tuple[str, ...]:
    names = _texts(place)
    for name in names:
        if "=" in name:
            raise _Wrong(
                f"{name.partition('=')[0]!r} comes with a value; only names are listed, values come from the environment"
            )
        if not re.fullmatch(r"(?a)[A-Za-z_]\w*", name):
            raise _Wrong(f"{name!r} is not the name of a variable")
        if rule := rule_against(name):
            raise _Wrong(f"{name} is hidden from commands ({rule}), and a task does not pass such variables")
    return names


def _setup_env(place: JsonPlace) -> tuple[str, ...]:
    names = _texts(place)
    if wrong := next((name for name in names if not re.fullmatch(r"(?a)[A-Za-z_]\w*", name)), ""):
        raise _Wrong(f"{wrong.partition('=')[0]!r} is not the name of a variable; values come from the environment")
    return names


def _verify_files(place: JsonPlace) -> dict[str, str] | tuple[str, ...]:
    """An object of paths and contents, or a list of files beside the task file."""
    if isinstance(place.value, list):
        names = _texts(place)
    elif isinstance(place.value, dict):
        names = tuple(place.value)
        if wrong := next((name for name, content in place.value.items() if not isinstance(content, str)), ""):
            raise _Wrong(f"the content of {wrong} is not text")
    else:
        raise _Wrong(f"an object of paths and contents, or a list of files, is expected, not {_name_of(place.value)}")
    for name in names:
        parts = name.split("/")
        if name.startswith("/") or not all(parts) or {".", "..", ".git"} & {*parts} or "\0" in name:
            raise _Wrong(f"{name!r} is not a path inside the repository")
    return names if isinstance(place.value, list) else dict(place.value)


def _object(place: JsonPlace) -> dict[str, Any]:
    if not isinstance(place.value, dict):
        raise _Wrong(f"an object is expected, not {_name_of(place.value)}")
    return place.value


def _number(place: JsonPlace, *, least: float = 0) -> float:
    if isinstance(place.value, bool) or not isinstance(place.value, int | float):
        raise _Wrong(f"a number is expected, not {_name_of(place.value)}")
    if place.value <= least:
        raise _Wrong(f"more than {least:g} is expected")
    return float(place.value)


def _count(place: JsonPlace, *, least: int = 1) -> int:
    if isinstance(place.value, bool) or not isinstance(place.value, int):
        raise _Wrong(f"a whole number is expected, not {_name_of(place.value)}")
    if not least <= place.value < 1 << 53:
        raise _Wrong(f"at least {least} is expected" if place.value < least else "the number is too large")
    return place.value


_FIELDS: dict[str, Callable[[JsonPlace], Any]] = {
    "id": _id,
    **dict.fromkeys(("prompt", "prompt_file", "repo", "setup", "verify", "goal", "until", "test_patch"), _text),
    **{"verify_files": _verify_files, "setup_env": _setup_env, "tries": _count},
    "ref": _text_like(r"(?!-)(?:(?!\.\.|@\{)[^\s~^:?*\[\\])+", "names no branch, tag or commit"),
    "model": _text_like(r"(?!-)\S+", "is not a model; write PROVIDER/MODEL"),
    "image": _text_like(r"(?a)\w[\w./:@-]*", "is not the name of an image"),
    **{"mode": _mode, "env": _env, "tags": _texts},
    **{"workdir": _workdir, "setup_network": _flag, "verify_network": _flag},
    **dict.fromkeys(("budget", "resources", "meta"), _object),
}
_SAVED = {**_FIELDS, "task": _id, "try_number": _count}
"""Of the ledger, where each try is a task."""
_BUDGET: dict[str, Callable[[JsonPlace], Any]] = {"usd": _number, "turns": _count, "seconds": _number, "tokens": _count}
_RESOURCES: dict[str, Callable[[JsonPlace], Any]] = {"cpus": _number, "memory_mb": partial(_count, least=_MIN_MEMORY_MB)}


def _name_of(value: Any) -> str:
    if value is None:
        return "null"
    names = ((bool, "true or false"), (str, "text"), (int | float, "a number"), (list, "a list"), (dict, "an object"))
    return next(name for kind, name in names if isinstance(value, kind))


def _suggestion(name: str, known: Any) -> str:
    from difflib import get_close_matches  # noqa: PLC0415  # for a typing mistake only

    near = get_close_matches(name, known, n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""
