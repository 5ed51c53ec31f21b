"""How a conversation ends, and how another one follows it: in the same session or elsewhere, and with what still runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from msgspec import Struct
from msgspec.structs import replace

from wolo.config import layers
from wolo.config.cli_options import Given, many
from wolo.conversation.conversation import Conversation
from wolo.conversation.recorder import Recorder
from wolo.conversation.resources.hooks import ConversationHooks
from wolo.conversation.resources.persistence import SavedSession
from wolo.conversation.resources.startup import OWN_ADDRESS, Change, StartOptions, StartupState, check_start
from wolo.conversation.subagents.subagents import Subagents
from wolo.errors import WoloError
from wolo.formats.format import ThinkingLevel
from wolo.mcp.servers import Servers
from wolo.messages.message import Message
from wolo.models.protocol import ModelClient
from wolo.sessions.store import Store
from wolo.tools.tool import ShellState
from wolo.workspace.checkpoints.tracker import Watch


class HandedOver(Struct, frozen=True):
    """What the conversation that follows goes on with; it is not put away then."""

    history: bool = False
    """Of a session that is not kept."""
    shell: bool = False
    servers: bool = False
    session: bool = False


class HandoverFailed(WoloError):
    """The next conversation could not be opened although nothing spoke against it; the one at hand was closed for it."""

    def __init__(self, error: WoloError, conversation: Conversation | None) -> None:
        """`conversation` continues the closed one; None: it could not be opened again either."""
        super().__init__(error.message, hint=error.hint)
        self.exit_code = error.exit_code
        self.conversation = conversation


class Handover:
    def __init__(
        self,
        site: StartupState,
        servers: Servers,
        hooking: ConversationHooks,
        subagents: Subagents,
        asker: ModelClient,
        shell: ShellState,
        watch: Watch,
        recorder: Recorder,
        *,
        follow: Callable[[StartOptions], Awaitable[Conversation]],
    ) -> None:
        """`follow` opens the next one."""
        self._site = site
        self._servers = servers
        self._hooking = hooking
        self._subagents = subagents
        self._asker = asker
        self._shell = shell
        self._watch = watch
        self._recorder = recorder
        self._follow = follow
        self._handed = HandedOver()

    async def close(self) -> None:
        """Puts away all that is not handed on."""
        if not self._handed.session:
            await self._hooking.end("other")
        self._hooking.close()
        await self._subagents.close()
        await self._asker.close()
        if not self._handed.servers:
            await self._servers.close()
        if not self._handed.shell:
            self._shell.close()
        self._recorder.close()
        kept = self._site.kept
        await asyncio.to_thread(self._watch.close, forget=not kept.is_begun and not self._handed.history)
        kept.close()

    async def reopen(self, conversation: Conversation, change: Change) -> Conversation:
        """Closes the conversation and opens the one that follows it.

        Raises WoloError, and the conversation goes on as it was; NotFollowed, and another one goes on in its place.
        """
        site, stays = self._site, change.session == ""
        stays = stays and not change.fork
        handed = HandedOver(
            history=stays and not isinstance(site.kept, SavedSession),
            shell=stays and self._shell.processes.is_anything_alive(),
            servers=True,
            session=stays,
        )
        said = conversation.history if change.said is None else change.said
        following = replace(
            site.opening,
            given=_changed(_in_mode(site, conversation.mode), change),
            change=_following(change, site, self._asker.choice.thinking),
            said=said if handed.history else (),
            unkept_id=site.kept.session_id if handed.history else "",
            first_provider=site.opening.first_provider or site.choice.provider.name,
            cut=conversation.cut if handed.history else None,
            shell=self._shell if handed.shell else None,
            servers=self._servers,
            hooks_have_begun=self._hooking.has_begun and stays,
            hook_variables=self._hooking.variables if stays else {},
        )
        _check_following(site, following)
        self._handed = handed
        await conversation.close()
        try:
            return await self._follow(following)
        except WoloError as error:
            raise HandoverFailed(error, await self._return(following, handed, said)) from error
        except BaseException:
            await self._servers.close()
            raise

    async def _return(self, failed: StartOptions, handed: HandedOver, said: tuple[Message, ...]) -> Conversation | None:
        """Opens the closed conversation again, with the same model; its servers were closed with the one that failed."""
        same = _following(Change(), self._site, self._asker.choice.thinking)
        history = not isinstance(self._site.kept, SavedSession)
        back = replace(
            failed,
            change=same,
            said=said if history else (),
            unkept_id=self._site.kept.session_id if history else "",
            shell=self._shell if handed.shell else None,
            servers=None,
        )
        try:
            return await self._follow(back)
        except WoloError:
            return None


def _in_mode(site: StartupState, mode: str) -> Given:
    """The options for a conversation that follows: a mode that a person has changed to lasts."""
    return site.given if mode == site.enclosure.mode.name else {**site.given, "mode": mode}


def _changed(given: Given, change: Change) -> Given:
    """The options, as far as a change is about them."""
    more = {"add_dir": [*many(given, "add_dir"), *change.directories]} if change.directories else {}
    if not change.at_own_address:
        return {**given, **more}
    return {**{name: value for name, value in given.items() if name not in layers.ENDPOINT_FLAGS}, **more, OWN_ADDRESS: True}


def _following(change: Change, site: StartupState, level: ThinkingLevel | None) -> Change:
    """The same model goes on thinking as much as it did."""
    same = site.kept.session_id if site.kept.is_begun else None
    session = same if change.session == "" else change.session
    same_model = f"{site.choice.label}:{level}" if level else site.choice.label
    return replace(change, model=change.model or same_model, session=session)


def _check_following(site: StartupState, following: StartOptions) -> None:
    """Whatever can fail fails here, while the conversation at hand still lives."""
    check_start(following)
    change = following.change
    if change is not None and change.session:
        with Store.open(site.places.data) as store:
            session = store.find(change.session, site.cwd)
            if session.id != site.kept.session_id and not change.fork:
                store.lock(session.id).release()
