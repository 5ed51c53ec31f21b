"""The engine of a Ray cluster: each attempt is a Ray task, and the ledger decides about repeating it."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import tarfile
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import msgspec

from wolo import __version__
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
from wolo.places import DATA_VARIABLE
from wolo.workspace.root import find_site

if TYPE_CHECKING:
    from ray import ObjectRef

_CONNECT_S = 10.0
_NOT_FORWARDED = ("WOLO_HOME", DATA_VARIABLE, LIMITER_VARIABLE)
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

    def limit_by(self, path: str) -> None:
        self._limiter = path

    async def place(self, lease: Lease, allowance: Allowance, view: AttemptView) -> AttemptOutcome:
        started = now()
        resources = lease.task.resources
        if said := self._unplaceable(resources.cpus or 1.0, resources.memory_mb):
            return _end("errored", "resources", said, started)
        task = self._ray.remote(run_attempt).options(
            name=f"wolo {lease.task.id}",
            num_cpus=resources.cpus or 1.0,
            memory=resources.memory_mb * 1_000_000 if resources.memory_mb else None,
            max_retries=0,
            scheduling_strategy="SPREAD",
        )
        # Opens the shared limits to the nodes, once.
        async with self._beginning:
            if self._limiter and self._limits is None:
                host = self._ray.util.get_node_ip_address()
                self._limits = await self._listening.enter_async_context(at_coordinator(self._limiter, host))
        view.phase = "on the cluster"
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
        try:
            returned = msgspec.json.decode(await placed, type=ReturnedAttempt)
        except asyncio.CancelledError:
            self._ray.cancel(placed, force=True)
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

    async def close(self) -> None:
        for placed in self._placed:
            self._ray.cancel(placed, force=True)
        await self._listening.aclose()
        self._ray.shutdown()

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
