"""The engine of a Ray cluster: each attempt is a Ray task, and the ledger decides about repeating it."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import socket
import tarfile
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from contextlib import AsyncExitStack
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from wolo import __version__, places
from wolo.config import keys, layers
from wolo.errors import UsageError, WoloError
from wolo.fleet.agent_run import AgentSettings, Allowance
from wolo.fleet.attempts import AttemptView, now
from wolo.fleet.engines.limit_relay import LimitAddress, at_coordinator
from wolo.fleet.engines.ray_worker import ReturnedAttempt, SentAttempt, run_attempt, unpack
from wolo.fleet.ledger.outcomes import AttemptOutcome, Ended, Failure, Lease
from wolo.fleet.run_folder import RunFolder
from wolo.models.catalog_files import PROVIDERS, load
from wolo.models.retry import LIMITER_VARIABLE
from wolo.workspace.root import find_site

if TYPE_CHECKING:
    from ray import ObjectRef

T = TypeVar("T")
_CONNECT_S = 10.0
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
        try:
            host, _, port = address.rpartition(":")
            if port.isdecimal() and "/" not in host:  # Ray looks for a head that is gone for many minutes
                socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S).close()
            ray.init(address=address or "auto", namespace="wolo", log_to_driver=False, logging_level=logging.ERROR)
        except (OSError, ValueError, RuntimeError) as error:
            said = str(error).splitlines()[0] if str(error) else type(error).__name__
            hint = "`ray start --head` begins a cluster; run wolo on one of its nodes."
            raise UsageError(f"Cannot connect to a Ray cluster at {address or 'auto'}: {said}", hint=hint) from error
        self._ray = ray
        self._folder, self._settings = folder, settings
        # The variables of wolo and the keys of providers; the rest of the environment is the node's
        environ = keys.with_stored_keys(find_site(), layers.load(find_site(), {}, settings.sets))
        names = {name for provider in PROVIDERS for name in load(provider, environ=environ).key_env}
        names |= {name for name in environ if name.startswith("WOLO_")}
        self._environment = {name: environ[name] for name in names - {*_NOT_FORWARDED} if name in environ}
        self._placed: set[ObjectRef[bytes]] = set()
        self._limiter = ""
        self._limits: LimitAddress | None = None
        self._listening = AsyncExitStack()
        self._beginning = asyncio.Lock()
        self._head: str = ray.get_runtime_context().gcs_address
        self._watching: asyncio.Task[None] | None = None
        """Ends when the head is lost."""

    def limit_by(self, path: str) -> None:
        self._limiter = path

    async def place(self, lease: Lease, allowance: Allowance, view: AttemptView) -> AttemptOutcome:
        started = now()
        resources = lease.task.resources
        if said := await self._unless_lost(_in_thread(lambda: self._unplaceable(resources.cpus or 1.0, resources.memory_mb))):
            return _end("errored", "resources", said, started)
        # Opens the shared limits to the nodes, once.
        async with self._beginning:
            if self._limiter and self._limits is None:
                host = self._ray.util.get_node_ip_address()
                self._limits = await self._listening.enter_async_context(at_coordinator(self._limiter, host))
        view.phase = "on the cluster"
        placed = await self._unless_lost(_in_thread(lambda: self._send(lease, allowance)))
        try:
            returned = msgspec.json.decode(await self._unless_lost(placed), type=ReturnedAttempt)
        except asyncio.CancelledError:
            await self._withdraw(placed)
            raise
        except self._ray.exceptions.RayError as error:
            return self._lose(error, started)
        finally:
            self._placed.discard(placed)
        if returned.outcome is None:
            raise WoloError(f"A node of the cluster cannot run attempts: {returned.refusal}.")
        try:
            await asyncio.to_thread(unpack, returned.archive, self._folder.path / lease.folder)
        except tarfile.TarError as error:
            return _end("lost", "archive", f"The attempt's folder came back damaged: {error}.", started, retryable=True)
        return returned.outcome

    def _send(self, lease: Lease, allowance: Allowance) -> ObjectRef[bytes]:
        resources = lease.task.resources
        task = self._ray.remote(run_attempt).options(
            name=f"wolo {lease.task.id}",
            num_cpus=resources.cpus or 1.0,
            memory=resources.memory_mb * 1_000_000 if resources.memory_mb else None,
            max_retries=0,
            scheduling_strategy="SPREAD",
        )
        env = {name: os.environ[name] for name in lease.task.env if name in os.environ}
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
            )
        )
        self._placed.add(placed)
        return placed

    async def close(self) -> None:
        await self._listening.aclose()
        await self._withdraw(*self._placed)
        atexit.unregister(self._ray.shutdown)  # this is it, and it may never return
        await asyncio.wait([_in_thread(self._ray.shutdown)], timeout=_LEAVE_S)
        if self._watching is not None:
            self._watching.cancel()

    async def _withdraw(self, *placed: ObjectRef[bytes]) -> None:
        if placed and not self._is_lost:
            await asyncio.wait([_in_thread(lambda: [self._ray.cancel(each, force=True) for each in placed])], timeout=_LEAVE_S)

    @property
    def _is_lost(self) -> bool:
        return self._watching is not None and self._watching.done()

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
        raise WoloError(
            f"The head of the Ray cluster at {self._head} has not answered for {_HEAD_S:g} s.",
            hint="`wolo batch resume RUN --engine ray --ray-address HOST:PORT` goes on in another cluster, "
            "`--engine local` on this machine.",
        )

    async def _watch(self) -> None:
        """Returns when nothing listens at the address of the head any more."""
        host, _, port = self._head.rpartition(":")
        time = asyncio.get_running_loop().time
        answered_at = time()
        while True:
            try:
                async with asyncio.timeout(_CONNECT_S):
                    _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
                writer.close()
                answered_at = time()
            except OSError:
                if time() - answered_at >= _HEAD_S:
                    return
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
        if isinstance(error, self._ray.exceptions.RayTaskError):
            if isinstance(error.cause, ModuleNotFoundError):
                raise WoloError(f"A node of the cluster lacks a package: {error.cause.name}.", hint="Install wolo on each node.")
            return _end("lost", "worker", f"{type(error.cause).__name__}: {error.cause}", started, retryable=True)
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        return _end("lost", "cluster", said, started, retryable=True)


def _end(state: Ended, kind: str, message: str, started: str, *, retryable: bool = False) -> AttemptOutcome:
    return AttemptOutcome(
        state=state,
        started=started,
        ended=now(),
        host=socket.gethostname(),
        engine=RayEngine.name,
        error=Failure(kind, message),
        retryable=retryable,
    )


def _in_thread(call: Callable[[], T]) -> asyncio.Future[T]:
    """In a thread that nothing waits for at the end: without a head, some of Ray's calls never return."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # for whoever waits
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return asyncio.wrap_future(future)
