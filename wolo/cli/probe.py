"""`wolo models probe`: find out what a server can do, and keep it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from wolo.cli.as_json import AsJson, print_json
from wolo.errors import ConfigError, UsageError
from wolo.frontends.streams import say, tell, visible

if TYPE_CHECKING:
    from wolo.models.probe_cache import Finding, ProbeResult
    from wolo.models.provider import Choice

MOST_SHOWN = 10
EMBEDDED = "local"


def probe(
    url: Annotated[str, typer.Argument(metavar="URL", help="A base URL; without one: where the model is.")] = "",
    model: Annotated[str, typer.Option("--model", "-m", metavar="MODEL", help="Which model; else the configured one.")] = "",
    api_key: Annotated[str, typer.Option("--api-key", metavar="KEY")] = "",
    api: Annotated[str, typer.Option("--api", metavar="FORMAT", help="The wire format.")] = "",
    as_json: AsJson = False,
) -> None:
    """Find out what a server can do, and keep it.

    A few tiny requests are sent; wolo follows what was found from then on.
    """
    import asyncio

    import msgspec

    from wolo.models import probe_cache
    from wolo.models.address import display_url
    from wolo.places import find_places

    choice = _choose(url, model, api_key, api)
    if choice.provider.name == EMBEDDED:
        raise UsageError("The embedded model is no server; what it can do is known.", hint="`wolo models show local` says it.")
    say(f"Asking {choice.model.id} at {display_url(choice.base_url)} …")
    try:
        found = asyncio.run(_run(choice, quiet=as_json))
    except (KeyboardInterrupt, SystemExit):  # a signal
        say("Stopped; nothing new is kept.")
        raise
    place = probe_cache.write(find_places().cache, found)
    if as_json:
        print_json(msgspec.to_builtins(found))
    else:
        tell(f"Kept in {place}; wolo follows it from now on.")


def _choose(url: str, model: str, api_key: str, api: str) -> Choice:
    """As it was before any probe."""
    from wolo.config import keys, layers
    from wolo.conversation.resources.model_selection import choose, find
    from wolo.places import find_places

    if url and "://" not in url:
        raise UsageError(
            f"`{url}` is no URL.", hint=f"An address begins with http:// or https://; a model is named with -m {url}."
        )
    places = find_places()
    given: dict[str, str | bool | list[str]] = {"base_url": url, "api_key": api_key, "api": api, "model": model}
    given = {name: value for name, value in given.items() if value}
    if url and not model:
        given["model"] = _only_model(url, api_key)
    config = layers.load(places, os.environ, given)
    environ = keys.with_stored_keys(os.environ, places, [], config.settings.providers)
    return find(config, environ, choose(config, environ).label, follows_card=False)


def _only_model(url: str, api_key: str) -> str:
    """The one model that the server lists. Raises ConfigError when there are none or several."""
    from wolo.models.catalog import find
    from wolo.models.http.server_lookup import served_models

    served = served_models(find("custom/any", environ={}, base_url=url, api_key=api_key))
    if len(served) == 1:
        return served[0]
    there = f"; there are {', '.join(served[:MOST_SHOWN])}" if served else ""
    raise ConfigError("Which model shall be probed?", hint=f"Name it with -m MODEL{there}.")


async def _run(choice: Choice, *, quiet: bool) -> ProbeResult:
    from wolo.models.http.http_transport import HttpTransport
    from wolo.models.http.server_lookup import ask_window
    from wolo.models.probe import Probe
    from wolo.models.probe_cache import SIGNS

    def tell(finding: Finding) -> None:
        if not quiet:
            print(visible(f"{SIGNS[finding.works]:>5}  {finding.what:<18} {finding.words}".rstrip()), flush=True)

    transport = HttpTransport()
    try:
        return await Probe(choice, transport, tell).run(ask_window(choice))
    finally:
        await transport.close()
