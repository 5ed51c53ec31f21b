"""Connects the requests of servers, as the SDK delivers them, to `ServerRequests`."""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp.client.session import ClientRequestContext

from wolo.errors import WoloError
from wolo.mcp.server_requests import SampleRequest, ServerRequests
from wolo.mcp.tool_answer import read_items

_MOST_SAMPLE_TOKENS = 8_192


def client_callbacks(requests: ServerRequests) -> dict[str, Any]:
    """Arguments of the SDK's client; each callback that is there announces its capability."""

    async def elicit(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult.model_validate(await requests.elicit(params.model_dump(mode="json", by_alias=True)))

    async def list_roots(context: ClientRequestContext) -> types.ListRootsResult:
        return types.ListRootsResult(
            roots=[types.Root.model_validate({"uri": path.as_uri(), "name": path.name}) for path in requests.roots]
        )

    async def log(params: types.LoggingMessageNotificationParams) -> None:
        said = params.data if isinstance(params.data, str) else repr(params.data)
        requests.note(params.level, f"{params.logger}: {said}" if params.logger else said)

    async def sample(
        context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        try:
            messages = []
            for message in params.messages:
                dumped = message.model_dump(mode="json", by_alias=True)["content"]
                items = read_items(dumped if isinstance(dumped, list) else [dumped])
                messages.append(
                    (str(message.role), "\n".join(item if isinstance(item, str) else "[not text, left out]" for item in items))
                )
            answer = await requests.use_model(
                SampleRequest(params.system_prompt or "", tuple(messages), min(params.max_tokens, _MOST_SAMPLE_TOKENS))
            )
        except WoloError as error:
            requests.note("warning", f"its request to the model was refused: {error.message}")
            return types.ErrorData(code=types.INVALID_REQUEST, message=error.message)
        return types.CreateMessageResult(
            role="assistant",
            content=types.TextContent(text=answer.text),
            model=answer.model,
            stop_reason="maxTokens" if answer.is_cut else "endTurn",
        )

    given: dict[str, Any] = {"elicitation_callback": elicit, "list_roots_callback": list_roots, "logging_callback": log}
    return {**given, "sampling_callback": sample} if requests.sampling_tokens else given
