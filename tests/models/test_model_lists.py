"""Model names of servers: asked, kept for a day, shown by `models list`, completion and `/model`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.completion.test_install import offered
from tests.end_to_end.test_new_servers import serve
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import KEY, ProviderServer
from wolo.config import layers
from wolo.diagnostics.model_info import models_here
from wolo.models import model_lists
from wolo.models.provider import Model, ModelChoice, Provider
from wolo.places import find_places
from wolo.workspace.root import find_site

DAY_S = 86400.0


def hosted(provider: ProviderServer) -> ModelChoice:
    service = Provider(name="here", label="Here", base_url=provider.base_url, any_model=True)
    return ModelChoice(provider=service, model=Model(id=""), base_url=provider.base_url, api_key=KEY)


def write_settings(provider: ProviderServer) -> None:
    find_places().config.mkdir(parents=True)
    (find_places().config / "config.toml").write_text(
        f'[providers.here]\nbase_url = "{provider.base_url}"\napi_key = "{KEY}"\nany_model = true\n'
    )


def test_server_here_is_asked_each_time(provider: ProviderServer, tmp_path: Path) -> None:
    choice = hosted(provider)
    for name in ("one", "two"):
        serve(provider, name)
        assert model_lists.list_ids(tmp_path, choice, now=1000.0) == (name,)


def test_list_is_asked_once_a_day(provider: ProviderServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_lists, "is_near", lambda _: False)
    choice = hosted(provider)
    serve(provider, "one", "two")
    assert model_lists.list_ids(tmp_path, choice, now=1000.0) == ("one", "two")
    serve(provider, "three")
    assert model_lists.list_ids(tmp_path, choice, now=1000.0 + DAY_S - 1) == ("one", "two")
    assert model_lists.list_ids(tmp_path, choice, now=1000.0 + DAY_S) == ("three",)
    saved = model_lists.read_list(tmp_path, provider.base_url)
    assert saved is not None
    assert saved.ids == ("three",)
    assert KEY not in model_lists.place_of(tmp_path, provider.base_url).read_text()


def test_silent_server_leaves_the_last_list(provider: ProviderServer, tmp_path: Path) -> None:
    choice = hosted(provider)
    serve(provider, "one")
    model_lists.list_ids(tmp_path, choice, now=0.0)
    provider.close()
    assert model_lists.list_ids(tmp_path, choice, now=9 * DAY_S) == ("one",)


@pytest.mark.parametrize("damage", [b"", b"[]", b'{"base_url":"x","at":1,"ids":["a"]}', b"\xff"])
def test_damaged_list_is_asked_anew(provider: ProviderServer, tmp_path: Path, damage: bytes) -> None:
    choice = hosted(provider)
    place = model_lists.place_of(tmp_path, choice.base_url)
    place.parent.mkdir(parents=True)
    place.write_bytes(damage)
    assert model_lists.read_list(tmp_path, choice.base_url) is None
    serve(provider, "one", "\x1b[31mred", "x" * 1000)
    assert model_lists.list_ids(tmp_path, choice, now=5.0) == ("one",)


def test_listed_names_fill_commands_and_completion(provider: ProviderServer) -> None:
    write_settings(provider)
    serve(provider, "served-model", "served-other")
    listed = json.loads(run_wolo("models", "list", "here", "--json").stdout)
    assert [each["id"] for each in listed] == ["here/served-model", "here/served-other"]
    assert all(each["has_key"] for each in listed)
    rows = [each.label for each in models_here(layers.load(find_site())) if each.has_key]
    assert {"here/served-model", "here/served-other"} <= set(rows), "of the list on disk, for /model"
    assert offered("-m", "here/served-o") == ["here/served-other"]


def test_address_of_the_run_is_listed(provider: ProviderServer) -> None:
    serve(provider, "at-address")
    ran = run_wolo("models", "list", "at-address", env={"WOLO_BASE_URL": provider.base_url, "WOLO_API_KEY": KEY})
    assert "custom/at-address" in ran.stdout
