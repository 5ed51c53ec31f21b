"""Runs one prompt and prints Codex's events as JSON lines: `exec --experimental-json`."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any, cast

from wolo.agent.events import TurnEnded
from wolo.conversation.conversation import Conversation
from wolo.conversation.structured_output import OutputForm
from wolo.frontends.codex_protocol.thread_items import ItemWriter, wire_usage
from wolo.frontends.streams import as_json, error_text, print_json, watch_reader
from wolo.messages.message import UserPrompt

_WHOLE = frozenset(("agent_message", "reasoning", "file_change"))
"""Items that are printed when they are complete only."""


class ExecRun:
    def __init__(self, conversation: Conversation, form: OutputForm | None) -> None:
        """`form`: the answer must fit a JSON schema."""
        self._conversation = conversation
        self._form = form
        self._items = ItemWriter()
        self.stopped_by = 0
        """Exit code of the signal that ended the turn; 0 without one."""

    def stop(self, exit_code: int) -> None:
        self.stopped_by = exit_code
        self._conversation.interrupt()

    def kill(self) -> None:
        self._conversation.kill()

    async def run(self, prompt: UserPrompt) -> int:
        """Returns the exit code. Raises OutputLost."""
        watch_reader(self._conversation.interrupt)
        print_json({"type": "thread.started", "thread_id": self._conversation.info.session_id})
        print_json({"type": "turn.started"})
        if self._form is None:
            ended = await self._turn(prompt)
        else:
            ended, value = await self._form.ask(self._turn, prompt)
            if value is not None:
                # The SDK takes the last message as the answer: the value alone
                text = as_json(value.value)
                if text != self._last_text:
                    item = {"id": "item_value", "type": "agent_message", "text": text}
                    print_json({"type": "item.completed", "item": item})
        if ended.cause == "done" and ended.error is None:
            print_json({"type": "turn.completed", "usage": wire_usage(ended.usage)})
        else:
            message = error_text(ended.error) if ended.error else CAUSES[ended.cause]
            print_json({"type": "turn.failed", "error": {"message": message}})
        return self.stopped_by or ended.exit_code

    _last_text = ""
    """Of the last message."""

    async def _turn(self, prompt: UserPrompt) -> TurnEnded:
        ended: TurnEnded | None = None
        async with aclosing(cast("Any", self._conversation.prompt(prompt))) as events:
            async for event in events:
                if isinstance(event, TurnEnded):
                    ended = event
                for phase, item in self._items.on_event(event):
                    if phase == "delta" or (phase == "started" and item.type in _WHOLE):
                        continue
                    if item.type == "agent_message":
                        self._last_text = item.fields["text"]
                    print_json({"type": f"item.{phase}", "item": item.wire})
        assert ended is not None  # every turn ends with TurnEnded
        return ended


CAUSES = {
    "done": "The answer is not usable.",
    "unverified": "The work could not be verified.",
    "max_turns": "Reached the maximum number of turns.",
    "max_cost": "Reached the maximum budget.",
    "max_tokens": "Reached the maximum number of tokens.",
    "max_seconds": "Reached the time limit.",
    "model_error": "The model failed.",
    "unavailable": "The provider is not available.",
    "interrupted": "The turn was interrupted.",
    "session_error": "The session could not be saved.",
    "blocked": "A hook ended the turn.",
    "goal": "The goal was not met.",
}


def print_failure(message: str) -> None:
    """The event of a run that could not begin. Raises OutputLost."""
    print_json({"type": "error", "message": message})
