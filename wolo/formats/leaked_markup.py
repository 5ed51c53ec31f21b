"""Calls written in the native markup of a model family: Qwen's coders (`<function=read>…`) and GLM (`<tool_call>read…`)."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

TAG, END_TAG = "<tool_call>", "</tool_call>"
NEVER, NOT_YET = -1, -2

_FUNCTION = "<function="
_NAME = re.compile(r"[\w.-]*")
_QWEN_VALUE = re.compile(r"\s*<parameter=([^>\s]+)>(.*?)</parameter>(?=\s*(?:<parameter=|</function>))", re.DOTALL)
_GLM_VALUE = re.compile(r"\s*<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>(?=\s*(?:<arg_key>|</tool_call>))", re.DOTALL)


class Form(NamedTuple):
    end: str
    whole: re.Pattern[str]
    """From the name to the end; what stands between are the values."""
    value: re.Pattern[str]


# An end tag may also stand in a value: it counts only behind the last value, or where there is none.
_QWEN = Form("</function>", re.compile(r"<function=([\w.-]+)\s*>(|.*?</parameter>)\s*</function>", re.DOTALL), _QWEN_VALUE)
_GLM = Form(END_TAG, re.compile(r"([\w.-]+)(|.*?</arg_value>)\s*</tool_call>", re.DOTALL), _GLM_VALUE)


def find_markup(text: str, at: int, offered: Collection[str], *, is_tagged: bool) -> Form | int:
    """The form in which a call of an offered tool begins at `at`; NEVER, or NOT_YET while more text must tell."""
    if text.startswith(_FUNCTION, at):
        return _name_known(text, at + len(_FUNCTION), (">",), offered, _QWEN)
    if _FUNCTION.startswith(text[at:]):
        return NOT_YET
    return _name_known(text, at, ("<arg_key>", END_TAG), offered, _GLM) if is_tagged else NEVER


class Markup:
    """A call in markup that is being read."""

    def __init__(self, opening: str, form: Form, schemas: Mapping[str, Mapping[str, Any]]) -> None:
        self.opening = opening
        self.call: tuple[str, str] | None = None
        """The tool and its arguments, once the end has come."""
        self._form = form
        self._schemas = schemas
        self._fragments: list[str] = []
        self._tail = ""
        """The end of what was read: an end tag may be cut in two."""

    @property
    def raw(self) -> str:
        return self.opening + "".join(self._fragments)

    def take(self, text: str) -> str | None:
        """Returns what follows the call, or None while it goes on."""
        self._fragments.append(text)
        end = self._form.end
        fresh = self._tail + text
        self._tail = fresh[-len(end) + 1 :]
        if end not in fresh:
            return None
        everything = "".join(self._fragments)
        whole = self._form.whole.match(everything)
        if whole is None or (arguments := self._arguments(whole)) is None:
            return None
        self.call = whole[1], json.dumps(arguments, ensure_ascii=False)
        self._fragments = [whole[0]]
        return everything[whole.end() :]

    def _arguments(self, whole: re.Match[str]) -> dict[str, Any] | None:
        """None when something else stands between the values."""
        properties = self._schemas.get(whole[1], {}).get("properties", {})
        arguments: dict[str, Any] = {}
        at = whole.start(2)
        while value := self._form.value.match(whole.string, at):
            key = value[1].strip()
            arguments[key] = _converted(value[2].removeprefix("\n").removesuffix("\n"), properties.get(key))
            at = value.end()
        return arguments if not whole.string[at : whole.end(2)].strip() else None


def _name_known(text: str, at: int, followers: tuple[str, ...], offered: Collection[str], form: Form) -> Form | int:
    name = _NAME.match(text, at)
    assert name is not None  # it may be empty
    if name.end() == len(text):
        return NOT_YET if any(tool.startswith(name[0]) for tool in offered) else NEVER
    rest = text[name.end() :].lstrip()
    if name[0] not in offered:
        return NEVER
    if any(rest.startswith(follower) for follower in followers):
        return form
    return NOT_YET if any(follower.startswith(rest) for follower in followers) else NEVER


def _converted(text: str, schema: Any) -> Any:
    """Markup knows text only; what else a value is says the tool. Text stays text, also where it looks like JSON."""
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    if kind in (None, "string"):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
