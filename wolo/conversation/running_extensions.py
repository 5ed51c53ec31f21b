"""The extensions of one conversation: observers, hooks in front of the user's, requests, tools and commands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import TimeoutError as FuturesTimeoutError
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from wolo.agent.hook_calls import NEWS, ReportSlow, RunHook
from wolo.errors import ProviderError
from wolo.extensions.custom_tools.custom_tool import CustomTool
from wolo.extensions.custom_tools.extension_host import ExtensionDownError, ExtensionHost, ExtensionLaunch
from wolo.extensions.hooks.response import GUARD, NOTHING, combine
from wolo.formats.format import ThinkingLevel
from wolo.guard.sandbox_contract import SandboxedCommand
from wolo.messages.message import Message, nudge
from wolo.messages.parts import TextPart
from wolo.models.protocol import Listener, ModelClient, ModelQuestion
from wolo.models.provider import ModelChoice
from wolo.models.tokens import TokenEstimate
from wolo.places import Notices, Site
from wolo.tools.tool import FIND_TOOLS
from wolo.tools.tool_values import HookReply
from wolo.tools.toolbox import BUILTIN_WITH_COMPLETION, MCP_PREFIX

if TYPE_CHECKING:
    from wolo.agent.compaction.compactor import Compactor
    from wolo.agent.events import Event
    from wolo.config.python_files.custom_tools import FoundExtensions, ListedExtension
    from wolo.extensions.custom_tools.tool_listing import ListedCommand
    from wolo.guard.secrets.redactor import Secrets
    from wolo.workspace.processes.command_environment import CommandVariables

REQUEST = "Request"
"""Hook event of requests; no event that other hooks can have."""
ADDED = "extension"
"""`metadata["nudge"]` of a text behind the last message, which is not saved."""
ENDS_WITHIN_S = 1.5
SLOW_S = 1.0
COMPLETES_WITHIN_S = 0.5
_GUARD_NAMES = ("on_call", "on_request", "on_prompt", "on_result")


class Extensions:
    def __init__(
        self,
        extension_files: FoundExtensions,
        site: Site,
        session_id: str,
        secrets: Secrets,
        variables: CommandVariables,
        compactor: Compactor,
    ) -> None:
        self._found, self._compactor = extension_files, compactor
        self.notices = Notices()
        """Until a front end gets them."""
        self.notify: Callable[[str], None] = self.notices.add
        self.on_status: Callable[[], None] = lambda: None
        """Set by a front end that shows `status`."""
        self._facts: Callable[[], Mapping[str, Any]] = dict
        self._source = "startup"
        self._completions: dict[str, tuple[str, ...]] = {}
        self._loop = asyncio.get_running_loop()
        self._has_begun = False
        folder = site.places.state / "extensions" / session_id

        def launch(each: ListedExtension) -> ExtensionLaunch:
            return ExtensionLaunch(
                processes=extension_files.processes,
                enclose=SandboxedCommand if each.file.declares_effects else extension_files.sandbox.enclose,
                cwd=site.real_cwd,
                env=lambda: variables.select(is_outside=True),
                facts=lambda: self._facts(),
                hide=secrets.hide_value,
                notify=lambda text: self.notify(text),
                on_status=lambda: self.on_status(),
                state_file=folder / f"{each.name}.json",
            )

        self.hosts = tuple(
            ExtensionHost(each.name, each.file, _with_guards(each), launch(each)) for each in extension_files.extensions
        )

    def tools(self, taken: Sequence[str]) -> list[CustomTool]:
        names = {*taken, FIND_TOOLS, "read_resource", *(each.name for each in BUILTIN_WITH_COMPLETION)}
        tools = []
        for host in self.hosts:
            for listed in host.listing.tools:
                if listed.name in names or listed.name.startswith(MCP_PREFIX):
                    self.notices.add(f"{host.file.source}: {listed.name} is not offered: there is a tool of this name.")
                    continue
                names.add(listed.name)
                tools.append(CustomTool(listed, host.listing, host))
        return tools

    # Events and hooks

    def watch(self, event: Event, task: str = "") -> None:
        """`task` is the call whose subagent emitted the event."""
        for host in self.hosts:
            host.observe(event, task)

    def begin(self, facts: Callable[[], Mapping[str, Any]], source: str) -> None:
        self._facts, self._source = facts, source

    def around(self, run: RunHook | None) -> RunHook | None:
        """The hooks of extensions, then `run`, which gets what they have changed."""
        if run is None and not any(host.listing.hooks or host.listing.events for host in self.hosts):
            return None
        return partial(self._run, run)

    async def _run(self, run: RunHook | None, event: str, payload: Mapping[str, Any], slow: ReportSlow) -> HookReply:
        if event == NEWS:
            self._pass_on_compaction()
            answers = [HookReply(context="\n\n".join(text for host in self.hosts for text in host.take_texts()))]
        else:
            answers, payload = await self._ask_each(event, payload, slow)
        if run is None or any(each.decision == "deny" for each in answers):
            return combine(answers)
        configured = await run(event, payload, slow)
        return combine([*answers, configured])

    async def _ask_each(
        self, event: str, payload: Mapping[str, Any], slow: ReportSlow
    ) -> tuple[list[HookReply], Mapping[str, Any]]:
        """Their replies up to a denial, and the payload as they have changed it."""
        replies = []
        if event == "SessionStart":
            if self._has_begun:
                return [NOTHING], payload
            self._has_begun, payload = True, {"source": self._source, **payload}
        for host in self.hosts:
            work = asyncio.ensure_future(host.run_hook(event, payload))
            try:
                if not (await asyncio.wait([work], timeout=SLOW_S))[0]:
                    await slow([host.file.source])
                reply = await work
            finally:
                work.cancel()
            replies.append(reply)
            if reply.decision == "deny":
                break
            if reply.updated_input is not None:
                payload = {**payload, "tool_input": reply.updated_input}
            if reply.updated_output is not None:
                payload = {**payload, "tool_response": {**payload["tool_response"], "output": reply.updated_output}}
        self._pass_on_compaction()
        return replies or [NOTHING], payload

    def _pass_on_compaction(self) -> None:
        for host in self.hosts:
            if host.wants_compaction:
                host.wants_compaction, self._compactor.is_asked = False, True

    @property
    def status(self) -> list[str]:
        return [host.status for host in self.hosts if host.status]

    # Commands

    @property
    def commands(self) -> Iterator[tuple[ExtensionHost, ListedCommand]]:
        for host in self.hosts:
            for command in host.listing.commands:
                yield host, command

    def completions(self, host: ExtensionHost, name: str) -> tuple[str, ...]:
        """Called from a thread. Those of the last time where an answer takes long."""
        with suppress(RuntimeError, FuturesTimeoutError):  # the loop has ended
            asyncio.run_coroutine_threadsafe(self._refresh(host, name), self._loop).result(COMPLETES_WITHIN_S)
        return self._completions.get(name, ())

    async def _refresh(self, host: ExtensionHost, name: str) -> None:
        with suppress(ExtensionDownError):
            self._completions[name] = (await host.ask("complete", name=name)).values

    # Requests

    def extend(self, client: ModelClient) -> ModelClient:
        hosts = [host for host in self.hosts if REQUEST in host.listing.hooks]
        return ExtendedModelClient(client, hosts) if hosts else client

    async def close(self, *, ends_session: bool) -> None:
        await asyncio.gather(*(host.close(ENDS_WITHIN_S, ends_session=ends_session) for host in self.hosts))
        self.kill()

    def kill(self) -> None:
        """Ends their processes at once. May be called again."""
        self._found.processes.close_all()
        self._found.sandbox.close()


def _with_guards(each: ListedExtension) -> Any:
    """An extension that cannot be loaded checks nothing: what it would check, as far as its text says, is not let through."""
    listing = each.listing
    is_loaded = listing.hooks or listing.events or listing.tools or listing.commands or not listing.problems
    if is_loaded or not any(name in each.file.text for name in _GUARD_NAMES):
        return listing
    return replace(listing, hooks={GUARD: ()})


class ExtendedModelClient:
    """Lets extensions change a request. They get it with placeholders in place of secrets."""

    def __init__(self, client: ModelClient, hosts: Sequence[ExtensionHost]) -> None:
        self._client, self._hosts = client, hosts

    @property
    def choice(self) -> ModelChoice:
        return self._client.choice

    def think(self, level: ThinkingLevel) -> None:
        self._client.think(level)

    async def close(self) -> None:
        await self._client.close()

    async def ask(self, question: ModelQuestion, listener: Listener) -> Message:
        for host in self._hosts:
            question = await self._change(host, question)
        return await self._client.ask(question, listener)

    async def _change(self, host: ExtensionHost, question: ModelQuestion) -> ModelQuestion:
        """Raises ProviderError when the extension blocks the request, or cannot be asked."""
        messages = question.messages
        num_tokens = TokenEstimate().request(messages, system=question.system, tools=question.tools)
        try:
            answer = await host.ask(
                "request",
                model=self.choice.label,
                system=question.system,
                messages=[{"role": each.role, "text": each.text} for each in messages],
                num_tokens=round(num_tokens),
            )
        except ExtensionDownError as error:
            raise ProviderError(f"Nothing was sent: the extension {host.name}, which checks requests, {error}.") from error
        if answer.error or answer.blocked:
            why = f"failed: {answer.error.splitlines()[-1]}" if answer.error else f"blocked it: {answer.blocked}"
            raise ProviderError(f"Nothing was sent: the extension {host.name} {why}")
        left = [
            _with_text(each, answer.texts[at]) if at in answer.texts else each
            for at, each in enumerate(messages)
            if at not in answer.dropped
        ]
        left += [nudge(text, ADDED) for text in answer.added]
        return replace(question, messages=tuple(left), system=question.system if answer.system is None else answer.system)


def _with_text(message: Message, text: str) -> Message:
    """The first text becomes the new one, the others go."""
    is_text = [isinstance(part, TextPart) and not part.is_notice for part in message.parts]
    first_at = is_text.index(True) if True in is_text else len(message.parts)
    others = [part for at, part in enumerate(message.parts) if at > first_at and not is_text[at]]
    return replace(message, parts=(*message.parts[:first_at], TextPart(text=text), *others))
