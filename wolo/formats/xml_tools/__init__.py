"""The XML text protocol: `<tool>{json}</tool>` calls over another format, for models without tool support."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from wolo.errors import ProviderError
from wolo.formats.chat_dialect import ChatDialect
from wolo.formats.encoding.encoder import split_system
from wolo.formats.format import Blocks, Decoder, Format, Framing, Request, ToolSpec
from wolo.formats.text_recovery.text_filter import FIRST_LETTERS, ThinkTags
from wolo.formats.xml_tools.call_blocks import CLOSE, CallBlock
from wolo.formats.xml_tools.decode import BracketThinking, ToolBlocks
from wolo.formats.xml_tools.encode import PlainHistory, describe_tools, raw_blobs
from wolo.messages.deltas import CallDelta, Delta, FinishDelta, TextDelta, ThinkingDelta, size_of

_may_matter = re.compile(f"[{re.escape(FIRST_LETTERS)}]").search

FIRST_SLOT = 1_000
"""First slot for calls found in text, above those of the carrier format."""


class XmlTools:
    """The carrier format encodes plain messages without tools; its text is searched for calls."""

    name = "xml"

    def __init__(self, carrier: Format, dialect: XmlDialect) -> None:
        self._carrier, self._dialect = carrier, dialect
        self._history = PlainHistory()
        self._tools: tuple[ToolSpec, ...] = ()
        self._described = ("", "")
        """Last system prompt, and the same with tools described."""

    @property
    def framing(self) -> Framing:
        return self._carrier.framing

    def path(self, model: str) -> str:
        return self._carrier.path(model)

    def encode(self, request: Request) -> bytes:
        prompt, messages = split_system(request.messages, request.system)
        if request.tools is not self._tools or self._described[0] != prompt:
            told = describe_tools(request.tools, brackets=self._dialect.bracket_thinking)
            self._tools = request.tools
            self._described = (prompt, "\n\n".join(text for text in (prompt, told) if text.strip()))
        plain = replace(
            request,
            system=self._described[1],
            messages=self._history.of(messages, request.producer),
            tools=(),
            stop=(*request.stop, CLOSE) if self._dialect.xml_single_call and request.tools else request.stop,
        )
        return self._carrier.encode(plain)

    def blocks(self) -> Blocks:
        return self._carrier.blocks()

    def decoder(self, request: Request) -> Decoder:
        carrier = self._carrier.decoder(replace(request, tools=()))
        return XmlDecoder(carrier, _TextReader({tool.name for tool in request.tools}, self._dialect))

    def read_whole(self, body: bytes) -> Sequence[Delta]:
        reading = _TextReader({tool.name for tool in self._tools}, self._dialect)
        return reading.take(self._carrier.read_whole(body))

    def read_error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        return self._carrier.read_error(status, headers, body)


class XmlDecoder:
    """Decodes one response through the carrier format."""

    def __init__(self, carrier: Decoder, reading: _TextReader) -> None:
        self._carrier, self._reading = carrier, reading
        self._held_chars = 0

    @property
    def is_complete(self) -> bool:
        return self._carrier.is_complete

    @property
    def held_chars(self) -> int:
        return self._carrier.held_chars + max(self._held_chars, 0)

    def feed(self, *payloads: bytes) -> Sequence[Delta]:
        deltas = self._carrier.feed(*payloads)
        out = self._reading.take(deltas)
        if out is not deltas:
            self._held_chars += size_of(deltas) - size_of(out)
        return out

    def close(self) -> Sequence[Delta]:
        return self._reading.take(self._carrier.close())


class _TextReader:
    """Turns calls in the text of one response into call deltas.

    After the first call everything is held until the end, because an unmatched closing think tag may turn all of it into
    reasoning. Calls themselves are not searched for such tags.
    """

    def __init__(self, offered: Collection[str], dialect: XmlDialect) -> None:
        self._opened = ThinkTags(may_be_unopened=False) if dialect.think_tags else None
        self._blocks = ToolBlocks(offered)
        self._unopened = ThinkTags() if dialect.think_tags else None
        self._brackets = BracketThinking() if dialect.bracket_thinking else None
        self._held: list[str | CallBlock] = []
        self._num_calls = 0
        self._is_idle = False
        self._follow = self._blocks.follow

    def take(self, deltas: Sequence[Delta]) -> Sequence[Delta]:
        if self._is_idle and len(deltas) == 1 and type(delta := deltas[0]) is TextDelta and not _may_matter(delta.text):
            self._follow(delta.text)  # a fast path: it cannot start anything
            return deltas
        out: list[Delta] = []
        for delta in deltas:
            if isinstance(delta, TextDelta):
                # Text that has started opens no tag.
                for part in (delta,) if self._opened is None or self._opened.is_idle else self._opened.feed(delta.text):
                    if isinstance(part, TextDelta):
                        self._find_calls(part.text, out)
                    else:
                        out.append(part)
            elif isinstance(delta, FinishDelta):
                self._flush_tags(self._opened, out)
                for piece in self._blocks.flush():
                    self._emit(piece, out)
                self._flush_tags(self._unopened, out)
                held, self._held = self._held, []
                for piece in held:
                    if isinstance(piece, str):
                        self._emit_text(piece, out)
                    else:
                        self._end_brackets(out)
                        slot = FIRST_SLOT + self._num_calls
                        self._num_calls += 1
                        blobs = raw_blobs(piece)
                        out.append(CallDelta(slot, "", piece.tool, piece.arguments, blobs=blobs, problem=piece.problem))
                self._end_brackets(out)
                is_calling = self._num_calls and delta.reason == "stop"
                out.append(FinishDelta("tool_calls", delta.raw) if is_calling else delta)
            else:
                if isinstance(delta, ThinkingDelta) and self._opened is not None:
                    # The server reports reasoning separately, so text contains no think tags.
                    self._flush_tags(self._opened, out)
                    self._flush_tags(self._unopened, out)
                    self._opened = self._unopened = None
                out.append(delta)
        self._is_idle = (
            (self._opened is None or self._opened.is_idle)
            and self._blocks.is_idle
            and (self._unopened is None or self._unopened.is_idle)
            and self._brackets is None
            and not self._held
        )
        return out

    # Stages: opened think tags, calls, unopened think tags, brackets

    def _find_calls(self, text: str, out: list[Delta]) -> None:
        for piece in self._blocks.feed(text):
            self._emit(piece, out)

    def _emit(self, piece: str | CallBlock, out: list[Delta]) -> None:
        if isinstance(piece, CallBlock):
            for rest in self._unopened.release() if self._unopened is not None else ():
                self._emit_text(rest.text, out)
            self._held.append(piece)
        elif self._unopened is None:
            self._emit_text(piece, out)
        else:
            for each in self._unopened.feed(piece):
                if isinstance(each, TextDelta):
                    self._emit_text(each.text, out)
                    continue
                if each.takes_text:
                    held, self._held = self._held, []
                    out += [TextDelta(part if isinstance(part, str) else part.raw) for part in held]
                out.append(each)

    def _emit_text(self, text: str, out: list[Delta]) -> None:
        if self._held:
            self._held.append(text)
        elif self._brackets is None:
            out.append(TextDelta(text))
        else:
            out += self._brackets.feed(text)

    def _flush_tags(self, tags: ThinkTags | None, out: list[Delta]) -> None:
        for piece in tags.flush() if tags is not None else ():
            if isinstance(piece, ThinkingDelta):
                out.append(piece)
            elif tags is self._opened:
                self._find_calls(piece.text, out)
            else:
                self._emit_text(piece.text, out)

    def _end_brackets(self, out: list[Delta]) -> None:
        if self._brackets is not None:
            out += self._brackets.flush()


class XmlDialect(ChatDialect, frozen=True, kw_only=True, forbid_unknown_fields=True):
    bracket_thinking: bool = False
    """Lines in square brackets are reasoning."""
    xml_single_call: bool = False
    """Stop at the closing tag, so that a response has at most one call."""


def carrier_dialect(dialect: XmlDialect) -> XmlDialect:
    """Dialect for the carrier, which must not search the text itself."""
    return replace(dialect, think_tags=False, leaked_calls=False)
