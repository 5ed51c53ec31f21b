"""`wolo batch verify`, `compare` and `add`: grades a run again, compares two, and queues more tasks."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from wolo.cli.listing import AsJson, money, print_json
from wolo.errors import UsageError, WoloError
from wolo.frontends.streams import print_line, print_message
from wolo.messages.terminal_text import quantity

if TYPE_CHECKING:
    from wolo.fleet.evaluation.scores import Scores
    from wolo.fleet.ledger.run_rows import Row

GRADED = "verified.jsonl"
"""In the folder of the run: one line for each try that was graded again."""
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of the run.", show_default=False)]


def verify(
    run: RunPath,
    as_json: AsJson = False,
    as_saved: Annotated[bool, typer.Option("--as-saved", help="Also a run that was not made here, with its settings.")] = False,
) -> None:
    """Grade the patches of a run again, without the agent, each in a fresh worktree; budget.seconds of a task holds for that.

    Prints what has changed, and writes verified.jsonl. Exit status: 0 all pass; 1 some fail; 2 some could not be graded.
    """
    from wolo.fleet.coordinator import check_origin, open_run

    with closing(open_run(run.absolute(), reads=True)) as ledger:
        check_origin(ledger, as_saved=as_saved, states=())
        rows = ledger.rows()
        meta = ledger.meta()
    if running := [row.task.id for row in rows if row.state == "leased"]:
        raise UsageError(f"{running[0]} runs at the moment.", hint="`wolo batch status RUN --watch` waits for the end.")
    graded = [row for row in rows if row.task.verify and row.outcome is not None and _has_agents_work(row)]
    if not graded:
        raise UsageError("No ended task of this run has a verify command.")
    lines = asyncio.run(_grade_all(run.absolute(), graded, meta.settings))
    file = run / GRADED

    from wolo.workspace.files.unfinished import write_whole

    try:
        write_whole(file, b"".join(msgspec.json.encode(line) + b"\n" for line in lines), mode=0o666)
    except OSError as error:
        raise UsageError(f"Cannot write {file}: {error.strerror}.") from error
    if as_json:
        print_json(lines)
    else:
        for line in lines:
            name = line["id"] if line["try"] == 1 else f"{line['id']} (try {line['try']})"
            change = "" if line["state"] == line["state_before"] else f"  was {line['state_before']}"
            print_line(f"{line['state']:8} {name}{change}{'  ' + line['error'] if line['error'] else ''}")
    states = {line["state"] for line in lines}
    raise typer.Exit(2 if "errored" in states else 0 if states == {"passed"} else 1)


def _has_agents_work(row: Row) -> bool:
    """Its agent has ended by itself or at a limit, so that what is there can be judged."""
    error = row.outcome.error if row.outcome else None
    return row.state not in ("cancelled", "lost", "errored") or (error is not None and error.kind == "verify")


async def _grade_all(run: Path, rows: list[Row], settings: dict[str, Any]) -> list[dict[str, Any]]:
    from wolo.fleet.attempts import AttemptRunner
    from wolo.fleet.coordinator import BatchOptions
    from wolo.fleet.run_folder import RunFolder

    options = msgspec.convert(settings, BatchOptions)
    runner = AttemptRunner(RunFolder(run), options.agent, "local")
    if any(row.task.image for row in rows):
        await asyncio.to_thread(runner.require_engine)
    try:
        return [await _grade_one(run, row, runner) for row in rows]
    finally:
        runner.close()


async def _grade_one(run: Path, row: Row, runner: Any) -> dict[str, Any]:
    from wolo.fleet.evaluation.grading import PatchUnfit, grade, judgement, verify_hash
    from wolo.fleet.task_file import check_saved
    from wolo.workspace.directory_copy import remove_tree

    assert row.outcome is not None
    task, patch = row.task, row.outcome.patch
    line = {"id": task.base_id, "try": task.try_number, "state_before": row.state, "verify_hash": verify_hash(task)}
    work, seconds = runner.folder.work(f"{task.id}-verify"), task.budget.seconds
    try:
        check_saved(task)
        file = patch.file_in(run) if patch else None
        async with asyncio.timeout(seconds):
            ended = await grade(task, work, file, runner.place_tools, lambda text: None)
        tail = {"exit_code": ended.end.exit_code, "seconds": round(ended.end.seconds, 3), "tail": ended.output[-4000:]}
        judged = judgement(ended)
        said = judged.failure.message if judged.failure and judged.state != "failed" else ""
        return {**line, "state": judged.state, "verify": tail, "sandbox": ended.sandbox, "error": said}
    except PatchUnfit as error:
        return {**line, "state": "failed", "verify": None, "error": error.message}
    except TimeoutError:
        return {**line, "state": "timeout", "verify": None, "error": f"It took longer than {seconds:g} s."}
    except (WoloError, OSError) as error:
        return {**line, "state": "errored", "verify": None, "error": getattr(error, "message", str(error))}
    finally:
        await asyncio.to_thread(remove_tree, work)


def compare(
    first: Annotated[Path, typer.Argument(metavar="A", help="Folder of a run.", show_default=False)],
    second: Annotated[Path, typer.Argument(metavar="B", help="Folder of another run of the same tasks.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Compare two runs task by task, with intervals of 95 %.

    Tries that errored, were lost or cancelled count in no share.
    """
    from wolo.fleet.evaluation.scores import as_json as scores_as_json
    from wolo.fleet.evaluation.scores import compare_scores

    before, after = _scores(first), _scores(second)
    difference, unequal = compare_scores(before, after)
    num_shared = sum(name in after.tasks for name in before.tasks)
    if not num_shared:
        raise UsageError(
            f"{first} and {second} have no graded task in common.", hint="Runs are compared by the ids of their tasks."
        )
    if as_json:
        figures = {name: getattr(difference, name) for name in difference.__struct_fields__}
        tasks = [{"id": name, "a": a.share, "b": b.share} for name, a, b in unequal]
        runs = {name: scores_as_json(each, each.num_tries) for name, each in (("a", before), ("b", after))}
        print_json({**runs, "tasks": num_shared, "difference": {**figures, "clear": difference.is_clear}, "changed": tasks})
        return
    for path, scores in ((first, before), (second, after)):
        cost = money(scores.cost_usd)
        more = f", {quantity(scores.num_ungraded, 'try', 'tries')} not graded" if scores.num_ungraded else ""
        print_line(f"{path.name:24} pass@1 {scores.pass_at(1)}  {quantity(len(scores.tasks), 'task')}{more}  {cost}")
    doubt = "" if difference.is_clear else "; no clear difference"
    points = f"{100 * difference.value:+.1f} points [{100 * difference.low:+.1f}, {100 * difference.high:+.1f}]"
    split = f"{difference.num_better} better, {difference.num_worse} worse, p = {difference.p:.3f}"
    print_line(f"{'difference':24} {points} over {quantity(num_shared, 'task')}: {split}{doubt}")
    for name, a, b in unequal:
        sign = "+" if b.share > a.share else "-"
        print_line(f"{sign} {name}  {a.num_passed}/{a.num_tries} -> {b.num_passed}/{b.num_tries}")
    if missing := len({*before.tasks} ^ {*after.tasks}):
        print_message(f"{quantity(missing, 'task')} {'is' if missing == 1 else 'are'} graded in one of the runs only.")


def _scores(run: Path) -> Scores:
    from wolo.fleet.coordinator import open_run
    from wolo.fleet.evaluation.scores import scores_of

    with closing(open_run(run.absolute(), reads=True)) as ledger:
        return scores_of(ledger.rows())
