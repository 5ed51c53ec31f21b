"""MCP tools and resources as our own tools: names, schemas and calls, each judged as `mcp:SERVER/TOOL`."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from wolo.errors import ToolError
from wolo.formats.encoding.wire_forms import adapt_schema
from wolo.formats.format import ToolSpec
from wolo.formats.tolerant_json import read_json
from wolo.guard.intents import CallIntent, Intent
from wolo.mcp import listings, server_requests, tool_answer
from wolo.mcp.client import McpClient
from wolo.messages.terminal_text import clean
from wolo.tools import clipping, toolbox
from wolo.tools.clipping import clean as clean_output
from wolo.tools.tool import FIND_TOOLS, READ_RESOURCE, CallContext, ToolServices
from wolo.tools.tool_values import Answered, CallResult, Interrupted

INTERRUPTED = "[interrupted: the server was told to stop; the call may have had effects]\n"
_MOST_LISTED = 200
_PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "server": {"type": "string", "description": "name of the MCP server"},
        "uri": {"type": "string", "description": "URI of the resource; leave it out to list the resources of the server"},
    },
    "required": ["server"],
}


class RemoteTool:
    aliases: Mapping[str, str] = {}
    reads_only = False
    """Annotations from the server are not trusted."""

    def __init__(self, client: McpClient, listed: listings.ListedTool) -> None:
        self._client = client
        self._listed = listed
        self._fitted = AdaptedSchema(listed.parameters)
        self.is_gone = False
        """The server has removed it since it was offered."""
        self.name = offered_name(client.name, listed.name)
        self.spec = ToolSpec(self.name, listed.description, self._fitted.parameters)

    @property
    def server(self) -> str:
        return self._client.name

    @property
    def notice(self) -> str:
        """About its definition, for the user; empty: it is offered as it is."""
        if self._fitted.is_too_large:
            return f"the arguments of {clean(self.listed_name)} are not described to the model: its schema is too large"
        if self._listed.is_cut:
            return f"the description of {clean(self.listed_name)} is cut at {listings.MOST_DESCRIPTION_CHARS:,} characters"
        return ""

    @property
    def listed_name(self) -> str:
        """The server's own name of it."""
        return self._listed.name

    def intents(self, args: Mapping[str, Any], services: ToolServices) -> Sequence[Intent]:
        return (CallIntent(f"mcp:{rule_name(self.server, self._listed.name)}"),)

    async def run(self, args: Mapping[str, Any], call: CallContext) -> CallResult:
        if recorded := call.services.recorded_result(call.call_id):
            return recorded
        if self.is_gone:
            raise ToolError(f"The MCP server {self.server} no longer offers {self.name}. Do without it.")
        began = time.monotonic()
        caller = server_requests.Caller(call.call_id, call.progress, call.services.ask_user)
        try:
            answer = await self._client.call(self._listed.name, self._fitted.restore_arguments(args), caller)
        except asyncio.CancelledError as error:
            raise Interrupted(CallResult(INTERRUPTED, outcome="interrupted")) from error
        return answer_result(self.name, answer, call, time.monotonic() - began)


def answer_result(name: str, answer: tool_answer.ToolAnswer, call: CallContext, elapsed_s: float) -> CallResult:
    said = answer.text(call.services.save_output)
    text = b"".join(clean_output(call.services.secrets.hide(said).encode(errors="replace")))
    shown = clipping.clip_and_keep(text, name=f"{name}-{call.call_id or 'output'}.txt", keep=call.services.save_output)
    view = None if answer.is_error else Answered(shown, elapsed_s)
    return CallResult(shown, view, is_error=answer.is_error, media=answer.media)


class RecordedTool:
    reads_only = False

    def __init__(self, name: str) -> None:
        self.name = name
        self.spec = ToolSpec(name, "", {"type": "object", "properties": {}})

    def intents(self, args: Mapping[str, Any], services: ToolServices) -> Sequence[Intent]:
        """Derived from the name."""
        if self.name == FIND_TOOLS:
            return ()
        if self.name == READ_RESOURCE:
            return (CallIntent(f"mcp:{args.get('server', '')}/{READ_RESOURCE}"),)
        if not self.name.startswith(BEGINNING):
            return (CallIntent(f"tool:{self.name}"),)
        server, _, tool = self.name.removeprefix(BEGINNING).partition("__")
        return (CallIntent(f"mcp:{server}/{tool}"),)

    async def run(self, args: Mapping[str, Any], call: CallContext) -> CallResult:
        recorded = call.services.recorded_result(call.call_id)
        if recorded is None:
            raise ToolError(f"Nothing is known of what {self.name} said.")
        return recorded


def recorded_tools(called: Sequence[str]) -> list[RecordedTool]:
    """Tools for all recorded calls of MCP tools and custom tools, and for the tools that find them and read resources."""
    builtin = {each.name for each in toolbox.BUILTIN_WITH_COMPLETION}
    return [RecordedTool(name) for name in dict.fromkeys(called) if name.strip().lower() not in builtin]


BEGINNING = "mcp__"
LONGEST = 64
"""Name limit of model servers."""
_MARK_LENGTH = 8


def offered_name(server: str, tool: str) -> str:
    """Depends only on the two names, so that it stays stable."""
    name = f"{BEGINNING}{server}__{tool}"
    is_clear = "__" not in server and not server.endswith("_") and tool
    if is_clear and len(name) <= LONGEST and re.fullmatch(r"[A-Za-z0-9_-]+", name):
        return name
    return _mark(name, r"[^A-Za-z0-9_-]+", f"{server}\0{tool}")


def rule_name(server: str, tool: str) -> str:
    """Name in rules, after `mcp:`; a tool cannot imitate another server's name."""
    if re.fullmatch(r"[A-Za-z0-9_.-]+", tool):
        return f"{server}/{tool}"
    return f"{server}/{_mark(tool, r'[^A-Za-z0-9_.-]+', tool)}"


def _mark(name: str, illegal: str, whole: str) -> str:
    """Shorten and add a hash that keeps the name unique."""
    mark = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:_MARK_LENGTH]
    return f"{re.sub(illegal, '_', name)[: LONGEST - _MARK_LENGTH - 1]}_{mark}"


MOST_BYTES = 64 * 1024
"""A tool with a larger schema accepts any object."""
_LEGAL_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_SAID = ("title", "description")
_BY_NAME = ("properties", "dependentSchemas")
_IN_LIST = ("anyOf", "oneOf", "allOf", "prefixItems")
_ALONE = ("items", "additionalProperties", "not", "contains", "if", "then", "else")


class AdaptedSchema:
    """A schema with resolved references and keys that every server accepts."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._keys: dict[str, str] = {}
        bent = self._rename_keys(adapt_schema(schema))
        try:
            size = len(msgspec.json.encode(bent))
        except (TypeError, ValueError, RecursionError):
            size = MOST_BYTES + 1
        self.is_too_large = size > MOST_BYTES
        self.parameters: dict[str, Any] = {"type": "object", "properties": {}} if self.is_too_large else bent

    def restore_arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Restore the server's own keys, and parse lists and objects written as JSON strings."""
        read = {name: _unwrap(value, self.parameters.get("properties", {}).get(name)) for name, value in arguments.items()}
        return {self._keys.get(name, name): self._with_own_keys(value) for name, value in read.items()}

    def _with_own_keys(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self._keys.get(name, name): self._with_own_keys(each) for name, each in value.items()}
        return [self._with_own_keys(each) for each in value] if isinstance(value, list) else value

    def _rename_keys(self, schema: dict[str, Any]) -> dict[str, Any]:
        changed = {name: clean(each) if name in _SAID and isinstance(each, str) else each for name, each in schema.items()}
        for name in _BY_NAME:
            if isinstance(subschema := schema.get(name), dict):
                changed[name] = {self._legal(key): self._rename_keys(each) for key, each in subschema.items()}
        for name in _IN_LIST:
            if isinstance(subschema := schema.get(name), list):
                changed[name] = [self._rename_keys(each) for each in subschema]
        for name in _ALONE:
            if isinstance(subschema := schema.get(name), dict):
                changed[name] = self._rename_keys(subschema)
        if isinstance(required := schema.get("required"), list):
            changed["required"] = [self._legal(key) for key in required]
        return changed

    def _legal(self, key: str) -> str:
        if _LEGAL_KEY.fullmatch(key):
            return key
        mark = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        legal = f"{re.sub(r'[^A-Za-z0-9_.-]+', '_', key)[:55]}_{mark}"
        self._keys[legal] = key
        return legal


def _unwrap(value: Any, schema: Any) -> Any:
    kind = schema.get("type") if isinstance(schema, dict) else None
    if not isinstance(value, str) or kind not in ("array", "object"):
        return value
    read = read_json(value)
    return read if isinstance(read, list if kind == "array" else dict) else value


class ReadResource:
    aliases: Mapping[str, str] = {}
    reads_only = False
    name = READ_RESOURCE
    server = ""
    """It belongs to no single server."""
    is_gone = False

    def __init__(self, clients: Mapping[str, McpClient], offers: Mapping[str, listings.ServerListing]) -> None:
        """Both are live."""
        self._clients = clients
        self._listings = offers
        about = "Read a resource of an MCP server (a file, a record, a page) by its URI, or list its resources and URI templates."
        self.spec = ToolSpec(READ_RESOURCE, about, _PARAMETERS)

    def intents(self, args: Mapping[str, Any], services: ToolServices) -> Sequence[Intent]:
        server = self._server(args)
        return (CallIntent(f"mcp:{server}/{READ_RESOURCE}"),)

    async def run(self, args: Mapping[str, Any], call: CallContext) -> CallResult:
        if recorded := call.services.recorded_result(call.call_id):
            return recorded
        server, uri = self._server(args), str(args.get("uri") or "").strip()
        if not uri:
            return CallResult(self._list(server))
        began = time.monotonic()
        try:
            items = await self._clients[server].read(uri)
        except asyncio.CancelledError as error:
            raise Interrupted(CallResult(INTERRUPTED, outcome="interrupted")) from error
        return answer_result(
            self.name, tool_answer.ToolAnswer(items or ("[the resource is empty]",)), call, time.monotonic() - began
        )

    def _server(self, args: Mapping[str, Any]) -> str:
        having = [name for name, listing in self._listings.items() if listing.resources]
        server = str(args.get("server") or (having[0] if len(having) == 1 else ""))
        if server not in self._clients:
            raise ToolError(
                f"read_resource: there is no server `{server}`. Servers with resources: {', '.join(having) or 'none'}."
            )
        return server

    def _list(self, server: str) -> str:
        resources = self._listings.get(server, listings.ServerListing()).resources
        if not resources:
            return f"{server} lists no resources."
        lines = [
            f"- {each.uri}{' (a template)' if each.is_template else ''}"
            f"{': ' if each.name or each.description else ''}{' - '.join(filter(None, (each.name, each.description)))}"
            for each in resources[:_MOST_LISTED]
        ]
        more = len(resources) - _MOST_LISTED
        return "\n".join([*lines, *([f"… and {more} more"] if more > 0 else [])])
