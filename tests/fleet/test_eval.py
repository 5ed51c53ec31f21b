"""`wolo eval`: a data set, several models, and a figure with its interval."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import Asked, ProviderServer
from tests.fakes.replies import Reply, call, text
from tests.fakes.repositories import files, git, repository

pytestmark = pytest.mark.usefixtures("env")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "mine"
    place.mkdir()
    lines = [{"id": f"t{n}", "prompt": f"task {n}", "verify": "test -f made.txt"} for n in range(4)]
    (place / "tasks.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return place


def test_models_are_measured_beside_each_other(folder: Path, provider: ProviderServer) -> None:
    def answer(asked: Asked) -> Reply:
        if asked.json["model"] == "weak":
            return text("I cannot.")
        return text("Done.") if asked.results else call("shell", {"command": "echo x > made.txt"})

    provider.otherwise = answer
    models = ("-m", "custom/strong,custom/weak")
    done = run_wolo("eval", str(folder), *models, "-k", "2", "--slice", ":3", "--mode", "yolo", "--out", "report", timeout=120)
    assert done.exit_code == 0, done.stderr
    strong, weak = done.stdout.splitlines()
    assert strong.startswith("custom/strong")
    assert "pass@1 100.0 % [" in strong
    assert "pass@2 100.0 % [" in strong
    assert "pass@1 0.0 % [" in weak
    assert "3 tasks" in weak
    report = json.loads(Path("report/report.json").read_text())
    assert report["tasks"] == 3
    assert report["models"]["custom/weak"]["pass@2"]["value"] == 0
    assert report["models"]["custom/weak"]["pass@1"]["high"] > 0.3
    made_with = report["models"]["custom/weak"]["made_with"]
    stated = made_with["model_resolved"], len(made_with["prefix_hash"]), len(made_with["verify_hash"])
    assert stated == (["custom/test-model"], 1, 1), "the provider names one model for both"
    rows = run_wolo("batch", "compare", "report/custom-weak", "report/custom-strong").stdout
    assert weak.partition("pass@1 ")[2].partition("  ")[0] in rows, "one figure of a run"
    compared = run_wolo("batch", "compare", "report/custom-weak", "report/custom-strong", "--json").json
    assert compared["difference"]["num_better"] == 3
    asked = len(provider.requests)
    again = run_wolo("eval", str(folder), *models, "-k", "2", "--slice", ":3", "--mode", "yolo", "--out", "report", "--json")
    assert again.json["models"]["custom/strong"]["pass@1"]["value"] == 1
    assert len(provider.requests) == asked, "what has ended is not run again"


def test_polyglot_tests_stay_hidden_until_the_end(tmp_path: Path, provider: ProviderServer) -> None:
    exercise = tmp_path / "bench/python/exercises/practice/two-fer"
    for name, content in {
        ".meta/config.json": json.dumps({"files": {"solution": ["two_fer.py"], "test": ["two_fer_test.py"], "example": []}}),
        ".docs/instructions.md": "Say it twice.",
        "two_fer.py": "def two_fer(name):\n    pass\n",
        "two_fer_test.py": "from two_fer import two_fer\n\n\ndef test_name():\n    assert two_fer('x') == 'x for x'\n",
    }.items():
        (exercise / name).parent.mkdir(parents=True, exist_ok=True)
        (exercise / name).write_text(content)
    commands = []

    def answer(asked: Asked) -> Reply:
        commands.append(asked.messages[-1]["content"])
        solve = "printf 'def two_fer(name):\\n    return name\\n' > two_fer.py; echo 'def test_x(): pass' > two_fer_test.py"
        return text("Done.") if asked.results else call("shell", {"command": solve})

    provider.otherwise = answer
    done = run_wolo(
        "eval", "aider-polyglot", "--data", str(tmp_path / "bench"), "--mode", "yolo", "--out", "r", "--json", timeout=120
    )
    assert done.exit_code == 0, done.stderr
    (model,) = done.json["models"].values()
    assert model["pass@1"]["value"] == 0, "the agent's own test does not count"
    assert "Say it twice." in commands[0]
    assert "Implement this in two_fer.py." in commands[0]


def test_swe_bench_patches_are_left_to_their_grader(tmp_path: Path) -> None:
    clone = repository(tmp_path / "clones/acme__lib", {"a.txt": "one\n"})
    row = {"instance_id": "acme__lib-1", "repo": "acme/lib", "base_commit": git(clone, "rev-parse", "HEAD").strip()}
    data = tmp_path / "verified.jsonl"
    data.write_text(json.dumps({**row, "problem_statement": "Fix it.", "version": "1.0"}) + "\n")
    done = run_wolo(
        *("eval", "swe-bench-verified", "--data", str(data), "--repos", str(tmp_path / "clones")),
        *("--mode", "yolo", "--out", "r"),
        timeout=120,
    )
    assert done.exit_code == 0, done.stderr
    assert "not graded" in done.stdout
    assert "1 task " in done.stdout
    (model,) = json.loads(Path("r/report.json").read_text())["models"].values()
    assert model["pass@1"]["value"] is None, "a patch that nobody has graded is no success"
    assert "swebench.harness.run_evaluation" in done.stderr
    exported = run_wolo("batch", "export", "r/default", "--format", "swebench")
    assert json.loads(exported.stdout)["instance_id"] == "acme__lib-1"


HARNESS = """
import json, pathlib, sys
argv = dict(zip(sys.argv[1::2], sys.argv[2::2]))
with open("calls", "a") as log:
    log.write(json.dumps(argv) + "\\n")
if pathlib.Path("../../dead").exists():
    sys.exit("docker.errors.DockerException: Error while fetching server API version")
rows = [json.loads(line) for line in open(argv["--predictions_path"])]
assert {row["instance_id"] for row in rows} <= {json.loads(line)["instance_id"] for line in open(argv["--dataset_name"])}
report = {name: [] for name in ("resolved_ids", "unresolved_ids", "empty_patch_ids", "error_ids", "infra_failure_ids")}
for row in rows:
    kind = "infra_failure" if row["instance_id"].endswith("3") else "resolved" if "right" in row["model_patch"] else "unresolved"
    report[kind + "_ids"].append(row["instance_id"])
name = rows[0]["model_name_or_path"].replace("/", "__") + "." + argv["--run_id"] + ".json"
pathlib.Path(argv["--report_dir"], name).write_text(json.dumps(report))
"""


@pytest.fixture
def harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """Arguments of an evaluation whose patches a stand-in for SWE-bench's program grades."""
    files(tmp_path / "packages/swebench", {"__init__.py": "", "harness/__init__.py": "", "harness/run_evaluation.py": HARNESS})
    files(tmp_path / "bin", {"docker": "#!/bin/sh\n"})
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "packages"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    clone = repository(tmp_path / "clones/acme__lib", {"a.txt": "one\n"})
    row = {"repo": "acme/lib", "base_commit": git(clone, "rev-parse", "HEAD").strip()}
    lines = [{**row, "instance_id": f"acme__lib-{n}", "problem_statement": f"Fix {n}."} for n in (1, 2, 3)]
    (tmp_path / "verified.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    data = ("--data", str(tmp_path / "verified.jsonl"), "--repos", str(tmp_path / "clones"))
    return ("eval", "swe-bench-verified", *data, "--mode", "yolo", "--out", "r")


def test_program_of_swe_bench_grades_every_try(harness: tuple[str, ...], provider: ProviderServer) -> None:
    seen = []

    def answer(asked: Asked) -> Reply:
        if asked.results:
            return text("Done.")
        number = next(each for each in "123" if f"Fix {each}." in str(asked.messages))
        seen.append(number)
        is_right = number == "1" or (number == "2" and seen.count("2") == 1)
        return call("shell", {"command": f"echo {'right' if is_right else 'wrong'} > made.txt"})

    provider.otherwise = answer
    done = run_wolo(*harness, "-k", "2", "-j", "3", timeout=120)
    assert done.exit_code == 0, done.stderr
    assert "pass@1 75.0 % [" in done.stdout
    assert "pass@2 100.0 % [" in done.stdout
    assert "2 tries not graded" in done.stdout, "its infrastructure failed there"
    report = json.loads(Path("r/report.json").read_text())
    assert report["graded"]
    calls = [json.loads(line) for line in Path("r/default/swebench/calls").read_text().splitlines()]
    assert len({each["--run_id"] for each in calls}) == len(calls) == 2, "one patch of an instance for each"
    assert {each["--max_workers"] for each in calls} == {"3"}
    assert run_wolo(*harness, "-k", "2", "-j", "3", timeout=120).stdout == done.stdout
    assert len(Path("r/default/swebench/calls").read_text().splitlines()) == 2, "the same patches are not graded again"


def test_failed_program_of_swe_bench_grades_nothing(harness: tuple[str, ...], provider: ProviderServer) -> None:
    provider.otherwise = text("Done.")
    Path("r").mkdir()
    Path("r/dead").touch()
    done = run_wolo(*harness, timeout=120)
    assert done.exit_code == 0, done.stderr
    assert "ended with status 1: docker.errors.DockerException" in done.stderr
    assert "not graded" in done.stdout
    Path("r/dead").unlink()
    assert "pass@1 0.0 %" in run_wolo(*harness, timeout=120).stdout


@pytest.mark.parametrize("change", [("--slice", ":1"), ("-k", "2"), ("--set", "thinking=low"), ("--mode", "auto")])
def test_other_evaluation_is_not_continued(folder: Path, provider: ProviderServer, change: tuple[str, ...]) -> None:
    args = ("eval", str(folder), "--slice", ":2", "--mode", "yolo", "--out", "report")
    assert run_wolo(*args, timeout=120).exit_code == 0
    asked, report = len(provider.requests), Path("report/report.json").read_bytes()
    done = run_wolo(*args, *change)
    assert done.exit_code == 2
    assert "holds an evaluation of other tasks or with other settings" in done.stderr
    assert len(provider.requests) == asked
    assert Path("report/report.json").read_bytes() == report


def test_figures_without_results_are_null(folder: Path, provider: ProviderServer) -> None:
    lines = [json.loads(line) for line in (folder / "tasks.jsonl").read_text().splitlines()]
    (folder / "tasks.jsonl").write_text("".join(json.dumps({**line, "setup": "false"}) + "\n" for line in lines))
    done = run_wolo("eval", str(folder), "--mode", "yolo", "--out", "report", "--json", timeout=120)
    assert "NaN" not in done.stdout
    (model,) = done.json["models"].values()
    assert model["pass@1"]["value"] is None
    assert model["ungraded"] == 4


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("nowhere",), "nowhere is no data set, and no folder with a tasks.jsonl"),
        (("aider-polyglot",), "aider-polyglot needs its data"),
        (("aider-polyglot", "--data", "."), "holds no exercises"),
        (("swe-bench-verified", "--data", "nowhere"), "cannot be read"),
        (("FOLDER", "--slice", "x"), "--slice takes A:B"),
        (("FOLDER", "--slice", "9:"), "leaves none of 4 tasks"),
        (("FOLDER", "-k", "0"), "-k takes 1 to 999"),
        (("FOLDER", "-m", "a,,b"), "-m takes names of models"),
        (("FOLDER", "-m", "a/b,a/b"), "-m names a/b twice"),
        (("FOLDER", "-m", "a/b,a-b"), "two models whose runs would have one folder"),
    ],
)
def test_wrong_evaluations_start_nothing(folder: Path, args: tuple[str, ...], problem: str, provider: ProviderServer) -> None:
    done = run_wolo("eval", *(str(folder) if word == "FOLDER" else word for word in args))
    assert done.exit_code == 2
    assert problem in done.stderr
    assert not provider.requests
    assert not [*Path().glob("eval-*/*")]
