"""`wolo batch`: runs many tasks, each in a worktree of its own."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import IO, TYPE_CHECKING, Annotated

import msgspec
import typer
from msgspec import to_builtins

from wolo.cli.fleet.batch_export import export
from wolo.cli.fleet.run_progress import print_status, status_of, watch_run, work_until_done
from wolo.cli.fleet.scoring import compare, verify
from wolo.cli.listing import AsJson, money, print_json
from wolo.errors import UsageError
from wolo.fleet.tasks import key_of, with_tries
from wolo.frontends.streams import print_json_text, print_line, print_message, visible
from wolo.messages.terminal_text import quantity

if TYPE_CHECKING:
    from wolo.fleet.agent_run import AgentSettings
    from wolo.fleet.coordinator import BatchLimits, BatchOptions
    from wolo.fleet.ledger.ledger import Ledger
    from wolo.fleet.ledger.run_rows import Row
    from wolo.fleet.preflight import ModelCheck
    from wolo.fleet.tasks import BatchTask

app = typer.Typer(no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
Run = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of the run.", show_default=False)]
TaskId = Annotated[str, typer.Argument(metavar="TASK", help="Id of the task.", show_default=False)]
Jobs = Annotated[int | None, typer.Option("-j", "--jobs", help="Tasks at a time.", metavar="N", show_default=False)]
MaxCost = Annotated[float | None, typer.Option("--max-cost", help="Limit for the whole run.", metavar="USD", show_default=False)]
MaxTokens = Annotated[int | None, typer.Option("--max-tokens", help="Limit for the whole run.", metavar="N", show_default=False)]
MaxErrors = Annotated[
    int | None, typer.Option("--max-errors", help="Start nothing more after N errored tasks.", metavar="N", show_default=False)
]
RayAddress = Annotated[
    str, typer.Option("--ray-address", help="The Ray cluster; without it that of this machine.", metavar="ADDR")
]
OtherEngine = Annotated[
    str,
    typer.Option("--engine", help="Run attempts there now, instead of where the run says.", metavar="NAME", show_default=False),
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", help="Override one setting for all tasks.", metavar="KEY=VALUE", show_default=False),
]
Images = Annotated[
    list[str] | None,
    typer.Option("--image", help="Tasks may name this image, which gets your keys.", metavar="IMAGE", show_default=False),
]
Shuffle = Annotated[
    int | None,
    typer.Option("--shuffle", help="Start tasks in an order drawn with this seed.", metavar="SEED", show_default=False),
]
SetupEnv = Annotated[
    list[str] | None,
    typer.Option("--setup-env", help="setup and verify of tasks may get this variable.", metavar="NAME", show_default=False),
]
AsSaved = Annotated[bool, typer.Option("--as-saved", help="Also a run that was not made here, with its own mode and settings.")]
_JOBS = 4


@app.command("run")
def run(
    tasks: Annotated[str, typer.Argument(metavar="TASKS", help="JSON Lines, one task a line; - for stdin.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="Folder of the run, which is made.", metavar="RUN", show_default=False)],
    jobs: Jobs = None,
    engine: Annotated[str, typer.Option("--engine", help="Where attempts run: local, or ray.", metavar="NAME")] = "local",
    ray_address: RayAddress = "",
    store: Annotated[str, typer.Option("--store", help="Ledger: sqlite, or postgresql://…", metavar="STORE")] = "sqlite",
    model: Annotated[str, typer.Option("-m", "--model", help="For tasks that name none.", metavar="MODEL")] = "",
    mode: Annotated[str, typer.Option("--mode", help="For tasks that name none.", metavar="MODE")] = "",
    thinking: Annotated[str, typer.Option("--thinking", help="For all tasks.", metavar="LEVEL")] = "",
    account: Annotated[str, typer.Option("--account", help="Use the keys saved under this name.", metavar="NAME")] = "",
    sets: Sets = None,
    images: Images = None,
    max_cost: MaxCost = None,
    max_tokens: MaxTokens = None,
    max_errors: MaxErrors = None,
    tries: Annotated[int | None, typer.Option("--tries", help="Tries of each task.", metavar="K", show_default=False)] = None,
    setup_env: SetupEnv = None,
    shuffle: Shuffle = None,
) -> None:
    """Check a task file and run all its tasks.

    Ctrl-C lets the running tasks end and starts no more; a second one cancels them. -j 0 only makes the queue.
    Exit status: 0 all passed; 1 some failed or are left; 2 some could not be run.
    """
    from wolo.fleet.agent_run import AgentSettings
    from wolo.fleet.coordinator import BatchOptions, create_run
    from wolo.fleet.preflight import ModelCheck, slow_ledger

    _check_numbers(jobs, tries)
    _check_elsewhere(engine, ray_address, account, images)
    settings = AgentSettings(model=model, mode=mode, thinking=thinking, account=account, sets=tuple(sets or ()))
    limits = _limits(max_cost, max_tokens, max_errors)
    check = ModelCheck(settings)
    tasks_read = with_tries(_read(tasks, settings, images or (), setup_env or ()), tries)
    if shuffle is not None:
        Random(shuffle).shuffle(tasks_read)
    _check_models(check, tasks_read, priced=max_cost is not None)
    options = BatchOptions(
        agent=settings,
        engine=engine,
        ray_address=ray_address,
        images=tuple(images or ()),
        setup_env=tuple(setup_env or ()),
        jobs=_JOBS if jobs is None else jobs,
        requests_per_minute=check.batch.requests_per_minute,
        tokens_per_minute=check.batch.tokens_per_minute,
    )
    lease_s, identity = check.batch.lease_s, check.identity(settings, tasks_read)
    ledger = create_run(
        out.absolute(), tasks_read, options, limits, identity, store=store, lease_s=lease_s, provider_of=check.provider_of
    )
    with closing(ledger):
        if said := slow_ledger(out, store):
            print_message(said)
        if options.jobs == 0:
            print_line(f"{_tasks_are(len(tasks_read))} queued in {out}. `wolo batch work {out}` works on the queue.")
            return
        raise typer.Exit(work_until_done(ledger, out, options.jobs))


@app.command("status")
def status(
    run: Run,
    as_json: AsJson = False,
    watch: Annotated[bool, typer.Option("--watch", help="Follow it until all have ended.")] = False,
) -> None:
    """Show how many tasks are in which state, what runs, and the cost."""
    with closing(_open(run, reads=True)) as ledger:
        if watch:
            watch_run(ledger, as_json=as_json)
            return
        if changed := ledger.changed_result():
            print_message(
                f"Line {changed} of {run / 'results.jsonl'} is not what the ledger has; `wolo batch resume {run}` mends it."
            )
        now = status_of(ledger)
        print_json(now) if as_json else print_status(now)


@app.command("resume")
def resume(
    run: Run,
    jobs: Jobs = None,
    max_cost: MaxCost = None,
    max_tokens: MaxTokens = None,
    max_errors: MaxErrors = None,
    as_saved: AsSaved = False,
    engine: OtherEngine = "",
    ray_address: RayAddress = "",
) -> None:
    """Continue a run: tasks that have ended are not run again; a provider that has refused is asked again.

    --max-cost, --max-tokens and --max-errors replace the limits of the run.
    """
    from wolo import __version__
    from wolo.fleet.coordinator import check_origin, options_of
    from wolo.fleet.preflight import ModelCheck

    with closing(_open(run)) as ledger:
        meta = ledger.meta()
        check_origin(ledger, as_saved=as_saved)
        if meta.version != __version__:
            print_message(f"The run was begun by wolo {meta.version}; this is wolo {__version__}.")
        if max_cost is not None or max_tokens is not None or max_errors is not None:
            limits = _limits(max_cost, max_tokens, max_errors)
            if max_cost is not None:
                ModelCheck(options_of(meta).agent).require_prices([row.task for row in ledger.rows(states=("queued", "leased"))])
            ledger.limit(
                max_cost_usd=meta.max_cost_usd if limits.usd is None else limits.usd,
                max_tokens=meta.max_tokens if limits.tokens is None else limits.tokens,
                max_errors=meta.max_errors if limits.errors is None else limits.errors,
            )
        ledger.forget_refusals()
        if changed := ledger.restore_results():
            print_message(
                f"Line {changed} of {run / 'results.jsonl'} was not what the ledger has; it is written again from there."
            )
        count = jobs if jobs is not None else options_of(meta).jobs or _JOBS
        if count < 1:
            raise UsageError("-j takes 1 or more here.")
        raise typer.Exit(work_until_done(ledger, run, count, options=_with_engine(ledger, engine, ray_address)))


@app.command("work")
def work(
    run: Run,
    jobs: Jobs = None,
    most: Annotated[
        int | None, typer.Option("--max", help="Stop after this many attempts.", metavar="N", show_default=False)
    ] = None,
    any_version: Annotated[bool, typer.Option("--any-version", help="Also on a queue of another version of wolo.")] = False,
    as_saved: AsSaved = False,
    engine: OtherEngine = "",
    ray_address: RayAddress = "",
) -> None:
    """Work on a queue until it is empty; for schedulers, and for further machines.

    Exit status 0 when nothing is left to start, whatever became of the tasks; 2 when refusals of a provider keep tasks in it.
    """
    from wolo.fleet.coordinator import check_origin
    from wolo.fleet.preflight import check_version

    if (jobs is not None and jobs < 1) or (most is not None and most < 1):
        raise UsageError("-j and --max take 1 or more.")
    with closing(_open(run)) as ledger:
        check_version(ledger.meta(), any_version=any_version)
        check_origin(ledger, as_saved=as_saved)
        options = _with_engine(ledger, engine, ray_address)
        raise typer.Exit(work_until_done(ledger, run, jobs or 1, most=most, waits=False, options=options))


@app.command("cancel")
def cancel(
    run: Run,
    tasks: Annotated[list[str] | None, typer.Argument(metavar="[TASK]...", help="Only these.", show_default=False)] = None,
) -> None:
    """Cancel tasks that are queued or run; workers learn of it within seconds."""
    with closing(_open(run)) as ledger:
        _check_known(ledger, tasks or ())
        count = ledger.cancel(tasks or None)
        ledger.complete_files()
        print_line(f"{_tasks_are(count)} cancelled.")


@app.command("retry")
def retry(
    run: Run,
    states: Annotated[str, typer.Option("--state", help="States, with commas: errored,lost,failed …", metavar="STATES")],
    tasks: Annotated[list[str] | None, typer.Argument(metavar="[TASK]...", help="Only these.", show_default=False)] = None,
) -> None:
    """Queue tasks again that have ended; `resume` or `work` runs them."""
    from typing import get_args

    from wolo.fleet.ledger.outcomes import Ended

    chosen_states = [state.strip() for state in states.split(",") if state.strip()]
    if unknown := [state for state in chosen_states if state not in get_args(Ended)] or not chosen_states:
        named = unknown[0] if isinstance(unknown, list) else states
        raise UsageError(f"{named!r} is no state of a task that has ended.", hint=f"States: {', '.join(get_args(Ended))}.")
    with closing(_open(run)) as ledger:
        _check_known(ledger, tasks or ())
        count = ledger.retry(chosen_states, tasks or None)  # type: ignore[arg-type]  # checked above
        ledger.complete_files()
        print_line(f"{_tasks_are(count)} queued again.")


@app.command("show")
def show(run: Run, task: TaskId, as_json: AsJson = False) -> None:
    """Show the newest attempt of a task: state, cost, files, and the end of its verify command."""
    with closing(_open(run, reads=True)) as ledger:
        row = _row(ledger, task)
    if as_json:
        print_json(to_builtins(row))
        return
    outcome, place = row.outcome, run / "attempts" / row.task.id / f"{row.attempt}-{row.fence}"
    lines = [("task", row.task.id), ("state", row.state), ("attempts", str(row.attempt))]
    if outcome is not None:
        lines += [("error", outcome.error.message if outcome.error else ""), ("session", outcome.session_id)]
        lines += [("tokens", f"{outcome.usage.tokens:,}"), ("cost", money(outcome.usage.cost_usd))]
        lines += [("time", f"{outcome.started} to {outcome.ended} on {outcome.host}")]
        if outcome.patch is not None:
            lines.append(("patch", f"{run / outcome.patch.path} ({quantity(outcome.patch.files, 'file')})"))
    lines += [("files", str(place) if place.is_dir() else "")]
    for name, value in lines:
        if value:
            print_line(f"{name:9} {value}")
    if outcome is not None and outcome.verify is not None:
        code = "took too long" if outcome.verify.exit_code is None else f"status {outcome.verify.exit_code}"
        print_line(f"verify    {code}, {outcome.verify.seconds:.1f} s\n{outcome.verify.tail.rstrip()}".rstrip())


@app.command("apply")
def apply(
    run: Run,
    task: TaskId,
    to: Annotated[
        Path | None,
        typer.Option("--to", help="Folder to change; the task's repository if not given.", metavar="DIR", show_default=False),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Show the patch of a task and apply it; git merges where the files have changed since."""
    from wolo.fleet.applying import apply_patch, prepare_patch
    from wolo.fleet.coordinator import options_of

    with closing(_open(run, reads=True)) as ledger:
        row, is_own = _row(ledger, task), options_of(ledger.meta()).is_own
    ready = prepare_patch(run.absolute(), row, to, is_own=is_own)
    print_line(ready.text.rstrip("\n"))
    if ready.is_applied:
        print_message(f"{ready.target} already has these changes.")
        return
    how = "merge this into" if ready.needs_merge else "apply this to"
    if not yes:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise UsageError("Nothing was applied: nobody could be asked.", hint="--yes applies it.")
        print(visible(f"{how.capitalize()} {ready.target}? [y/N] "), end="", flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            print_message("Nothing was applied.")
            raise typer.Exit(1)
    apply_patch(ready)
    print_message(f"Applied to {ready.target}.")


@app.command("add")
def add(
    run: Run,
    tasks: Annotated[str, typer.Argument(metavar="TASKS", help="JSON Lines, one task a line; - for stdin.", show_default=False)],
) -> None:
    """Queue more tasks, or changed ones again; `resume` or `work` runs them.

    A task that the run has already is left as it is.
    """
    from wolo.fleet.coordinator import check_origin, options_of
    from wolo.fleet.preflight import ModelCheck

    with closing(_open(run)) as ledger:
        check_origin(ledger, as_saved=False)
        options = options_of(ledger.meta())
        check = ModelCheck(options.agent)
        more = with_tries(_read(tasks, options.agent, options.images, options.setup_env), None)
        identity = check.identity(options.agent, more)
        added = ledger.add(((task, key_of(task, identity)) for task in more), check.provider_of)
        ledger.complete_files()
    print_line(f"{added.new} new, {added.changed} changed, {added.known} known. `wolo batch resume {run}` runs them.")


app.command("export")(export)
app.command("verify")(verify)
app.command("compare")(compare)


@app.command("make")
def make(
    template: Annotated[str, typer.Argument(help="The prompt, with {path}, {name} or columns.", metavar="TEMPLATE")],
    patterns: Annotated[list[str] | None, typer.Argument(metavar="[GLOB]...", help="A task a file.", show_default=False)] = None,
    csv: Annotated[Path | None, typer.Option("--csv", help="A task a row.", metavar="FILE", show_default=False)] = None,
    setup: Annotated[str, typer.Option("--setup", help="For every task.", metavar="COMMAND")] = "",
    verify: Annotated[str, typer.Option("--verify", help="For every task.", metavar="COMMAND")] = "",
) -> None:
    """Print tasks as JSON Lines: one for each file that matches, or for each row of a CSV file."""
    from wolo.fleet.templates import tasks_of_files, tasks_of_rows

    if bool(patterns) == bool(csv):
        raise UsageError("Name files or --csv FILE.", hint="wolo batch make 'fix lint in {path}' 'src/**/*.py'")
    more = {name: value for name, value in (("setup", setup), ("verify", verify)) if value}
    made = tasks_of_rows(template, csv, more, Path.cwd()) if csv else tasks_of_files(template, patterns or [], more, Path.cwd())
    for task in list(made):
        print_json_text(msgspec.json.encode(task).decode())


def _read(name: str, settings: AgentSettings, images: Sequence[str], setup_env: Sequence[str]) -> list[BatchTask]:
    """Prints the mistakes of a task file, each on a line; then raises Exit."""
    from wolo.fleet.preflight import ModelCheck

    path = Path(name)
    check = ModelCheck(settings)
    try:
        if name == "-":
            return read_task_file("<stdin>", sys.stdin.buffer, Path.cwd(), check, images, setup_env)
        with path.open("rb") as file:
            return read_task_file(name, file, path.absolute().parent, check, images, setup_env)
    except OSError as error:
        raise UsageError(f"Cannot read {name}: {error.strerror}.") from error


def read_task_file(
    name: str, file: IO[bytes], folder: Path, check: ModelCheck, images: Sequence[str] = (), setup_env: Sequence[str] = ()
) -> list[BatchTask]:
    """Prints all mistakes, each on a line; then raises Exit."""
    from wolo.fleet.task_file import TaskFileError, read_tasks

    try:
        return read_tasks(name, file, folder, check, check.mode, images, setup_env)
    except TaskFileError as error:
        for line in error.message.splitlines():
            print(visible(line), file=sys.stderr)
        raise typer.Exit(2) from error


def _check_numbers(jobs: int | None, tries: int | None) -> None:
    if jobs is not None and jobs < 0:
        raise UsageError("-j takes 0 or more.")
    if tries is not None and not 1 <= tries <= 999:
        raise UsageError("--tries takes 1 to 999.")


def _check_models(check: ModelCheck, tasks: Sequence[BatchTask], *, priced: bool) -> None:
    if any(not task.model for task in tasks):
        check.default(priced=False)
    if priced:
        check.require_prices(tasks)


def _with_engine(ledger: Ledger, engine: str, ray_address: str) -> BatchOptions:
    """The options of the run, with the engine that this command names. Raises UsageError."""
    from msgspec.structs import replace

    from wolo.fleet.coordinator import options_of

    saved = options_of(ledger.meta())
    if not (engine or ray_address):
        return saved
    engine = engine or saved.engine
    _check_elsewhere(engine, ray_address, saved.agent.account, [*saved.images])
    return replace(saved, engine=engine, ray_address=ray_address or (saved.ray_address if engine == "ray" else ""))


def _check_elsewhere(engine: str, ray_address: str, account: str, images: list[str] | None) -> None:
    """Raises UsageError for options that do not go together where attempts run on other machines or in images.

    Images get `keys.toml`, and cannot ask the keyring.
    """
    from wolo.fleet.coordinator import ENGINES

    if engine not in ENGINES:
        raise UsageError(f"There is no engine {engine}.", hint=f"Engines: {', '.join(ENGINES)}.")
    if ray_address and engine != "ray":
        raise UsageError("--ray-address needs --engine ray.")
    if account and engine == "ray":
        hint = "Put the key of this account into the environment, in the variable that `wolo auth list` names."
        raise UsageError("--account needs keys that only this machine has, so it does not go with --engine ray.", hint=hint)
    from wolo.config import key_store
    from wolo.places import Notices, find_places

    rows = key_store.read(find_places(), Notices()) if account and images else {}
    for row, stored in rows.items():
        if key_store.account_of(row)[1] == account and stored.where == "keyring":
            raise UsageError(
                f"The key of {row} is in the keyring, which --image does not reach.",
                hint=f"`{key_store.login_command(row)} --no-keyring` saves it in keys.toml, which images get.",
            )


def _limits(usd: float | None, tokens: int | None, num_errors: int | None) -> BatchLimits:
    from wolo.fleet.coordinator import BatchLimits

    if (usd is not None and not usd > 0) or (tokens is not None and tokens <= 0):
        raise UsageError("--max-cost and --max-tokens take more than 0.")
    if num_errors is not None and num_errors < 1:
        raise UsageError("--max-errors takes 1 or more.")
    return BatchLimits(usd, tokens, num_errors)


def _open(run: Path, *, reads: bool = False) -> Ledger:
    from wolo.fleet.coordinator import open_run

    return open_run(run.absolute(), reads=reads)


def _tasks_are(num_tasks: int) -> str:
    return f"{quantity(num_tasks, 'task')} {'is' if num_tasks == 1 else 'are'}"


def _row(ledger: Ledger, task: str) -> Row:
    _check_known(ledger, (task,))
    return ledger.rows(task_id=task)[0]


def _check_known(ledger: Ledger, tasks: Sequence[str]) -> None:
    for task in tasks:
        if not ledger.rows(task_id=task):
            raise UsageError(f"The run has no task {task}.", hint="`wolo batch status RUN --json` and tasks.jsonl list them.")
