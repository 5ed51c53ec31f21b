"""Runs one attempt at a task: worktree, setup, agent, patch, verify."""

from __future__ import annotations

import asyncio
import errno
import secrets
import socket
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import IO

from msgspec.structs import replace

from wolo import __version__, places
from wolo.errors import UsageError, WoloError
from wolo.fleet.agent_run import AgentEnd, AgentSettings, AgentStream, Allowance, agent_argv, agent_environment, end_of, totals_of
from wolo.fleet.bounded_programs import run_bounded
from wolo.fleet.containers import ContainerEngine, ContainerFailed, find_engine
from wolo.fleet.evaluation.grading import PatchUnfit, grade, is_hidden, judgement, verify_hash
from wolo.fleet.ledger.hosts import utc_now
from wolo.fleet.ledger.outcomes import AttemptOutcome, Failure, Lease, Patch, Provenance, Spent, VerifyResult, place_in
from wolo.fleet.mirrors import Mirrors
from wolo.fleet.preflight import ModelCheck
from wolo.fleet.run_folder import RunFolder, work_name
from wolo.fleet.task_commands import CommandEnd
from wolo.fleet.task_file import check_saved
from wolo.fleet.task_place import PlaceTools, SetupFailed, TaskPlace
from wolo.fleet.worktree_pool import WorktreePool
from wolo.fleet.worktrees import make_patch
from wolo.workspace.directory_copy import remove_tree
from wolo.workspace.git import Git, GitFailed
from wolo.workspace.processes.process_runner import ChildProcess, Processes, ProgramStart
from wolo.workspace.processes.process_tree import end_leftovers

PATCH, LOG, STREAM, VERIFY_LOG, SESSION = "patch.diff", "log", "stream.jsonl", "verify.log", "session"
_TAIL_CHARS = 4000
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class AttemptView:
    """Visible state of a running attempt; tables and heartbeats read it at any time."""

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self.phase = "starting"
        self.stream: AgentStream | None = None

    @property
    def spent(self) -> Spent:
        return self.stream.spent if self.stream else Spent()

    def follow(self) -> None:
        if self.stream is not None:
            self.stream.follow()


class _Stopped(Exception):
    """The attempt ends here."""

    def __init__(self, end: AgentEnd) -> None:
        super().__init__(end.state)
        self.end = end


class AttemptRunner:
    """Runs the attempts of one process, several at a time."""

    def __init__(self, folder: RunFolder, settings: AgentSettings, engine: str) -> None:
        self.folder = folder
        self.settings = settings
        self.engine = engine
        self.limiter = ""
        """Socket of the limits that all workers share."""
        self.places = places.find_places()
        self.processes = Processes(self.places.state / "commands")
        self.git = Git(self.processes)
        self.mirrors = Mirrors(folder.mirrors, self.git, self.places)
        self.pool = WorktreePool(folder, self.git)
        self.prepare_agent: Callable[[], None] = lambda: None
        self.spawn: Callable[..., ChildProcess] | None = None
        """Starts agents outside of containers, as `Popen` does; the first is called before each."""
        self._engine: ContainerEngine | None = None
        self._lock = Lock()

    async def run(self, lease: Lease, allowance: Allowance, view: AttemptView) -> AttemptOutcome:
        """Ends with the attempt's folder in place. Raises OSError when the disk of the run's folder is full.

        A cancellation ends everything the attempt has started, leaves its log and session in place, and is passed on.
        """
        place = place_in(self.folder.path, lease.folder)
        private = place.with_name(f".{place.name}.part")
        work = self.folder.work(work_name(lease))
        await asyncio.to_thread(_begin, private)
        attempt = _Attempt(self, lease, private, work, allowance, view)
        try:
            outcome = await attempt.run()
        finally:
            await asyncio.shield(asyncio.to_thread(attempt.close))
            await asyncio.shield(attempt.place.give_back(is_ended=attempt.is_ended))
            await asyncio.shield(asyncio.to_thread(_finish, private, place, work))
        return outcome

    @property
    def place_tools(self) -> PlaceTools:
        own = self.settings, self.mirrors, self.folder.mirrors, self.pool, self.git, self.places, self.processes
        return PlaceTools(*own, self.find_engine)

    def require_engine(self) -> None:
        """Call before the first task in an image. Raises UsageError where no engine answers. May block."""
        try:
            self.find_engine()
        except ContainerFailed as error:
            raise UsageError(f"No task was started. {error.message}", hint=error.hint) from error

    def find_engine(self) -> ContainerEngine:
        """Raises ContainerFailed. May block."""
        with self._lock:
            if self._engine is None:
                self._engine = find_engine(ModelCheck(self.settings).batch, self.places)
        return self._engine

    def close(self) -> None:
        self.processes.close_all()
        self.pool.close()


class _Attempt:
    def __init__(
        self, runner: AttemptRunner, lease: Lease, private: Path, work: Path, allowance: Allowance, view: AttemptView
    ) -> None:
        self._runner, self._lease, self._private, self._work = runner, lease, private, work
        self._task, self._allowance, self._view = lease.task, allowance, view
        self._log = (private / LOG).open("ab", buffering=0)
        self._started = utc_now()
        self.place = TaskPlace(lease.task, work, runner.place_tools, self._note, seat=lease.fence, begin_phase=self._begin_phase)
        self.is_ended = False
        self._graded: CommandEnd | None = None
        self._exit_code: int | None = None
        self._usage = Spent()
        self._session_id = ""
        self._image_digest = ""

    async def run(self) -> AttemptOutcome:
        loop, seconds = asyncio.get_running_loop(), self._task.budget.seconds
        deadline = None if seconds is None else loop.time() + seconds
        patch: Patch | None = None
        try:
            async with asyncio.timeout_at(deadline):
                await self._prepare()
            end = await self._agent(deadline)
            patch = await self._patch()
            if deadline is not None and self._view.stream is not None:
                deadline += self._view.stream.slept_s
            if self._task.verify and end.state == "done":
                async with asyncio.timeout_at(deadline):
                    end = await self._verify(patch)
            elif end.failure is not None and end.state == "done":
                end = AgentEnd("failed", end.failure)
        except _Stopped as stopped:
            end = stopped.end
        except TimeoutError:
            end = self._too_slow()
        except WoloError as error:
            end = AgentEnd("errored", Failure(error.kind, " ".join(filter(None, (error.message, error.hint)))))
        except OSError as error:
            if error.errno in _DISK_FULL:
                raise
            end = AgentEnd("errored", Failure("system", f"{error.filename or 'The attempt'}: {error.strerror}"))
        self.is_ended = True
        if end.failure is not None:
            self._note(f"{end.state}: {end.failure.message}")
        return AttemptOutcome(
            state=end.state,
            exit_code=self._exit_code,
            session_id=self._session_id,
            patch=patch,
            verify=_verify_result(self._graded) if self._graded else None,
            usage=self._usage,
            started=self._started,
            ended=utc_now(),
            host=socket.gethostname(),
            engine=self._runner.engine,
            error=end.failure,
            provenance=self._provenance(),
            retryable=end.retryable,
        )

    def _provenance(self) -> Provenance:
        stream = self._view.stream
        return Provenance(
            model=self._task.model or self._runner.settings.model or (stream.model if stream else ""),
            model_resolved=stream.model_resolved or None if stream else None,
            thinking=stream.thinking or None if stream else None,
            wolo_version=__version__,
            prefix_hash=stream.prefix_hash or None if stream else None,
            image_digest=self._image_digest or None,
            verify_hash=verify_hash(self._task),
            sandbox=self._graded.sandbox if self._graded else self.place.sandbox,
        )

    async def _prepare(self) -> None:
        check_saved(self._task)
        places.make_private(session := self._private / SESSION)
        limiter = (Path(self._runner.limiter),) if self._runner.limiter else ()
        try:
            await self.place.prepare(writable=(session,), readable=limiter)
        except SetupFailed as error:
            raise _Stopped(AgentEnd("errored", Failure(error.kind, error.message), retryable=error.is_for_memory)) from error

    def _begin_phase(self, name: str) -> None:
        self._view.phase = name

    async def _agent(self, deadline_at: float | None) -> AgentEnd:
        container, folder = self.place.container, self.place.worktree.folder
        self._begin_phase("agent")
        stream_file, data = self._private / STREAM, self._private / SESSION
        self._view.stream = stream = AgentStream(stream_file)
        argv = agent_argv(self._task, self._runner.settings, self._allowance, self.place.commands.variables)
        if container is not None:
            await asyncio.to_thread(container.enter, network=True)
            argv = [*await asyncio.to_thread(container.agent_argv, argv)]
        self._runner.prepare_agent()
        left = None if deadline_at is None else max(deadline_at - asyncio.get_running_loop().time(), 0.0)
        with stream_file.open("wb") as output, _prompt_file(self._private, self._task.prompt) as prompt:
            start = ProgramStart(
                argv=argv,
                cwd=folder,
                env=agent_environment(data, self._runner.limiter),
                stdin=prompt.fileno(),
                stdout=output.fileno(),
            )
            ended = await run_bounded(
                self._runner.processes,
                start,
                self._write,
                timeout_s=left,
                resources=self._task.resources,
                seat=self._lease.fence,
                slept_s=stream.read_slept_s,
                spawn=self._runner.spawn if container is None else None,
            )
        stream.follow()
        result = stream.result()
        self._session_id = stream.session_id
        self._usage = totals_of(result) if result else stream.spent
        if container is not None:
            self._image_digest = await asyncio.to_thread(container.image_digest)
            if ended.exit_code and await asyncio.to_thread(container.ran_out_of_memory):
                ended = replace(ended, how="memory")
            await asyncio.to_thread(container.leave)
        if ended.how == "timed_out":
            self._exit_code = None
            return self._too_slow()
        self._exit_code = ended.exit_code if ended.exit_code >= 0 else None
        if ended.exit_code < 0:  # its commands could not be ended by itself
            await asyncio.to_thread(end_leftovers, self._runner.places.state / "commands")
        if ended.how == "memory":
            most = self._task.resources.memory_mb
            return AgentEnd("errored", Failure("memory", f"The agent and its commands used more than {most} MB."), True)
        return end_of(result, ended.exit_code)

    async def _patch(self) -> Patch | None:
        """An attempt whose changes cannot be read has none."""
        self._begin_phase("patch")
        file, path = self._private / PATCH, f"{self._lease.folder}/{PATCH}"
        try:
            return await make_patch(self.place.worktree, file, path, self._runner.git, self._note)
        except GitFailed as error:
            raise _Stopped(AgentEnd("errored", Failure("patch", error.message))) from error

    async def _verify(self, patch: Patch | None) -> AgentEnd:
        """In place, or, where files come after the agent, in a fresh worktree with its patch."""
        self._begin_phase("verify")
        if is_hidden(self._task):
            file = self._private / PATCH if patch else None
            work = self._work / f"verify-{secrets.token_hex(8)}"  # a name that the agent cannot have taken
            tools, seat = self._runner.place_tools, self._lease.fence
            try:
                ended = await grade(self._task, work, file, tools, self._note, seat=seat)
            except SetupFailed as error:
                return AgentEnd("errored", Failure(error.kind, error.message), retryable=error.is_for_memory)
            except PatchUnfit as error:
                return AgentEnd("failed", Failure(error.kind, error.message))
            except GitFailed as error:
                return AgentEnd("errored", Failure("verify", error.message))
        else:
            ended = await self.place.commands.run(self._task.verify, "verify")
        (self._private / VERIFY_LOG).write_text(ended.output, "utf-8", "replace")
        self._graded = ended
        return judgement(ended)

    def _too_slow(self) -> AgentEnd:
        return AgentEnd("timeout", Failure("seconds", f"It took longer than {self._task.budget.seconds:g} s."))

    def _note(self, text: str) -> None:
        if text:
            self._write(text.rstrip("\n").encode("utf-8", "replace") + b"\n")

    def _write(self, data: bytes) -> None:
        self._log.write(data)

    def close(self) -> None:
        self.place.close()
        self._log.close()


def _verify_result(ended: CommandEnd) -> VerifyResult:
    code = None if ended.end.how == "timed_out" else ended.end.exit_code
    return VerifyResult(code, round(ended.end.seconds, 3), ended.output[-_TAIL_CHARS:])


def _prompt_file(folder: Path, prompt: str) -> IO[bytes]:
    """Without a name; it ends with the agent."""
    file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # the caller closes it
    file.write(prompt.encode())
    file.seek(0)
    return file


def _begin(private: Path) -> None:
    remove_tree(private)
    places.make_private(private)


def _finish(private: Path, place: Path, work: Path) -> None:
    """Puts the attempt's folder in its place, without what is of no use after it."""
    remove_tree(private / SESSION / "checkpoints")
    with suppress(OSError):
        private.rename(place)
    if work.exists():
        remove_tree(work)
