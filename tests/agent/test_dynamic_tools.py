"""Finds the tool that a provider refused, by its name or its position in the request."""

from __future__ import annotations

import pytest

from wolo.agent.prompt_prefix import rejected_tool

FOREIGN = {11: "mcp__a__read", 12: "mcp__a__read_all"}


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("Invalid schema for function 'mcp__a__read_all': bad", "mcp__a__read_all"),
        ("Invalid 'tools[11].function.parameters': bad", "mcp__a__read"),
        ("tools.12.custom.input_schema: JSON schema is invalid", "mcp__a__read_all"),
        ("* GenerateContentRequest.tools[0].function_declarations[11].parameters: bad", "mcp__a__read"),
        ("Invalid 'tools[3].function.parameters': bad", ""),
        ("messages[11].content: bad", ""),
        ("something else is wrong with read", ""),
    ],
)
def test_the_tool_is_found(said: str, name: str) -> None:
    assert rejected_tool(said, FOREIGN) == name
