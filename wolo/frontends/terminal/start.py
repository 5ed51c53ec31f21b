"""A person at a terminal: one task with live output, or the REPL."""

from __future__ import annotations

import asyncio
import gc
import signal
from pathlib import Path

from wolo.agent.events import ApprovalAsked, CallDenied, TurnEnded
from wolo.conversation.attachments import compose
from wolo.conversation.build import Opening, open_conversation
from wolo.conversation.conversation import Conversation
from wolo.frontends.terminal.approval import ask
from wolo.frontends.terminal.screen import Screen
from wolo.messages.message import Message

EXIT_BY_SIGNAL = {signal.SIGHUP: 129, signal.SIGINT: 130, signal.SIGTERM: 143}


async def start(opening: Opening, files: tuple[Path, ...], prompt: str, piped: str, *, stay: bool) -> int:
    """The exit status. `stay`: after the prompt, if there is one, the REPL goes on."""
    conversation = await open_conversation(opening)
    screen = Screen()
    gc.enable()
    gc.freeze()
    exit_code = 0
    try:
        if prompt.strip() or piped.strip():
            message = compose(prompt, piped=piped, files=files, cwd=conversation.cwd)
            exit_code = await run_turn(conversation, message, screen)
        if stay and exit_code not in (129, 143):
            from wolo.frontends.terminal.repl import Repl  # noqa: PLC0415  # prompt_toolkit's composer is for the REPL only

            repl = Repl(conversation, screen)
            exit_code = await repl.run()
            conversation = repl.conversation
        return exit_code
    finally:
        await conversation.close()
        screen.status.stop()
        if conversation.facts.keeps_session and conversation.history:
            screen.print(f"wolo --resume {conversation.session_id}")


async def run_turn(conversation: Conversation, message: Message, screen: Screen) -> int:
    """One turn on the screen, with signals stopping it; the exit status it calls for."""
    stopped: list[signal.Signals] = []
    loop = asyncio.get_running_loop()

    def stop(number: signal.Signals) -> None:
        if stopped:
            conversation.kill()
        stopped.append(number)
        conversation.interrupt()

    for number in EXIT_BY_SIGNAL:
        loop.add_signal_handler(number, stop, number)
    try:
        exit_code = await _show_turn(conversation, message, screen)
    finally:
        for number in EXIT_BY_SIGNAL:
            loop.remove_signal_handler(number)
    return EXIT_BY_SIGNAL[stopped[0]] if stopped else exit_code


async def _show_turn(conversation: Conversation, message: Message, screen: Screen) -> int:
    exit_code = 0
    denied = False
    async for event in conversation.prompt(message):
        screen.show(event)
        if isinstance(event, ApprovalAsked):
            await ask(event, conversation, screen)
        elif isinstance(event, CallDenied):
            denied = True
        elif isinstance(event, TurnEnded):
            exit_code = event.exit_code or (4 if denied else 0)
    return exit_code
