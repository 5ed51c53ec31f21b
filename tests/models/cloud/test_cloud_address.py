"""Regions, projects and the names of models in clouds."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.fakes.command import run_wolo
from wolo.errors import ConfigError
from wolo.models.catalog import Catalog
from wolo.models.provider import ProviderSettings


@pytest.mark.parametrize(
    ("environ", "url"),
    [
        ({}, "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers"),
        ({"GOOGLE_CLOUD_LOCATION": "eu"}, "https://aiplatform.eu.rep.googleapis.com/v1/projects/p/locations/eu/publishers"),
        (
            {"CLOUD_ML_REGION": "us-east5"},
            "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5/publishers",
        ),
    ],
)
def test_vertex_address_follows_the_region(environ: Mapping[str, str], url: str) -> None:
    assert Catalog({"GOOGLE_CLOUD_PROJECT": "p", **environ}).find("vertex/claude-opus-4-5").base_url == url


def test_settings_of_region_and_project_come_first() -> None:
    own = {"vertex": ProviderSettings(region="europe-west1", project="mine"), "bedrock": ProviderSettings(region="eu-west-1")}
    catalog = Catalog({"GOOGLE_CLOUD_PROJECT": "p", "AWS_REGION": "us-east-1"}, own)
    assert catalog.find("vertex/gemini-3.8-flash").base_url.startswith(
        "https://europe-west1-aiplatform.googleapis.com/v1/projects/mine/"
    )
    assert catalog.find("bedrock/m").base_url == "https://bedrock-runtime.eu-west-1.amazonaws.com"


def test_region_of_private_endpoint_is_read_from_it() -> None:
    host = "https://vpce-1.bedrock-runtime.eu-west-2.vpce.amazonaws.com"
    choice = Catalog({"AWS_REGION": "us-east-1"}, {"bedrock": ProviderSettings(base_url=host, auth="aws")}).find("bedrock/m")
    assert (choice.base_url, choice.provider.region) == (host, "eu-west-2")


def test_project_with_a_slash_is_refused() -> None:
    with pytest.raises(ConfigError, match="no name of a Google project"):
        Catalog({"GOOGLE_CLOUD_PROJECT": "p/../x"}).find("vertex/claude-opus-4-5")


@pytest.mark.parametrize(
    ("name", "context", "style"),
    [
        ("bedrock/us.anthropic.claude-opus-4-6-v1", 1_000_000, "adaptive"),
        ("bedrock/global.anthropic.claude-haiku-4-5-20251001-v1:0", 200_000, "budget"),
        ("bedrock/anthropic.claude-opus-4-9-v1", None, None),
        ("bedrock/arn:aws:bedrock:us-east-1:1:application-inference-profile/abc", None, None),
        ("vertex/claude-sonnet-4-5@20250929", 200_000, "budget"),
    ],
)
def test_facts_come_from_the_maker(name: str, context: int | None, style: str | None) -> None:
    choice = Catalog({"GOOGLE_CLOUD_PROJECT": "p", "AWS_REGION": "us-east-1"}).find(name)
    assert choice.model.id == name.partition("/")[2]
    assert (choice.model.context, choice.model.dialect.get("thinking_style")) == (context, style)
    assert (choice.model.price, choice.format) == (None, "anthropic")


def test_unlisted_gemini_speaks_its_own_format() -> None:
    assert Catalog({"GOOGLE_CLOUD_PROJECT": "p"}).find("vertex/gemini-99-flash").format == "gemini"


def test_clouds_are_never_chosen_by_themselves() -> None:
    assert Catalog({"AWS_BEARER_TOKEN_BEDROCK": "k", "AWS_REGION": "us-east-1"}).default_choice() is None


def test_entra_ignores_the_usual_key() -> None:
    own = {"azure-openai": ProviderSettings(base_url="https://acme.openai.azure.com", auth="entra")}
    choice = Catalog({"AZURE_OPENAI_API_KEY": "k"}, own).find("azure/my-gpt")
    assert (choice.base_url, choice.api_key) == ("https://acme.openai.azure.com/openai/v1", "")


def test_models_show_names_address_and_credentials() -> None:
    facts = run_wolo("models", "show", "bedrock/us.anthropic.claude-opus-4-6-v1", "--json", env={"AWS_REGION": "us-east-1"}).json
    assert facts["address"].startswith("https://bedrock-runtime.us-east-1.amazonaws.com/model/us.anthropic.")
    assert (facts["context"], facts["listed"], facts["price"]) == (1_000_000, True, None)
    assert facts["key"] == {"source": "the credentials of AWS", "is_set": False}
    page = run_wolo("models", "show", "vertex/claude-opus-4-6").stdout
    assert "{project}" in page
    assert "the credentials of Google Cloud: not set" in page
