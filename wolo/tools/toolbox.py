"""The tools of one agent: offers them to the model and decodes its calls."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from wolo.errors import ToolError, UsageError
from wolo.formats.format import ToolSpec
from wolo.messages.parts import ToolKind
from wolo.models.provider import EDIT_TOOLS, EditTool
from wolo.tools.tool import FIND_TOOLS, READ_RESOURCE, BuiltinTool, ExternalTool, Tool, kind_of


class ShippedTool(Struct, frozen=True):
    """A built-in tool whose code is loaded at its first call."""

    name: str
    module: str
    class_name: str

    def load(self) -> BuiltinTool:
        return _load(self)


@cache
def _load(shipped: ShippedTool) -> BuiltinTool:
    tool: BuiltinTool = getattr(import_module(f"wolo.tools.{shipped.module}"), shipped.class_name)()
    return tool


BUILTIN = (
    ShippedTool("read", "read", "Read"),
    ShippedTool("write", "editing.write", "Write"),
    ShippedTool("edit", "editing.edit", "Edit"),
    ShippedTool("apply_patch", "editing.apply_patch", "ApplyPatch"),
    ShippedTool("shell", "shell", "Shell"),
    ShippedTool("jobs", "jobs_tool", "Jobs"),
    ShippedTool("grep", "search.grep", "Grep"),
    ShippedTool("glob", "search.glob", "Glob"),
    ShippedTool("lsp", "search.code_lookup", "CodeLookup"),
    ShippedTool("repo_map", "search.repo_map", "RepoMap"),
    ShippedTool("fetch", "fetch", "Fetch"),
    ShippedTool("web_search", "web_search", "WebSearch"),
    ShippedTool("todo", "todo", "Todo"),
    ShippedTool("task", "task", "Task"),
    ShippedTool("ask", "questions.ask", "Ask"),
    ShippedTool("present_plan", "questions.present_plan", "PresentPlan"),
    ShippedTool("skill", "skill", "SkillTool"),
    ShippedTool("remember", "remember", "Remember"),
    ShippedTool("expand_message", "expand_message", "ExpandMessage"),
)
"""In offered order, which is part of the prompt's prefix and does not change within a session."""
TASK_COMPLETION = "task_completion"
BUILTIN_WITH_COMPLETION = (*BUILTIN, ShippedTool(TASK_COMPLETION, "task", "TaskCompletion"))
"""For models that call tools in their text."""

NEEDS_COMPACTION = frozenset({"expand_message"})
"""Offered after the first compaction, when the cached prefix is lost anyway."""

NEEDS_SKILLS = frozenset({"skill"})
"""Offered when there are skills."""

NEEDS_NOTES = frozenset({"remember"})
"""Offered when the model may propose notes."""

NEEDS_USER = frozenset({"ask"})
"""Offered when a user is present."""

PRESENT_PLAN = "present_plan"
NEEDS_PLANNER = frozenset({PRESENT_PLAN})
"""Offered to a main agent whose user is present, in every mode: the cached prefix stays when the mode changes."""

NEEDS_SEARCH_SERVICE = frozenset({"web_search"})
"""Offered when the settings name a search service."""

NEEDS_LANGUAGE_SERVER = frozenset({"lsp"})
"""Offered when the settings say so and a server is installed."""

NEEDS_SYMBOLS = frozenset({"repo_map"})
"""Offered when the settings say so."""

NEEDS_SUBAGENTS = frozenset({"task"})
"""Offered to the main agent only."""

SHIPPED = Path(__file__).with_name("schemas.json")
"""Descriptions and schemas of the built-in tools; `python -m wolo.tools.toolbox` regenerates the file."""
MCP_PREFIX = "mcp__"
"""Prefix of MCP tools; `mcp__SERVER` means all tools of one server."""


AnyTool = ShippedTool | BuiltinTool | ExternalTool


class Toolbox:
    def __init__(
        self,
        tools: Iterable[AnyTool] = BUILTIN,
        *,
        edit_tool: EditTool = "edit",
        more: Mapping[str, str] | None = None,
        most: int | None = None,
        budget: int | None = None,
    ) -> None:
        """`edit_tool`: the offered form of editing; the other form is accepted too.

        `more`: text added to the description of a tool, by name.

        `most`: maximum number of tools in a request; `budget`: maximum tokens of MCP tools that nobody searched for. External
        tools beyond either are deferred until the model searches for them.
        """
        self._tools = {tool.name: tool for tool in tools}
        self._edit_tool: EditTool = edit_tool
        self._more = more or {}
        self._specs: dict[bool, tuple[ToolSpec, ...]] = {}
        self._most, self._budget = most, budget
        self._deferred: dict[str, ExternalTool] = {}
        """Not offered, but accepted."""
        self._found: list[str] = []
        """Deferred tools that were found, in that order."""
        self._only: Collection[str] | None = None
        self._hide: Collection[str] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of offered tools, including later ones."""
        return tuple(name for name in self._tools if name not in EDIT_TOOLS or name == self._edit_tool)

    def specs(self, *, compacted: bool = False) -> tuple[ToolSpec, ...]:
        """Returns the same values in the same order every time. `compacted`: messages were omitted, so `expand_message` is
        offered."""
        if compacted not in self._specs:
            hidden = ({*EDIT_TOOLS} - {self._edit_tool}) | (set() if compacted else NEEDS_COMPACTION)
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
        """Returns a toolbox with `only` these tools (None: all) and without those to `hide`. Raises UsageError for unknown names.

        `expand_message` is always included if there are tools. `edit` and `apply_patch` are treated as one; `edit_tool` is the
        form for another model.
        """
        for name in (*(only or ()), *hide):
            if name not in self._tools and name not in (FIND_TOOLS, READ_RESOURCE) and not name.startswith(MCP_PREFIX):
                raise UsageError(f"There is no tool `{name}`.", hint=f"The tools are: {', '.join(self._tools)}.")
        selected = None if only is None else _with_both_forms(only) | (NEEDS_COMPACTION if only else frozenset())
        unwanted = _with_both_forms(hide)
        offered = Toolbox(
            (), edit_tool=edit_tool or self._edit_tool, more=self._more, most=most or self._most, budget=self._budget
        )
        offered._only, offered._hide = selected, unwanted
        offered.add((*self._tools.values(), *self._deferred.values()))
        return offered

    def add(self, tools: Iterable[AnyTool]) -> None:
        """Adds tools after all others, from the next request on; known and hidden tools are skipped.

        External tools are deferred when there would be too many.
        """
        new: dict[str, AnyTool] = {}
        for tool in tools:
            is_known = tool.name in self._tools or tool.name in self._deferred
            is_hidden = (self._only is not None and not _is_among(tool.name, self._only)) or _is_among(tool.name, self._hide)
            if not is_known and not is_hidden and not getattr(tool, "finds_in_another_toolbox", False):
                new[tool.name] = tool
        foreign = _external(new, READ_RESOURCE)
        own = {name: tool for name, tool in new.items() if name not in foreign}
        self._tools |= own
        are_too_many = self._most is not None and len(self.names) + len(foreign) > self._most - 1
        if foreign and (are_too_many or self._are_too_large(foreign)):
            self._defer(foreign)
        else:
            self._tools |= foreign
        if new:
            self._specs.clear()

    def _are_too_large(self, foreign: Mapping[str, ExternalTool]) -> bool:
        if self._budget is None:
            return False
        from wolo.models.tokens import estimate_tools  # noqa: PLC0415  # few conversations have MCP tools

        offered = [tool for name, tool in self._tools.items() if name.startswith(MCP_PREFIX) and name not in self._found]
        specs = [tool.spec for tool in (*offered, *foreign.values()) if isinstance(tool, ExternalTool)]
        return estimate_tools(specs) > self._budget

    def _defer(self, foreign: Mapping[str, ExternalTool]) -> None:
        self._deferred |= foreign
        if self._deferred and FIND_TOOLS not in self._tools and FIND_TOOLS not in self._hide:
            from wolo.tools.find_tools import FindTools  # noqa: PLC0415  # few conversations have that many tools

            self._tools[FIND_TOOLS] = FindTools(self._deferred, self._offer_found)

    def _offer_found(self, names: Sequence[str]) -> None:
        """Offers found tools after all others; defers those found first when there is no room."""
        for name in names:
            self._tools[name] = self._deferred.pop(name)
            self._found.append(name)
        while self._most is not None and len(self.names) > self._most and len(self._found) > len(names):
            oldest = self._found.pop(0)
            self._deferred[oldest] = self._tools.pop(oldest)  # type: ignore[assignment]  # it was one of these
        if names:
            self._specs.clear()

    def limit(self, most: int) -> bool:
        """Limits the number of offered tools by deferring external ones. False: nothing changed."""
        foreign = _external(self._tools, FIND_TOOLS, READ_RESOURCE)
        if len(self.names) <= most or not foreign:
            return False
        self._most = most
        self._tools = {name: tool for name, tool in self._tools.items() if name not in foreign}
        self._found.clear()
        self._defer(foreign)
        self._specs.clear()
        return True

    def drop(self, name: str) -> None:
        """Removes a tool; it is neither offered nor accepted again."""
        del self._tools[name]
        self._hide = frozenset((*self._hide, name))
        self._specs.clear()

    def foreign(self, *, compacted: bool = False) -> dict[int, str]:
        """Names of external tools, by position in `specs`."""
        external = _external(self._tools)
        names = enumerate(spec.name for spec in self.specs(compacted=compacted))
        return {place: name for place, name in names if name in external}

    def own_call(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """Name and arguments of the tool that a call means: models also use the names of other agents' tools.

        Unknown names stay as they are. Raises ToolError for what no tool does.
        """
        tool = self._find(name) or self._find(name.removeprefix("functions.").removeprefix("default_api."))
        is_shell = isinstance(tool, ShippedTool) and tool.name == "shell"
        if tool is not None and (not is_shell or arguments.keys() <= {"command", "timeout_s", "background", "pty"}):
            return tool.name, arguments
        from wolo.tools.foreign_calls import command_arguments, own_call  # noqa: PLC0415  # most models use our names

        if tool is not None:
            return tool.name, command_arguments(arguments)
        own, translated = own_call(name, arguments)
        return (own, translated) if own in self._tools else (name, arguments)

    def unwrap(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Decodes JSON in strings where the tool does not want text."""
        tool = self._find(name)
        if isinstance(tool, ShippedTool):
            tool = tool.load()
        elif tool is None or isinstance(tool, ExternalTool):
            return dict(arguments)
        from wolo.tools.tool_arguments import unwrap_arguments  # noqa: PLC0415  # not needed before the first call

        return unwrap_arguments(tool, arguments)

    def decode(self, name: str, arguments: Mapping[str, Any]) -> tuple[Tool, Any]:
        """Returns the tool and its decoded arguments. Raises ToolError with a message for the model."""
        if (tool := self._find(name)) is None:
            offered = [each for each in self.names if each not in NEEDS_COMPACTION or True in self._specs]
            raise ToolError(f"There is no tool `{name}`. The tools are: {', '.join(offered) or 'none'}.")
        if isinstance(tool, ShippedTool):
            tool = tool.load()
        elif isinstance(tool, ExternalTool):
            return tool, dict(arguments)
        from wolo.tools.tool_arguments import decode_arguments  # noqa: PLC0415  # not needed before the first call

        return tool, decode_arguments(tool, arguments)

    def kind(self, name: str) -> ToolKind:
        """The kind of a tool's calls, before their arguments are known."""
        if (tool := self._find(name)) is None:
            from wolo.tools.foreign_calls import OWN_NAMES  # noqa: PLC0415  # most models use our names

            tool = self._tools.get(OWN_NAMES.get(name.strip().lower(), ""))
        return "other" if tool is None else kind_of(tool.load() if isinstance(tool, ShippedTool) else tool)

    def _find(self, name: str) -> AnyTool | None:
        return self._tools.get(name) or self._deferred.get(name) or self._tools.get(name.strip().lower())


def _external(tools: Mapping[str, AnyTool], *without: str) -> dict[str, ExternalTool]:
    """Asks no shipped tool for the members of the protocol: Python 3.12 loads `inspect` for that."""
    others = {name: tool for name, tool in tools.items() if not isinstance(tool, ShippedTool) and name not in without}
    return {name: tool for name, tool in others.items() if isinstance(tool, ExternalTool)}


def _is_among(name: str, names: Collection[str]) -> bool:
    return name in names or any(name.startswith(beginning) for beginning in map(beginning_of, names) if beginning)


@lru_cache
def beginning_of(whole: str) -> str:
    """Returns the prefix of the tools of `mcp__SERVER`, which providers accept only without dots; empty for other names."""
    server = re.sub(r"[^A-Za-z0-9_-]", "_", whole.removesuffix("*").removesuffix("__"))
    return f"{server}__" if whole.startswith(MCP_PREFIX) else ""


def _with_both_forms(names: Collection[str]) -> frozenset[str]:
    return frozenset((*names, *EDIT_TOOLS)) if any(name in EDIT_TOOLS for name in names) else frozenset(names)


@cache
def _shipped_rows() -> dict[str, Any]:
    """Once in a process; all conversations share the schemas."""
    rows: dict[str, Any] = msgspec.json.decode(SHIPPED.read_bytes())
    return rows


def _specs(tools: Iterable[AnyTool], more: Mapping[str, str]) -> tuple[ToolSpec, ...]:
    specs = []
    for tool in tools:
        if isinstance(tool, ShippedTool):
            specs.append(_shipped_spec(tool.name, more.get(tool.name, "")))
        elif isinstance(tool, ExternalTool):
            specs.append(tool.spec)
        else:
            from wolo.tools.tool_arguments import describe  # noqa: PLC0415  # the schema maker loads slowly; ours are shipped

            specs.append(_spec(tool.name, describe(tool), more.get(tool.name, "")))
    return tuple(specs)


@lru_cache
def _shipped_spec(name: str, more: str) -> ToolSpec:
    """The same value in all conversations, so that what is made of it is made once."""
    return _spec(name, _shipped_rows()[name], more)


def _spec(name: str, row: Mapping[str, Any], more: str) -> ToolSpec:
    return ToolSpec(name, "\n".join(filter(None, (row["description"], more))), row["parameters"])


if __name__ == "__main__":
    from wolo.tools.tool_arguments import shipped_text

    SHIPPED.write_text(shipped_text(tool.load() for tool in BUILTIN_WITH_COMPLETION), encoding="utf-8")
