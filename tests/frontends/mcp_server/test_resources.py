"""Titles, sessions as resources, and prompts, as a client of the official SDK sees them."""

from __future__ import annotations

import pytest
from mcp.shared.exceptions import MCPError

from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import text
from tests.frontends.mcp_server.test_mcp_server import answered, model, served  # noqa: F401  # a fixture
from wolo.frontends.mcp_server import resources


async def test_tools_have_titles() -> None:
    async with served() as client:
        tools = (await client.list_tools()).tools
        assert [each.title for each in tools] == [each.annotations.title for each in tools if each.annotations]
        assert tools[0].title == "Run a task"


async def test_sessions_are_listed_and_read(model: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    model.script(text("A zebra."), text("A lion."), text("An owl."))
    async with served() as client:
        ids = []
        for word in ("first", "second", "third"):
            model.forget_prefix()
            ids.append((await answered(client, "run_task", {"prompt": f"name the {word} animal"}))["session_id"])
        monkeypatch.setattr(resources, "PAGE", 2)
        page = await client.list_resources()
        assert [each.uri for each in page.resources] == [f"wolo://sessions/{id}" for id in (ids[2], ids[1])]
        rest = await client.list_resources(cursor=page.next_cursor)
        assert ([each.title for each in rest.resources], rest.next_cursor) == (["name the first animal"], None)
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "wolo://sessions/{session_id}"
        (content,) = (await client.read_resource(f"wolo://sessions/{ids[0]}")).contents
        assert "name the first animal" in content.text
        assert "A zebra." in content.text
        for uri in ("wolo://sessions/nobody", "wolo://sessions/../x", "wolo://sessions/"):
            with pytest.raises(MCPError, match="There is no session"):
                await client.read_resource(uri)
        with pytest.raises(MCPError, match="There is no resource"):
            await client.read_resource("file:///etc/passwd")
        with pytest.raises(MCPError, match="no cursor"):
            await client.list_resources(cursor="x")


async def test_prompts_are_filled_in() -> None:
    async with served() as client:
        prompts = {each.name: each for each in (await client.list_prompts()).prompts}
        assert [each.name for each in prompts["continue"].arguments or () if each.required] == ["session_id", "task"]
        made = await client.get_prompt("delegate", {"task": "measure it", "cwd": "/srv/app"})
        assert "cwd=/srv/app" in made.messages[0].content.text
        assert made.messages[0].content.text.endswith("measure it")
        assert "mode=plan" in (await client.get_prompt("review", {})).messages[0].content.text
        for name, arguments, words in (
            ("nothing", {}, "There is no prompt"),
            ("delegate", {}, "task is missing"),
            ("delegate", {"task": " "}, "task is missing"),
            ("review", {"colour": "red"}, "colour is unknown"),
        ):
            with pytest.raises(MCPError, match=words):
                await client.get_prompt(name, arguments)
