"""Builds the next request of a saved session, without a key or network."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from wolo.agent.asker import redact_question
from wolo.agent.compaction.compactor import Compactor, Fixed
from wolo.agent.compaction.history_cut import cut_of
from wolo.config import keys, layers
from wolo.config.schema import Config
from wolo.conversation.resources.model_selection import follow_card
from wolo.conversation.resources.request_prefix import PromptOptions, build_prefix
from wolo.conversation.resources.secrets import make_secrets
from wolo.conversation.resources.user_files import UserFiles
from wolo.errors import ConfigError, UsageError
from wolo.formats.format import Request, ThinkingLevel
from wolo.messages.message import OPENED, Message
from wolo.models.catalog import Catalog
from wolo.models.format_selection import FORMATS, format_of, unknown_format
from wolo.models.protocol import ModelQuestion, producer_of, request_for
from wolo.models.provider import ModelChoice
from wolo.models.tokens import TokenEstimate
from wolo.sessions.entries import CompactionEntry
from wolo.sessions.listing import SessionInfo
from wolo.workspace.root import find_site

STAND_IN = "custom/any-model"
"""Used for a named format when the model of the session is unknown."""


class NextRequest(Struct, frozen=True, kw_only=True):
    choice: ModelChoice
    request: Request
    body: bytes
    tokens: int
    """Estimated size."""
    window: int | None
    """Context window in tokens; None: unknown."""
    is_compacted: bool
    """Compacted, because the whole conversation exceeds the context window."""

    @property
    def format(self) -> str:
        return self.choice.format

    def encode(self, messages: tuple[Message, ...]) -> bytes:
        return format_of(self.choice).encode(replace(self.request, messages=messages))


class RequestPreview:
    """Previews requests of one session to one model, in any format."""

    def __init__(
        self, session: SessionInfo, history: tuple[Message, ...], model: str = "", compaction: CompactionEntry | None = None
    ) -> None:
        """Empty `model`: the last one of the session, or that of the settings if it is unknown. Raises ConfigError."""
        site = find_site()
        self._config = layers.load(site)
        self._environ = keys.with_stored_keys(site, self._config)
        self._secrets = make_secrets(site.places, self._config.settings, (site.root,))
        self._session, self._history = session, history
        self._cut = cut_of(compaction)
        self._model = model or session.model
        self._is_named = bool(model)
        self._library = UserFiles(self._config, site)
        self._prepare = partial(build_prefix, self._config, site, PromptOptions())

    @property
    def formats(self) -> tuple[str, ...]:
        return FORMATS

    def next_request(self, format: str = "") -> NextRequest:
        """Empty format: the last one used with this model, else its default. Raises ConfigError."""
        if not self._history:
            raise UsageError(f"Session {self._session.id} has no prompts yet.", hint="`wolo sessions list` lists the sessions.")
        if format and format not in FORMATS:
            raise unknown_format(format)
        try:
            choice = readable(self._config, self._environ, self._model, format or self._last_format())
        except ConfigError as error:
            if not self._is_named and (other := self._other(format)):
                choice = readable(self._config, self._environ, other, format)
            else:
                if self._is_named or not self._model:
                    raise
                message = f"The model of this session, {self._model}, is not available any more. {error.message}"
                raise ConfigError(message, hint="Name another one: --model PROVIDER/MODEL, or --as FORMAT.") from error
        opened = next(
            (found for message in reversed(self._history) if isinstance(found := message.metadata.get(OPENED), dict)), {}
        )
        in_text, attended = choice.format == "xml", bool(opened.get("attended"))
        skills, agents = self._library.skills(choice), self._library.agents(choice)
        preamble = self._prepare(
            calls_in_text=in_text, edit_tool=choice.edit_tool, attended=attended, skills=skills, agents=agents
        )
        context, system, toolbox = self._config.settings.context, preamble.system, preamble.toolbox
        compactor = Compactor(context, self._config.settings.compaction, self._cut)
        shown, _ = compactor.view(self._history, Fixed(system, toolbox.specs(), choice.model.context, choice.model.price))
        is_compacted = not compactor.cut.is_empty
        tools = toolbox.specs(compacted=is_compacted)
        question = ModelQuestion(messages=shown, system=system, tools=tools, session_id=self._session.id)
        question = redact_question(question, self._secrets)
        request = request_for(choice, producer_of(choice, choice.format), question)
        return NextRequest(
            choice=choice,
            request=request,
            body=format_of(choice).encode(request),
            tokens=TokenEstimate().request(shown, system=question.system, tools=tools),
            window=context.window_of(choice.model.context),
            is_compacted=is_compacted,
        )

    def _other(self, format: str) -> str:
        """The model of the settings; empty: none."""
        others = (self._config.settings.model, STAND_IN if format else "")
        return next((other for other in others if other and other != self._model), "")

    def _last_format(self) -> str:
        """Format of the last answer of this model, if it is still supported."""
        for message in reversed(self._history):
            wrote = message.producer
            if wrote and f"{wrote.provider}/{wrote.model}" == self._model and wrote.format in FORMATS:
                return wrote.format
        return ""


def readable(config: Config, environ: Mapping[str, str], spec: str, format: str = "") -> ModelChoice:
    """A model without key and URL. Raises ConfigError with the nearest names."""
    if not spec:
        raise ConfigError("The model of this session is unknown.", hint="Name one: --model PROVIDER/MODEL, or --as FORMAT.")
    provider, model, level = Catalog(environ, config.settings.providers).look_up(spec, api=format or None)
    thinking: ThinkingLevel | None = level or config.settings.thinking
    choice = ModelChoice(provider=provider, model=model, base_url=provider.base_url, thinking=thinking)
    return follow_card(config, choice, keeps_format=bool(format))
