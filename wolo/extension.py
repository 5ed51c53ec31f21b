"""The object that an extension gets: `def extend(ext: Extension) -> None`.

It lives in the extension's own process, which may not see the rest of wolo, so this file imports the standard library only.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
ALL = "*"


@dataclass
class TurnEvent:
    """An event of a turn, in the form of `wolo/agent/events.py`. Events arrive in order, some time after they happened."""

    type: str
    data: Mapping[str, Any]
    task: str = ""
    """The subagent's task, as `part_id` of `task_started` has it; empty: the conversation's own event."""


@dataclass
class _Subject:
    reply: dict[str, Any] = field(default_factory=dict, init=False, repr=False)
    """Sent back to wolo."""

    def add(self, text: str) -> None:
        """Give the model a text: behind a prompt, or behind the result of a call."""
        self.reply["context"] = "\n\n".join(filter(None, (self.reply.get("context"), text)))

    def _decide(self, decision: str, reason: str) -> None:
        if self.reply.get("decision") != "deny":
            self.reply |= {"decision": decision, "reason": reason}


@dataclass
class SessionBeginning(_Subject):
    """The conversation begins."""

    source: str
    """`startup`, `resume`, `clear` or `compact`."""


@dataclass
class CheckedPrompt(_Subject):
    """A prompt of the user, before it is saved."""

    text: str

    def block(self, reason: str) -> None:
        """Do not send it."""
        self._decide("deny", reason)


@dataclass
class CheckedCall(_Subject):
    """A call of a tool, before it is judged. `arguments` may be changed; the changed call is judged by the user's rules."""

    tool: str
    arguments: dict[str, Any]
    id: str

    def deny(self, reason: str) -> None:
        """Do not run it. The model reads the reason."""
        self._decide("deny", reason)

    def ask(self, reason: str) -> None:
        """Ask the user, who reads the reason. Without a user the call is denied."""
        self._decide("ask", reason)


@dataclass
class CheckedResult(_Subject):
    """The result of a call, before the model reads it. `output` may be changed."""

    tool: str
    arguments: Mapping[str, Any]
    output: str
    is_error: bool
    files_changed: Sequence[str]
    id: str


@dataclass
class CheckedAnswer(_Subject):
    """The model has finished its answer."""

    answer: str
    is_again: bool
    """An extension or a hook has already made it continue."""

    def resume(self, text: str) -> None:
        """Make the model continue with this text."""
        self._decide("deny", text)


@dataclass
class CheckedCompaction(_Subject):
    """The conversation is about to be compacted."""

    trigger: str
    """`manual` or `auto`."""

    def block(self, reason: str) -> None:
        """Do not compact, if the user asked for it; one that must make room happens anyway."""
        self._decide("deny", reason)


@dataclass
class RequestMessage:
    role: str
    text: str
    """May be changed."""


@dataclass
class CheckedRequest:
    """A request to a model, before it goes. The session is not changed, and each request is made anew from it.

    A change of something old breaks the provider's prompt cache from there on.
    """

    model: str
    system: str
    """May be changed."""
    messages: list[RequestMessage]
    """Text of each message; without calls, results and thinking. The list may be shortened, not extended."""
    num_tokens: int
    """Estimated size."""

    def add(self, text: str) -> None:
        """Add a text behind the last message."""
        self.added.append(text)

    def block(self, reason: str) -> None:
        """Do not send it: the turn ends with an error that says why."""
        self.blocked = self.blocked or reason

    added: list[str] = field(default_factory=list)
    blocked: str = ""


@dataclass
class ExtensionCommand:
    name: str
    run: Callable[[str], Any]
    help: str
    usage: str
    complete: Sequence[str] | Callable[[], Sequence[str]]


@dataclass(frozen=True)
class LoginStep:
    """A step of a login dialog: the user opens `url`, where `code` is typed, answers `ask`, or just waits `wait_s`."""

    url: str = ""
    code: str = ""
    ask: str = ""
    wait_s: float = 0.0


class Extension:
    """Register functions with it while `extend` runs; talk to wolo with it while one of them runs.

    A function may be `async`. What it prints goes nowhere.
    """

    def __init__(self) -> None:
        self.observers: list[tuple[Callable[[TurnEvent], Any], frozenset[str], bool]] = []
        """Functions with the types that they observe, and whether they observe subagents."""
        self.listeners: dict[str, list[tuple[Callable[..., Any], frozenset[str]]]] = {}
        """Functions by hook event, each with names of tools; none: all."""
        self.tools: list[tuple[Callable[..., Any], Callable[..., Any] | None]] = []
        self.commands: dict[str, ExtensionCommand] = {}
        self.providers: dict[str, dict[str, Any]] = {}
        self.logins: dict[str, Callable[..., str | tuple[str, str]]] = {}
        self.dialogs: dict[str, Callable[[], Generator[LoginStep, str, str]]] = {}
        self.open_dialog: Generator[LoginStep, str, str] | None = None
        self.actions: list[tuple[str, Any]] = []
        """Taken by wolo after each function."""
        self.session_id = ""
        self.cwd = Path()
        self.mode = ""
        """The permission mode."""
        self.state: Any = None
        """JSON value of `save`, of this session; None: nothing was saved."""

    def on(self, *types: str, tasks: bool = False) -> Callable[[F], F]:
        """Observe events of these types, or all; with `tasks` also those of subagents. Nothing waits for an observer."""

        def register(function: F) -> F:
            self.observers.append((function, frozenset(types or (ALL,)), tasks))
            return function

        return register

    def on_start(self, function: Callable[[SessionBeginning], Any]) -> Callable[[SessionBeginning], Any]:
        return self._listen("SessionStart", function)

    def on_prompt(self, function: Callable[[CheckedPrompt], Any]) -> Callable[[CheckedPrompt], Any]:
        return self._listen("UserPromptSubmit", function)

    def on_request(self, function: Callable[[CheckedRequest], Any]) -> Callable[[CheckedRequest], Any]:
        return self._listen("Request", function)

    def on_call(self, *tools: str) -> Callable[[F], F]:
        """Check or change calls of these tools, or of all. When the function fails, the user is asked."""
        return lambda function: self._listen("PreToolUse", function, *tools)

    def on_result(self, *tools: str) -> Callable[[F], F]:
        def register(function: F) -> F:
            self._listen("PostToolUseFailure", function, *tools)
            return self._listen("PostToolUse", function, *tools)

        return register

    def on_stop(self, function: Callable[[CheckedAnswer], Any]) -> Callable[[CheckedAnswer], Any]:
        return self._listen("Stop", function)

    def on_compaction(self, function: Callable[[CheckedCompaction], Any]) -> Callable[[CheckedCompaction], Any]:
        return self._listen("PreCompact", function)

    def on_end(self, function: Callable[[], Any]) -> Callable[[], Any]:
        """The conversation is closed; there is a second and a half."""
        return self._listen("SessionEnd", function)

    def tool(self, *, render: Callable[[dict[str, Any], str], Sequence[str]] | None = None) -> Callable[[F], F]:
        """Offer a function with a docstring to the model, as a file in `tools/` does.

        `render` gets the arguments and the result, and returns the rows that the terminal shows in place of it.
        """

        def register(function: F) -> F:
            self.tools.append((function, render))
            return function

        return register

    def command(
        self, name: str, *, help: str = "", usage: str = "", complete: Sequence[str] | Callable[[], Sequence[str]] = ()
    ) -> Callable[[F], F]:
        """Add `/name`. The function gets the rest of the line, and returns a text to show; see also `prompt`."""

        def register(function: F) -> F:
            self.commands[name] = ExtensionCommand(name, function, help or (function.__doc__ or "").strip(), usage, complete)
            return function

        return register

    def provider(
        self,
        name: str,
        *,
        login: Callable[..., str | tuple[str, str]] | None = None,
        dialog: Callable[[], Generator[LoginStep, str, str]] | None = None,
        **settings: Any,
    ) -> None:
        """Add `[providers.NAME]` with these settings, unless the user has that table. A project cannot add providers.

        `dialog` runs for `/login NAME`: it yields steps, each of which returns the user's answer, and returns a secret, which
        wolo saves: the API key. `login` returns the API key when the provider is used. With a dialog it gets the secret, such
        as a refresh token; a pair of the key and a new secret replaces that.
        """
        self.providers[name] = settings
        if login is not None:
            self.logins[name] = login
        if dialog is not None:
            self.dialogs[name] = dialog

    def status(self, text: str) -> None:
        """Show a text in the status line of the terminal; an empty one removes it."""
        self.actions.append(("status", text))

    def notify(self, text: str) -> None:
        """Show the user a notice."""
        self.actions.append(("notify", text))

    def add_context(self, text: str) -> None:
        """Give the model a text with the next request of a turn."""
        self.actions.append(("tell", text))

    def prompt(self, text: str) -> None:
        """In a command: send this prompt."""
        self.actions.append(("prompt", text))

    def compact(self) -> None:
        """Compact the conversation before its next request."""
        self.actions.append(("compact", ""))

    def save(self, state: Any) -> None:
        """Save a JSON value with the session; `state` has it after a resume."""
        self.state = state
        self.actions.append(("save", state))

    def _listen(self, event: str, function: F, *tools: str) -> F:
        self.listeners.setdefault(event, []).append((function, frozenset(tools)))
        return function
