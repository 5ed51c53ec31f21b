"""A server nobody knows is tried out once, and from then on asked as it can be asked."""

from __future__ import annotations

import json
from pathlib import Path

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import Asked, ProviderServer
from tests.fakes.replies import Reply, error, text

BLOCK = '<tool>{"server_name": "local", "tool_name": "write", "arguments": {"path": "a.txt", "content": "made\\n"}}</tool>'


def without_tools(asked: Asked) -> Reply:
    """Knows neither tools nor the option for token counts; its model follows the rules of the text protocol."""
    for field in ("tools", "tool_choice", "stream_options"):
        if field in asked.json:
            return error(400, {"error": {"message": f"Unrecognized request argument supplied: {field}"}})
    said = json.dumps(asked.messages)
    if "tool_name" not in said:
        return text("OK")
    return text("All done.") if "Tool: write" in said else text(BLOCK)


def test_server_without_tools_works_after_a_probe(provider: ProviderServer) -> None:
    provider.linted = False
    provider.otherwise = without_tools
    done = run_wolo("models", "probe", provider.base_url, "-m", "m", "--api-key", "k")
    assert done.exit_code == 0, done.stderr
    assert "calls will be written as text instead" in done.stdout
    asked = len(provider.requests)
    done = run_wolo("-p", "--base-url", provider.base_url, "--api-key", "k", "-m", "m", "make a file")
    assert (done.exit_code, done.stdout) == (0, "All done.\n"), done.stderr
    assert Path("a.txt").read_text() == "made\n"
    assert len(provider.requests) == asked + 2, "nothing is tried again"
    named = run_wolo("-p", "--base-url", provider.base_url, "--api-key", "k", "-m", "m", "--drive", "native", "go")
    assert "tools" in provider.requests[asked + 2].json, "the mode that was named is kept"
    assert named.exit_code == 1
