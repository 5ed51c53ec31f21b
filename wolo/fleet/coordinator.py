"""Runs a batch from this process: makes the queue, works on it, and tells how it went."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wolo import __version__
from wolo.errors import UsageError, WoloError
from wolo.fleet.agent_run import AgentSettings
from wolo.fleet.engines.engine import Engine, LocalEngine
from wolo.fleet.ledger.hosts import Host
from wolo.fleet.ledger.ledger import Ledger
from wolo.fleet.ledger.ledger_folder import SQLITE, create_ledger, has_ledger, open_ledger
from wolo.fleet.ledger.ledger_store import LedgerError
from wolo.fleet.ledger.limit_sockets import serve_limits
from wolo.fleet.ledger.run_rows import Meta
from wolo.fleet.preflight import ModelCheck
from wolo.fleet.run_folder import RunFolder, work_name
from wolo.fleet.seal import is_sealed, seal_of
from wolo.fleet.tasks import BatchTask, key_of
from wolo.fleet.workers import WorkerCallbacks, Workers
from wolo.guard.modes import is_looser
from wolo.messages.terminal_text import quantity
from wolo.operating_system import on_signal
from wolo.workspace.directory_copy import remove_tree

ENGINES = ("local", "ray")
_NAMED = 5


class BatchOptions(Struct, frozen=True, kw_only=True):
    """Saved with the run, for those who resume it or work on it elsewhere."""

    agent: AgentSettings = AgentSettings()
    engine: str = "local"
    ray_address: str = ""
    """As for `ray.init`; empty: the cluster of this machine."""
    images: tuple[str, ...] = ()
    """Images that tasks may name: they get the keys of providers."""
    setup_env: tuple[str, ...] = ()
    """Variables that setup and verify of tasks may get."""
    jobs: int = 1
    requests_per_minute: float | None = None
    """Limits of all workers with one key; None: as the provider says when it refuses."""
    tokens_per_minute: float | None = None
    seal: str = ""
    """Shows that the options come from a command line of the same user."""

    @property
    def is_own(self) -> bool:
        return is_sealed(replace(self, seal=""), self.seal)


class BatchLimits(Struct, frozen=True):
    """Limits of the whole run; None: no limit."""

    usd: float | None = None
    tokens: int | None = None
    errors: int | None = None
    """Errored tasks after which no more are started."""


def create_run(
    path: Path,
    tasks: Sequence[BatchTask],
    options: BatchOptions,
    limits: BatchLimits,
    identity: Mapping[str, Any],
    *,
    store: str = SQLITE,
    lease_s: float = 60.0,
    provider_of: Callable[[BatchTask], str] = lambda task: "",
) -> Ledger:
    """Makes the folder of a run and its queue. Raises UsageError, LedgerError; then there is none."""
    folder = RunFolder(path)
    if has_ledger(path):
        raise UsageError(f"{path} holds a run already.", hint=f"`wolo batch resume {path}` continues it; --out names another.")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError(f"{path} is there and is not an empty folder.", hint="Name another one with --out.")
    settings = msgspec.to_builtins(replace(options, seal=seal_of(replace(options, seal=""))))
    meta = Meta(
        version=__version__,
        settings=settings,
        max_cost_usd=limits.usd,
        max_tokens=limits.tokens,
        max_errors=limits.errors,
        lease_s=lease_s,
    )
    try:
        folder.make()
        folder.tasks.write_bytes(b"".join(msgspec.json.encode(task) + b"\n" for task in tasks))
        ledger = create_ledger(path, meta, store)
        try:
            ledger.add(((task, key_of(task, identity)) for task in tasks), provider_of)
            ledger.complete_files()
        except BaseException:
            ledger.close()
            raise
    except OSError as error:
        remove_tree(path)
        raise UsageError(f"Cannot make {path}: {error.strerror}.", hint="Name another folder with --out.") from error
    except WoloError as error:
        remove_tree(path)
        hint = error.hint if store != SQLITE else "Nothing was kept."
        raise LedgerError(error.message, hint=hint) from error
    return ledger


def open_run(path: Path, *, reads: bool = False) -> Ledger:
    """`reads`: the folder may be read-only. Raises UsageError if it holds no run, LedgerError."""
    if not has_ledger(path):
        tasks = RunFolder(path).tasks
        if tasks.exists():
            raise UsageError(
                f"The ledger of {path} is gone.", hint=f"`wolo batch run {tasks} --out FOLDER` begins again elsewhere."
            )
        raise UsageError(f"{path} holds no run.", hint="`wolo batch run TASKS --out FOLDER` makes one.")
    ledger = open_ledger(path, reads=reads)
    if not ledger.counts():  # ended between making the ledger and filling it
        ledger.close()
        raise UsageError(
            f"{path} was not made to its end: its queue is empty.", hint="Remove the folder, and run the task file again."
        )
    return ledger


def options_of(meta: Meta) -> BatchOptions:
    return msgspec.convert(meta.settings, BatchOptions)


def check_origin(ledger: Ledger, *, as_saved: bool, states: Collection[str] = ("queued", "leased")) -> None:
    """Raises UsageError for a run whose files allow more than this user has chosen; `as_saved` accepts its maker's options.

    `states` of the tasks whose commands are about to run; empty: all.
    """
    options = options_of(ledger.meta())
    if not as_saved and not options.is_own:
        cluster = options.ray_address if options.engine == "ray" else ""
        is_loose = options.agent.mode and is_looser(options.agent.mode, ModelCheck(AgentSettings()).mode)
        foreign = [f"--mode {options.agent.mode}"] if is_loose else []
        foreign += [f"--set {text}" for text in options.agent.sets]
        foreign += [f"--ray-address {cluster}"] if cluster else []
        foreign += [f"--image {image}" for image in options.images]
        foreign += [f"--setup-env {name}" for name in options.setup_env]
        if foreign:
            raise UsageError(
                f"This run was not made here, and its maker has chosen {', '.join(foreign)}.",
                hint="--as-saved uses that; or run its tasks.jsonl anew with options of your own.",
            )
    waiting = [row.task for row in ledger.rows(states=states)]
    mode = ModelCheck(options.agent).mode
    looser = [f"{task.id} ({task.mode})" for task in waiting if task.mode and is_looser(task.mode, mode)]
    if looser:
        more = f" and {len(looser) - _NAMED} more" if len(looser) > _NAMED else ""
        raise UsageError(
            f"Tasks of the run have a mode looser than {mode}, which was chosen for it: {', '.join(looser[:_NAMED])}{more}.",
            hint="`wolo batch cancel RUN TASK` removes them; `wolo batch run … --mode` chooses for all.",
        )
    unallowed = [f"{task.id} ({name})" for task in waiting for name in task.setup_env if name not in options.setup_env]
    if unallowed:
        raise UsageError(f"Tasks of the run name variables that were not allowed for it: {', '.join(unallowed[:_NAMED])}.")
    unchosen = [f"{task.id} ({task.image})" for task in waiting if task.image and task.image not in options.images]
    if unchosen:
        raise UsageError(
            f"Tasks of the run name images that were not chosen for it and would get your keys: {', '.join(unchosen[:_NAMED])}.",
            hint="`wolo batch cancel RUN TASK` removes them; `wolo batch run … --image IMAGE` chooses.",
        )


def make_engine(path: Path, options: BatchOptions) -> Engine:
    """Raises UsageError when the cluster cannot be reached."""
    if options.engine == "ray":
        from wolo.fleet.engines.ray_engine import RayEngine  # noqa: PLC0415  # an extra, which takes a second to load

        return RayEngine(RunFolder(path), options.agent, options.ray_address)
    return LocalEngine(RunFolder(path), options.agent)


class Interruption(Struct):
    """Signals that have come."""

    exit_code: int = 0
    """0: none that ends the process."""
    is_drained: bool = False
    """By Ctrl-C."""


async def work_on(
    ledger: Ledger,
    engine: Engine,
    jobs: int,
    *,
    most: int | None = None,
    waits: bool = True,
    watch: Callable[[Workers], WorkerCallbacks] = lambda workers: WorkerCallbacks(),
    say: Callable[[str], None] = lambda text: None,
) -> Interruption:
    """Works until nothing is left to do, or a signal comes. Raises WoloError, OSError."""
    workers = Workers(ledger, engine, Host().owner(), jobs, most=most, waits=waits)
    workers.watcher = watch(workers)
    ledger.on_outage(say)
    seen = Interruption()
    _answer_signals(workers, seen, say)
    try:
        await asyncio.to_thread(_clear, ledger)
        options = options_of(await asyncio.to_thread(ledger.meta))
        if isinstance(engine, LocalEngine) and options.images and await asyncio.to_thread(_needs_containers, ledger):
            await asyncio.to_thread(engine.runner.require_engine)
        limits = ledger.limits(requests=options.requests_per_minute, tokens=options.tokens_per_minute)
        async with serve_limits(limits) as path:
            engine.limit_by(path)
            await workers.run()
    finally:
        await engine.close()
        await asyncio.to_thread(_complete, ledger)
    return seen


def _clear(ledger: Ledger) -> None:
    """Removes what killed workers have left in the run's folder."""
    left = RunFolder(ledger.folder).leftovers()
    ledger.expire()
    running = ledger.rows(states=("leased",))
    kept = {work_name(row) for row in running} | {f".{row.attempt}-{row.fence}.part" for row in running}
    for path in left:
        if path.name not in kept:
            remove_tree(path)


def _needs_containers(ledger: Ledger) -> bool:
    return any(row.task.image for row in ledger.rows(states=("queued", "leased")))


def _complete(ledger: Ledger) -> None:
    """The results are in the ledger in any case; whoever opens it next completes the files."""
    try:
        ledger.complete_files()
    except WoloError:
        if ledger.counts().get("leased", 0) == 0:
            raise


def _answer_signals(workers: Workers, seen: Interruption, say: Callable[[str], None]) -> None:
    """The first Ctrl-C drains, the second cancels; TERM and HUP give the running tasks back."""
    loop, count = asyncio.get_running_loop(), 0

    def interrupt() -> None:
        nonlocal count
        count += 1
        seen.is_drained = True
        if count == 1:
            running = len(workers.views)
            them = "it" if running == 1 else "them"
            say(f"Finishing {quantity(running, 'running task')}; nothing more is started. Ctrl-C again cancels {them}.")
            workers.drain()
        else:
            say("Cancelling the running tasks.")
            workers.stop("cancelled")

    def end(status: int) -> None:
        seen.exit_code = status
        workers.stop("lost")

    for number, answer in (
        (signal.SIGINT, interrupt),
        (signal.SIGTERM, lambda: end(143)),
        (signal.SIGHUP, lambda: end(129)),
    ):
        if signal.getsignal(number) is not signal.SIG_IGN:
            on_signal(loop, number, answer)


def exit_code_of(counts: Mapping[str, int]) -> int:
    """0: all passed or done; 2: infrastructure failed; 1: anything else."""
    if counts.get("errored") or counts.get("lost"):
        return 2
    return 0 if {state for state, count in counts.items() if count} <= {"passed", "done"} else 1
