"""Runs a turn for a program, whose functions answer its approvals and questions."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import nullcontext
from inspect import isawaitable
from typing import Any, TypeVar, cast

from msgspec import Struct

from wolo.agent.events import ApprovalAsked, Event, QuestionsAsked, Scope
from wolo.api.program_input import Answers, to_replies
from wolo.api.run_context import ActiveRun, active_run
from wolo.conversation.conversation import Conversation
from wolo.errors import UsageError
from wolo.messages.message import UserPrompt
from wolo.tools.tool_values import Question

T = TypeVar("T")
Decision = bool | str | None
OnApproval = Callable[[ApprovalAsked], Decision | Awaitable[Decision]]
"""Returns True or `once`, `session` or `always`; `never` saves a deny rule, `dismiss` decides nothing, anything else denies."""
OnQuestion = Callable[[Sequence[Question]], Answers | Awaitable[Answers]]
Validator = Callable[[Any], Any]
"""Gets a typed answer and returns it, another value, or None to keep it. ValueError: the model is asked again with its text."""
_SCOPES = frozenset(("once", "session", "always", "everywhere"))


class ProgramAnswers(Struct, frozen=True):
    on_approval: OnApproval | None
    """None: calls that need an approval are denied."""
    on_question: OnQuestion | None
    """None: the model cannot ask."""


async def turn_events(
    conversation: Conversation, prompt: UserPrompt, functions: ProgramAnswers, run: ActiveRun
) -> AsyncGenerator[Event, None]:
    """Reads the turn in a task of its own, so that a cancellation of the caller cannot cut its end short."""
    queue: asyncio.Queue[Event | None] = asyncio.Queue()

    async def read() -> None:
        active_run.set(run)  # of this task, and of those that it starts
        try:
            async for event in conversation.prompt(prompt):
                queue.put_nowait(event)
        finally:
            queue.put_nowait(None)

    reading = asyncio.create_task(read())
    answering: list[asyncio.Task[None]] = []
    try:
        while (event := await queue.get()) is not None:
            if isinstance(event, ApprovalAsked | QuestionsAsked):
                answering.append(asyncio.create_task(_answer(functions, conversation, event)))
            yield event
        await reading
        for answer in answering:
            answer.cancel()  # only one whose call was interrupted still waits
            if answer.done():
                answer.result()
    finally:
        conversation.interrupt()
        for answer in answering:
            answer.cancel()  # the function may wait for a person
        # Keeps a cancelled scope of anyio, where the program uses it, from cancelling every wait again
        anyio = sys.modules.get("anyio")
        with anyio.CancelScope(shield=True) if anyio else nullcontext():
            await _wait_for_all(reading, *answering)


async def _answer(functions: ProgramAnswers, conversation: Conversation, asked: ApprovalAsked | QuestionsAsked) -> None:
    """Asks the caller's function. An exception in it denies the call and ends the run, which raises it."""
    try:
        if isinstance(asked, QuestionsAsked):
            assert functions.on_question is not None
            answers = await value_of(functions.on_question(asked.questions))
            conversation.questions.answer(asked.id, to_replies(answers, asked.questions))
        else:
            assert functions.on_approval is not None
            decision = await value_of(functions.on_approval(asked))
            scope = "once" if decision is True else decision
            if isinstance(scope, str) and scope in _SCOPES:
                conversation.answer(asked.id, allowed=True, scope=cast("Scope", scope))
            elif scope == "dismiss":
                conversation.dismiss(asked.id)
            elif scope in (False, None, "no", "deny", "never"):
                lasting: Scope = "always" if scope == "never" else "once"
                conversation.answer(asked.id, allowed=False, scope=lasting, reason="the program that runs wolo denied it")
            else:
                hint = 'It may return True, False, "once", "session", "always", "never" or "dismiss".'
                raise UsageError(f"on_approval returned {scope!r}.", hint=hint)
    except Exception:
        conversation.interrupt()
        raise


async def value_of(result: T | Awaitable[T]) -> T:
    return await result if isawaitable(result) else result


async def _wait_for_all(*tasks: asyncio.Task[None]) -> None:
    """Waits for the end of tasks, also when cancelled again, and raises the cancellation then."""
    cancelled: asyncio.CancelledError | None = None
    while pending := [task for task in tasks if not task.done()]:
        try:
            await asyncio.wait(pending)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
