"""`wolo sessions cache`: how much of each request was read from the provider's cache, and why not more."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from wolo.cli.as_json import AsJson, print_json
from wolo.cli.sessions.lookup import SessionSpec, load_session
from wolo.frontends.streams import say, tell

if TYPE_CHECKING:
    from wolo.messages.message import Message, Producer
    from wolo.models.prompt_cache import AnsweredRequest, CacheMiss
    from wolo.models.provider import Price


def show_cache(id: SessionSpec = "", as_json: AsJson = False) -> None:
    """What was read from the provider's cache.

    Request by request, and why it was missed.
    """
    from wolo.models.prompt_cache import cache_use_by_request
    from wolo.sessions.replay_entries import messages

    loaded = load_session(id)
    if loaded.warning:
        say(loaded.warning)
    said = messages(loaded.entries)
    looked = cache_use_by_request(said, _prices(said))
    if as_json:
        print_json({"session_id": loaded.info.id, "requests": list(map(_row, looked)), "total": _total(looked)})
        return
    tell(f"{'':>4}  {'prompt':>10}  {'read':>10}  {'written':>10}  {'share':>5}  miss")
    for each in looked:
        usage = each.usage
        counts = f"{each.prompt_tokens:>10,}  {usage.cache_read_tokens:>10,}  {usage.cache_write_tokens:>10,}"
        tell(f"{each.number:>4}  {counts}  {each.read_share:>5.0%}  {_miss(each.miss)}".rstrip())
    total = _total(looked)
    counts = f"{total['prompt_tokens']:>10,}  {total['cache_read_tokens']:>10,}  {total['cache_write_tokens']:>10,}"
    tell(f"{'sum':>4}  {counts}  {total['share']:>5.0%}  {_spent(total)}".rstrip())


def _prices(said: tuple[Message, ...]) -> dict[Producer, Price | None]:
    """Of every model that answered, as far as it is still known."""
    from wolo.config import keys, layers
    from wolo.diagnostics.request_preview import readable
    from wolo.errors import ConfigError
    from wolo.places import find_places

    places = find_places()
    config = layers.load(places)
    environ = keys.with_stored_keys(os.environ, places, [], config.settings.providers)
    prices: dict[Producer, Price | None] = {}
    for wrote in {message.producer for message in said if message.producer}:
        try:
            prices[wrote] = readable(config, environ, f"{wrote.provider}/{wrote.model}").model.price
        except ConfigError:
            prices[wrote] = None
    return prices


def _row(each: AnsweredRequest) -> dict[str, Any]:
    usage, wrote, miss = each.usage, each.message.producer, each.miss
    return {
        "request": each.number,
        "message_id": each.message.id,
        "model": f"{wrote.provider}/{wrote.model}" if wrote else None,
        "prompt_tokens": each.prompt_tokens,
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
    """The cost is unknown as soon as that of one miss is."""
    prompt = sum(each.prompt_tokens for each in looked)
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


def _miss(miss: CacheMiss | None) -> str:
    if miss is None:
        return ""
    return f"{miss.reason}: {miss.tokens:,} tokens{_money(miss.cost)}"


def _spent(total: dict[str, Any]) -> str:
    count = total["misses"]
    if not count:
        return "no miss"
    missed = f"{total['missed_tokens']:,} tokens{_money(total['missed_cost_usd'])}"
    return f"{count} {'miss' if count == 1 else 'misses'}: {missed}"


def _money(cost: float | None) -> str:
    return "" if cost is None else f", ${cost:.4f}"
