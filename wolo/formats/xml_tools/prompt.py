"""What the system prompt says about tools where they are called in the text: the rules, and each tool with its schema."""

from __future__ import annotations

import json
from collections.abc import Sequence

from wolo.formats.encoding.schema import bend
from wolo.formats.format import ToolSpec
from wolo.formats.xml_tools.blocks import spell_call, split_name
from wolo.messages.unicode import clean

_EXAMPLE = spell_call("NAME", "{…}")
_RULES = f"""\
# Calling tools

You call a tool by writing a block like this in your answer, on a line of its own:

{_EXAMPLE}

- `tool_name` and `arguments` must be there; `server_name` is the one given with the tool. `arguments` is a JSON object as the
  schema of the tool describes it.
- Between the tags stands exactly one JSON object: line breaks in texts are written as \\n, quotation marks as \\". Anything may
  stand in a text, tags included.
- You may write several blocks in one answer, and words around them. They are carried out in order once your answer has ended.
  Then their results come as a message of the user: `Tool: ` and the name, and below it what came of the call, or `Error: ` and
  why nothing did.
- Never write a result yourself: end your answer behind the last block and wait.
- A block in a code fence or between backticks is only shown and not carried out. So never put a fence around one that you mean.
- In what the user and the tools say `&lt;tool>` stands for the opening tag."""
_COMPLETION = (
    "- An answer without a block ends the task. So does `task_completion`, whose `result` is your last word to the user."
)
_LAST = "- An answer without a block ends the task."
_BRACKETS = "- Think in lines of their own between square brackets: [like this]. The user sees such lines as your thoughts."


def describe_tools(tools: Sequence[ToolSpec], *, brackets: bool) -> str:
    """Nothing where there is nothing to tell."""
    rules = [_RULES, _COMPLETION if any(tool.name == "task_completion" for tool in tools) else _LAST] if tools else []
    rules += [_BRACKETS] if brackets else []
    return "\n\n".join(["\n".join(rules), *map(_describe, tools)])


def _describe(tool: ToolSpec) -> str:
    server, name = split_name(tool.name)
    schema = json.dumps(bend(tool.parameters), ensure_ascii=False)
    told = (f"## {name}", f"server_name: {server}", clean(tool.description).strip(), f"Schema of the arguments: {schema}")
    return "\n\n".join(text for text in told if text)
