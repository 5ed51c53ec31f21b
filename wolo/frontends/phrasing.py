"""Sentences about events that all front ends share."""

from __future__ import annotations

from collections.abc import Iterable

from wolo.agent.events import (
    AttemptFailed,
    Compacted,
    CompactionStarted,
    HookAwaited,
    JobEnded,
    ModelReplaced,
    ShownArgument,
    TaskEnded,
    Verified,
)
from wolo.messages.terminal_text import counted, labelled
from wolo.tools.background_jobs import CROWDED


def sentence(text: str) -> str:
    """Ends the message of a server with a full stop, so that another sentence can follow."""
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def argument_lines(arguments: Iterable[ShownArgument]) -> str:
    return "\n".join(labelled(each.name, each.text) for each in arguments)


def duration(seconds: float) -> str:
    """`0.4 s`, `12 s` or `3 min 5 s`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def retrying(event: AttemptFailed) -> str:
    """`Retrying in 2.0 s (attempt 2 of 5).`"""
    of = f" of {event.tries}" if event.tries else ""
    when = f"in {event.delay_s:.1f} s" if event.delay_s >= 0.05 else "at once"
    return f"Retrying {when} (attempt {event.attempt + 1}{of})."


def replacement(event: ModelReplaced) -> str:
    return f"{event.model} answers instead; your next prompt goes to the first model again."


def compaction(event: Compacted) -> str:
    """`The conversation no longer fits the model's window: 3 old answers shortened (~90,000 → ~40,000 tokens). …`"""
    sizes = f"~{event.tokens_before:,} → ~{event.tokens_after:,} tokens"
    if event.reason == "restored":
        rest = " What is still left out would not fit." if event.left_out or event.shortened else ""
        return f"What had been left out is sent again ({sizes}).{rest}"
    verb = "summed up" if event.is_summarised else "left out"
    done = [
        f"{counted(count, thing)} {verb}"
        for count, thing, verb in (
            (event.outputs_shortened, "old answer", "shortened"),
            (event.messages_left_out, "old message", verb),
        )
        if count
    ]
    why = "Compacted" if event.reason == "manual" else "The conversation no longer fits the model's window"
    return f"{why}: {', '.join(done)} ({sizes}). The session keeps everything."


def task_ended(event: TaskEnded) -> str:
    """`Task 1 (explore) has ended: done after 12 s; …`"""
    return f"Task {event.background} ({event.agent}) has ended: {event.ended} after {event.duration_s:.0f} s."


def job_ended(event: JobEnded) -> str:
    """`Job 1 (npm test) has ended: exit 1 after 12 s.`"""
    how = {"exited": f"exit {event.exit_code}", "stopped": "stopped", "timed_out": "its time was up", "crowded": CROWDED}[
        event.cause
    ]
    return f"Job {event.id} ({event.command}) has ended: {how} after {event.duration_s:.0f} s."


def summarising(event: CompactionStarted) -> str:
    of = f", part {event.request} of {event.requests}" if event.requests > 1 else ""
    return f"summing up the conversation · ~{event.tokens:,} tokens{of}"


def hook_awaited(event: HookAwaited) -> str:
    """`waiting for the PreToolUse hook: ./check.sh`"""
    return f"waiting for the {event.hook} hook: {', '.join(event.commands)}"


def verified(event: Verified) -> str:
    """`pytest -q, after the work: 2 new failures (3.1 s).`"""
    check, count = event.check, len(event.check.failures)
    if check.timed_out:
        how = "it took too long and was ended"
    elif check.exit_code == 0:
        how = "passed"
    elif event.new_failures:
        how = counted(len(event.new_failures), "new failure")
    else:
        named = counted(count, "failure") if count else f"status {check.exit_code}"
        how = f"{named}, none of it new" if event.when == "after" else named
    return f"{event.command}, {event.when} the work: {how} ({check.duration_s:.1f} s)."
