"""The engine of a Ray cluster: each attempt is a Ray task, and the ledger decides about repeating it."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import socket
import sys
import tarfile
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec.structs import replace

from wolo import __version__, places
from wolo.config import keys, layers
from wolo.conversation.resources.model_selection import choose
from wolo.errors import ConfigError, UsageError, WoloError
from wolo.fleet.agent_run import AgentSettings, Allowance
from wolo.fleet.attempts import AttemptRunner, AttemptView
from wolo.fleet.engines.ray_worker import ReturnedAttempt, SentAttempt, build_wheel, pack_source, run_attempt, unpack
from wolo.fleet.ledger.hosts import utc_now
from wolo.fleet.ledger.limit_sockets import LimitAddress, at_coordinator
from wolo.fleet.ledger.outcomes import AttemptOutcome, Ended, Failure, Lease
from wolo.fleet.run_folder import RunFolder
from wolo.fleet.tasks import BatchTask
from wolo.models.catalog_files import PROVIDERS, load
from wolo.models.retry import LIMITER_VARIABLE
from wolo.workspace.root import find_site

if TYPE_CHECKING:
    from ray import ObjectRef

T = TypeVar("T")
_CONNECT_S, _INIT_S = 10.0, 30.0
_LOOK_S, _PREPARE_S = 20.0, 60.0
"""For the answers of nodes to who they are; with what follows from them."""
_PROBE_S = 2.0
_HEAD_S = 15.0
"""A head that restarts takes less; Ray itself waits for one without end."""
_LEAVE_S = 10.0
_NOT_FORWARDED = ("WOLO_HOME", places.DATA_VARIABLE, LIMITER_VARIABLE)
"""These name places on this machine."""


class RayEngine:
    name = "ray"

    def __init__(self, folder: RunFolder, settings: AgentSettings, address: str) -> None:
        """Connects to a running cluster; `address` as for `ray.init`. Raises UsageError."""
        os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")  # else `uv run` restarts in each worker
        try:
            import ray  # noqa: PLC0415  # an extra
        except ModuleNotFoundError:
            hint = "pip install 'wolo-cli[fleet]', or run `wolo batch work` on each machine."
            raise UsageError("The engine ray needs the package ray.", hint=hint) from None
        self._ray, self._address = ray, address
        self._connect()
        # Model and mode, the variables of wolo and the keys of providers; the rest of settings and environment is the node's
        config = layers.load(find_site(), {}, settings.sets)
        environ = keys.with_stored_keys(find_site(), config)
        with suppress(ConfigError):  # each task names its model
            settings = replace(settings, model=choose(config, environ, named=settings.model).label)
        self._folder, self._settings = folder, replace(settings, mode=settings.mode or config.settings.mode)
        self._runner = AttemptRunner(folder, settings, self.name)
        """Reads the repositories that nodes lack."""
        names = {name for provider in PROVIDERS for name in load(provider, environ=environ).key_env}
        names |= {name for name in environ if name.startswith("WOLO_")}
        self._environment = {name: environ[name] for name in names - {*_NOT_FORWARDED} if name in environ}
        self._placed: set[ObjectRef[bytes]] = set()
        self._sources: dict[tuple[str, str], ObjectRef[bytes]] = {}
        """Packed folders that nodes lack, in Ray's object store."""
        self._limiter = ""
        self._limits: LimitAddress | None = None
        self._listening = AsyncExitStack()
        self._beginning = asyncio.Lock()
        self._is_prepared = False
        self._watching: asyncio.Task[None] | None = None
        """Ends when the head is lost."""

    def _connect(self, **options: Any) -> None:
        """Raises UsageError. May block."""
        name = self._address or "auto"
        try:
            host, _, port = self._address.rpartition(":")
            if port.isdecimal() and "/" not in host:  # Ray looks for a head that is gone for many minutes
                socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S).close()
            _start(
                lambda: self._ray.init(
                    address=name, namespace="wolo", log_to_driver=False, logging_level=logging.ERROR, **options
                )
            ).result(_INIT_S)
        except (OSError, ValueError, RuntimeError, ImportError) as error:
            if isinstance(error, TimeoutError):
                self._leave(UsageError.exit_code)
            said = str(error).splitlines()[0] if str(error) else f"no answer in {_INIT_S:g} s"
            hint = "`ray start --head` begins a cluster; run wolo on one of its nodes."
            if isinstance(error, ImportError):
                said, hint = f"{error.name or 'a package'} is missing", "pip install 'ray[client]' is for addresses ray://…"
            raise UsageError(f"Cannot connect to a Ray cluster at {name}: {said}", hint=hint) from error

    def limit_by(self, path: str) -> None:
        self._limiter = path

    async def place(self, lease: Lease, allowance: Allowance, view: AttemptView) -> AttemptOutcome:
        started, task = utc_now(), lease.task
        async with self._beginning:
            if not self._is_prepared:
                await self._prepare()
        resources = task.resources
        if said := await self._unless_lost(_in_thread(lambda: self._unplaceable(resources.cpus or 1.0, resources.memory_mb))):
            return _end("errored", "resources", said, started)
        view.phase = "on the cluster"
        try:
            returned = await self._run(lease, allowance)
            if returned.lacks_source:
                if failure := await self._store_source(task):
                    return _end("errored", failure.kind, failure.message, started)
                returned = await self._run(lease, allowance)
        except self._ray.exceptions.RayError as error:
            return self._lose(error, started)
        if returned.outcome is None:
            raise WoloError(f"A node of the cluster cannot run attempts: {returned.refusal}.")
        try:
            await asyncio.to_thread(unpack, returned.archive, self._folder.path / lease.folder)
        except tarfile.TarError as error:
            return _end("lost", "archive", f"The attempt's folder came back damaged: {error}.", started, retryable=True)
        return returned.outcome

    async def _prepare(self) -> None:
        """Gives wolo to the nodes where one has none, and opens the shared limits to them."""
        try:
            async with asyncio.timeout(_PREPARE_S):
                await _in_thread(self._equip_nodes)  # it connects again, which nothing else may meet
        except TimeoutError:
            raise self._lost_head(_PREPARE_S) from None
        if self._limiter:
            host = self._ray.util.get_node_ip_address()
            self._limits = await self._listening.enter_async_context(at_coordinator(self._limiter, host))
        self._is_prepared = True

    def _equip_nodes(self) -> None:
        """Raises WoloError. May block."""

        def version() -> str:  # not of this module, which a node may not have
            try:
                from wolo import __version__  # noqa: PLC0415  # of the node
            except ImportError:
                return ""
            return __version__

        strategy = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        nodes = [node["NodeID"] for node in self._ray.nodes() if node["Alive"]]
        asking = self._ray.remote(version)
        asked = [
            asking.options(num_cpus=0, max_retries=0, scheduling_strategy=strategy(each, soft=False)).remote() for each in nodes
        ]
        answered, _ = self._ray.wait(asked, num_returns=len(asked), timeout=_LOOK_S)
        versions = set()
        for each in answered:
            with suppress(self._ray.exceptions.RayError):  # the node has gone
                versions.add(self._ray.get(each))
        if versions <= {__version__}:
            return
        with tempfile.TemporaryDirectory(prefix="wolo-") as folder:
            wheel = build_wheel(Path(folder))
            self._ray.shutdown()
            self._connect(runtime_env={"py_modules": [str(wheel)]})

    async def _store_source(self, task: BatchTask) -> Failure | None:
        """The reason why it cannot be sent to nodes."""
        async with self._beginning:
            if (key := (task.repo, task.ref)) not in self._sources:
                try:
                    packed = await pack_source(task, self._runner)
                except WoloError as error:
                    return Failure(error.kind, error.message)
                self._sources[key] = await self._unless_lost(_in_thread(lambda: self._ray.put(packed)))
        return None

    async def _run(self, lease: Lease, allowance: Allowance) -> ReturnedAttempt:
        """A cancellation ends it. Raises RayError."""
        placed = await self._unless_lost(_in_thread(lambda: self._send(lease, allowance)))
        try:
            return msgspec.json.decode(await self._unless_lost(placed), type=ReturnedAttempt)
        except asyncio.CancelledError:
            await self._withdraw(placed)
            raise
        finally:
            self._placed.discard(placed)

    def _send(self, lease: Lease, allowance: Allowance) -> ObjectRef[bytes]:
        resources = lease.task.resources
        task = self._ray.remote(run_attempt).options(
            name=f"wolo {lease.task.id}",
            num_cpus=resources.cpus or 1.0,
            memory=resources.memory_mb * 1_000_000 if resources.memory_mb else None,
            max_retries=0,
            scheduling_strategy="SPREAD",
        )
        env = {name: os.environ[name] for name in (*lease.task.env, *lease.task.setup_env) if name in os.environ}
        placed = task.remote(
            msgspec.json.encode(
                SentAttempt(
                    version=__version__,
                    lease=lease,
                    settings=self._settings,
                    allowance=allowance,
                    environment={**self._environment, **env},
                    limits=self._limits,
                )
            ),
            [packed] if (packed := self._sources.get((lease.task.repo, lease.task.ref))) else [],
        )
        self._placed.add(placed)
        return placed

    async def close(self) -> None:
        self._runner.close()
        await self._listening.aclose()
        await self._withdraw(*self._placed)
        if not (await asyncio.wait([_in_thread(self._ray.shutdown)], timeout=_LEAVE_S))[0]:
            self._leave(WoloError.exit_code)
        if self._watching is not None:
            self._watching.cancel()

    def _leave(self, exit_code: int) -> None:
        """Has the process end without Ray's destructors, which crash while one of its calls does not return."""

        def end() -> None:
            atexit.unregister(end)
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(exit_code)

        atexit.unregister(self._ray.shutdown)  # it would be such a call
        atexit.register(end)

    async def _withdraw(self, *placed: ObjectRef[bytes]) -> None:
        if placed and not (self._watching is not None and self._watching.done()):
            await asyncio.wait([_in_thread(lambda: [self._ray.cancel(each, force=True) for each in placed])], timeout=_LEAVE_S)

    async def _unless_lost(self, awaitable: Awaitable[T]) -> T:
        """Raises WoloError when the head of the cluster has gone; Ray itself would wait for it."""
        self._watching = self._watching or asyncio.create_task(self._watch())
        waiting = asyncio.ensure_future(awaitable)
        try:
            await asyncio.wait((waiting, self._watching), return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                return await waiting
        finally:
            waiting.cancel()
        raise self._lost_head(_HEAD_S)

    def _lost_head(self, silent_s: float) -> WoloError:
        return WoloError(
            f"The head of the Ray cluster at {self._address or 'auto'} has not answered for {silent_s:g} s.",
            hint="`wolo batch resume RUN --engine ray --ray-address HOST:PORT` goes on in another cluster, "
            "`--engine local` on this machine.",
        )

    async def _watch(self) -> None:
        """Returns when the head does not answer any more: a process that was stopped still accepts connections."""
        time = asyncio.get_running_loop().time
        answered_at = time()
        while time() - answered_at < _HEAD_S:
            asked = _in_thread(self._ray.nodes)
            await asyncio.wait([asked], timeout=_HEAD_S)
            if not asked.done():
                asked.cancel()
            elif asked.exception() is None:
                answered_at = time()
            await asyncio.sleep(_PROBE_S)

    def _unplaceable(self, cpus: float, memory_mb: int | None) -> str:
        """The reason why no node could ever run it; Ray would wait for one without end."""
        nodes: list[Mapping[str, Any]] = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        memory = (memory_mb or 0) * 1_000_000
        if any(node.get("CPU", 0.0) >= cpus and node.get("memory", 0.0) >= memory for node in nodes):
            return ""
        wanted = f"{cpus:g} CPUs" + (f" and {memory_mb:,} MB" if memory_mb else "")
        return f"No node of the cluster has {wanted}."

    def _lose(self, error: Exception, started: str) -> AttemptOutcome:
        if isinstance(error, self._ray.exceptions.OutOfMemoryError):
            return _end("errored", "memory", "The node ran out of memory.", started, retryable=True)
        if isinstance(error, self._ray.exceptions.RuntimeEnvSetupError):
            last = (str(error).strip().splitlines() or ["no reason given"])[-1]
            hint = f"Install wolo {__version__} on each node, or give the nodes pip and a package index."
            raise WoloError(f"A node of the cluster cannot install wolo: {last}", hint=hint)
        if isinstance(error, self._ray.exceptions.RayTaskError):
            if isinstance(error.cause, ImportError) or "failed to import on the worker" in str(error.cause):
                hint = "`wolo batch resume RUN` gives it to the nodes that are there then."
                raise WoloError("A node that joined the cluster later has no wolo.", hint=hint)
            return _end("lost", "worker", f"{type(error.cause).__name__}: {error.cause}", started, retryable=True)
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        return _end("lost", "cluster", said, started, retryable=True)


def _end(state: Ended, kind: str, message: str, started: str, *, retryable: bool = False) -> AttemptOutcome:
    return AttemptOutcome(
        state=state,
        started=started,
        ended=utc_now(),
        host=socket.gethostname(),
        engine=RayEngine.name,
        error=Failure(kind, message),
        retryable=retryable,
    )


def _in_thread(call: Callable[[], T]) -> asyncio.Future[T]:
    return asyncio.wrap_future(_start(call))


def _start(call: Callable[[], T]) -> Future[T]:
    """In a thread that nothing waits for at the end: without a head, some of Ray's calls never return."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # for whoever waits
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return future
