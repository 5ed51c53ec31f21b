"""`wolo sessions wire` and `wolo sessions lint`: a kept session as a provider would see it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wolo.cli.as_json import AsJson, print_json
from wolo.cli.sessions.lookup import SessionSpec, load_session
from wolo.frontends.streams import say, tell, tell_json

if TYPE_CHECKING:
    from wolo.diagnostics.request_preview import RequestPreview
    from wolo.diagnostics.session_check import Finding
    from wolo.sessions.loading import Loaded

EVERY = "all"
LONG_CHARACTERS = 400
SHOWN_CHARACTERS = 40
_EMBEDDED = re.compile(r"(?:data:[^,\s]{0,100},)?[A-Za-z0-9+/_-]+={0,2}")

As = Annotated[
    str, typer.Option("--as", metavar="FORMAT", help="The wire format, as --api names it; the session's own if not given.")
]
ModelName = Annotated[str, typer.Option("--model", "-m", metavar="PROVIDER/MODEL", help="The session's own if not given.")]


def print_wire(
    id: SessionSpec = "",
    format: As = "",
    model: ModelName = "",
    as_json: AsJson = False,
    full: Annotated[bool, typer.Option("--full", help="Embedded images and the like, too.")] = False,
) -> None:
    """The request that would go out if the session went on now."""
    import json

    from wolo.sessions.loading import LOAD_LIMIT_BYTES

    loaded = load_session(id, most_bytes=LOAD_LIMIT_BYTES)
    _warn(loaded)
    request = _outlook(loaded, model).next_request(format)
    if as_json:
        tell_json(request.body.decode())
        return
    body = json.loads(request.body)
    tell_json(json.dumps(body if full else _shortened(body), ensure_ascii=False, indent=2))


def lint_session(
    id: SessionSpec = "",
    format: Annotated[
        str, typer.Option("--as", metavar="FORMAT", help="The wire format, or all; the session's own if not given.")
    ] = "",
    model: ModelName = "",
    as_json: AsJson = False,
) -> int:
    """What is wrong with a session.

    And what a model would refuse of it; the exit status is 1 when something is wrong.
    """
    from wolo.diagnostics.session_check import check_kept, check_request
    from wolo.sessions.replay_entries import messages

    loaded = load_session(id)
    outlook = _outlook(loaded, model)
    requests = [outlook.next_request(each) for each in (outlook.formats if format == EVERY else (format,))]
    found = [*check_kept(loaded), *(each for request in requests for each in check_request(request, messages(loaded.entries)))]
    errors = [each for each in found if each.severity == "error"]
    notes = [each for each in found if each.severity == "note"]
    formats = [request.format for request in requests]
    if as_json:
        head = {"session_id": loaded.info.id, "model": requests[0].choice.label, "formats": formats}
        print_json({**head, "findings": list(map(_row, errors)), "notes": list(map(_row, notes))})
    else:
        for each in (*errors, *notes):
            tell(_line(each))
        count = "no finding" if not errors else "1 finding" if len(errors) == 1 else f"{len(errors)} findings"
        tell(f"{loaded.info.id} as {', '.join(formats)} for {requests[0].choice.label}: {count}.")
    return 1 if errors else 0


def _outlook(loaded: Loaded, model: str) -> RequestPreview:
    from wolo.diagnostics.request_preview import RequestPreview
    from wolo.sessions.loading import opening
    from wolo.sessions.replay_entries import compaction, messages

    holds = compaction(loaded.entries) or (opening(loaded.unread) if loaded.unread else None)
    return RequestPreview(loaded.info, messages(loaded.entries), model, holds)


def _warn(loaded: Loaded) -> None:
    if loaded.warning:
        say(loaded.warning)


def _row(finding: Finding) -> dict[str, str | None]:
    row = {"severity": finding.severity, "format": finding.format or None}
    return {**row, "place": finding.place, "text": finding.text}


def _line(finding: Finding) -> str:
    where = f"{finding.format}, {finding.place}" if finding.format else finding.place
    return f"{finding.severity}: {where}: {finding.text}"


def _shortened(value: Any) -> Any:
    """What is embedded as base64 tells a reader nothing."""
    if isinstance(value, dict):
        return {key: _shortened(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_shortened(each) for each in value]
    if isinstance(value, str) and len(value) > LONG_CHARACTERS and _EMBEDDED.fullmatch(value):
        return f"{value[:SHOWN_CHARACTERS]}… ({len(value):,} characters)"
    return value
