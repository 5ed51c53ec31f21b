"""Exports spans and metrics in the background, as the `OTEL_*` variables say."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Mapping

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import Meter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Tracer

from wolo import __version__

FLUSH_S = 2.0
SCOPE = "wolo"
SCHEMA_URL = "https://opentelemetry.io/schemas/1.41.1"
"""Of the conventions by which spans and metrics are named."""
_LOG = logging.getLogger(__name__)
_exporters: dict[tuple[tuple[str, str], ...], Exporter] = {}
"""By the variables that they obey: conversations of one process share an exporter."""


class Exporter:
    """A tracer and a meter with their background threads."""

    tracer: Tracer
    meter: Meter

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Without OTEL_SERVICE_NAME the service is `wolo`. Signals whose exporter is `none` are dropped."""
        self._flushing: set[threading.Event] = set()
        """Set when a flush is over: all is sent, or the collector fails."""
        log = logging.getLogger("opentelemetry")
        log.propagate = False
        log.handlers = [_Failures(self._flushing)]
        names_service = "OTEL_SERVICE_NAME" in environ or "service.name=" in environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
        named = {} if names_service else {"service.name": "wolo"}
        resource = Resource.create({**named, "service.version": __version__})
        self._traces = TracerProvider(resource=resource, shutdown_on_exit=False)
        if _is_on("TRACES", environ):
            self._traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        readers = []
        if _is_on("METRICS", environ):
            readers.append(PeriodicExportingMetricReader(OTLPMetricExporter()))
        self._metrics = MeterProvider(readers, resource=resource, shutdown_on_exit=False)
        self.tracer = self._traces.get_tracer(SCOPE, __version__, schema_url=SCHEMA_URL)
        self.meter = self._metrics.get_meter(SCOPE, __version__, schema_url=SCHEMA_URL)

    async def flush(self) -> None:
        """Sends what waits. Gives up after `FLUSH_S`, and at the first failure."""
        over = threading.Event()
        self._flushing.add(over)
        threading.Thread(target=self._flush, args=(over,), name="wolo-telemetry", daemon=True).start()
        await asyncio.to_thread(over.wait, FLUSH_S)
        self._flushing.discard(over)

    def _flush(self, over: threading.Event) -> None:
        self._traces.force_flush()
        self._metrics.force_flush()
        over.set()


def _is_on(signal: str, environ: Mapping[str, str]) -> bool:
    endpoints = (f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
    return environ.get(f"OTEL_{signal}_EXPORTER") != "none" and any(map(environ.get, endpoints))


class _Failures(logging.Handler):
    """Keeps the SDK's messages off the terminal and out of the log."""

    def __init__(self, flushing: set[threading.Event]) -> None:
        super().__init__(logging.WARNING)
        self._flushing = flushing

    def emit(self, record: logging.LogRecord) -> None:
        for over in tuple(self._flushing):
            over.set()
        _LOG.debug("telemetry: %s", record.getMessage())


def exporter_for(environ: Mapping[str, str] = os.environ) -> Exporter:
    key, own = _variables(environ), _variables(os.environ)
    if key not in _exporters:
        _set_variables(key)  # the SDK reads them from there
        try:
            _exporters[key] = Exporter(environ)
        finally:
            _set_variables(own)
    return _exporters[key]


def _variables(environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, value) for name, value in environ.items() if name.startswith("OTEL_")))


def _set_variables(variables: tuple[tuple[str, str], ...]) -> None:
    """Leaves those alone that are as they should be: other threads start processes."""
    chosen = dict(variables)
    for name, _ in _variables(os.environ):
        if name not in chosen:
            del os.environ[name]
    os.environ.update({name: value for name, value in chosen.items() if os.environ.get(name) != value})
