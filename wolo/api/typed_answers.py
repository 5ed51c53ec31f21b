"""Runs for a typed answer: prompts until the answer fits, and its value while it is streamed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from typing import Any

from msgspec.structs import asdict

from wolo.api.program_answers import Validator, value_of
from wolo.api.program_input import History, Prompt, check_function
from wolo.api.run_events import PartialOutput, Result, RunEvent, RunResult, TextDelta, ThinkingDelta, TypedResult, join_results
from wolo.conversation.structured_output import MISSING, OutputError, OutputForm
from wolo.errors import UsageError
from wolo.messages.message import Origin, UserPrompt

ORIGIN: Origin = "network"
_LEAST_GROWTH = 0.01
"""Share that a long text has to grow before its value is read again."""
Stream = Callable[[Prompt, History | None, Callable[[UserPrompt], UserPrompt]], AsyncGenerator[RunEvent, None]]


async def typed_events(
    stream: Stream, prompt: Prompt, output: Any, history: History | None, retries: int, validators: Iterable[Validator]
) -> AsyncGenerator[RunEvent, None]:
    """`stream` runs one prompt, whose message it passes through a function. Raises UsageError and OutputError."""
    form, checks = OutputForm(output), tuple(validators)
    if retries < 0:
        raise UsageError(f"retries={retries!r} is no number of retries.", hint="Pass 0 or more.")
    for each in checks:
        check_function(each, "validators")
    events, total = stream(prompt, history, form.asking), None
    for left in range(retries, -1, -1):
        ended = None
        async with aclosing(events), aclosing(_with_values(events, form)) as run:
            async for event in run:
                if isinstance(event, Result):
                    ended = event.result
                else:
                    yield event
        assert ended is not None  # every run that does not raise has a result
        total = ended if total is None else join_results(total, ended)
        try:
            value = await _validate(form.parse(ended.answer), checks, ended)
        except OutputError as error:
            if ended.is_error:
                raise OutputError(f"the run ended early ({ended.cause}).", ended.answer) from error
            if not left:
                raise
            events = stream(form.repair(error, ORIGIN), None, lambda message: message)
        else:
            yield Result(result=TypedResult(**{**asdict(total), "output": value}))
            return


async def _validate(value: Any, validators: Sequence[Validator], ended: RunResult) -> Any:
    """Raises OutputError with the words of the first validator that refuses the value."""
    for validator in validators:
        try:
            checked = await value_of(validator(value))
        except ValueError as error:
            raise OutputError(str(error) or "a validator refused it.", ended.answer) from error
        value = value if checked is None else checked
    return value


async def _with_values(events: AsyncGenerator[RunEvent, None], form: OutputForm) -> AsyncGenerator[RunEvent, None]:
    """Adds the value that the text of the current answer has so far."""
    text, size_read, last = "", 0, MISSING
    async for event in events:
        yield event
        if isinstance(event, TextDelta):
            text += event.output
            if len(text) - size_read > len(text) * _LEAST_GROWTH:
                size_read, value = len(text), form.partial(text)
                if value is not MISSING and value != last:
                    last = value
                    yield PartialOutput(value=value)
        elif not isinstance(event, ThinkingDelta | PartialOutput):  # another request begins, or this one again
            text, size_read = "", 0
