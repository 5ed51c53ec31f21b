"""`wolo sessions wire`, `lint` and `cache`: inspect the requests of a saved session."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wolo.cli.listing import AsJson, print_json
from wolo.cli.sessions.lookup import SessionSpec, load_session
from wolo.frontends.streams import print_json_text, print_line, print_message

if TYPE_CHECKING:
    from wolo.diagnostics.request_preview import RequestPreview
    from wolo.diagnostics.session_check import SessionFinding
    from wolo.messages.message import Producer
    from wolo.models.prompt_cache import AnsweredRequest
    from wolo.models.provider import Price
    from wolo.sessions.loading import Loaded

EVERY = "all"
LONG_CHARACTERS = 400
SHOWN_CHARACTERS = 40
_EMBEDDED = re.compile(r"(?:data:[^,\s]{0,100},)?[A-Za-z0-9+/_-]+={0,2}")

As = Annotated[str, typer.Option("--as", metavar="FORMAT", help="API format; the one of the session if not given.")]
ModelName = Annotated[
    str, typer.Option("--model", "-m", metavar="PROVIDER/MODEL", help="Model; the one of the session if not given.")
]


def print_wire(
    id: SessionSpec = "",
    format: As = "",
    model: ModelName = "",
    as_json: AsJson = False,
    full: Annotated[bool, typer.Option("--full", help="Include embedded images and the like.")] = False,
) -> None:
    """Print the request that would be sent next."""
    import json

    from wolo.sessions.loading import LOAD_LIMIT_BYTES

    loaded = load_session(id, most_bytes=LOAD_LIMIT_BYTES)
    if loaded.warning:
        print_message(loaded.warning)
    request = _outlook(loaded, model).next_request(format)
    if as_json:
        print_json_text(request.body.decode())
        return
    body = json.loads(request.body)
    print_json_text(json.dumps(body if full else _shorten(body), ensure_ascii=False, indent=2))


def lint_session(
    id: SessionSpec = "",
    format: Annotated[
        str, typer.Option("--as", metavar="FORMAT", help="API format, or all; the one of the session if not given.")
    ] = "",
    model: ModelName = "",
    as_json: AsJson = False,
) -> int:
    """Check a session and the request made from it.

    The exit status is 1 when there are findings.
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
            where = f"{each.format}, {each.place}" if each.format else each.place
            print_line(f"{each.severity}: {where}: {each.text}")
        count = "no finding" if not errors else "1 finding" if len(errors) == 1 else f"{len(errors)} findings"
        print_line(f"{loaded.info.id} as {', '.join(formats)} for {requests[0].choice.label}: {count}.")
    return 1 if errors else 0


def _outlook(loaded: Loaded, model: str) -> RequestPreview:
    from wolo.diagnostics.request_preview import RequestPreview
    from wolo.sessions.loading import opening
    from wolo.sessions.replay_entries import compaction, messages

    holds = compaction(loaded.entries) or (opening(loaded.unread) if loaded.unread else None)
    return RequestPreview(loaded.info, messages(loaded.entries), model, holds)


def _row(finding: SessionFinding) -> dict[str, str | None]:
    row = {"severity": finding.severity, "format": finding.format or None}
    return {**row, "place": finding.place, "text": finding.text}


def _shorten(value: Any) -> Any:
    """Shortens embedded base64."""
    if isinstance(value, dict):
        return {key: _shorten(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_shorten(each) for each in value]
    if isinstance(value, str) and len(value) > LONG_CHARACTERS and _EMBEDDED.fullmatch(value):
        return f"{value[:SHOWN_CHARACTERS]}… ({len(value):,} characters)"
    return value


def show_cache(id: SessionSpec = "", as_json: AsJson = False) -> None:
    """Show how each request used the prompt cache."""
    from wolo.models.prompt_cache import cache_use_by_request
    from wolo.sessions.replay_entries import messages

    loaded = load_session(id)
    if loaded.warning:
        print_message(loaded.warning)
    history = messages(loaded.entries)
    # Prices of the models that answered; None if unknown.
    from wolo.config import keys, layers
    from wolo.diagnostics.request_preview import readable
    from wolo.errors import ConfigError
    from wolo.workspace.root import find_site

    site = find_site()
    config = layers.load(site)
    environ = keys.with_stored_keys(site, config)
    prices: dict[Producer, Price | None] = {}
    for wrote in {message.producer for message in history if message.producer}:
        try:
            prices[wrote] = readable(config, environ, f"{wrote.provider}/{wrote.model}").model.price
        except ConfigError:
            prices[wrote] = None
    looked = cache_use_by_request(history, prices)
    if as_json:
        print_json({"session_id": loaded.info.id, "requests": list(map(_request_row, looked)), "total": _total(looked)})
        return
    print_line(f"{'':>4}  {'prompt':>10}  {'read':>10}  {'written':>10}  {'share':>5}  miss")
    for each in looked:
        usage = each.usage
        counts = f"{usage.prompt_tokens:>10,}  {usage.cache_read_tokens:>10,}  {usage.cache_write_tokens:>10,}"
        miss = f"{each.miss.reason}: {each.miss.tokens:,} tokens{_money(each.miss.cost)}" if each.miss else ""
        print_line(f"{each.number:>4}  {counts}  {each.read_share:>5.0%}  {miss}".rstrip())
    total = _total(looked)
    counts = f"{total['prompt_tokens']:>10,}  {total['cache_read_tokens']:>10,}  {total['cache_write_tokens']:>10,}"
    print_line(f"{'sum':>4}  {counts}  {total['share']:>5.0%}  {_cost(total)}".rstrip())


def _request_row(each: AnsweredRequest) -> dict[str, Any]:
    usage, wrote, miss = each.usage, each.message.producer, each.miss
    return {
        "request": each.number,
        "message_id": each.message.id,
        "model": f"{wrote.provider}/{wrote.model}" if wrote else None,
        "prompt_tokens": each.usage.prompt_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "share": round(each.read_share, 4),
        "estimated": usage.estimated,
        "miss": None
        if miss is None
        else {
            "kind": miss.kind,
            "block": miss.block or None,
            "reason": miss.reason,
            "tokens": miss.tokens,
            "cost_usd": miss.cost,
        },
    }


def _total(looked: list[AnsweredRequest]) -> dict[str, Any]:
    """The total cost is None if that of one miss is unknown."""
    prompt = sum(each.usage.prompt_tokens for each in looked)
    read = sum(each.usage.cache_read_tokens for each in looked)
    misses = [each.miss for each in looked if each.miss]
    costs = [miss.cost for miss in misses]
    return {
        "prompt_tokens": prompt,
        "cache_read_tokens": read,
        "cache_write_tokens": sum(each.usage.cache_write_tokens for each in looked),
        "share": round(read / prompt, 4) if prompt else 0.0,
        "misses": len(misses),
        "missed_tokens": sum(miss.tokens for miss in misses),
        "missed_cost_usd": None if None in costs else sum(cost for cost in costs if cost),
    }


def _cost(total: dict[str, Any]) -> str:
    if not (count := total["misses"]):
        return "no miss"
    missed = f"{total['missed_tokens']:,} tokens{_money(total['missed_cost_usd'])}"
    return f"{count} {'miss' if count == 1 else 'misses'}: {missed}"


def _money(cost: float | None) -> str:
    return "" if cost is None else f", ${cost:.4f}"
