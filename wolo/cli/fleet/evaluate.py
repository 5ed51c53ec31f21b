"""`wolo eval`: runs a data set with each model, and prints how good each is, how sure that is, and what it cost."""

from __future__ import annotations

import io
import json
import math
import re
from contextlib import closing
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wolo.cli.fleet.batch import Jobs, MaxCost, Sets, read_task_file
from wolo.cli.listing import AsJson, money, print_json
from wolo.errors import UsageError
from wolo.frontends.streams import print_line, print_message
from wolo.messages.terminal_text import quantity

if TYPE_CHECKING:
    from wolo.fleet.evaluation.data_sets import DataSet
    from wolo.fleet.evaluation.scores import Scores
    from wolo.fleet.ledger.run_rows import Row

REPORT = "report.json"


Source = Annotated[str, typer.Argument(metavar="NAME|FOLDER", help="Data set, or folder with a tasks.jsonl.", show_default=False)]
Models = Annotated[str, typer.Option("-m", "--model", help="Models, with commas between.", metavar="A,B", show_default=False)]
Part = Annotated[str, typer.Option("--slice", help="Only these tasks: :50, 100:150.", metavar="A:B", show_default=False)]
Order = Annotated[
    int | None, typer.Option("--shuffle", help="Draw the order, before --slice.", metavar="SEED", show_default=False)
]
Data = Annotated[
    Path | None, typer.Option("--data", help="File or checkout of a named data set.", metavar="PATH", show_default=False)
]
Repos = Annotated[
    Path | None, typer.Option("--repos", help="Clones of its repositories: OWNER__NAME.", metavar="DIR", show_default=False)
]
InImages = Annotated[bool, typer.Option("--images", help="Run each task in its image, which gets your keys.")]
Out = Annotated[Path | None, typer.Option("--out", help="Folder of the report.", metavar="DIR", show_default=False)]


def evaluate(
    source: Source,
    models: Models = "",
    tries: Annotated[int, typer.Option("-k", "--tries", help="Tries of each task.", metavar="K")] = 1,
    part: Part = "",
    shuffle: Order = None,
    data: Data = None,
    repos: Repos = None,
    images: InImages = False,
    out: Out = None,
    jobs: Jobs = None,
    mode: Annotated[str, typer.Option("--mode", help="Of all agents.", metavar="MODE")] = "",
    sets: Sets = None,
    max_cost: MaxCost = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate models on a data set: pass@1 and pass@k with intervals of 95 %, and the cost.

    Data sets: swe-bench-verified (its own program grades the patches, where it and docker are), aider-polyglot, or a folder of
    tasks. Each model has a run in the folder of the report, which `wolo batch` continues, exports, grades again and compares.
    Exit status 0 when it ran.
    """
    from wolo.fleet.evaluation.data_sets import read_data_set
    from wolo.fleet.evaluation.scores import as_json as figures_of
    from wolo.fleet.evaluation.scores import provenance_values, scores_of

    if not 1 <= tries <= 999:
        raise UsageError("-k takes 1 to 999.")
    names = [name.strip() for name in models.split(",")] if models else [""]
    if models and not all(names):
        raise UsageError("-m takes names of models, with commas between.")
    if taken := next((name for name in names if [_slug(each) for each in names].count(_slug(name)) > 1), ""):
        raise UsageError(f"-m names {taken} twice, or two models whose runs would have one folder.")
    chosen = read_data_set(source, data, repos, images=images)
    lines = _choose(chosen, part, shuffle)
    allowed = [*dict.fromkeys(str(line["image"]) for line in lines if line.get("image"))] if images else []
    if images and not allowed:
        raise UsageError(f"The tasks of {chosen.name} name no image.", hint="Leave out --images.")
    folder = (out or Path(f"eval-{chosen.name}")).absolute()
    results = {}
    is_graded = True
    for name in names:
        rows = _run(chosen, lines, name, tries, folder, jobs, mode, sets, max_cost, allowed)
        label = name or "default"
        rows, is_judged = _judge(chosen, rows, folder / _slug(label), name, jobs or 4)
        scores, is_graded = scores_of(rows), is_graded and is_judged
        results[label] = {**figures_of(scores, tries), "made_with": provenance_values(rows), "run": str(folder / _slug(label))}
        if not as_json:
            print_line(_row(label, scores, tries, is_graded=is_judged))
    report = {"data_set": chosen.name, "tasks": len(lines), "tries": tries, "graded": is_graded, "models": results}
    _write_report(folder, report)
    if as_json:
        print_json(report)
    if not is_graded:
        run = folder / _slug(names[0] or "default")
        print_message(
            "The patches are not graded: the program of the data set does that, where docker and the package swebench are.",
            hint=f"wolo batch export {run} --format swebench > predictions.jsonl; python -m swebench.harness.run_evaluation"
            " --predictions_path predictions.jsonl --dataset_name princeton-nlp/SWE-bench_Verified --run_id wolo",
        )


def _judge(chosen: DataSet, rows: list[Row], run: Path, model: str, jobs: int) -> tuple[list[Row], bool]:
    """The rows as what judges the data set sees them; False: nothing has."""
    if chosen.data is None:
        return rows, chosen.is_graded
    from wolo.fleet.evaluation.swebench import HarnessFailed, find_harness, grade_rows
    from wolo.fleet.exports.tables import ExportedRun

    if not (harness := find_harness()):
        return rows, False
    print_message("Grading with the program of SWE-bench.")
    try:
        return grade_rows(rows, ExportedRun(folder=run, model=model, rows=()), chosen.data, harness, jobs), True
    except HarnessFailed as error:
        print_message(error.message, hint=error.hint)
        return rows, False


def _choose(chosen: DataSet, part: str, shuffle: int | None) -> list[dict[str, Any]]:
    lines = list(chosen.lines)
    if shuffle is not None:
        Random(shuffle).shuffle(lines)
    if not part:
        return lines
    match = re.fullmatch(r"(\d*):(\d*)", part)
    if match is None:
        raise UsageError(f"--slice takes A:B, not {part}.", hint="--slice :50 takes the first fifty tasks.")
    begin, end = (int(each) if each else None for each in match.groups())
    if not lines[begin:end]:
        raise UsageError(f"--slice {part} leaves none of {quantity(len(lines), 'task')}.")
    return lines[begin:end]


def _run(
    chosen: DataSet,
    lines: list[dict[str, Any]],
    model: str,
    tries: int,
    folder: Path,
    jobs: int | None,
    mode: str,
    sets: list[str] | None,
    max_cost: float | None,
    images: list[str],
) -> list[Row]:
    """The rows of one model; a run that is there already is continued."""
    from wolo.cli.fleet.run_progress import work_on_run
    from wolo.fleet.agent_run import AgentSettings
    from wolo.fleet.coordinator import BatchLimits, BatchOptions, check_origin, create_run, open_run, options_of
    from wolo.fleet.ledger.ledger_folder import has_ledger
    from wolo.fleet.preflight import ModelCheck
    from wolo.fleet.tasks import key_of, with_tries

    run = folder / _slug(model or "default")
    settings = AgentSettings(model=model, mode=mode, sets=tuple(sets or ()))
    check = ModelCheck(settings)
    check.default(priced=max_cost is not None)
    text = "".join(json.dumps(line) + "\n" for line in lines).encode()
    tasks = with_tries(read_task_file(chosen.name, io.BytesIO(text), chosen.folder.absolute(), check, images), tries)
    identity = check.identity(settings, tasks)
    if has_ledger(run):
        ledger = open_run(run)
        check_origin(ledger, as_saved=False)
        keys = {key_of(task, identity) for task in tasks}
        if options_of(ledger.meta()).agent != settings or keys != {row.key for row in ledger.rows()}:
            ledger.close()
            raise UsageError(
                f"{run} holds an evaluation of other tasks or with other settings.", hint="--out names another folder."
            )
        print_message(f"Continuing the run in {run}.")
    else:
        options, lease_s = BatchOptions(agent=settings, images=tuple(images), jobs=jobs or 4), check.batch.lease_s
        limits = BatchLimits(max_cost)
        ledger = create_run(run, tasks, options, limits, identity, lease_s=lease_s, provider_of=check.provider_of)
    with closing(ledger):
        signalled = work_on_run(ledger, run, jobs or 4)
        if signalled.exit_code:
            raise typer.Exit(signalled.exit_code)
        return ledger.rows()


def _slug(model: str) -> str:
    return re.sub(r"[^\w.-]+", "-", model).strip("-.") or "model"


def _row(model: str, scores: Scores, tries: int, *, is_graded: bool) -> str:
    figures = [f"pass@1 {scores.pass_at(1)}"] if is_graded and scores.tasks else ["not graded"]
    if is_graded and tries > 1 and not math.isnan(scores.pass_at(tries).value):
        figures.append(f"pass@{tries} {scores.pass_at(tries)}")
    missing = f"  {quantity(scores.num_ungraded, 'try', 'tries')} not graded" if scores.num_ungraded else ""
    return f"{model:32} {'  '.join(figures)}  {quantity(scores.num_tasks, 'task')}  {money(scores.cost_usd)}{missing}"


def _write_report(folder: Path, report: dict[str, Any]) -> None:
    """Raises UsageError."""
    from wolo.workspace.files.unfinished import write_whole

    try:
        write_whole(folder / REPORT, json.dumps(report, indent=2, allow_nan=False).encode() + b"\n", mode=0o666)
    except OSError as error:
        raise UsageError(f"Cannot write {folder / REPORT}: {error.strerror}.") from error
