"""Hidden verification, tries, comparisons and provenance of batches, as a user runs them."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import Asked, ProviderServer
from tests.fakes.replies import Reply, call, chunk, sse, text
from tests.fakes.repositories import repository
from tests.fleet.batches import results
from wolo.fleet.evaluation.scores import compare, pass_at, share

HIDDEN = {"tests/hidden.sh": "test -f made.txt && ! grep -q cheat tests/visible.sh\n"}
PATCH = """\
diff --git a/tests/visible.sh b/tests/visible.sh
--- a/tests/visible.sh
+++ b/tests/visible.sh
@@ -1 +1,2 @@
 true
+test -f made.txt
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return repository(tmp_path / "source", {"a.txt": "one\n", "tests/visible.sh": "true\n"})


def run_tasks(tmp_path: Path, tasks: list[dict[str, Any]], *args: str, out: str = "run") -> Any:
    file = tmp_path / f"{out}.tasks.jsonl"
    file.write_text("".join(json.dumps({"prompt": "go", **task}) + "\n" for task in tasks))
    return run_wolo("batch", "run", str(file), "--mode", "yolo", "--out", out, *args, timeout=120)


def does(provider: ProviderServer, command: str) -> None:
    def answer(asked: Asked) -> Reply:
        return text("Done.") if asked.results else call("shell", {"command": command})

    provider.otherwise = answer


def test_hidden_files_judge_a_fresh_worktree(env: dict[str, str], provider: ProviderServer, source: Path, tmp_path: Path) -> None:
    does(provider, "echo made > made.txt; ls tests > seen.txt; echo cheat > tests/visible.sh; echo exit 0 > tests/hidden.sh")
    task = {"id": "t", "repo": str(source), "verify": "sh tests/hidden.sh"}
    done = run_tasks(
        tmp_path,
        [
            {**task, "verify_files": HIDDEN},
            {**task, "id": "honest", "verify_files": {"ok": ""}, "verify": "test -f made.txt && ! test -f seen.out"},
        ],
    )
    assert done.exit_code == 1, done.stderr
    by_id = {line["id"]: line for line in results(Path("run"))}
    assert by_id["t"]["state"] == "failed", "what the agent wrote over the hidden file does not count"
    assert by_id["honest"]["state"] == "passed"
    assert "hidden.sh" not in (Path("run") / by_id["t"]["patch"]["path"]).read_text().split("seen.txt")[-1][:40]


def test_judges_share_worktrees_and_see_no_trace(
    env: dict[str, str], provider: ProviderServer, source: Path, tmp_path: Path
) -> None:
    does(provider, "echo made > made.txt")
    look = "stat -c %i tests/visible.sh; cat a.txt; ls -A; cat .git/config"
    spoil = "echo ohn > a.txt; echo x > judge.tmp"
    task = {"id": "t", "repo": str(source), "verify_files": HIDDEN, "verify": f"{look}; {spoil}"}
    done = run_tasks(tmp_path, [task], "--mode", "auto", "--tries", "4", "-j", "1")
    assert done.exit_code == 0, done.stderr
    seen = [line["verify"]["tail"].split("\n", 1) for line in results(Path("run"))]
    assert len({rest for _, rest in seen}) == 1, seen
    assert "judge.tmp" not in seen[0][1]
    assert len({inode for inode, _ in seen}) <= 2, "that of the agent, and that of the judge"


def test_test_patch_restores_what_it_changes(env: dict[str, str], provider: ProviderServer, source: Path, tmp_path: Path) -> None:
    does(provider, "echo exit 0 > tests/visible.sh")
    task = {"id": "t", "repo": str(source), "verify": "sh -e tests/visible.sh", "test_patch": PATCH}
    assert run_tasks(tmp_path, [task]).exit_code == 1
    does(provider, "echo x > made.txt; rm tests/visible.sh")
    assert run_tasks(tmp_path, [task], out="second").exit_code == 0
    assert results(Path("second"))[0]["state"] == "passed"


def test_agent_cannot_prevent_its_judgement(env: dict[str, str], provider: ProviderServer, source: Path, tmp_path: Path) -> None:
    does(provider, "mkdir -p ../verify/source/tests; echo exit 0 > ../verify/source/tests/hidden.sh")
    run_tasks(tmp_path, [{"id": "t", "repo": str(source), "verify": "sh tests/hidden.sh", "verify_files": HIDDEN}])
    assert results(Path("run"))[0]["state"] == "failed"


def test_patch_is_judged_as_it_was_made(env: dict[str, str], provider: ProviderServer, source: Path, tmp_path: Path) -> None:
    binary = "printf '\\000\\377' > blob; printf '#!/bin/sh\\nexit 0\\n' > run.sh; chmod +x run.sh; ln -s blob link"
    does(provider, f"{binary}; echo x > made.txt; echo '*.txt text eol=crlf' > .gitattributes")
    check = "sh tests/hidden.sh && ./run.sh && test -L link && test $(wc -c < blob) = 2"
    run_tasks(tmp_path, [{"id": "t", "repo": str(source), "verify": check, "verify_files": HIDDEN}])
    assert results(Path("run"))[0]["state"] == "passed"


MOVE = """\
diff --git a/tests/visible.sh b/tests/moved.sh
similarity index 100%
rename from tests/visible.sh
rename to tests/moved.sh
"""


def test_test_patch_moves_original_files(env: dict[str, str], provider: ProviderServer, tmp_path: Path) -> None:
    source = repository(tmp_path / "strict", {"tests/visible.sh": "test -f made.txt\n"})
    does(provider, "echo exit 0 > tests/visible.sh")
    task = {"id": "t", "repo": str(source), "verify": "sh tests/moved.sh", "test_patch": MOVE}
    assert run_tasks(tmp_path, [task]).exit_code == 1
    (line,) = results(Path("run"))
    assert line["error"]["kind"] == "verify", "the file of the agent was moved, or the patch was refused"
    assert line["verify"]["exit_code"] == 1


def test_unusable_test_patch_is_errored(env: dict[str, str], provider: ProviderServer, source: Path, tmp_path: Path) -> None:
    does(provider, "echo x > made.txt")
    wrong = PATCH.replace(" true\n", " something else\n")
    task = {"id": "t", "repo": str(source), "verify": "true", "test_patch": wrong}
    assert run_tasks(tmp_path, [task]).exit_code == 2
    (line,) = results(Path("run"))
    assert line["state"] == "errored"
    assert "The test patch does not apply" in line["error"]["message"]


@pytest.mark.parametrize(
    "command",
    ["rm -r tests; ln -s /tmp tests", "rm -r tests; echo x > tests", "mkdir -p tests/hidden.sh/x; touch tests/hidden.sh/x/y"],
)
def test_links_of_a_patch_lead_nowhere(
    env: dict[str, str], provider: ProviderServer, source: Path, tmp_path: Path, command: str
) -> None:
    does(provider, f"echo x > made.txt; {command}")
    done = run_tasks(tmp_path, [{"id": "t", "repo": str(source), "verify": "sh tests/hidden.sh", "verify_files": HIDDEN}])
    assert done.exit_code == 1, done.stderr
    (line,) = results(Path("run"))
    assert line["state"] == "failed"
    assert "where tests/hidden.sh belongs" in line["error"]["message"]
    assert not Path("/tmp/hidden.sh").exists()


def test_line_names_the_model_that_answered(env: dict[str, str], provider: ProviderServer, source: Path, tmp_path: Path) -> None:
    provider.otherwise = sse(
        *(
            chunk({"role": "assistant", **piece}, finish_reason=reason, model="test-model-2026-11")
            for piece, reason in (({"content": "Done."}, None), ({}, "stop"))
        )
    )
    run_tasks(tmp_path, [{"id": "t", "repo": str(source)}])
    (line,) = results(Path("run"))
    assert (line["model"], line["model_resolved"]) == ("custom/test-model", "custom/test-model-2026-11")


def test_results_prove_themselves(env: dict[str, str], source: Path, tmp_path: Path) -> None:
    run_tasks(tmp_path, [{"id": "t", "repo": str(source), "verify": "true"}, {"id": "u"}], "--set", "thinking=low")
    by_id = {line["id"]: line for line in results(Path("run"))}
    line = by_id["t"]
    assert line["model_resolved"] == "custom/test-model"
    assert line["thinking"] == "low"
    assert re.fullmatch(r"[0-9a-f]{64}", line["prefix_hash"])
    assert re.fullmatch(r"[0-9a-f]{64}", line["verify_hash"])
    assert line["wolo_version"]
    assert line["image_digest"] is None
    assert by_id["u"]["verify_hash"] is None
    assert by_id["u"]["prefix_hash"] == line["prefix_hash"], "the folder's name does not count"
    for kind in ("jsonl", "csv", "junit", "html"):
        exported = run_wolo("batch", "export", "run", "--format", kind).stdout
        assert all(value in exported for name in ("model", "prefix_hash", "verify_hash") if (value := line[name])), kind
    assert '"model_name_or_path":"custom/test-model"' in run_wolo("batch", "export", "run", "--format", "swebench").stdout


def test_tries_are_rows_of_their_own(env: dict[str, str], tmp_path: Path) -> None:
    done = run_tasks(tmp_path, [{"id": "t", "verify": "true"}, {"id": "u", "verify": "true"}], "--tries", "3", "--shuffle", "7")
    assert done.exit_code == 0, done.stderr
    assert sorted((line["id"], line["try"]) for line in results(Path("run"))) == [(name, n) for name in "tu" for n in (1, 2, 3)]
    own = run_tasks(tmp_path, [{"id": "v", "tries": 2}], out="own")
    assert own.exit_code == 0
    assert [line["try"] for line in results(Path("own"))] in ([1, 2], [2, 1])
    assert "too long for 2 tries" in run_tasks(tmp_path, [{"id": "x" * 100}], "--tries", "2", out="long").stderr
    assert "also that of a try" in run_tasks(tmp_path, [{"id": "a", "tries": 2}, {"id": "a+1"}], out="same").stderr


def test_every_ledger_and_export_has_tries(env: dict[str, str], tmp_path: Path, store: str) -> None:
    done = run_tasks(tmp_path, [{"id": "t", "verify": "false"}, {"id": "u"}], "--tries", "2", "--store", store)
    assert done.exit_code == 1, done.stderr
    tries = [("t", 1, "failed"), ("t", 2, "failed"), ("u", 1, "done"), ("u", 2, "done")]
    assert sorted((line["id"], line["try"], line["state"]) for line in results(Path("run"))) == tries

    def export(kind: str) -> str:
        return run_wolo("batch", "export", "run", "--format", kind).stdout

    lines = [json.loads(line) for line in export("jsonl").splitlines()]
    assert sorted((line["id"], line["try"], line["state"]) for line in lines) == tries
    suite = ElementTree.fromstring(export("junit"))
    cases = {case.get("name"): [each.tag for each in case if each.tag == "failure"] for case in suite.iter("testcase")}
    assert cases == {"t+1": ["failure"], "t+2": ["failure"], "u+1": [], "u+2": []}
    table = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', export("html"), re.DOTALL)
    assert table is not None
    shown = [(each["id"], each["state"]) for each in json.loads(table[1])["tasks"]]
    assert sorted(shown) == [(f"{id}+{number}", state) for id, number, state in tries]
    compared = run_wolo("batch", "compare", "run", "run", "--json").json
    assert (compared["a"]["tasks"], compared["a"]["rows"]) == (1, 4)


def test_run_is_graded_again_without_an_agent(
    env: dict[str, str], provider: ProviderServer, source: Path, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    task = {"id": "t", "repo": str(source), "verify": f"test -f made.txt && test -f {flag}"}
    assert run_tasks(tmp_path, [task], "--set", "sandbox.backend=off").exit_code == 1
    asked = len(provider.requests)
    flag.touch()
    done = run_wolo("batch", "verify", "run", "--json")
    assert done.exit_code == 0, done.stderr
    (line,) = done.json
    assert (line["state_before"], line["state"], line["verify"]["exit_code"]) == ("failed", "passed", 0)
    assert len(provider.requests) == asked
    assert json.loads(Path("run/verified.jsonl").read_text()) == line
    assert results(Path("run"))[0]["state"] == "failed", "the run stays as it was"


def test_faults_are_not_graded_again(env: dict[str, str], source: Path, tmp_path: Path) -> None:
    tasks = [{"id": "broken", "setup": "false"}, {"id": "whole"}]
    run_tasks(tmp_path, [{**task, "repo": str(source), "verify": "true"} for task in tasks])
    assert [line["id"] for line in run_wolo("batch", "verify", "run", "--json").json] == ["whole"]


@pytest.mark.parametrize("fields", [{"mode": "yolo"}, {"setup_env": ["PRIVATE_TOKEN"]}])
def test_tasks_of_others_are_graded_within_bounds(
    env: dict[str, str], source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any]
) -> None:
    """The ledger of a run that has ended was changed by whoever sent it."""
    monkeypatch.setenv("PRIVATE_TOKEN", "hunter2-long-secret")
    marker = tmp_path / "ran"
    file = tmp_path / "tasks.jsonl"
    file.write_text(json.dumps({"id": "t", "prompt": "go", "repo": str(source), "verify": f"touch {marker}; true"}) + "\n")
    run_wolo("batch", "run", str(file), "--out", "run", timeout=120)
    with closing(sqlite3.connect("run/ledger.db")) as ledger, ledger:
        (task,) = ledger.execute("SELECT task FROM tasks").fetchone()
        ledger.execute("UPDATE tasks SET task = ?", (json.dumps({**json.loads(task), **fields}).encode(),))
    done = run_wolo("batch", "verify", "run", "--as-saved")
    assert done.exit_code == 2
    assert "t (" in done.stderr
    assert not marker.exists()


def test_grading_again_ends_at_the_budget(env: dict[str, str], tmp_path: Path) -> None:
    marker = tmp_path / "slow"
    run_tasks(tmp_path, [{"id": "t", "verify": f"test ! -e {marker} || sleep 100", "budget": {"seconds": 600}}])
    marker.touch()
    with closing(sqlite3.connect("run/ledger.db")) as database, database:
        database.execute("UPDATE tasks SET task = json_set(task, '$.budget.seconds', 1)")
    done = run_wolo("batch", "verify", "run", "--json", timeout=60)
    assert (done.exit_code, [(line["state"], line["error"]) for line in done.json]) == (
        1,
        [("timeout", "It took longer than 1 s.")],
    )


def test_runs_without_verification_have_no_figure(env: dict[str, str], tmp_path: Path) -> None:
    run_tasks(tmp_path, [{"id": "t"}], out="a")
    run_tasks(tmp_path, [{"id": "t"}], out="b")
    done = run_wolo("batch", "compare", "a", "b")
    assert done.exit_code == 2
    assert "no graded task in common" in done.stderr


def test_predictions_have_one_patch_of_an_instance(env: dict[str, str], tmp_path: Path) -> None:
    run_tasks(tmp_path, [{"id": "t", "verify": "true"}], "--tries", "3")
    done = run_wolo("batch", "export", "run", "--format", "swebench")
    assert [line["instance_id"] for line in done.lines] == ["t"]
    assert "2 further tries are left out" in done.stderr


def test_runs_are_compared_by_task(env: dict[str, str], tmp_path: Path) -> None:
    tasks = [{"id": f"t{n}", "verify": "true"} for n in range(6)]
    run_tasks(tmp_path, [{**task, "verify": "false"} for task in tasks], out="a")
    run_tasks(tmp_path, tasks[1:], out="b")
    compared = run_wolo("batch", "compare", "a", "b", "--json").json
    assert compared["tasks"] == 5
    assert compared["difference"]["value"] == 1
    assert compared["difference"]["num_better"] == 5
    assert not compared["difference"]["clear"]
    shown = run_wolo("batch", "compare", "a", "b")
    assert "+100.0 points" in shown.stdout
    assert "no clear difference" in shown.stdout
    assert "1 task is graded in one of the runs only" in shown.stderr


def test_tasks_are_added_to_a_run(env: dict[str, str], tmp_path: Path) -> None:
    run_tasks(tmp_path, [{"id": "t"}])
    more = tmp_path / "more.jsonl"
    more.write_text('{"id": "t", "prompt": "go"}\n{"id": "new", "prompt": "go"}\n')
    assert run_wolo("batch", "add", "run", str(more)).stdout.startswith("1 new, 0 changed, 1 known.")
    assert run_wolo("batch", "resume", "run", timeout=120).exit_code == 0
    assert sorted(line["id"] for line in results(Path("run"))) == ["new", "t"]


def test_secrets_of_setup_reach_only_setup_and_verify(
    env: dict[str, str], provider: ProviderServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRIVATE_TOKEN", "hunter2-long-secret")
    does(provider, 'echo "agent:[$PRIVATE_TOKEN]" > made.txt; cat setup.txt')
    task = {"id": "t", "setup": 'echo "$PRIVATE_TOKEN"; test -n "$PRIVATE_TOKEN" && echo ok > setup.txt'}
    task |= {
        "verify": 'echo "$PRIVATE_TOKEN"; test -n "$PRIVATE_TOKEN" && grep -F "agent:[]" made.txt',
        "setup_env": ["PRIVATE_TOKEN"],
    }
    refused = run_tasks(tmp_path, [task], out="refused")
    assert refused.exit_code == 2
    assert "--setup-env PRIVATE_TOKEN allows it" in refused.stderr
    done = run_tasks(tmp_path, [task], "--setup-env", "PRIVATE_TOKEN")
    assert done.exit_code == 0, (done.stderr, next(Path("run").rglob("log")).read_text())
    for path in Path("run").rglob("*"):
        assert path.is_dir() or b"hunter2-long-secret" not in path.read_bytes(), path


def test_missing_variable_of_setup_judges_nothing(env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = {"id": "t", "verify": 'test -n "$PRIVATE_TOKEN"', "setup_env": ["PRIVATE_TOKEN"]}
    options = ("--setup-env", "PRIVATE_TOKEN")
    missing = run_tasks(tmp_path, [task], *options, out="missing")
    assert missing.exit_code == 2
    assert "Task t needs PRIVATE_TOKEN (setup_env), which is not set here." in missing.stderr
    with monkeypatch.context() as there:
        there.setenv("PRIVATE_TOKEN", "hunter2-long-secret")
        assert run_tasks(tmp_path, [task], *options).exit_code == 0
    again = run_wolo("batch", "verify", "run", timeout=120)
    assert again.exit_code == 2
    assert again.stdout.startswith("errored  t")


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"verify_files": {"../x": ""}, "verify": "true"}, "'../x' is not a path inside the repository"),
        ({"verify_files": {"/x": ""}, "verify": "true"}, "is not a path inside"),
        ({"verify_files": {".git/hooks/x": ""}, "verify": "true"}, "is not a path inside"),
        ({"verify_files": {"x": 1}, "verify": "true"}, "the content of x is not text"),
        ({"verify_files": 3, "verify": "true"}, "a list of files, is expected"),
        ({"verify_files": ["missing"], "verify": "true"}, "is not a file"),
        ({"verify_files": {"x": ""}}, "need a verify command"),
        ({"test_patch": "x"}, "need a verify command"),
        ({"tries": 0}, "at least 1 is expected"),
        ({"setup_env": ["A=b"]}, "'A' is not the name of a variable"),
    ],
)
def test_wrong_fields_are_named_with_their_place(tmp_path: Path, fields: dict[str, Any], problem: str) -> None:
    done = run_tasks(tmp_path, [{"id": "t", **fields}])
    assert done.exit_code == 2
    assert re.search(r"tasks\.jsonl:1:\d+: ", done.stderr)
    assert problem in done.stderr


def test_figures_agree_with_published_formulas() -> None:
    assert pass_at(1, [(1, 2), (1, 2)]).value == pytest.approx(0.5)
    assert pass_at(2, [(1, 2), (0, 2)]).value == pytest.approx(0.5)
    assert pass_at(2, [(1, 4)]).value == pytest.approx(0.5)
    assert pass_at(1, [(1, 2)] * 3).low < 0.3, "equal shares have no variance, and are not certain"
    interval = share(8, 10)
    assert (interval.low, interval.high) == (pytest.approx(0.4901, abs=1e-3), pytest.approx(0.9433, abs=1e-3))
    assert compare([(0, 1)] * 6).p == pytest.approx(2 / 64)
    assert compare([(0, 1)] * 6).is_clear
    assert not compare([(0, 1), (1, 0)]).is_clear
    assert compare([(1, 1)]).p == 1
