"""Drives a session with the client that openapi-python-client has made; prints what it saw as JSON."""

from __future__ import annotations

import json
import sys

import httpx
from generated import AuthenticatedClient
from generated.api.default import approve, create, delete, describe, find, list_, prompt
from generated.models import (
    ApprovalEvent,
    Approve,
    ApproveDecision,
    AssistantEvent,
    ErrorAnswer,
    NewSession,
    NewSessionMode,
    Prompt,
    PromptSaved,
    ResultEvent,
    SessionMessages,
    SessionSummary,
)

origin, token = sys.argv[1:]
with AuthenticatedClient(base_url=origin, token=token, raise_on_unexpected_status=True) as client:
    session = create.sync(client=client, body=NewSession(mode=NewSessionMode.ASK))
    assert isinstance(session, SessionSummary)
    saved = prompt.sync(session.id, client=client, body=Prompt(text="create it"))
    assert isinstance(saved, PromptSaved)
    events = f"{origin}/v1/sessions/{session.id}/events"
    with httpx.stream("GET", events, headers={"Authorization": f"Bearer {token}"}, timeout=60) as stream:
        for line in stream.iter_lines():
            event = json.loads(line[6:]) if line.startswith("data: ") else {}
            if event.get("subtype") == "approval":
                asked = ApprovalEvent.from_dict(event)
                approve.sync(session.id, client=client, body=Approve(call_id=asked.call_id, decision=ApproveDecision.ONCE))
            if event.get("type") == "result":
                result = ResultEvent.from_dict(event)
                break
    loaded = describe.sync(session.id, client=client)
    assert isinstance(loaded, SessionMessages)
    answers = [each.message.content[0] for each in loaded.messages if isinstance(each, AssistantEvent)]
    refused = describe.sync("nobody", client=client)
    assert isinstance(refused, ErrorAnswer)
    names = find.sync(client=client, q="made", session=session.id)
    delete.sync(session.id, client=client)
    rest = list_.sync(client=client)
seen = {"result": result.result, "changed": result.files_changed, "answers": [each.to_dict()["type"] for each in answers]}
print(json.dumps({**seen, "refused": refused.error.status, "names": names.to_dict()["matches"], "rest": rest}))
