"""`wolo models`: what there is to ask, and fetching the weights of the embedded model."""

from __future__ import annotations

from typing import Annotated

import typer

from wolo.cli.as_json import AsJson, print_json
from wolo.cli.probe import probe
from wolo.errors import UsageError
from wolo.frontends.streams import say, tell

app = typer.Typer(rich_markup_mode=None)


@app.command("list")
def list_models(
    pattern: Annotated[str, typer.Argument(metavar="[PATTERN]", help="A part of a name, or one with * and ?.")] = "",
    as_json: AsJson = False,
) -> None:
    """The models wolo knows.

    With window, abilities and price; a * marks those you can use now.
    """
    from wolo.config import layers
    from wolo.diagnostics import model_info
    from wolo.places import find_places

    found = [each for each in model_info.models_here(layers.load(find_places())) if model_info.matches(each, pattern)]
    if as_json:
        print_json([model_info.row(each) for each in found])
        return
    for line in model_info.lines(found):
        tell(line)
    if found:
        say(model_info.LEGEND, hint=model_info.MORE)
    else:
        say(f"No model that wolo knows is called like `{pattern}`.")


@app.command("show")
def show(name: Annotated[str, typer.Argument(metavar="PROVIDER/MODEL")], as_json: AsJson = False) -> None:
    """Everything about one model.

    Limits, abilities, price, where it is asked and in which format, and where its key comes from.
    """
    from wolo.config import layers
    from wolo.diagnostics import model_info
    from wolo.places import find_places

    places = find_places()
    facts = model_info.of_model(name, places, layers.load(places))
    if as_json:
        print_json(facts)
        return
    for line in model_info.page(facts):
        tell(line)


app.command("probe")(probe)


@app.command("pull")
def pull(model: Annotated[str, typer.Argument(metavar="local/NAME")]) -> None:
    """Fetch the weights of an embedded model."""
    from wolo.cli.progress import show_progress
    from wolo.models.local.weights import ensure_weights, find_weights, format_size
    from wolo.places import find_places

    if not model.startswith("local/"):
        raise UsageError(f"{model} is not an embedded model.", hint="wolo models pull local/qwen2.5-coder-0.5b")
    wanted = find_weights(model.removeprefix("local/"))
    say(f"{wanted.repository}, {format_size(wanted.size_bytes)}, {wanted.licence}")
    path = ensure_weights(wanted, find_places().cache, download=True, progress=show_progress)
    tell(str(path))
