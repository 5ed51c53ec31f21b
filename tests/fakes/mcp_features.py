"""An MCP server made with the SDK that asks its client for everything: answers, the model, folders; its lists change."""

from __future__ import annotations

import base64
import json
import os
import sys
import warnings
from pathlib import Path
from typing import Literal

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resources import FunctionResource
from mcp.shared.exceptions import MCPError, UrlElicitationRequiredError
from mcp_types import (
    BlobResourceContents,
    CallToolResult,
    Completion,
    CompletionArgument,
    CompletionContext,
    ElicitRequestURLParams,
    EmbeddedResource,
    PromptReference,
    ResourceTemplateReference,
    SamplingMessage,
    TextContent,
)
from pydantic import BaseModel, Field

warnings.simplefilter("ignore")
server = MCPServer("features", instructions="Ask the library first.")
CITIES = ("paris", "prague", "porto")


class Trip(BaseModel):
    city: str = Field(description="where to")
    days: int = Field(default=3, ge=1, le=30)
    travel: Literal["train", "plane"] = "train"
    insured: bool = False


class Easy(BaseModel):
    days: int = 3
    insured: bool = True


class Empty(BaseModel):
    pass


DAYS = {"type": "integer", "default": 3}


@server.tool()
async def book(ctx: Context) -> str:
    """Ask for the details of a trip."""
    answer = await ctx.elicit("Where do you want to go?", Trip)
    return f"{answer.action}: {answer.data.model_dump_json()}" if answer.action == "accept" else answer.action


@server.tool()
async def confirm(ctx: Context) -> str:
    """Ask for details that all have defaults."""
    answer = await ctx.elicit("Is this right?", Easy)
    return f"{answer.action}: {answer.data.model_dump_json()}" if answer.action == "accept" else answer.action


@server.tool()
async def agree(ctx: Context) -> str:
    """Have the user accept without any field. A yes is also in the file that AGREED names."""
    action = (await ctx.elicit("Delete everything?", Empty)).action
    if action == "accept" and (path := os.environ.get("AGREED")):
        Path(path).write_text(action)
    return action


@server.tool()
async def sign(ctx: Context) -> str:
    """Ask for a field that is required and has a default."""
    form = {
        "type": "object",
        "properties": {"signature": {"type": "string", "default": "me"}, "days": DAYS},
        "required": ["signature"],
    }
    answer = await ctx.session.elicit_form("Sign", form)
    return f"{answer.action}: {json.dumps(answer.content, separators=(',', ':'))}" if answer.action == "accept" else answer.action


@server.tool()
async def pay(ctx: Context) -> str:
    """Have the user open a page."""
    answer = await ctx.elicit_url("Pay there", "http://127.0.0.1:9/pay", "payment-1")
    return answer.action


@server.tool()
async def unlock() -> str:
    """Refuse until the user has opened a page."""
    page = ElicitRequestURLParams(message="Sign in", url="http://127.0.0.1:9/in", elicitation_id="sign-in")
    raise UrlElicitationRequiredError([page])


@server.tool()
async def think(question: str, ctx: Context) -> str:
    """Ask the model of the client."""
    asked = SamplingMessage(role="user", content=TextContent(text=question))
    try:
        result = await ctx.session.create_message([asked], max_tokens=50, system_prompt="You are brief.")
    except MCPError as error:
        return f"refused: {error.message}"
    return f"{result.model} says {result.content.text}"  # type: ignore[union-attr]  # it is text


@server.tool()
async def folders(ctx: Context) -> str:
    """Name the folders of the client."""
    return "\n".join(str(root.uri) for root in (await ctx.session.list_roots()).roots)


@server.tool()
async def talk(ctx: Context) -> str:
    """Log a warning, and report progress."""
    await ctx.warning("mind the gap", logger_name="station")
    await ctx.report_progress(1, 2, "half")
    return "said"


@server.tool()
async def change(ctx: Context) -> str:
    """Offer other things from now on."""
    server.remove_tool("talk")
    server.add_resource(FunctionResource(uri="note://late", name="late", fn=lambda: "came late"))
    await ctx.session.send_tool_list_changed()
    await ctx.session.send_resource_list_changed()
    return "changed"


@server.tool()
def archive() -> CallToolResult:
    """Return a file that no model reads."""
    blob = BlobResourceContents(
        uri="file:///a/data.zip", blob=base64.b64encode(b"PK\3\4rest").decode(), mime_type="application/zip"
    )
    return CallToolResult(content=[EmbeddedResource(resource=blob)])


@server.resource("note://first", name="first", description="the first note")
def first() -> str:
    return "remember the milk"


@server.resource("city://{name}/info")
def city(name: str) -> str:
    return f"{name} is a city"


@server.prompt()
def plan(city: str, days: str = "2") -> str:
    """Plan a trip."""
    return f"Plan {days} days in {city}."


@server.completion()
async def complete(
    ref: PromptReference | ResourceTemplateReference, argument: CompletionArgument, context: CompletionContext | None
) -> Completion | None:
    return Completion(values=[each for each in CITIES if each.startswith(argument.value)])


def serve_http() -> None:
    import asyncio
    import socket

    import uvicorn

    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    app = server.sse_app() if "sse" in sys.argv[1:] else server.streamable_http_app()
    asyncio.run(uvicorn.Server(uvicorn.Config(app, log_level="critical")).serve(sockets=[listening]))


if __name__ == "__main__":
    serve_http() if {"http", "sse"} & {*sys.argv[1:]} else server.run("stdio")
