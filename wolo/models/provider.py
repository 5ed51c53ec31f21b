"""Providers, models and prices, as read from catalogue files and settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from wolo.formats.format import ThinkingLevel
from wolo.messages.message import Usage, UsageCost

Auth = Literal["bearer", "x-api-key", "api-key", "x-goog-api-key", "none", "aws", "google", "entra"]
"""Key transport: `Authorization: Bearer`, a header of this name, or none; or the cloud whose credentials sign the requests."""
CLOUDS: tuple[Auth, ...] = ("aws", "google", "entra")
"""A key, if there is one, is sent as `Authorization: Bearer`."""

Ability = Literal["tools", "thinking", "images", "audio", "files"]
MEDIA: tuple[Ability, ...] = ("images", "audio", "files")
"""Attachment kinds; also dialect flags of the same name in most formats."""


EditTool = Literal["edit", "apply_patch"]
"""Editing tool a model was trained on: text replacement or patches."""
EDIT_TOOLS: tuple[EditTool, ...] = ("edit", "apply_patch")

DriveMode = Literal["native", "written", "constrained", "simple"]
"""Calls of the API, calls as text, one JSON object per step that the server enforces, or one small question at a time."""
DRIVE_MODES: tuple[DriveMode, ...] = ("native", "written", "constrained", "simple")
DRIVEN: tuple[DriveMode, ...] = ("constrained", "simple")
"""Modes with a driver of their own, which makes the calls."""

Tokens = Annotated[int, Meta(gt=0)]
Dollars = Annotated[float, Meta(ge=0)]


FACTS = (*MEDIA, "thinking_levels")
"""Flags about the model rather than the format; they apply in every format that has them."""


class Price(Struct, frozen=True, forbid_unknown_fields=True):
    """US dollars per million tokens; None: unknown. `source` and `date` document the row."""

    input: Dollars | None = None
    output: Dollars | None = None
    cache_read: Dollars | None = None
    cache_write: Dollars | None = None
    source: str = ""
    date: str = ""


class Model(Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    """Name sent to the server."""
    context: Tokens | None = None
    """Context window in tokens; None: unknown."""
    max_output: Tokens | None = None
    price: Price | None = None
    abilities: tuple[Ability, ...] = ("tools",)
    aliases: tuple[str, ...] = ()
    format: str = ""
    """Wire format, if different from the provider's."""
    edit_tool: EditTool | Literal[""] = ""
    """Empty: the provider's."""
    dialect: Mapping[str, Any] = field(default_factory=dict)
    """Dialect flags that differ from the provider's."""


class OtherApi(Struct, frozen=True, forbid_unknown_fields=True):
    """Another wire format of the same servers."""

    path: str = ""
    """Path between the provider's address and the format's own path."""
    dialect: Mapping[str, Any] = field(default_factory=dict)


class Provider(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    label: str
    base_url: str
    format: str = "openai-chat"
    base_url_env: str = ""
    """Environment variable with the address, where each user has their own."""
    base_url_path: str = ""
    """Path appended to an address from `base_url_env`."""
    key_env: tuple[str, ...] = ()
    """Environment variables for the key, in order of preference; empty: no key needed."""
    key_prefixes: tuple[str, ...] = ()
    """Beginnings of its keys that no other provider's have."""
    by_name_only: bool = False
    """Do not select this provider just because its key is in the environment."""
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    """Query parameters of every request, as some gateways require (Azure's `api-version`)."""
    auth: Auth | Literal[""] = ""
    """Empty: the format's default."""
    client_cert: str = ""
    """File of the certificate that its servers require of clients; empty: none."""
    client_key: str = ""
    """File of its key; empty: in the file of the certificate."""
    dialect: Mapping[str, Any] = field(default_factory=dict)
    """Dialect flags of the wire format."""
    also: Mapping[str, OtherApi] = field(default_factory=dict)
    """Other formats by name."""
    edit_tool: EditTool = "edit"
    most_tools: Annotated[int, Meta(gt=1)] | None = None
    """Maximum number of tools per request; None: unknown."""
    region: str = ""
    """Region of a cloud; empty: that of its own variables and files. Its place in the base URL is `{region}`."""
    project: str = ""
    """Project of Google Cloud; empty: likewise. Its place is `{project}`."""
    token_scope: str = ""
    """Scope of tokens of Microsoft Entra."""
    facts_from: tuple[str, ...] = ()
    """Providers whose models these servers have too, under names that contain theirs."""
    models: tuple[Model, ...] = ()
    default_model: str = ""
    search_price: Dollars | None = None
    """US dollars for a thousand searches of the web by the provider itself; None: unknown."""
    loopback: bool = False
    """A server on this machine: needs no key, and has no silence timeout."""
    any_model: bool = False
    """The list of models is incomplete: unknown names are sent as they are."""
    drive: DriveMode | None = None
    """Driving mode of its models; None: chosen by what the model can do."""
    hint: str = ""
    """Advice for rejected keys."""


class ModelSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """A row of `providers.NAME.models`: a custom model, or changes to one of the catalogue."""

    id: Annotated[str, Meta(min_length=1)]
    context: Tokens | None = None
    max_output: Tokens | None = None
    price: Price | None = None
    abilities: tuple[Ability, ...] | None = None
    """Attachments not listed are not sent; models without tools use the text protocol."""
    aliases: tuple[str, ...] | None = None
    format: str | None = None
    edit_tool: EditTool | None = None
    """Editing tool: text replacement or patches."""
    dialect: Mapping[str, Any] | None = None


class ProviderSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """`providers.NAME` of the settings: changes to a provider, or a custom one."""

    base_url: str | None = None
    """Base URL, up to the format's own path such as `/chat/completions`. At a changed address a key is only sent if it is named
    here."""
    api: str | None = None
    """Wire format, such as `openai-chat` or `anthropic`."""
    api_key: str = ""
    """The key; `$NAME` reads an environment variable, `!COMMAND` the first line a program prints."""
    key_env: tuple[str, ...] | None = None
    """Environment variables for the key, in order of preference."""
    account: str = ""
    """Name of the saved key to use instead (`wolo auth login PROVIDER --name NAME`); `default` is the one without a name."""
    label: str | None = None
    """Display name."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Additional headers of every request; `${NAME}` refers to the environment."""
    query: Mapping[str, str] = field(default_factory=dict)
    """Query parameters of every request; `${NAME}` refers to the environment."""
    auth: Auth | None = None
    """How requests carry the key."""
    client_cert: str | None = None
    """PEM file of the certificate that the server requires of clients (mTLS). Only for `https` addresses."""
    client_key: str | None = None
    """PEM file of its key, without a passphrase; unset: the key is in the file of the certificate."""
    dialect: Mapping[str, Any] = field(default_factory=dict)
    """Dialect flags for this server."""
    edit_tool: EditTool | None = None
    """Editing tool of its models."""
    models: tuple[ModelSettings, ...] = ()
    """Additional models; for a catalogue model, only the fields set here change."""
    region: str | None = None
    """Region of a cloud, such as `us-east-1` or `europe-west1`."""
    project: str | None = None
    """Project of Google Cloud."""
    token_scope: str | None = None
    """Scope of tokens of Microsoft Entra; other clouds of Azure have others."""
    default_model: str | None = None
    """Model to use when only the provider is named."""
    loopback: bool | None = None
    """A server on this machine: needs no key, and has no silence timeout."""
    any_model: bool | None = None
    """Send unknown model names as they are."""
    drive: DriveMode | None = None
    """Driving mode of its models: `native`, `written`, `constrained` or `simple`; unset: chosen by what the model can do."""


class ModelChoice(Struct, frozen=True):
    """A selected model with everything needed to reach it except the transport."""

    provider: Provider
    model: Model
    base_url: str
    api_key: str = ""
    key_command: str = ""
    """Prints the token of a cloud, again when it has expired."""
    thinking: ThinkingLevel | None = None
    temperature: float | None = None
    """None: provider default."""
    drive: DriveMode | None = None
    """Driving mode, forced or settled; None: settled at the first request."""

    @property
    def format(self) -> str:
        return self.model.format or self.provider.format

    @property
    def edit_tool(self) -> EditTool:
        return self.model.edit_tool or self.provider.edit_tool

    @property
    def most_tools(self) -> int | None:
        """Per request; unlimited in the text protocol, where tools are text."""
        return None if self.format == "xml" else self.provider.most_tools

    @property
    def label(self) -> str:
        return f"{self.provider.name}/{self.model.id}"


PER_TOKEN = 1e-6
"""Prices are per million tokens."""


def cost_of(usage: Usage, price: Price | None) -> UsageCost | None:
    """None when a needed price is unknown.

    Without their own price, cache reads and writes cost as much as fresh tokens, as providers bill them.
    """
    if price is None or price.input is None or price.output is None:
        return None
    cache_read = price.input if price.cache_read is None else price.cache_read
    cache_write = price.input if price.cache_write is None else price.cache_write
    parts = (
        usage.input_tokens * price.input * PER_TOKEN,
        usage.output_tokens * price.output * PER_TOKEN,
        usage.cache_read_tokens * cache_read * PER_TOKEN,
        usage.cache_write_tokens * cache_write * PER_TOKEN,
    )
    return UsageCost(*parts, total=sum(parts))


def is_known(price: Price | None) -> bool:
    """Check that every usage can be priced, as a cost limit requires."""
    return price is not None and price.input is not None and price.output is not None
