"""A provider and its models: what a catalogue file becomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from wolo.formats.format import ThinkingLevel
from wolo.messages.message import Usage, UsageCost

Auth = Literal["bearer", "x-api-key", "api-key", "x-goog-api-key", "none"]
"""How requests carry the key: as `Authorization: Bearer`, in a header of this name, or not at all."""

Ability = Literal["tools", "thinking", "images", "audio", "files"]
MEDIA: tuple[Ability, ...] = ("images", "audio", "files")
"""Abilities that are flags as well, under the same names, in every format that leaves them open."""


EditTool = Literal["edit", "apply_patch"]
"""Which form of editing a model was trained on: passages to replace, or patches."""
EDIT_TOOLS: tuple[EditTool, ...] = ("edit", "apply_patch")

Tokens = Annotated[int, Meta(gt=0)]
Dollars = Annotated[float, Meta(ge=0)]


FACTS = (*MEDIA, "thinking_levels")
"""Flags that tell of the model, not of the format: they hold in every format that has them."""


class Price(Struct, frozen=True, forbid_unknown_fields=True):
    """US dollars per million tokens. None: not known. `source` and `date` say where the row comes from."""

    input: Dollars | None = None
    output: Dollars | None = None
    cache_read: Dollars | None = None
    cache_write: Dollars | None = None
    source: str = ""
    date: str = ""


class Model(Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    """As it goes on the wire."""
    context: Tokens | None = None
    """Window in tokens; None: not known."""
    max_output: Tokens | None = None
    price: Price | None = None
    abilities: tuple[Ability, ...] = ("tools",)
    aliases: tuple[str, ...] = ()
    format: str = ""
    """The wire format, where it is not the provider's."""
    edit_tool: EditTool | Literal[""] = ""
    """Empty: as the provider says."""
    dialect: Mapping[str, Any] = field(default_factory=dict)
    """Flags of the format that differ from the provider's."""


class OtherApi(Struct, frozen=True, forbid_unknown_fields=True):
    """A second wire format that the same servers speak."""

    path: str = ""
    """What comes behind the provider's address before the format's own path."""
    dialect: Mapping[str, Any] = field(default_factory=dict)


class Provider(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    label: str
    base_url: str
    format: str = "openai-chat"
    base_url_env: str = ""
    """An environment variable that holds the address, where everyone has one of their own."""
    base_url_path: str = ""
    """What comes behind an address from `base_url_env`."""
    key_env: tuple[str, ...] = ()
    """Environment variables that may hold the key, best first; empty: no key is needed."""
    by_name_only: bool = False
    """A key found in the environment is no wish to use it: it may be there for other reasons."""
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    """Put behind the address of every request, as gateways want it (Azure's `api-version`)."""
    auth: Auth | Literal[""] = ""
    """Empty: as the servers of the format want it."""
    dialect: Mapping[str, Any] = field(default_factory=dict)
    """Flags of the wire format; the format owns their meaning."""
    also: Mapping[str, OtherApi] = field(default_factory=dict)
    """Other formats, by name."""
    edit_tool: EditTool = "edit"
    most_tools: Annotated[int, Meta(gt=1)] | None = None
    """How many tools a request may offer; None: no limit is known."""
    """What its models are offered to change files with."""
    models: tuple[Model, ...] = ()
    default_model: str = ""
    loopback: bool = False
    """A model server on this machine: no key is needed, and it may be silent for as long as it likes."""
    any_model: bool = False
    """The list of models is not complete: a name that is not in it goes on the wire as it is."""
    hint: str = ""
    """What a person may do when the key is refused."""


class ModelSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """A row of `providers.NAME.models`: a model of one's own, or what is different about one of the catalogue."""

    id: Annotated[str, Meta(min_length=1)]
    context: Tokens | None = None
    max_output: Tokens | None = None
    price: Price | None = None
    abilities: tuple[Ability, ...] | None = None
    """Media that are not among them are not sent; a model without tools is asked in the text protocol."""
    aliases: tuple[str, ...] | None = None
    format: str | None = None
    edit_tool: EditTool | None = None
    """What it is offered to change files with: passages to replace, or patches."""
    dialect: Mapping[str, Any] | None = None


class ProviderSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """`providers.NAME` of the settings: what a person changes about a provider, or a provider of their own."""

    base_url: str | None = None
    """Ends where the format's own path begins, such as `/chat/completions`. A provider of another address gets a key only if one
    is named here."""
    api: str | None = None
    """The wire format, such as `openai-chat` or `anthropic`."""
    api_key: str = ""
    """The key, or where it is: `$NAME` is a variable of the environment, `!COMMAND` a program whose first line is the key."""
    key_env: tuple[str, ...] | None = None
    """Environment variables that may hold the key, best first."""
    label: str | None = None
    """What people call it."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent with every request, beside the provider's own; `${NAME}` in a value is a variable of the environment."""
    query: Mapping[str, str] = field(default_factory=dict)
    """Put behind the address of every request; `${NAME}` in a value is a variable of the environment."""
    auth: Auth | None = None
    """How requests carry the key."""
    dialect: Mapping[str, Any] = field(default_factory=dict)
    """Flags of the wire format that this server needs."""
    edit_tool: EditTool | None = None
    """What its models are offered to change files with."""
    models: tuple[ModelSettings, ...] = ()
    """Added to the catalogue's; of one that is there, only what is said here changes."""
    default_model: str | None = None
    """Meant where only the provider is named."""
    loopback: bool | None = None
    """A server on this machine: no key is needed, and it may be silent for as long as it likes."""
    any_model: bool | None = None
    """A name that is not listed goes on the wire as it is."""


class Choice(Struct, frozen=True):
    """The model of a conversation: everything needed to reach it but the transport."""

    provider: Provider
    model: Model
    base_url: str
    api_key: str = ""
    thinking: ThinkingLevel | None = None

    @property
    def format(self) -> str:
        return self.model.format or self.provider.format

    @property
    def edit_tool(self) -> EditTool:
        return self.model.edit_tool or self.provider.edit_tool

    @property
    def most_tools(self) -> int | None:
        """Of a request. In the text protocol tools are text."""
        return None if self.format == "xml" else self.provider.most_tools

    @property
    def label(self) -> str:
        return f"{self.provider.name}/{self.model.id}"


PER_TOKEN = 1e-6
"""Prices are per million tokens."""


def cost_of(usage: Usage, price: Price | None) -> UsageCost | None:
    """None when a price that this usage needs is not known.

    Without prices of their own, cache reads and writes cost what fresh tokens cost: that is how providers bill them.
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
    """Whether every usage can be priced: what a budget in money needs."""
    return price is not None and price.input is not None and price.output is not None
