"""Runs the collected tests in forked workers: `pytest --workers 5`.

Tests are collected once, and what they import is loaded once, before the workers start.
A worker asks for its next tests before it runs the last of those it has: so what a module or a session shares is kept while it
may still be used. One that dies fails the test that it ran, and another takes its place.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import signal
import sys
import threading
import traceback
from collections import deque
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

import pytest
from _pytest._io import TerminalWriter
from _pytest.assertion import rewrite


def compile_from_the_last(config: pytest.Config) -> int | None:
    """The id of a process that compiles the tests from the last on, while the collection does so from the first.

    Pytest keeps what is compiled, so that it takes long in a fresh checkout only. None where nothing may be kept.
    """
    if sys.dont_write_bytecode:
        return None
    pid = os.fork()
    if pid:
        return pid
    try:
        for file in sorted((config.rootpath / "tests").rglob("test_*.py"), reverse=True):
            kept = rewrite.get_cache_dir(file) / (file.name[: -len(".py")] + rewrite.PYC_TAIL)
            if rewrite._read_pyc(file, kept, lambda _: None) is None:
                kept.parent.mkdir(exist_ok=True)
                status, code = rewrite._rewrite_test(file, config)
                rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, status, kept)
    finally:
        os._exit(0)  # whatever is wrong, the collection reports


MOST_AT_ONCE = 20
"""Tests of one file that a worker is given together; towards the end fewer."""


@dataclass
class _Worker:
    pid: int
    connection: Connection
    unreported: deque[int] = field(default_factory=deque)
    """The numbers of its tests; it runs the first."""


class _ReportSender:
    """The plugin of a worker that takes the place of the terminal."""

    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self._config, self._connection = config, connection
        self._reports: list[dict[str, Any] | None] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._reports.append(self._config.hook.pytest_report_to_serializable(config=self._config, report=report))

    def pytest_runtest_logfinish(self) -> None:
        self._connection.send(self._reports)
        self._reports = []


class Workers:
    def __init__(self, session: pytest.Session, num_workers: int) -> None:
        self._session, self._config, self._num_workers = session, session.config, num_workers
        self._left = deque(range(len(session.items)))
        """The numbers of the tests that no worker has."""
        self._workers: dict[Connection, _Worker] = {}
        self._num_started = 0

    def run(self) -> None:
        assert threading.active_count() == 1, threading.enumerate()
        self._config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # in which each worker makes its own
        gc.collect()
        gc.freeze()
        try:
            while self._left and len(self._workers) < self._num_workers:
                self._start()
            while self._workers:
                for connection in wait(list(self._workers)):
                    self._receive(self._workers[connection])  # type: ignore[index]
        finally:
            for worker in self._workers.values():
                worker.connection.close()
                os.kill(worker.pid, signal.SIGINT)
                os.waitpid(worker.pid, 0)
            gc.unfreeze()

    def _start(self) -> None:
        ours, theirs = Pipe()
        self._num_started += 1
        pid = os.fork()
        if pid == 0:
            for connection in (ours, *self._workers):
                connection.close()
            _run_worker(self._session, theirs, f"worker{self._num_started}")
        theirs.close()
        self._workers[ours] = worker = _Worker(pid, ours)
        self._give(worker)

    def _give(self, worker: _Worker) -> None:
        """Nothing when all tests are given away."""
        most = min(MOST_AT_ONCE, max(1, len(self._left) // (4 * self._num_workers)))
        numbers: list[int] = []
        items = self._session.items
        while self._left and len(numbers) < most and (not numbers or items[self._left[0]].path == items[numbers[0]].path):
            numbers.append(self._left.popleft())
        worker.unreported.extend(numbers)
        with contextlib.suppress(BrokenPipeError):
            worker.connection.send(numbers)

    def _receive(self, worker: _Worker) -> None:
        try:
            reports = worker.connection.recv()
        except (EOFError, ConnectionResetError):
            self._end(worker)
            return
        if reports is None:
            self._give(worker)
        else:
            self._report(worker.unreported.popleft(), reports)

    def _end(self, worker: _Worker) -> None:
        del self._workers[worker.connection]
        worker.connection.close()
        status = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])
        if not worker.unreported:
            return
        number = worker.unreported.popleft()
        item = self._session.items[number]
        said = f"the worker that ran it ended with {status}"
        failure = pytest.TestReport(item.nodeid, item.location, {}, "failed", said, "call")
        self._left.extendleft(reversed(worker.unreported))
        self._report(number, [self._config.hook.pytest_report_to_serializable(config=self._config, report=failure)])
        if self._left:
            self._start()

    def _report(self, number: int, reports: list[dict[str, Any]]) -> None:
        item = self._session.items[number]
        for data in reports:
            item.ihook.pytest_runtest_logreport(
                report=self._config.hook.pytest_report_from_serializable(config=self._config, data=data)
            )
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)
        if self._session.shouldstop:
            raise self._session.Interrupted(self._session.shouldstop)


# A worker


def _run_worker(session: pytest.Session, connection: Connection, name: str) -> None:
    """Never returns."""
    status = 1
    try:
        _become_worker(session.config, connection, name)
        numbers: deque[int] = deque(connection.recv())
        while numbers:
            item = session.items[numbers.popleft()]
            if not numbers:
                connection.send(None)
                numbers.extend(connection.recv())
            next_item = session.items[numbers[0]] if numbers else None
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=next_item)
        status = 0
    except (EOFError, ConnectionError, KeyboardInterrupt):
        session._setupstate.teardown_exact(None)
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        os._exit(status)


def _become_worker(config: pytest.Config, connection: Connection, name: str) -> None:
    capture = config.pluginmanager.get_plugin("capturemanager")
    capture.stop_global_capturing()  # whose files are those of the process that it is forked from
    capture.start_global_capturing()
    capture.suspend_global_capture()
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    terminal._tw = TerminalWriter(open(os.devnull, "w"))  # noqa: SIM115  # pytest-timeout writes to it
    config.pluginmanager.register(_ReportSender(config, connection))
    folders = config._tmp_path_factory  # type: ignore[attr-defined]
    atexit.unregister(folders._exit_stack.close)
    folders._basetemp = folders.getbasetemp() / name
    folders._basetemp.mkdir(mode=0o700)
