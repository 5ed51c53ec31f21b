"""The Agent Client Protocol's SDK: the only module that imports it.

Its models are built when they are first used: most runs need few of the 300, and building all of them takes longer than wolo
may take to answer `initialize`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

from pydantic import BaseModel, ValidationError

from wolo.errors import ProviderError, SessionError, UsageError, WoloError
from wolo.frontends.streams import error_text

_CONFIG = BaseModel.model_config
BaseModel.model_config = {**_CONFIG, "defer_build": True}

# ruff: noqa: E402  # after the setting
from acp import helpers, schema
from acp.agent.router import build_agent_router
from acp.connection import Connection
from acp.exceptions import RequestError
from acp.meta import CLIENT_METHODS, PROTOCOL_VERSION

BaseModel.model_config = _CONFIG

__all__ = ["PROTOCOL_VERSION", "AcpClient", "RequestError", "connect", "helpers", "schema", "servers_given"]


servers_given: ContextVar[int] = ContextVar("servers_given")
"""MCP servers in the running request; the SDK drops those that it cannot read."""


class AcpClient:
    """The program at the other end. Requests raise ConnectionError once it is gone, and RequestError for its errors."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.capabilities = schema.ClientCapabilities()

    async def update(self, session_id: str, update: Any) -> None:
        """Does nothing once the client is gone: its turns are being interrupted."""
        notification = schema.SessionNotification(session_id=session_id, update=update)
        with suppress(ConnectionError):
            await self._connection.send_notification(CLIENT_METHODS["session_update"], _dump(notification))

    async def ask_permission(
        self, session_id: str, call: schema.ToolCallUpdate, options: Sequence[schema.PermissionOption]
    ) -> str | None:
        """Returns the id of the chosen option; None: the client cancelled."""
        request = schema.RequestPermissionRequest(session_id=session_id, tool_call=call, options=list(options))
        answer = await self._connection.send_request(CLIENT_METHODS["session_request_permission"], _dump(request))
        outcome = schema.RequestPermissionResponse.model_validate(answer).outcome
        return outcome.option_id if isinstance(outcome, schema.AllowedOutcome) else None

    @property
    def shows_forms(self) -> bool:
        elicitation = self.capabilities.elicitation
        return elicitation is not None and elicitation.form is not None

    async def ask_form(self, session_id: str, call_id: str, message: str, properties: Mapping[str, Any]) -> dict[str, Any] | None:
        """Returns what the user filled in; None: it was declined."""
        fields = schema.ElicitationSchema.model_validate({"type": "object", "properties": dict(properties), "required": []})
        form = {"requestedSchema": fields.model_dump(mode="json", by_alias=True, exclude_none=True)}
        request = {"mode": "form", "message": message, "sessionId": session_id, "toolCallId": call_id, **form}
        answer = await self._connection.send_request(CLIENT_METHODS["elicitation_create"], request)
        if not isinstance(answer, dict) or answer.get("action") != "accept":
            return None
        return dict(schema.AcceptElicitationResponse.model_validate(answer).content or {})

    async def read_file(self, session_id: str, path: str) -> str:
        """The text of a file as the client has it, with changes that are not saved."""
        request = schema.ReadTextFileRequest(session_id=session_id, path=path)
        answer = await self._connection.send_request(CLIENT_METHODS["fs_read_text_file"], _dump(request))
        return schema.ReadTextFileResponse.model_validate(answer).content

    async def write_file(self, session_id: str, path: str, content: str) -> None:
        request = schema.WriteTextFileRequest(session_id=session_id, path=path, content=content)
        await self._connection.send_request(CLIENT_METHODS["fs_write_text_file"], _dump(request))


def connect(agent: Any, transport: Any, more: Mapping[str, Any]) -> Connection:
    """Dispatches requests to the methods of `agent`, and those of `more` by name. `agent.client` is set."""
    router = build_agent_router(agent, use_unstable_protocol=True)

    async def handle(method: str, params: Any, is_notification: bool) -> Any:
        servers = params.get("mcpServers") if isinstance(params, dict) else None
        servers_given.set(len(servers) if isinstance(servers, list) else 0)
        if method in more and not is_notification:
            answering = more[method](params if isinstance(params, dict) else {})
        else:
            answering = router(method, params if params is not None else {}, is_notification)
        try:
            return await answering
        except WoloError as error:
            code = -32602 if isinstance(error, UsageError) else -32603
            if isinstance(error, SessionError):
                code = -32002
            elif isinstance(error, ProviderError) and error.status in (401, 403):
                code = -32000
            raise RequestError(code, error_text(error), {"kind": error.kind, "hint": error.hint}) from error
        except ValidationError as error:
            errors = error.errors(include_url=False, include_context=False, include_input=False)
            place = ".".join(map(str, errors[0]["loc"])) or "params"
            raise RequestError(-32602, f"Invalid params: {place}: {errors[0]['msg']}", {"errors": errors}) from error

    connection = Connection(handle, transport, listening=False)
    agent.client = AcpClient(connection)
    return connection


def _dump(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)
