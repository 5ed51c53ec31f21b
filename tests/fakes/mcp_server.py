"""An MCP server made with the SDK, as most are: over stdio, or over streamable HTTP on a port that it prints."""

from __future__ import annotations

import asyncio
import base64
import os
import sys

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import CallToolResult, EmbeddedResource, ImageContent, TextContent, TextResourceContents

PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")

server = MCPServer("made-with-the-sdk")


@server.tool()
def echo(text: str) -> str:
    """Say it again."""
    return f"You said: {text}"


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
async def count(to: int, ctx: Context) -> str:
    """Count, and say how far."""
    for number in range(1, to + 1):
        await ctx.report_progress(number, to, f"at {number}")
        await asyncio.sleep(0)
    return "counted"


@server.tool()
def fail() -> str:
    """Go wrong."""
    raise ValueError("it went wrong on purpose")


@server.tool()
def show() -> CallToolResult:
    """Show a picture and a file."""
    return CallToolResult(
        content=[
            TextContent(text="Look:"),
            ImageContent(data=base64.b64encode(PIXEL).decode(), mime_type="image/png"),
            EmbeddedResource(resource=TextResourceContents(uri="notes://1", text="what the file says", mime_type="text/plain")),
        ]
    )


@server.tool()
def environment() -> str:
    """Name the variables that are set here."""
    return "\n".join(f"{name}={value}" for name, value in sorted(os.environ.items()))


def serve_http() -> None:
    import socket

    import uvicorn

    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="critical")
    asyncio.run(uvicorn.Server(config).serve(sockets=[listening]))


if __name__ == "__main__":
    serve_http() if "http" in sys.argv[1:] else server.run("stdio")
