"""How the models of a conversation are reached: over the network or in a child process, the second one behind the first."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from wolo.agent.redacting_model import HidingAsker
from wolo.config.schema import Settings
from wolo.guard.secrets.redactor import Secrets
from wolo.models.protocol import Asker, Later
from wolo.models.provider import Choice
from wolo.places import Places


class ModelAccess(Struct, frozen=True, kw_only=True):
    """What every model of a conversation is reached with."""

    settings: Settings
    places: Places
    project: str
    """The name of the directory worked in."""
    secrets: Secrets
    attended: bool
    """A person is there, who can stop an attempt to reach a model."""
    wire_log: Path | None = None
    progress: Callable[[int, int], None] | None = None
    """Hears how many bytes of the embedded model's weights are ready, and of how many; from any thread."""


def make_asker(reach: ModelAccess, choice: Choice, fallback: Choice | None) -> Asker:
    """Whatever is asked, and by whom, no secret goes along."""
    return HidingAsker(_bare(reach, choice, fallback), reach.secrets)


def check_reachable(choice: Choice, fallback: Choice | None, places: Places) -> None:
    """Raises ConfigError where `make_asker` would, or the model could not be opened later. Starts nothing."""
    from wolo.models.format_selection import format_of

    for each in filter(None, (choice, fallback)):
        if each.provider.name == "local":
            from wolo.models.local.embedded import EmbeddedModel

            EmbeddedModel(each, places)
        else:
            format_of(each)


def _bare(reach: ModelAccess, choice: Choice, fallback: Choice | None) -> Asker:
    first = _to(reach, choice, has_fallback=fallback is not None)
    if fallback is None:
        return first
    from wolo.models.protocol import Fallback

    if fallback.provider.name == "local":
        from wolo.models.local.embedded import EmbeddedModel

        EmbeddedModel(fallback, reach.places)  # raises ConfigError now rather than in the middle of a turn
    return Fallback(first, fallback, partial(_to, reach, fallback))


def _to(reach: ModelAccess, choice: Choice, *, has_fallback: bool = False) -> Asker:
    if choice.provider.name == "local":
        from wolo.models.local.embedded import EmbeddedModel

        embedded = EmbeddedModel(choice, reach.places, progress=reach.progress)
        embedded.start()  # it loads while the project is read
        return embedded
    if choice.provider.name in reach.settings.providers:
        return _over_network(
            reach, has_fallback, choice
        )  # what a person has described may hold mistakes, and they are told at once
    return Later(choice, partial(_over_network, reach, has_fallback))


def _over_network(reach: ModelAccess, has_fallback: bool, choice: Choice) -> Asker:
    from wolo.models import retry
    from wolo.models.client import ModelStream, Surroundings
    from wolo.models.format_selection import format_of
    from wolo.models.http.http_transport import HttpTransport

    settings = reach.settings
    around = Surroundings(
        headers=settings.headers,
        retries=replace(settings.retry, total_s=retry.total_s(settings.retry, attended=reach.attended)),
        has_fallback=has_fallback,
        project=reach.project,
        max_answer_bytes=settings.limits.max_answer_bytes,
        wire_log=reach.wire_log,
        secrets=lambda: reach.secrets.exact,
    )
    return ModelStream(choice, format_of(choice), HttpTransport(), around)
