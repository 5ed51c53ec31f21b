"""The `find_tools` tool: offers tools that were deferred because they are too many, or would fill the context window."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from wolo.errors import ToolError
from wolo.formats.format import ToolSpec
from wolo.guard.intents import Intent
from wolo.tools.tool import FIND_TOOLS, CallContext, ExternalTool, ToolServices
from wolo.tools.tool_values import CallResult

MOST_FOUND = 8
_MOST_NAMES_CHARS = 3000
_MOST_LINE_CHARS = 200
_WORD = re.compile(r"[a-z0-9]+")
_OF_THE_NAME = 3
"""Weight of a word in the name of a tool, compared to its description."""


class FindTools:
    """Has its own schema, because its description lists the deferred tools."""

    name = FIND_TOOLS
    finds_in_another_toolbox = True
    """Every toolbox creates its own."""
    reads_only = False
    """Found tools are offered from then on."""

    def __init__(self, deferred: Mapping[str, ExternalTool], offer: Callable[[Sequence[str]], None]) -> None:
        """`deferred` is live; `offer` offers some of its tools."""
        self._deferred, self._offer = deferred, offer
        names, room = [], _MOST_NAMES_CHARS
        for name in sorted(deferred):
            room -= len(name) + 2
            if room < 0:
                break
            names.append(name)
        more = "" if len(names) == len(deferred) else f" and {len(deferred) - len(names)} more"
        self.spec = ToolSpec(
            FIND_TOOLS,
            (
                "Find further tools by what they do, or by name; found tools can be called from then on. Not all tools are"
                f" offered at once. {_count_by_server(deferred)} They are {', '.join(names)}{more}."
            ),
            _PARAMETERS,
        )

    def intents(self, args: Mapping[str, Any], services: ToolServices) -> Sequence[Intent]:
        return ()

    async def run(self, args: Mapping[str, Any], call: CallContext) -> CallResult:
        query = str(args.get("query") or next((each for each in args.values() if isinstance(each, str)), "")).strip()
        if not query:
            raise ToolError("find_tools: `query` is missing: say what the tool is to do, or its name.")
        names = best(query, self._deferred)
        lines = [_line(self._deferred[name]) for name in names]
        self._offer(names)
        if recorded := call.services.recorded_result(call.call_id):
            return recorded
        if not names:
            return CallResult(f"No tool matches {query}. {_count_by_server(self._deferred)}")
        return CallResult("\n".join(["You can call these from now on:", *lines]))


def best(query: str, tools: Mapping[str, ExternalTool]) -> list[str]:
    """Returns the best matches first. A tool that is named exactly is the only match."""
    if named := [name for name in tools if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", query)]:
        return named[:MOST_FOUND]
    terms = set(_words(query))
    scores: dict[str, int] = {}
    for name, tool in tools.items():
        in_name, in_description = set(_words(tool.name)), set(_words(tool.spec.description))
        scores[name] = sum(_OF_THE_NAME * _matches(term, in_name) + _matches(term, in_description) for term in terms)
    return sorted((name for name, score in scores.items() if score), key=lambda name: (-scores[name], name))[:MOST_FOUND]


def _matches(word: str, words: set[str]) -> bool:
    """Ignores a plural `s` on either side."""
    return word in words or word.removesuffix("s") in words or f"{word}s" in words


def _words(text: str) -> list[str]:
    return [word for word in _WORD.findall(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).lower()) if word not in _SAYS_NOTHING]


_SAYS_NOTHING = frozenset(("a", "an", "and", "for", "from", "in", "of", "on", "or", "the", "to", "tool", "tools", "with", "mcp"))


def _line(tool: ExternalTool) -> str:
    about = " ".join(tool.spec.description.split())
    return f"- {tool.name}: {about if len(about) <= _MOST_LINE_CHARS else f'{about[:_MOST_LINE_CHARS]}…'}"


def _count_by_server(tools: Iterable[str]) -> str:
    servers = Counter(name.split("__")[1] if name.count("__") > 1 else name for name in tools)
    return f"There are tools of: {', '.join(f'{server} ({count})' for server, count in sorted(servers.items()))}."


_PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "what the tool is to do, or its name"}},
    "required": ["query"],
}
