"""One wording for each event, which all front ends and subagents share."""

from __future__ import annotations

import time
from collections.abc import Iterable

from wolo.agent import events
from wolo.guard.modes import MODES
from wolo.messages.call_arguments import call_line
from wolo.messages.message import Usage
from wolo.messages.terminal_text import escaped_line, label, quantity
from wolo.models.limit_wait import clock_time, countdown
from wolo.tools.background.background_jobs import CROWDED

MOST_OF_DENIED = 200
"""Characters of the arguments of a denied call."""


def describe(event: events.Event) -> str:
    """Describe an event, or what goes on after it, in sentences; not cleaned. Empty: only a view shows the event."""
    match event:
        case events.AttemptFailed(is_limit=True):
            return f"{sentence(event.error.message)} {_limit(event.delay_s)}."
        case events.AttemptFailed():
            of = f" of {event.tries}" if event.tries else ""
            when = f"in {event.delay_s:.1f} s" if event.delay_s >= 0.05 else "at once"
            return f"{sentence(event.error.message)} Retrying {when} (attempt {event.attempt + 1}{of})."
        case events.ModelReplaced():
            why = sentence(event.error.message)
            return f"{why} {event.model} answers instead; a later prompt goes to the first model again."
        case events.Compacted():
            return _compaction(event)
        case events.CallDenied():
            owner = f"{event.agent}: " if event.agent else ""
            return f"denied: {owner}{call_line(event.part, most_chars=MOST_OF_DENIED, most_of_change=0)}: {event.reason}"
        case events.Verified():
            return _verification(event)
        case events.TaskEnded():
            return f"Task {event.background} ({event.agent}) has ended: {event.ended} after {event.duration_s:.0f} s."
        case events.JobEnded():
            how = {"exited": f"exit {event.exit_code}", "stopped": "stopped", "timed_out": "its time was up", "crowded": CROWDED}
            return f"Job {event.id} ({event.command}) has ended: {how[event.cause]} after {event.duration_s:.0f} s."
        case events.PromptRefused(reason=""):
            return "A hook was interrupted."
        case events.PromptRefused():
            return f"A hook keeps this back: {event.reason}"
        case events.Noticed():
            return event.text
        case events.ModeChanged():
            place = f"The plan is saved in {event.plan_file}." if event.plan_file else ""
            return " ".join(filter(None, (event.notice, f"Mode {event.mode}: {MODES[event.mode].about}.", place)))
        case events.TurnStarted():
            return "getting ready"
        case events.RequestStarted():
            return f"waiting for the model · ~{event.context_tokens:,} tokens sent"
        case events.CompactionStarted():
            of = f", part {event.request} of {event.requests}" if event.requests > 1 else ""
            return f"summing up the conversation · ~{event.tokens:,} tokens{of}"
        case events.VerifyStarted():
            return f"verifying with {event.command}"
        case events.HookAwaited():
            return f"waiting for the {event.hook} hook: {', '.join(event.commands)}"
        case events.TurnEnded(error=error) if error is not None:
            return error.message
    return ""


def describe_briefly(event: events.Event) -> str:
    """The same for clients of a protocol, which show events their own way."""
    match event:
        case events.AttemptFailed(is_limit=True):
            return describe(event)
        case events.AttemptFailed():
            return f"{event.error.message} Trying again in {event.delay_s:.0f} s."
        case events.ModelReplaced():
            return f"{event.error.message} {event.model} answers instead."
        case events.Compacted(reason="masked"):
            return ""
        case events.Compacted():
            return "The conversation was compacted."
        case events.PromptRefused() if event.reason:
            return event.reason
        case events.CompactionStarted():
            return "Compacting the conversation"
        case events.VerifyStarted():
            return f"Running {event.command}"
        case events.Verified():
            return f"{event.command}: {', '.join(event.new_failures)}" if event.new_failures else ""
        case events.HookAwaited():
            return f"Waiting for a hook of {event.hook}."
    return describe(event)


def describe_work(event: events.Event) -> str:
    """The work that goes on from now on, for a line that the next work replaces. Empty: the work stays the same."""
    match event:
        case events.RequestStarted():
            return "waiting for the model"
        case events.TextStreamed():
            return "writing"
        case events.ThinkingStreamed():
            return "thinking"
        case events.CompactionStarted():
            return "compacting its conversation"
        case events.AttemptFailed(is_limit=True):
            return f"{_limit(event.delay_s)}: {event.error.message}"
        case events.AttemptFailed():
            return f"retrying in {event.delay_s:.0f} s: {event.error.message}"
    return ""


def describe_retry(event: events.AttemptFailed, left_s: float) -> str:
    """The wait before the next attempt, for a line that changes; `left_s`: seconds until it begins."""
    of = f" of {event.tries}" if event.tries else ""
    return f"Retrying in {left_s:.0f} s · attempt {event.attempt + 1}{of} · {escaped_line(event.error.message).rstrip('.')}"


def _limit(delay_s: float) -> str:
    now = time.time()
    return f"Limit until {clock_time(now + delay_s, now)} ({countdown(delay_s)}), then it goes on by itself"


def _compaction(event: events.Compacted) -> str:
    """`The conversation no longer fits the model's window: 3 old answers shortened (~90,000 → ~40,000 tokens). …`"""
    sizes = f"~{event.tokens_before:,} → ~{event.tokens_after:,} tokens"
    if event.reason == "restored":
        rest = " What is still left out would not fit." if event.left_out or event.shortened else ""
        return f"What had been left out is sent again ({sizes}).{rest}"
    if event.reason == "masked":
        return f"{quantity(event.outputs_shortened, 'old output')} masked ({sizes}); the model can look them up."
    verb = "summed up" if event.is_summarised else "left out"
    done = [
        f"{quantity(count, thing)} {verb}"
        for count, thing, verb in (
            (event.outputs_shortened, "old answer", "shortened"),
            (event.messages_left_out, "old message", verb),
        )
        if count
    ]
    why = "Compacted" if event.reason == "manual" else "The conversation no longer fits the model's window"
    return f"{why}: {', '.join(done)} ({sizes}). The session keeps everything."


def _verification(event: events.Verified) -> str:
    """`pytest -q, after the work: 2 new failures (3.1 s).`"""
    check, count = event.check, len(event.check.failures)
    if check.timed_out:
        how = "it took too long and was ended"
    elif check.exit_code == 0:
        how = "passed"
    elif event.new_failures:
        how = quantity(len(event.new_failures), "new failure")
    else:
        named = quantity(count, "failure") if count else f"status {check.exit_code}"
        how = f"{named}, none of it new" if event.when == "after" else named
    return f"{event.command}, {event.when} the work: {how} ({check.duration_s:.1f} s)."


def in_words(usage: Usage, *, tells_unknown: bool = True) -> str:
    """`1,234 tokens in (900 cached) · 56 out · $0.0012`; estimates carry a ~. `tells_unknown`: mention an unknown price."""
    about = "~" if usage.estimated else ""
    cached = f" ({usage.cache_read_tokens:,} cached)" if usage.cache_read_tokens else ""
    used = f"{about}{usage.prompt_tokens:,} tokens in{cached} · {about}{usage.output_tokens:,} out"
    if usage.cost is None:
        return f"{used} · price unknown" if tells_unknown else used
    return f"{used} · {f'${usage.cost.total:.4f}' if usage.cost.total else 'free'}"


def sentence(text: str) -> str:
    """Ends the message of a server with a full stop, so that another sentence can follow."""
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def argument_lines(arguments: Iterable[events.ShownArgument]) -> str:
    return "\n".join(label(each.name, each.text) for each in arguments)


def duration(elapsed_s: float) -> str:
    """`0.4 s`, `12 s` or `3 min 5 s`."""
    if elapsed_s < 9.95:
        return f"{elapsed_s:.1f} s"
    minutes, rest = divmod(round(elapsed_s), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
