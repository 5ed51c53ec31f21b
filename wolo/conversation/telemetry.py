"""Connects a conversation to OpenTelemetry, where the environment asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING

from msgspec import Struct

from wolo.agent.asker import RedactingAsker
from wolo.config.layers import MANAGED
from wolo.errors import UsageError
from wolo.places import Notices

if TYPE_CHECKING:
    from wolo.agent.agent_services import AgentServices
    from wolo.config.schema import Config
    from wolo.conversation.resources.startup import StartupState
    from wolo.telemetry.otlp_exporter import Exporter
    from wolo.telemetry.spans import Spans

_PROTOCOLS = ("OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL")
CONTENT, ENDPOINT = "telemetry.content", "telemetry.endpoint"
VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_EXPORTS = frozenset(("true", "span_only", "span_and_event"))
_DOES_NOT = frozenset(("false", "no_content", "event_only"))
"""wolo exports no events."""
_HARMLESS = (
    *("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_CERTIFICATE", "OTEL_EXPORTER_OTLP_CLIENT_"),
    *("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"),
)
"""Beginnings of the variables that count beside an endpoint of managed files: they neither turn export off nor lead elsewhere."""
_EXPORTERS = ("OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER")


class Telemetry(Struct, frozen=True):
    spans: Spans
    exporter: Exporter

    def follow(self, services: AgentServices) -> None:
        """Requests of an agent are exported with their address, and with their messages where content is."""
        if isinstance(services.asker, RedactingAsker):
            self.spans.askers[services.session_id] = services.asker


def open_telemetry(state: StartupState, environ: Mapping[str, str], notices: Notices) -> Telemetry | None:
    """None: there is none, and a notice says why if it was asked for."""
    variables = _variables(state.config, environ)
    if variables.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    try:
        _check(variables)
        from wolo.telemetry.otlp_exporter import exporter_for
        from wolo.telemetry.spans import Identity, Spans

        exporter = exporter_for(variables)
    except Exception as error:  # the SDK raises what it likes for variables that it cannot read
        reason = error.message if isinstance(error, UsageError) else str(error)
        notices.add(f"Telemetry is off: {reason}")
        return None
    identity = Identity(
        session_id=state.sink.session_id,
        agent=state.agent.name if state.agent else "wolo",
        content=_exports_content(state, environ, notices),
        parent={name.lower(): environ[name] for name in ("TRACEPARENT", "TRACESTATE") if name in environ},
    )
    return Telemetry(Spans(exporter.tracer, exporter.meter, identity), exporter)


def _variables(config: Config, environ: Mapping[str, str]) -> Mapping[str, str]:
    """The variables of OpenTelemetry, as far as the setting leaves them."""
    if not (endpoint := config.settings.telemetry.endpoint):
        return environ
    is_fixed = config.sources[ENDPOINT].startswith(MANAGED)
    variables = {
        name: value
        for name, value in environ.items()
        if (name.startswith(_HARMLESS) if is_fixed else name.startswith("OTEL_") and not name.endswith("_ENDPOINT"))
    }
    return {**variables, "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}


def _exports_content(state: StartupState, environ: Mapping[str, str], notices: Notices) -> bool:
    """By the setting; where it is not set, by the variable of OpenTelemetry."""
    if CONTENT in state.config.sources or not (value := environ.get(VARIABLE, "").strip().lower()):
        return state.config.settings.telemetry.content
    if value not in _EXPORTS | _DOES_NOT:
        notices.add(f"{VARIABLE}={environ[VARIABLE]} is not known, so no content is exported.")
    return value in _EXPORTS


def _check(environ: Mapping[str, str]) -> None:
    """Raises UsageError."""
    for name in _PROTOCOLS:
        if environ.get(name, "http/protobuf") != "http/protobuf":
            raise UsageError(f"{name}={environ[name]} is not supported; only http/protobuf is.")
    for name in _EXPORTERS:
        if environ.get(name, "otlp") not in ("otlp", "none", ""):
            raise UsageError(f"{name}={environ[name]} is not supported; only otlp and none are.")
    if find_spec("opentelemetry.sdk") is None or find_spec("opentelemetry.exporter") is None:
        raise UsageError("an endpoint is set, but the packages for it are missing: install wolo-cli[otel].")
