"""The tools of one agent: what the model is offered, and from its arguments to ours."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec
from msgspec import Struct

from wolo.errors import ToolError, UsageError
from wolo.formats.format import ToolSpec
from wolo.models.provider import EDIT_TOOLS, EditTool
from wolo.tools.ask import Ask
from wolo.tools.editing.apply_patch import ApplyPatch
from wolo.tools.editing.edit import Edit
from wolo.tools.editing.write import Write
from wolo.tools.expand_message import ExpandMessage
from wolo.tools.fetch import Fetch
from wolo.tools.read import Read
from wolo.tools.search.glob import Glob
from wolo.tools.search.grep import Grep
from wolo.tools.shell.jobs import Jobs
from wolo.tools.shell.shell import Shell
from wolo.tools.skill import Skill
from wolo.tools.task import Task
from wolo.tools.task_completion import TaskCompletion
from wolo.tools.todo import Todo
from wolo.tools.tool import FIND_TOOLS, ForeignTool, OwnTool, Tool

BUILTIN: tuple[OwnTool, ...] = (
    *(Read(), Write(), Edit(), ApplyPatch(), Shell(), Jobs(), Grep(), Glob()),
    *(Fetch(), Todo(), Task(), Ask(), Skill(), ExpandMessage()),
)
"""In the order they are offered: it is part of the prompt's prefix and does not change within a session."""
IN_TEXT: tuple[OwnTool, ...] = (*BUILTIN, TaskCompletion())
"""Those of a model that calls tools in its text."""

ONCE_COMPACTED = frozenset({ExpandMessage.name})
"""Offered when something was left out, because requests begin anew then anyway."""

WITH_SKILLS = frozenset({Skill.name})
"""Offered where there are some."""

WITH_A_PERSON = frozenset({Ask.name})
"""Offered where somebody is there."""

TO_DELEGATE = frozenset({Task.name})
"""Offered to a model that can work with others, and never by one of these to a third."""

SHIPPED = Path(__file__).with_name("schemas.json")
"""Descriptions and schemas of the built-in tools; `python -m wolo.tools.toolbox` writes them anew from the code."""
OF_SERVERS = "mcp__"
"""So the names of tools begin that come from elsewhere, perhaps later; `mcp__SERVER` means all of one server."""
_SMALL_TALK = frozenset(("description", "explanation", "justification", "purpose", "reason", "thought", "thoughts"))
"""Arguments that some models add to every call; they ask for nothing."""
_WHERE = re.compile(r"(.*?)(?: - at `\$\.?(.*)`)?\Z", re.DOTALL)
_WORDS = {"str": "text", "int": "a whole number", "float": "a number", "bool": "true or false", "array": "a list", "null": "null"}


class Toolbox:
    def __init__(
        self,
        tools: Iterable[OwnTool | ForeignTool] = BUILTIN,
        *,
        edit_tool: EditTool = "edit",
        more: Mapping[str, str] | None = None,
        most: int | None = None,
    ) -> None:
        """`edit_tool`: the form of editing that is offered; the other one is understood all the same.

        `more`: what else the model is told about a tool, by its name, because it is different from place to place.
        `most`: how many a request may offer. Tools from elsewhere that are more than that wait until they are looked for.
        """
        self._tools = {tool.name: tool for tool in tools}
        self._edit_tool: EditTool = edit_tool
        self._more = more or {}
        self._specs: dict[bool, tuple[ToolSpec, ...]] = {}
        self._most = most
        self._deferred: dict[str, ForeignTool] = {}
        """Not offered, and understood all the same."""
        self._found: list[str] = []
        """Those of them that were looked for and are offered, in that order."""
        self._only: Collection[str] | None = None
        self._hide: Collection[str] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Of the tools that are offered, now or later."""
        return tuple(name for name in self._tools if name not in EDIT_TOOLS or name == self._edit_tool)

    def specs(self, *, compacted: bool = False) -> tuple[ToolSpec, ...]:
        """As requests offer them: the same values, in the same order, every time.

        `compacted`: something of the conversation is not sent, and there is a tool that shows it.
        """
        if compacted not in self._specs:
            hidden = ({*EDIT_TOOLS} - {self._edit_tool}) | (set() if compacted else ONCE_COMPACTED)
            shown = (tool for tool in self._tools.values() if tool.name not in hidden)
            self._specs[compacted] = _specs(shown, self._more)
        return self._specs[compacted]

    def offer(
        self,
        only: Collection[str] | None = None,
        hide: Collection[str] = (),
        *,
        edit_tool: EditTool | None = None,
        most: int | None = None,
    ) -> Toolbox:
        """A toolbox with `only` these tools (None: all) and without those to `hide`. Raises UsageError for unknown names.

        Where there are tools at all, the way back to what was left out of the conversation is one of them.
        Both forms of editing stand and fall together; `edit_tool` is the one for another model.
        """
        for name in (*(only or ()), *hide):
            if name not in self._tools and name != FIND_TOOLS and not name.startswith(OF_SERVERS):
                raise UsageError(f"There is no tool `{name}`.", hint=f"The tools are: {', '.join(self._tools)}.")
        wanted = None if only is None else _with_both_forms(only) | (ONCE_COMPACTED if only else frozenset())
        unwanted = _with_both_forms(hide)
        offered = Toolbox((), edit_tool=edit_tool or self._edit_tool, more=self._more, most=most or self._most)
        offered._only, offered._hide = wanted, unwanted
        offered.add((*self._tools.values(), *self._deferred.values()))
        return offered

    def add(self, tools: Iterable[OwnTool | ForeignTool]) -> None:
        """Behind all others, from the next request on; what is known or was not to be offered is passed over.

        Where tools from elsewhere would be too many, these wait, and there is a tool that finds them.
        """
        new = {tool.name: tool for tool in tools if self._is_wanted(tool)}
        foreign = {name: tool for name, tool in new.items() if isinstance(tool, ForeignTool)}
        own = {name: tool for name, tool in new.items() if name not in foreign}
        self._tools |= own
        if self._most is not None and len(self.names) + len(foreign) > self._most - 1:
            self._defer(foreign)
        else:
            self._tools |= foreign
        if new:
            self._specs.clear()

    def _is_wanted(self, tool: OwnTool | ForeignTool) -> bool:
        if tool.name in self._tools or tool.name in self._deferred or getattr(tool, "finds_in_another_toolbox", False):
            return False
        return (self._only is None or _is_among(tool.name, self._only)) and not _is_among(tool.name, self._hide)

    def _defer(self, foreign: Mapping[str, ForeignTool]) -> None:
        self._deferred |= foreign
        if self._deferred and FIND_TOOLS not in self._tools and FIND_TOOLS not in self._hide:
            from wolo.tools.find_tools import FindTools  # noqa: PLC0415  # few conversations have so many tools

            self._tools[FIND_TOOLS] = FindTools(self._deferred, self._offer_found)

    def _offer_found(self, names: Sequence[str]) -> None:
        """Behind all others. Where there is no room, those that were found first wait again."""
        for name in names:
            self._tools[name] = self._deferred.pop(name)
            self._found.append(name)
        while self._most is not None and len(self.names) > self._most and len(self._found) > len(names):
            oldest = self._found.pop(0)
            self._deferred[oldest] = self._tools.pop(oldest)  # type: ignore[assignment]  # it was one of these
        if names:
            self._specs.clear()

    def limit(self, most: int) -> bool:
        """No more than this may be offered: tools from elsewhere wait until they are looked for. False: that changes nothing."""
        foreign = {name: tool for name, tool in self._tools.items() if isinstance(tool, ForeignTool) and name != FIND_TOOLS}
        if len(self.names) <= most or not foreign:
            return False
        self._most = most
        self._tools = {name: tool for name, tool in self._tools.items() if name not in foreign}
        self._found.clear()
        self._defer(foreign)
        self._specs.clear()
        return True

    def drop(self, name: str) -> None:
        """It is not offered any more, whoever brings it, and not understood."""
        del self._tools[name]
        self._hide = frozenset((*self._hide, name))
        self._specs.clear()

    def foreign(self, *, compacted: bool = False) -> dict[int, str]:
        """The names of those that bring their own schema, by their place among `specs`."""
        names = enumerate(spec.name for spec in self.specs(compacted=compacted))
        return {place: name for place, name in names if isinstance(self._tools[name], ForeignTool)}

    def unwrapped(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments, those read that hold JSON as a string where the tool wants no text."""
        tool = self._find(name)
        if tool is None or isinstance(tool, ForeignTool):
            return dict(arguments)
        fields = {field.name: field.type for field in msgspec.structs.fields(tool.Args)}
        wrapped = {
            given: value
            for given, value in arguments.items()
            if str not in ((kind := fields.get(tool.aliases.get(given, given), str)), *get_args(kind))
        }
        return {**arguments, **_unwrap(wrapped, tool)}

    def decode(self, name: str, arguments: Mapping[str, Any]) -> tuple[Tool, Any]:
        """The tool of that name and the arguments as it wants them. Raises ToolError that tells the model what is wrong."""
        tool = self._find(name)
        if tool is None:
            offered = [each for each in self.names if each not in ONCE_COMPACTED or True in self._specs]
            raise ToolError(f"There is no tool `{name}`. The tools are: {', '.join(offered) or 'none'}.")
        if isinstance(tool, ForeignTool):
            return tool, dict(arguments)
        return tool, _convert(tool, _rename(arguments, tool))

    def _find(self, name: str) -> OwnTool | ForeignTool | None:
        return self._tools.get(name) or self._tools.get(name.strip().lower()) or self._deferred.get(name)


def _is_among(name: str, names: Collection[str]) -> bool:
    return name in names or any(name.startswith(beginning) for beginning in map(beginning_of, names) if beginning)


def beginning_of(whole: str) -> str:
    """How the tools of `mcp__SERVER` begin, which providers take only without a dot; empty for what names no server."""
    server = re.sub(r"[^A-Za-z0-9_-]", "_", whole.removesuffix("*").removesuffix("__"))
    return f"{server}__" if whole.startswith(OF_SERVERS) else ""


def _with_both_forms(names: Collection[str]) -> frozenset[str]:
    return frozenset((*names, *EDIT_TOOLS)) if any(name in EDIT_TOOLS for name in names) else frozenset(names)


def _specs(tools: Iterable[OwnTool | ForeignTool], more: Mapping[str, str]) -> tuple[ToolSpec, ...]:
    shipped = msgspec.json.decode(SHIPPED.read_bytes())
    builtin = {id(tool) for tool in IN_TEXT}
    specs = []
    for tool in tools:
        if isinstance(tool, ForeignTool):
            specs.append(tool.spec)
            continue
        if id(tool) in builtin:
            row = shipped[tool.name]
        else:
            from wolo.tools.schemas import describe  # noqa: PLC0415  # the schema maker loads slowly; ours are shipped

            row = describe(tool)
        description = "\n".join(filter(None, (row["description"], more.get(tool.name, ""))))
        specs.append(ToolSpec(tool.name, description, row["parameters"]))
    return tuple(specs)


def _rename(arguments: Mapping[str, Any], tool: OwnTool) -> dict[str, Any]:
    """Other spellings become ours; what says nothing is dropped; anything else unknown is an error."""
    known = tool.Args.__struct_fields__
    renamed: dict[str, Any] = {}
    for given, value in arguments.items():
        name = given if given in known else tool.aliases.get(given, given)
        if name not in known:
            if not name or value in (None, "", [], {}) or given in _SMALL_TALK:
                continue
            raise ToolError(f"{tool.name}: there is no argument `{given}`. {_usage(tool)}")
        if value is None:
            continue
        value = _rename_within(value, tool)
        if name in renamed and renamed[name] != value:
            raise ToolError(f"{tool.name}: `{name}` is given twice, with different values.")
        renamed[name] = value
    return renamed


def _rename_within(value: Any, tool: OwnTool) -> Any:
    """Items of a list such as `edits` go by the same other spellings."""
    if not isinstance(value, list):
        return value
    return [
        {tool.aliases.get(key, key): item for key, item in each.items() if item is not None} if isinstance(each, dict) else each
        for each in value
    ]


def _convert(tool: OwnTool, arguments: dict[str, Any]) -> Struct:
    try:
        return msgspec.convert(arguments, tool.Args, strict=False)
    except msgspec.ValidationError as error:
        unwrapped = _unwrap(arguments, tool)
        if unwrapped != arguments:
            try:
                return msgspec.convert(unwrapped, tool.Args, strict=False)
            except msgspec.ValidationError:
                pass  # the first complaint is about what the model wrote
        raise ToolError(f"{tool.name}: {_sentence(str(error))} {_usage(tool)}") from error


def _unwrap(arguments: dict[str, Any], tool: OwnTool) -> dict[str, Any]:
    """A list or an object that the model wrote as a string of JSON, one level deep."""
    unwrapped = dict(arguments)
    for name, value in arguments.items():
        if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
            try:
                unwrapped[name] = _rename_within(msgspec.json.decode(value), tool)
            except msgspec.DecodeError:
                continue
    return unwrapped


def _usage(tool: OwnTool) -> str:
    fields = msgspec.structs.fields(tool.Args)
    named = (field.name if field.required else f"{field.name} (optional)" for field in fields)
    return f"The arguments are: {', '.join(named)}."


def _sentence(complaint: str) -> str:
    match = _WHERE.match(complaint)
    said, where = (match[1], match[2]) if match else (complaint, None)
    if missing := re.match(r"Object missing required field `(.*)`", said):
        return f"`{f'{where}.' if where else ''}{missing[1]}` is missing."
    if types := re.match(r"Expected `(.*)`, got `(.*)`", said):
        wanted = " or ".join(_WORDS.get(word, word) for word in types[1].split(" | ") if word != "null")
        return f"`{where or 'the arguments'}` must be {wanted}, not {_WORDS.get(types[2], f'an {types[2]}')}."
    return f"{said}{f' (`{where}`)' if where else ''}."


if __name__ == "__main__":
    from wolo.tools.schemas import shipped_text

    SHIPPED.write_text(shipped_text(IN_TEXT), encoding="utf-8")
