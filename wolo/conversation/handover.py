"""Closes a conversation and opens the one that follows it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from wolo.config import layers
from wolo.config.cli_options import Flags, many
from wolo.conversation.conversation import Conversation, ConversationParts
from wolo.conversation.resources import startup
from wolo.conversation.resources.conversation_hooks import ConversationHooks
from wolo.conversation.resources.file_tracking import FileTracking
from wolo.conversation.resources.persistence import SavedSession
from wolo.conversation.resources.startup import OWN_ADDRESS, ConversationChange, HookProgress, StartOptions, StartupState
from wolo.errors import WoloError
from wolo.messages.message import Message
from wolo.sessions.store import Store

log = logging.getLogger(__name__)


class HandedOver(Struct, frozen=True):
    """Resources that the next conversation takes over, so they are not closed."""

    history: bool = False
    """The messages of an unsaved session."""
    shell: bool = False
    servers: bool = False
    session: bool = False


class HandoverFailed(WoloError):
    """The next conversation failed to open after this one was closed for it."""

    def __init__(self, error: WoloError, conversation: Conversation | None) -> None:
        """`conversation` continues the closed one; None: it could not be reopened either."""
        super().__init__(error.message, hint=error.hint)
        self.exit_code = error.exit_code
        self.conversation = conversation


class Handover:
    def __init__(
        self,
        state: StartupState,
        parts: ConversationParts,
        hooks: ConversationHooks,
        tracking: FileTracking,
        *,
        follow: Callable[[StartOptions], Awaitable[Conversation]],
    ) -> None:
        """`follow` opens the next conversation."""
        self._state, self._parts, self._hooks = state, parts, hooks
        self._tracking, self._follow = tracking, follow
        self._asker = parts.agent.services.asker
        self._shell = parts.services.shell
        self._handed = HandedOver()
        self._reason = "other"
        """Why the session ends, for hooks."""

    async def close(self) -> None:
        """Closes everything that is not handed over."""
        if not self._handed.session:
            await self._hooks.end(self._reason)
        await self._hooks.close(ends_session=not self._handed.session)
        await self._parts.subagents.close()
        await self._asker.close()
        if not self._handed.servers:
            await self._parts.servers.close()
        if not self._handed.shell:
            self._shell.close()
        await self._parts.recorder.close()
        sink = self._state.sink
        if self._tracking.is_open:
            await asyncio.to_thread(self._tracking.close, forget=not sink.is_started and not self._handed.history)
        sink.close()
        if self._parts.telemetry is not None and not self._handed.servers:
            await self._parts.telemetry.exporter.flush()

    def abandon(self) -> None:
        """Gives back what `close` does, as far as it takes no event loop."""
        for give_back in (
            self._parts.servers.kill,
            *((self._parts.extensions.kill,) if self._parts.extensions else ()),
            self._shell.close,
            partial(self._parts.recorder.abandon, self._abandon_session),
        ):
            _try(give_back)

    def _abandon_session(self) -> None:
        sink = self._state.sink
        _try(partial(self._tracking.close, forget=not sink.is_started))
        _try(sink.close)

    async def reopen(self, conversation: Conversation, change: ConversationChange) -> Conversation:
        """Raises WoloError while `conversation` is still open, HandoverFailed after it was closed."""
        state = self._state
        same_session = change.session == "" and not change.fork
        handed = HandedOver(
            history=same_session and not isinstance(state.sink, SavedSession),
            shell=same_session and self._shell.processes.is_anything_alive(),
            servers=True,
            session=same_session,
        )
        history = conversation.history if change.history is None else change.history
        following = replace(
            state.options,
            flags=self._options_after(change, conversation.info.mode),
            change=self._complete(change),
            history=history if handed.history else (),
            unsaved_id=state.sink.session_id if same_session and not state.sink.is_started else "",
            cwd=change.cwd or state.options.cwd,
            first_provider=state.options.first_provider or state.choice.provider.name,
            cut=conversation.agent.services.compactor.cut if handed.history else None,
            goal=conversation.goal if handed.history else None,
            shell=self._shell if handed.shell else None,
            servers=self._parts.servers,
            hooks=self._hooks.progress if same_session else HookProgress(source="clear" if change.session is None else ""),
        )
        self._check(following)
        self._handed = handed
        self._reason = "clear" if change.session is None else "resume"
        await conversation.close()
        try:
            return await self._follow(following)
        except WoloError as error:
            raise HandoverFailed(error, await self._return(following, handed, history)) from error
        except BaseException:
            await self._parts.servers.close()
            raise

    async def _return(self, failed: StartOptions, handed: HandedOver, history: tuple[Message, ...]) -> Conversation | None:
        """Reopens the closed conversation with the same model; its servers were closed with the failed one."""
        is_unsaved = not isinstance(self._state.sink, SavedSession)
        back = replace(
            failed,
            change=self._complete(ConversationChange()),
            cwd=self._state.options.cwd,
            history=history if is_unsaved else (),
            unsaved_id="" if self._state.sink.is_started else self._state.sink.session_id,
            shell=self._shell if handed.shell else None,
            servers=None,
        )
        try:
            return await self._follow(back)
        except WoloError:
            return None

    def _options_after(self, change: ConversationChange, mode: str) -> Flags:
        """The options of the run with those that the change adds or drops; a changed mode lasts."""
        options = dict(self._state.flags)
        if mode != self._state.sandbox_plan.mode.name:
            options["mode"] = mode
        if change.directories:
            options["add_dir"] = [*many(options, "add_dir"), *change.directories]
        if not change.at_own_address:
            return options
        return {name: value for name, value in options.items() if name not in layers.ENDPOINT_FLAGS} | {OWN_ADDRESS: True}

    def _complete(self, change: ConversationChange) -> ConversationChange:
        """Fills in the model with its thinking level, and the session."""
        sink, choice, level = self._state.sink, self._state.choice, self._asker.choice.thinking
        same = sink.session_id if sink.is_started else None
        same_model = f"{choice.label}:{level}" if level else choice.label
        return replace(change, model=change.model or same_model, session=same if change.session == "" else change.session)

    def _check(self, following: StartOptions) -> None:
        """Raises the errors of opening while the current conversation is still open."""
        startup.check_start(following)
        change = following.change
        if change is not None and change.session:
            with Store.open(self._state.site.places.data) as store:
                session = store.find(change.session, self._state.site.cwd)
                if session.id != self._state.sink.session_id and not change.fork:
                    store.lock(session.id).release()


def _try(give_back: Callable[[], None]) -> None:
    try:
        give_back()
    except Exception:
        log.exception("A dropped conversation")
