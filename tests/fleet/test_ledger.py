"""What every ledger promises, whichever database holds it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.fleet.clocks import TestHost, leased, outcome, results, tasks
from wolo.fleet.ledger.ledger import Ledger
from wolo.fleet.ledger.ledger_folder import create_ledger, has_ledger, open_ledger
from wolo.fleet.ledger.ledger_store import LedgerError
from wolo.fleet.ledger.outcomes import AttemptOutcome, Failure, Lease, Patch, Spent, VerifyResult
from wolo.fleet.ledger.run_rows import Added, Meta


def test_tasks_lease_in_order_and_results_write_once(ledger: Ledger, host: TestHost, run: Path) -> None:
    assert ledger.add(tasks("a", "b")) == Added(2, 0, 0)
    first, second = leased(ledger, host.owner()), leased(ledger, host.owner())
    assert ledger.lease(host.owner()) is None
    assert (first.task.id, first.attempt, second.task.id) == ("a", 1, "b")
    assert second.fence > first.fence
    whole = outcome(
        session_id="s",
        exit_code=0,
        patch=Patch("p", "0", 3, 1),
        verify=VerifyResult(0, 1.0, "ok"),
        usage=Spent(input_tokens=7, output_tokens=3, cost_usd=0.5),
    )
    assert ledger.publish(second, whole)
    assert not ledger.is_finished()
    assert ledger.publish(first, outcome("failed"))
    assert ledger.publish(first, outcome("failed"))  # as after an answer that was lost
    line = results(run)[0]
    assert list(line) == [
        *("id", "try", "key", "attempt", "state", "session_id", "exit_code", "patch", "verify", "usage", "cost_usd"),
        *("started", "ended", "host", "engine", "error"),
        *("model", "model_resolved", "thinking", "wolo_version", "prefix_hash", "image_digest", "verify_hash", "sandbox"),
    ]
    assert [(line["id"], line["state"]) for line in results(run)] == [("b", "passed"), ("a", "failed")]
    assert ledger.is_finished()
    assert ledger.counts() == {"passed": 1, "failed": 1}
    assert (ledger.totals().tokens, ledger.totals().cost_usd) == (10, 0.5)
    assert ledger.rows(["passed"])[0].outcome == whole
    ledger.complete_files()
    assert json.loads((run / "summary.json").read_text())["states"] == {"failed": 1, "passed": 1}


def test_known_tasks_stay_and_changed_ones_requeue(ledger: Ledger, host: TestHost, run: Path) -> None:
    ledger.add(tasks("a", "b"))
    ledger.publish(leased(ledger, host.owner()), outcome())
    assert ledger.add(tasks("a", "b", "c")) == Added(1, 2, 0)
    assert ledger.counts() == {"passed": 1, "queued": 2}
    assert ledger.add(tasks("a", prompt="other")) == Added(0, 0, 1)
    lease = leased(ledger, host.owner())
    assert (lease.task.prompt, lease.attempt) == ("other", 2)
    with pytest.raises(LedgerError, match="while it runs"):
        ledger.add(tasks("a", prompt="third"))
    ledger.publish(lease, outcome())
    assert [line["key"] for line in results(run)] == ["go-a", "other-a"]


def test_zombie_cannot_publish_and_its_heartbeat_says_so(ledger: Ledger, host: TestHost, run: Path) -> None:
    ledger.add(tasks("a"))
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        zombie = leased(ledger, host.owner(process.pid))
        assert ledger.expire() == 0
        process.kill()
    assert ledger.expire() == 1  # dead on this machine: at once
    again = leased(ledger, host.owner())
    assert (again.attempt, ledger.heartbeat(again), ledger.heartbeat(zombie)) == (2, "held", "lost")
    assert not ledger.publish(zombie, outcome("failed"))
    assert ledger.publish(again, outcome())
    assert not ledger.publish(zombie, outcome("failed"))
    assert [(line["attempt"], line["state"]) for line in results(run)] == [(2, "passed")]
    assert ledger.attempts() == {"lost": 1, "passed": 1}


def test_infrastructure_is_retried_twice_and_failures_never(ledger: Ledger, host: TestHost, run: Path) -> None:
    ledger.add(tasks("a", "b"))
    broken = outcome("errored", retryable=True, error=Failure("unavailable", "no answer"))
    for expected in ("a", "b"):
        lease = leased(ledger, host.owner())
        assert lease.task.id == expected  # a repeated one comes after those that never ran
        assert ledger.publish(lease, broken if expected == "a" else outcome("failed", retryable=True))
    for attempt in (2, 3):
        lease = leased(ledger, host.owner())
        assert (lease.task.id, lease.attempt) == ("a", attempt)
        ledger.publish(lease, broken)
    assert ledger.lease(host.owner()) is None
    assert [(line["id"], line["attempt"]) for line in results(run)] == [("b", 1), ("a", 3)]
    assert ledger.retry(["errored"]) == 1
    ledger.publish(leased(ledger, host.owner()), outcome())
    assert [(line["id"], line["attempt"], line["state"]) for line in results(run)][-1] == ("a", 4, "passed")


def test_run_budget_leaves_the_rest_queued(run: Path, store: str, host: TestHost) -> None:
    ledger = create_ledger(run, Meta(version="1", max_tokens=100), store, host)
    ledger.add(tasks("a", "b", "c"))
    first, second = leased(ledger, host.owner()), leased(ledger, host.owner())
    assert ledger.heartbeat(first, Spent(input_tokens=60)) == "held"
    assert ledger.heartbeat(second, Spent(input_tokens=40)) == "budget"
    assert ledger.is_held()
    assert ledger.lease(host.owner()) is None
    assert ledger.publish(first, outcome(usage=Spent(input_tokens=60, output_tokens=5)))
    assert ledger.totals().tokens == 105
    ledger.limit(max_cost_usd=None, max_tokens=1000)
    assert leased(ledger, host.owner()).task.id == "c"
    ledger.close()


def test_cancelling_ends_what_waits_and_tells_what_runs(ledger: Ledger, host: TestHost, run: Path) -> None:
    ledger.add(tasks("a", "b", "c", "d"))
    first = leased(ledger, host.owner())
    assert ledger.cancel(["c"]) == 1
    assert ledger.heartbeat(first) == "held"
    assert ledger.cancel() == 3
    assert ledger.heartbeat(first, note="last line\0") == "cancelled"
    assert ledger.publish(first, outcome("cancelled"))
    assert ledger.counts() == {"cancelled": 4}
    assert [line["id"] for line in results(run)] == ["c", "b", "d", "a"]
    assert ledger.rows(task_id="a")[0].note == "last line"


def test_an_attempt_that_was_not_begun_goes_back(ledger: Ledger, host: TestHost) -> None:
    ledger.add(tasks("a"))
    lease = leased(ledger, host.owner())
    ledger.release(lease)
    again = leased(ledger, host.owner())
    assert (again.attempt, again.fence > lease.fence, ledger.heartbeat(lease)) == (1, True, "lost")


def test_torn_missing_or_foreign_results_end_is_rewritten(ledger: Ledger, host: TestHost, run: Path) -> None:
    ledger.add(tasks("a", "b", "c"))
    for _ in range(2):
        ledger.publish(leased(ledger, host.owner()), outcome())
    whole = (run / "results.jsonl").read_bytes()
    for damaged in (whole[:-5], whole[: whole.index(b"\n") + 1], b"", whole + b'{"id": "c"', whole + b'{"id":"x"}\n', b"x\n" * 2):
        (run / "results.jsonl").write_bytes(damaged)
        later = open_ledger(run, host)
        later.complete_files()
        assert (run / "results.jsonl").read_bytes() == whole
        later.close()
    (run / "results.jsonl").write_bytes(whole[:-5])  # under the hands of one that is at work
    ledger.publish(leased(ledger, host.owner()), outcome())
    assert [line["id"] for line in results(run)] == ["a", "b", "c"]


def test_changed_result_lines_are_found_and_rewritten(ledger: Ledger, host: TestHost, run: Path) -> None:
    ledger.add(tasks("a", "b", "c"))
    for _ in range(3):
        ledger.publish(leased(ledger, host.owner()), outcome())
    path = run / "results.jsonl"
    whole = path.read_bytes()
    first, second, third = whole.splitlines(keepends=True)
    damages = (
        (first + second.replace(b"passed", b"failed") + third, 2),
        (second + third, 1),
        (first + second + second + third, 3),
        (whole + b"{}\n", 4),
        (whole, None),
        (first + second + third[:9], None),
        (first, None),
    )
    for damaged, number in damages:
        path.write_bytes(damaged)
        assert (ledger.changed_result(), path.read_bytes()) == (number, damaged)
        assert ledger.restore_results() == number
        assert path.read_bytes() == whole


def test_results_continue_after_foreign_lines_and_a_restore(ledger: Ledger, host: TestHost, run: Path) -> None:
    ledger.add(tasks("a", "b", "c", "d"))
    ledger.publish(leased(ledger, host.owner()), outcome())
    with (run / "results.jsonl").open("ab") as file:
        file.write(b"{}\n")
    ledger.publish(leased(ledger, host.owner()), outcome())
    other = open_ledger(run, host)
    other.restore_results()
    assert [line["id"] for line in results(run)] == ["a", "b"]
    ledger.publish(leased(ledger, host.owner()), outcome())
    assert [line["id"] for line in results(run)] == ["a", "b", "c"]
    (run / "results.jsonl").write_bytes(b"{}\n" + (run / "results.jsonl").read_bytes())
    other.complete_files()
    other.restore_results()
    ledger.publish(leased(ledger, host.owner()), outcome())
    assert [line["id"] for line in results(run)] == ["a", "b", "c", "d"]
    other.close()


def test_workers_at_once_share_the_queue(ledger: Ledger, host: TestHost, run: Path) -> None:
    ledger.add(tasks(*(f"t{number}" for number in range(60))))
    failures: list[Exception] = []

    def work() -> None:
        own = open_ledger(run)
        try:
            while lease := own.lease(host.owner()):
                assert own.publish(lease, outcome())
        except Exception as error:
            failures.append(error)
        finally:
            own.close()

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures
    assert sorted(line["id"] for line in results(run)) == sorted(f"t{number}" for number in range(60))


def test_a_second_ledger_in_a_folder_is_refused(ledger: Ledger, run: Path, store: str) -> None:
    assert has_ledger(run)
    with pytest.raises(LedgerError, match="has a ledger"):
        create_ledger(run, Meta(version="1"), store)


def errored(lease: Lease, kind: str) -> AttemptOutcome:
    return outcome("errored", error=Failure(kind, f"{kind} of {lease.task.id}"))


@pytest.mark.parametrize("kind", ["auth", "quota"])
def test_refused_key_keeps_the_tasks_of_its_provider(ledger: Ledger, host: TestHost, run: Path, kind: str) -> None:
    ledger.add(tasks("a1", "a2", "b1", "a3", "b2"), lambda task: task.id[0])
    first, running = leased(ledger, host.owner()), leased(ledger, host.owner())
    ledger.publish(first, errored(first, kind))
    assert not ledger.is_held()
    assert [leased(ledger, host.owner()).task.id for _ in range(2)] == ["b1", "b2"]
    assert ledger.lease(host.owner()) is None, "another worker asks the same ledger"
    assert ledger.is_held()
    ledger.publish(running, outcome("passed"))
    assert ledger.counts() == {"errored": 1, "passed": 1, "leased": 2, "queued": 1}
    ledger.complete_files()
    assert json.loads((run / "summary.json").read_text())["stopped"] == [f"a refuses: {kind} of a1"]
    ledger.forget_refusals()
    assert leased(ledger, host.owner()).task.id == "a3"


def test_other_errors_stop_at_limit_and_retry_restarts(run: Path, store: str, host: TestHost) -> None:
    ledger = create_ledger(run, Meta(version="1", max_errors=2), store, host)
    ledger.add(tasks("a", "b", "c"))
    for _ in range(2):
        assert not ledger.is_held()
        lease = leased(ledger, host.owner())
        ledger.publish(lease, errored(lease, "bad_request"))
    assert (ledger.lease(host.owner()), ledger.is_held()) == (None, True)
    assert ledger.refusals().reasons == ("2 tasks errored, the last with: bad_request of b",)
    assert ledger.retry(["errored"]) == 2
    assert (leased(ledger, host.owner()).task.id, ledger.refusals().errors) == ("a", 0)
    ledger.close()
