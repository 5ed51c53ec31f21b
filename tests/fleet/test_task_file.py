"""Task files: what is accepted, and every mistake with its place."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from wolo.fleet.task_file import MAX_LINE_BYTES, TaskFileError, read_tasks
from wolo.fleet.tasks import BatchTask, Resources, TaskBudget, key_of

WHOLE = {
    "id": "django__django-1.2+x",
    "prompt": "go",
    "repo": "repo",
    "ref": "v1",
    "setup": "make",
    "verify": "make test",
    "goal": "the tests pass",
    "until": "make test",
    "model": "p/m:high",
    "mode": "edit",
    "budget": {"usd": 0.5, "turns": 3, "seconds": 2, "tokens": 10},
    "resources": {"cpus": 2, "memory_mb": 512},
    "image": "python:3.12-slim",
    "env": ["A_B"],
    "setup_network": False,
    "verify_network": True,
    "tags": ["x"],
    "meta": {"any": [1, None]},
}


def read(data: bytes, folder: Path = Path("/")) -> list[BatchTask]:
    return read_tasks("t.jsonl", io.BytesIO(data), folder, images=("python:3.12-slim",))


def mistakes(data: bytes, folder: Path = Path("/")) -> list[str]:
    with pytest.raises(TaskFileError) as caught:
        read(data, folder)
    return caught.value.message.splitlines()


def line(**fields: object) -> bytes:
    return json.dumps({"id": "a", "prompt": "x", **fields}).encode() + b"\n"


def test_a_task_with_every_field(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    (task,) = read(json.dumps(WHOLE).encode(), tmp_path)
    assert task == BatchTask(
        **{**WHOLE, "repo": str(tmp_path / "repo"), "env": ("A_B",), "tags": ("x",)}  # type: ignore[arg-type]
        | {"budget": TaskBudget(usd=0.5, turns=3, seconds=2, tokens=10), "resources": Resources(cpus=2, memory_mb=512)}
    )
    assert key_of(task, {"model": "m"}) != key_of(task, {"model": "n"})


def test_encoding_marks_line_ends_blanks_and_null_pass(tmp_path: Path) -> None:
    (tmp_path / "p.md").write_bytes("\ufeffWrite ü.\n".encode())
    tasks = read(b'\xef\xbb\xbf{"id":"a","prompt":"x","verify":null}\r\n\r\n{"id":"b","prompt_file":"p.md"}', tmp_path)
    assert [(task.id, task.prompt) for task in tasks] == [("a", "x"), ("b", "Write ü.\n")]


def test_all_mistakes_are_reported_with_their_place(tmp_path: Path) -> None:
    data = b"".join(
        (
            b'{"id": "a", "prompt": "x"}\n',
            b'{"id": "A", "promt": "x", "budget": {"usd": 0, "turn": 1}}\n',
            b'{"id": "../b", "prompt": "x", "prompt_file": "p"}\n',
            b'{"id": "c", "prompt": "x",}\n',
            b'{"id": "d", "prompt": "x", "mode": "Auto", "env": ["A=1"], "repo": "gone"}\n',
        )
    )
    assert mistakes(data, tmp_path) == [
        "t.jsonl:2:1: a prompt is missing",
        "t.jsonl:2:2: id: 'A' is already in line 1 as 'a', and differs in case only",
        "t.jsonl:2:13: a task has no field 'promt'; did you mean 'prompt'?",
        "t.jsonl:2:38: budget.usd: more than 0 is expected",
        "t.jsonl:2:48: budget has no field 'turn'; did you mean 'turns'?",
        "t.jsonl:3:2: id: '../b' cannot be the name of a folder; letters, digits and . _ + - can, without a dot or dash in front",
        "t.jsonl:3:31: prompt and prompt_file exclude each other",
        "t.jsonl:4:27: invalid JSON: a field's name in double quotes is expected",
        "t.jsonl:5:28: mode: 'Auto' is not a mode; did you mean 'auto'?; modes are plan, ask, edit, auto, yolo",
        "t.jsonl:5:44: env: 'A' comes with a value; only names are listed, values come from the environment",
        "t.jsonl:5:60: repo: gone is not a folder",
    ]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "1:1: the file holds no task"),
        (b"\n \n", "1:1: the file holds no task"),
        (b'[{"id": "a"}]', "1:1: the file is a JSON array"),
        (b"[\n{}\n]", "1:1: the file is a JSON array"),
        (b"7", "1:1: a task is a JSON object, not a number"),
        (b'{"id": "a", "prompt": "\xff"}', "1:24: not valid UTF-8"),
        (b'{"id": "\xc3\xbc', "1:8: invalid JSON: unterminated string"),
        (b'{"id": "a", "id": "b", "prompt": "x"}', "1:13: the field 'id' is given twice"),
        (b'{"prompt": "x"}', "1:1: the field 'id' is missing"),
        (b'{"id": 3, "prompt": "x"}', "1:2: id: text is expected, not a number"),
        (line(prompt=" "), "1:13: prompt: the text is empty"),
        (line(prompt="a\0b"), "1:23: the text holds a NUL"),
        (b'{"id": "a", "prompt": "\\ud800"}', "1:23: the text holds half of a surrogate pair"),
        (line(meta=[1]), "meta: an object is expected, not a list"),
        (line(tags=["a", 1]), "tags: text is expected, not a number"),
        (line(budget={"turns": True}), "budget.turns: a whole number is expected, not true or false"),
        (line(budget={"seconds": "1"}), "budget.seconds: a number is expected, not text"),
        (line(resources={"memory_mb": 1}), "resources.memory_mb: at least 64"),
        (line(env=["OPENAI_API_KEY"]), "OPENAI_API_KEY is hidden from commands (secret name)"),
        (line(ref="main"), "ref: needs a repo"),
        (line(repo="/", ref="--upload-pack=x"), "names no branch"),
        (line(repo="ext::sh -c x"), "repo: only https"),
        (line(image="-v/:/host"), "image: '-v/:/host' is not the name of an image"),
        (line(prompt_file="x", prompt=None), "prompt_file: /x is not a file"),
        (b'{"id": "a", "prompt": NaN}', "1:23: invalid JSON: NaN is not a JSON number"),
        (b'{"id": "a", "meta": ' + b"[" * 200, "nested deeper than"),
        (b'{"a": "' + b"x" * MAX_LINE_BYTES + b'"}\n', "1:1: the line is longer than 4 MiB"),
    ],
)
def test_a_mistake(data: bytes, said: str) -> None:
    found = mistakes(data)
    assert any(said in each for each in found), found
    assert all(each.startswith("t.jsonl:1:") for each in found)


def test_a_model_is_checked_once_for_all_tasks() -> None:
    asked: list[tuple[str, bool]] = []

    def check(model: str, priced: bool) -> str:
        asked.append((model, priced))
        return "no such model" if model else ""

    data = line(model="p/m") + line(model="p/m", id="b") + line(id="c", budget={"usd": 1})
    with pytest.raises(TaskFileError) as caught:
        read_tasks("t", io.BytesIO(data), Path("/"), check)
    assert asked == [("p/m", False), ("", True)]
    assert caught.value.message.splitlines() == ["t:1:28: model: no such model", "t:2:28: model: no such model"]


@pytest.mark.parametrize(
    ("mode", "allowed"), [("plan", "plan"), ("ask", "plan ask"), ("auto", "plan ask edit auto"), ("yolo", "all")]
)
def test_looser_mode_is_a_mistake_of_its_line(mode: str, allowed: str) -> None:
    modes = ("plan", "ask", "edit", "auto", "yolo")
    data = "".join(json.dumps({"id": each, "prompt": "x", "mode": each}) + "\n" for each in modes)
    fine = modes if allowed == "all" else allowed.split()
    wrong = [(at, each) for at, each in enumerate(modes, 1) if each not in fine]
    try:
        read_tasks("t", io.BytesIO(data.encode()), Path("/"), mode=mode)
        said: list[str] = []
    except TaskFileError as error:
        said = error.message.splitlines()
    begins = [
        f"t:{at}:{len(json.dumps({'id': each, 'prompt': 'x'})) + 2}: mode: {each} is looser than {mode}," for at, each in wrong
    ]
    assert [line[: len(begin)] for line, begin in zip(said, begins, strict=True)] == begins


def test_command_of_a_goal_needs_the_goal() -> None:
    assert mistakes(line(until="make test")) == ["t.jsonl:1:28: until needs a goal"]
