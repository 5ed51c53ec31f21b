"""Replaces secrets with placeholders wherever a model, the screen or the disk could see them.

A value is replaced when text comes in and restored just before a call runs. It has the same placeholder in every session on this
machine, and the value cannot be derived from the placeholder.
"""

from __future__ import annotations

import asyncio
import operator
import os
import re
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from wolo.errors import WoloError
from wolo.guard.intents import CallIntent, FetchIntent, Intent, ReadIntent, RunIntent, WriteIntent
from wolo.guard.rules import Verdict
from wolo.guard.secrets.finder import SecretFiles
from wolo.guard.shell.words import printable
from wolo.messages.message import Message
from wolo.messages.parts import AnyPart, AudioPart, FilePart, ImagePart, TextPart, ThinkingPart, ToolPart
from wolo.messages.secret_values import MIN_CHARS, PLACEHOLDER, Secret, StreamRedactor, ValueRedactor, encoded_forms

HOW_TO_USE = "[Words like {} are placeholders for secret values. Use them unchanged: they are replaced when a call runs.]"
MAX_FORMS = 8_000
KEY_BYTES = 32
_NAME_CHARACTERS = 40
_READ_BY_A_SHELL = r"[^\w@%+=:,./-]"

_SECRET_FIELDS: Mapping[type[Struct], tuple[str, ...]] = {
    TextPart: ("text",),
    ThinkingPart: ("text",),
    ToolPart: ("tool", "input", "raw_input", "output", "output_parts"),
    ImagePart: ("name", "data", "url"),
    AudioPart: ("name", "data"),
    FilePart: ("name", "data", "url"),
}
"""The fields of each part that may contain secrets."""

E = TypeVar("E", bound=WoloError)
P = TypeVar("P", bound=AnyPart)
S = TypeVar("S", bound=Struct)


class RestoredValue(Struct, frozen=True):
    value: Any
    names: tuple[str, ...] = ()
    """Names of the secrets inserted."""
    has_metacharacters: bool = False
    """A shell would interpret characters in one of them."""


class Secrets:
    """The known secrets of one conversation. Grows as files change; never shrinks."""

    def __init__(
        self,
        known: Iterable[Secret] = (),
        files: SecretFiles | None = None,
        key: Callable[[], bytes] = lambda: os.urandom(KEY_BYTES),
    ) -> None:
        """`key` is called at most once; with it, placeholders cannot be checked against guessed values."""
        self._files = files or SecretFiles()
        self._make_key = key
        self._key = b""
        self._names: dict[str, str] = {}
        """Name of each form that a value may appear in."""
        self.exact = ValueRedactor()
        self._forms_by_digest: dict[str, str] = {}
        self._changing = threading.Lock()
        self._scanning = asyncio.Lock()
        self._has_scanned = self._is_explained = False
        self.learn((*known, *self._files.scan_top()))

    def learn(self, known: Iterable[Secret]) -> None:
        with self._changing:
            before = len(self._names)
            for each in known:
                if len(each.value) >= MIN_CHARS and each.value not in self._names and len(self._names) < MAX_FORMS:
                    for form in encoded_forms(each.value):
                        self._names.setdefault(form, each.name)
            if len(self._names) != before:
                self.exact = ValueRedactor(self._names, self._placeholder)
                self._forms_by_digest = {}

    async def scan_workspace(self) -> None:
        """Scans deep directories once, before the first call runs."""
        async with self._scanning:
            if not self._has_scanned:
                self.learn(await asyncio.to_thread(self._files.scan_deep))
                self._has_scanned = True

    def scan_file(self, path: Path) -> None:
        self.learn(self._files.rescan([str(path)]))

    def rescan(self, intents: Collection[Intent] = (), paths: Iterable[str] = ()) -> None:
        """Scans files that a call may have written or was allowed to read."""
        read = [str(intent.path) for intent in intents if isinstance(intent, ReadIntent | WriteIntent)]
        ran = [str(intent.cwd) for intent in intents if isinstance(intent, RunIntent)]
        self.learn(self._files.rescan(paths, real_paths=read, folders=ran))

    def hide(self, text: str) -> str:
        return self.exact.text(text)

    def hide_cut(self, text: str) -> str:
        """Replaces secrets in truncated text, and drops a possible first half of one at the end."""
        text = self.exact.text(text)
        unfinished = self.exact.num_held(text)
        return text if unfinished < MIN_CHARS // 2 else text[:-unfinished]

    def count_unfinished(self, data: bytes) -> int:
        """Number of final bytes that may be the beginning of a secret, in text that continues."""
        text = data.decode("utf-8", "surrogateescape")
        unfinished = self.exact.num_held(text)
        return len(text[len(text) - unfinished :].encode("utf-8", "surrogateescape"))

    def hide_data(self, data: bytes) -> bytes:
        return self.exact.data(data)

    def hide_value(self, value: Any) -> Any:
        """For any JSON value."""
        return self.exact.value(value)

    def stream(self) -> StreamRedactor:
        return self.exact.stream()

    def hide_error(self, error: E) -> E:
        error.message, error.hint = self.hide(error.message), self.hide(error.hint)
        error.args = (error.message,)
        return error

    def hide_part(self, part: P) -> P:
        values = {name: getattr(part, name) for name in _SECRET_FIELDS[type(part)]}
        texts = {name: value for name, value in values.items() if not isinstance(value, bytes | tuple)}
        hidden = dict(zip(texts, self.exact.value([*texts.values()]), strict=True))
        for name, value in values.items():
            if isinstance(value, tuple):
                parts = tuple(map(self.hide_part, value))
                hidden[name] = value if all(map(operator.is_, parts, value)) else parts
            elif isinstance(value, bytes):
                hidden[name] = self.exact.mask(value)
        changed = {name: new for name, new in hidden.items() if new is not values[name]}
        if changed and isinstance(part, ThinkingPart):
            changed["blobs"] = ()  # they sign the exact text
        return replace(part, **changed) if changed else part

    def hide_message(self, message: Message) -> Message:
        """Returns the same object if there is nothing to replace."""
        parts = tuple(map(self.hide_part, message.parts))
        error = message.error and self.hide(message.error)
        is_same = error is message.error and all(map(operator.is_, parts, message.parts))
        return message if is_same else replace(message, parts=parts, error=error)

    def hide_fields(self, view: S) -> S:
        """For a struct that a front end displays."""
        fields = {name: getattr(view, name) for name in view.__struct_fields__}
        changed = {name: new for name, old in fields.items() if (new := self._hidden_field(old)) is not old}
        return replace(view, **changed) if changed else view

    def hide_structs(self, values: tuple[S, ...]) -> tuple[S, ...]:
        return tuple(map(self.hide_fields, values))

    def hide_intent(self, intent: Intent) -> Intent:
        match intent:
            case RunIntent():
                return replace(intent, command=self.hide(intent.command))
            case FetchIntent():
                return replace(intent, url=self.hide(intent.url))
            case CallIntent():
                return replace(intent, target=self.hide(intent.target))
        return replace(intent, path=Path(self.hide(str(intent.path))), given=self.hide(intent.given))

    def explain_once(self, part: ToolPart) -> ToolPart:
        """Adds an explanation to the first result that contains a placeholder."""
        found = None if self._is_explained else re.search(PLACEHOLDER, part.output)
        if found is None or not self.restore(found[0]).names:
            return part
        self._is_explained = True
        return replace(part, output=f"{part.output}\n{HOW_TO_USE.format(found[0])}")

    def restore(self, value: Any) -> RestoredValue:
        """Replaces placeholders with real values throughout a JSON value. Unknown ones stay as they are."""
        used: dict[str, str] = {}
        restored = _throughout(value, lambda text: self._restore_text(text, used))
        return RestoredValue(
            restored, tuple(dict.fromkeys(used.values())), any(re.search(_READ_BY_A_SHELL, each) for each in used)
        )

    def _restore_text(self, text: str, used: dict[str, str]) -> str:
        if "SECRET_" not in text:
            return text
        if not self._forms_by_digest:
            self._forms_by_digest = {self._digest(form): form for form in self._names}

        def value_of(match: re.Match[str]) -> str:
            if (form := self._forms_by_digest.get(match[0][-12:])) is None:
                return match[0]
            used[form] = self._names[form]
            return form

        return re.sub(PLACEHOLDER, value_of, text)

    def _placeholder(self, form: str) -> str:
        name = re.sub("[^A-Z0-9]+|[0-9]{6,}", "_", self._names[form].upper()).strip("_")[:_NAME_CHARACTERS].strip("_")
        return f"SECRET_{name or 'VALUE'}_{self._digest(form)}"

    def _digest(self, form: str) -> str:
        self._key = self._key or self._make_key()
        return blake2b(form.encode("utf-8", "replace"), key=self._key, digest_size=6).hexdigest()

    def _hidden_field(self, value: Any) -> Any:
        if isinstance(value, tuple):
            each = tuple(map(self._hidden_field, value))
            return value if all(a is b for a, b in zip(each, value, strict=True)) else each
        return self.hide_fields(value) if isinstance(value, Struct) else self.exact.value(value)


def ask_first(verdict: Verdict, intents: Sequence[Intent], restored: RestoredValue, *, asks_nobody: bool) -> Verdict:
    """Turns a verdict into a question if a secret would leave the machine.

    `asks_nobody`: the user wants no command to ask.
    """
    if not restored.names:
        return verdict
    names = printable(", ".join(restored.names))
    what = f"the secret {names}" if len(restored.names) == 1 else f"the secrets {names}"
    leaves = any(map(_leaves, intents))
    runs = any(isinstance(intent, RunIntent) for intent in intents)
    is_exact = verdict.source == "session" and not verdict.rule  # the user allowed this exact call
    may_leave = leaves or (runs and not verdict.confined and not asks_nobody)
    if verdict.decision == "allow" and may_leave and not is_exact:
        where = "send" if leaves else "be free to send"
        return replace(verdict, decision="ask", reason=f"The call would {where} {what} to another machine.", rule="", source="")
    if verdict.decision == "ask":
        more = (
            " A shell would interpret characters in it: check it before you approve."
            if runs and restored.has_metacharacters
            else ""
        )
        return replace(verdict, reason=f"{verdict.reason} The call carries {what}.{more}")
    return verdict


def _leaves(intent: Intent) -> bool:
    """Tasks stay here: the other agent sees placeholders too."""
    return isinstance(intent, FetchIntent) or (
        isinstance(intent, CallIntent) and not (intent.by_program or intent.target.startswith("task:"))
    )


def _throughout(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {_throughout(name, change): _throughout(each, change) for name, each in value.items()}
    if isinstance(value, list):
        return [_throughout(each, change) for each in value]
    return value
