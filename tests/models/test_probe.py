"""Probing a server: what it can do is found out, kept, and followed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.fakes.provider_server import Asked, ProviderServer
from tests.fakes.replies import Reply, call, error, text
from wolo.errors import ProviderError
from wolo.models import probe_cache
from wolo.models.catalog import Catalog
from wolo.models.format_selection import dialect_of
from wolo.models.http.http_transport import HttpTransport
from wolo.models.http.server_lookup import ask_window, served_models
from wolo.models.probe import Probe
from wolo.models.probe_cache import ProbeFinding, ProbeResult
from wolo.models.provider import ModelChoice, ModelSettings, ProviderSettings


class Server:
    """A model server that can do what it is told to be able to."""

    def __init__(self, **can: bool) -> None:
        self.can = {"usage_option": True, "tools": True, "results": True, "images": True, "developer": True, "schema": True} | can

    def __call__(self, asked: Asked) -> Reply:
        body: dict[str, Any] = asked.json
        said = json.dumps(body["messages"])
        for what, refused in (
            ("usage_option", "stream_options" in body),
            ("tools", "tools" in body),
            ("results", any(each["role"] == "tool" for each in body["messages"])),
            ("images", "image_url" in said),
            ("developer", body["messages"][0]["role"] == "developer"),
            ("schema", "response_format" in body),
        ):
            if refused and not self.can[what]:
                return error(400, {"error": {"message": f"this server knows no {what}", "code": "invalid_request"}})
        if "tools" in body and not any(each["role"] == "tool" for each in body["messages"]):
            return self._calls(body)
        if "response_format" in body:
            return text('{"colour": "blue"}')
        return text("OK", reasoning="Hm." if self.can.get("thinking") else "")

    def _calls(self, body: Mapping[str, Any]) -> Reply:
        if self.can.get("forced_only") and body.get("tool_choice") != "required":
            return text("Red, blue.")
        return call("rm" if self.can.get("lies") else "echo", {"word": "red"})


async def probe(provider: ProviderServer, server: Server) -> ProbeResult:
    provider.linted = False
    provider.otherwise = server
    told: list[ProbeFinding] = []
    transport = HttpTransport({})
    try:
        found = await Probe(choice_of(provider), transport, told.append).run(8192)
    finally:
        await transport.close()
    assert tuple(told) == found.findings
    return found


async def test_key_repeated_by_server_is_not_shown(provider: ProviderServer) -> None:
    choice = replace(choice_of(provider), api_key="my-own-key")
    provider.script(error(401, {"error": {"message": "my-own-key is not a key"}}))
    transport = HttpTransport({})
    with pytest.raises(ProviderError) as caught:
        await Probe(choice, transport, lambda finding: None).run()
    await transport.close()
    assert caught.value.message == "[key] is not a key"


def choice_of(provider: ProviderServer) -> ModelChoice:
    return Catalog({}).find("custom/m", base_url=provider.base_url, api_key="k")


def works(found: ProbeResult) -> dict[str, bool | None]:
    return {each.what: each.works for each in found.findings}


async def test_a_server_that_can_everything_changes_nothing(provider: ProviderServer) -> None:
    found = await probe(provider, Server(thinking=True))
    assert found.format == ""
    assert found.dialect == {"images": True}
    assert found.abilities == ("thinking", "tools", "images")
    assert found.context == 8192
    assert all(each is not False for what, each in works(found).items() if what != "cache counts")


@pytest.mark.parametrize(
    ("cannot", "flags"),
    [
        ("usage_option", {"usage_option": False, "images": True}),
        ("images", {"images": False}),
        ("schema", {"images": True, "response_format": "none"}),
        ("developer", {"images": True}),
    ],
)
async def test_refused_field_is_left_out_afterwards(provider: ProviderServer, cannot: str, flags: dict[str, Any]) -> None:
    assert (await probe(provider, Server(**{cannot: False}))).dialect == flags


async def test_a_server_without_tools_gets_the_text_protocol(provider: ProviderServer) -> None:
    found = await probe(provider, Server(tools=False))
    assert found.format == "xml"
    assert "tools" not in (found.abilities or ())


async def test_model_calling_only_when_forced_has_tools(provider: ProviderServer) -> None:
    found = await probe(provider, Server(forced_only=True))
    assert found.format == ""
    assert works(found)["tool choice"] is True


async def test_other_call_is_no_sign_of_tools(provider: ProviderServer) -> None:
    found = await probe(provider, Server(lies=True))
    assert (found.format, works(found)["tools"]) == ("xml", False)


async def test_silent_server_leaves_no_card(provider: ProviderServer) -> None:
    provider.linted = False
    provider.otherwise = error(401, {"error": {"message": "bad key"}})
    transport = HttpTransport({})
    with pytest.raises(ProviderError, match="bad key"):
        await Probe(choice_of(provider), transport, lambda finding: None).run()
    await transport.close()
    assert len(provider.requests) == 1


def test_card_belongs_to_its_address_and_model(provider: ProviderServer, tmp_path: Path) -> None:
    choice = choice_of(provider)
    kept = ProbeResult(
        base_url=choice.base_url, model="m", probed="2026-01-01T00:00:00+00:00", dialect={"images": False}, context=4096
    )
    place = probe_cache.write(tmp_path, kept)
    assert probe_cache.read(tmp_path, choice) == kept
    assert probe_cache.read(tmp_path, replace(choice, base_url="http://else")) is None
    place.write_bytes(b"{torn")
    assert probe_cache.read(tmp_path, choice) is None


async def test_card_without_password_is_found_again(provider: ProviderServer, tmp_path: Path) -> None:
    provider.linted = False
    provider.otherwise = Server()
    choice = replace(choice_of(provider), base_url=provider.base_url.replace("//", "//me:SECRET@") + "?key=SECRET")
    transport = HttpTransport({})
    found = await Probe(choice, transport, lambda finding: None).run()
    await transport.close()
    assert b"SECRET" not in probe_cache.write(tmp_path, found).read_bytes()
    assert probe_cache.read(tmp_path, choice) == found


def test_own_settings_outrank_the_card(provider: ProviderServer) -> None:
    choice = choice_of(provider)
    choice = replace(choice, model=replace(choice.model, context=2000))
    found = ProbeResult(
        base_url="", model="m", probed="", format="xml", dialect={"images": False, "usage_option": False}, context=9000
    )
    followed = probe_cache.apply_probe(choice, found, own=ProviderSettings(dialect={"images": True}), keeps_format=False)
    assert followed.model.dialect == {"images": True, "usage_option": False}
    assert (followed.format, followed.model.context) == ("xml", 2000)
    assert probe_cache.apply_probe(choice, found, own=ProviderSettings(), keeps_format=True).format == "openai-chat"
    for own in (
        ProviderSettings(api="openai-chat"),
        ProviderSettings(models=(ModelSettings(id="M", format="openai-chat"),)),
        ProviderSettings(models=(ModelSettings(id="m", abilities=("tools", "images")),)),
    ):
        assert probe_cache.apply_probe(choice, found, own=own, keeps_format=False).format == "openai-chat"
    row = ModelSettings(id="m", context=50_000, dialect={"usage_option": True}, abilities=("tools", "images"))
    model = probe_cache.apply_probe(choice, found, own=ProviderSettings(models=(row,)), keeps_format=False).model
    assert model.context == 50_000
    assert (model.dialect["usage_option"], model.dialect["images"]) == (True, True)


def test_text_protocol_card_keeps_provider_facts() -> None:
    choice = Catalog({"ZAI_API_KEY": "k"}).find("zai/glm-5.2")
    found = ProbeResult(base_url="", model="glm-5.2", probed="", format="xml")
    followed = probe_cache.apply_probe(choice, found, own=ProviderSettings(), keeps_format=False)
    assert msgspec.to_builtins(dialect_of(followed))["thinking_param_style"] == "glm"


@pytest.mark.parametrize(
    ("path", "page", "window"),
    [
        ("/v1/models", {"data": [{"id": "other", "context_length": 5}, {"id": "m", "max_model_len": 32768}]}, 32768),
        ("/v1/models", {"data": [{"id": "m", "meta": {"n_ctx_train": 1, "n_ctx": 4096}}]}, 4096),
        ("/props", {"default_generation_settings": {"n_ctx": 16384}}, 16384),
        ("/api/show", {"model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40960}}, 40960),
        ("/v1/models", {"data": [{"id": "m", "context_length": True}]}, None),
        ("/v1/models", ["odd"], None),
    ],
)
def test_window_is_as_the_server_states(provider: ProviderServer, path: str, page: object, window: int | None) -> None:
    provider.pages[path] = Reply(headers={"content-type": "application/json"}, pieces=(json.dumps(page).encode(),))
    assert ask_window(choice_of(provider)) == window


def test_look_ups_carry_what_the_gateway_wants(provider: ProviderServer) -> None:
    page = {"data": [{"id": "m", "context_length": 4096}]}
    provider.pages["/v1/models?version=7&tier=b"] = Reply(pieces=(json.dumps(page).encode(),))
    own = {"custom": ProviderSettings(headers={"X-Token": "t"}, query={"tier": "b"})}
    choice = Catalog({}, own).find("custom/m", base_url=f"{provider.base_url}?version=7")
    assert ask_window(choice) == 4096
    assert [asked.headers["x-token"] for asked in provider.looked_up] == ["t"] * 3
    assert [asked.path.partition("?")[0] for asked in provider.looked_up] == ["/props", "/api/show", "/v1/models"]


async def test_every_request_carries_the_headers_of_its_format(provider: ProviderServer) -> None:
    provider.linted = False
    provider.otherwise = error(401, {"error": {"message": "bad key"}})
    choice = Catalog({}).find("custom/m", base_url=provider.origin, api_key="k", api="anthropic")
    transport = HttpTransport({})
    with pytest.raises(ProviderError):
        await Probe(choice, transport, lambda finding: None).run()
    await transport.close()
    assert provider.requests[0].headers["anthropic-version"] == "2023-06-01"


def test_the_models_a_server_lists_can_be_offered(provider: ProviderServer) -> None:
    page = {"data": [{"id": "m"}, {"id": ""}, "odd", {"name": "x"}]}
    provider.pages["/v1/models"] = Reply(headers={"content-type": "application/json"}, pieces=(json.dumps(page).encode(),))
    choice = choice_of(provider)
    assert served_models(choice) == ["m"]
    assert served_models(replace(choice, base_url=provider.origin)) == ["m"]
    provider.pages.clear()
    assert served_models(choice_of(provider)) == []


async def test_written_calls_are_found_and_searched(provider: ProviderServer) -> None:
    class Writes(Server):
        def _calls(self, body: Mapping[str, Any]) -> Reply:
            return text('I echo.\n<tool_call>{"name": "echo", "arguments": {"word": "red"}}</tool_call>')

    found = await probe(provider, Writes())
    assert found.dialect["leaked_calls"] is True
    assert "leaked_calls" not in (await probe(provider, Server())).dialect
