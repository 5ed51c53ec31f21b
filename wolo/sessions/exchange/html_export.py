"""Writes a session as one self-contained HTML page."""

from __future__ import annotations

import html
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from wolo.formats.encoding.attachments import data_url
from wolo.formats.encoding.wire_forms import arguments_object, result_text
from wolo.messages.parts import MediaPart, TextPart, ThinkingPart, ToolPart
from wolo.sessions.exchange import text_export
from wolo.sessions.exchange.export_stream import MessageStream, Write
from wolo.sessions.exchange.redaction import Redactor
from wolo.sessions.listing import SessionInfo
from wolo.sessions.store import Store

HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" \
content="default-src 'none'; style-src 'unsafe-inline'; img-src data:; media-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="wolo">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
"""


if TYPE_CHECKING:
    from markdown_it import MarkdownIt

FORMAT = "html"
RENDERED_CHARACTERS = 20_000
"""A longer text is shown as written: rendering time grows with the square of its length."""


def write(store: Store, info: SessionInfo, out: Write, redactor: Redactor | None) -> None:
    for piece in _page(info, MessageStream(store, info.id, redactor), redactor):
        out(piece.encode("utf-8", "replace"))


def escape(text: str) -> str:
    return html.escape(text_export.plain(text), quote=True)


def _page(info: SessionInfo, messages: MessageStream, redactor: Redactor | None) -> Iterator[str]:
    def clean(text: str) -> str:
        return escape(redactor.text(text) if redactor else text)

    title = clean(text_export.title(info))
    style = Path(__file__).with_name("html_export.css").read_text("utf-8")
    yield HEAD.format(title=title, style=style)
    facts = (info.id, info.cwd, info.model, text_export.when(info.created))
    yield f"<header><h1>{title}</h1><p>{' · '.join(clean(fact) for fact in facts if fact)}</p></header>\n<main>\n"
    # HTML in the text stays text, script URLs are no links, and remote images are not loaded
    from markdown_it import MarkdownIt  # noqa: PLC0415  # for this shape only

    markdown = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    for message in filter(text_export.is_for_readers, messages):
        time = text_export.when(message.timestamp)
        yield f'<article class="{message.role}">\n<h2>{text_export.SPEAKERS[message.role]}'
        yield f" <small>{time}</small></h2>\n" if time else "</h2>\n"
        for part in message.parts:
            if isinstance(part, TextPart):
                yield _text(part.text, markdown if message.role == "assistant" else None)
            elif isinstance(part, ThinkingPart):
                yield _fold("thinking", "Thinking", f"<div class=text>{escape(part.text)}</div>") if part.text.strip() else ""
            elif isinstance(part, ToolPart):
                yield _call(part)
            else:
                yield _attachment(part)
        if message.error:
            yield f"<p class=bad>{escape(message.error)}</p>\n"
        yield "</article>\n"
    yield "</main>\n</body>\n</html>\n"


def _text(text: str, markdown: MarkdownIt | None) -> str:
    if not text.strip():
        return ""
    if markdown is None or len(text) > RENDERED_CHARACTERS:
        return f"<div class=text>{escape(text)}</div>\n"
    return f"<div class=answer>{markdown.render(text_export.plain(text))}</div>\n"


def _call(call: ToolPart) -> str:
    outcome, subject = text_export.outcome(call), escape(text_export.subject(call))
    label = f"<b>{escape(call.tool)}</b> <code>{subject}</code>" if subject else f"<b>{escape(call.tool)}</b>"
    if outcome:
        label += f" <em class=bad>{escape(outcome)}</em>"
    arguments = msgspec.json.format(msgspec.json.encode(arguments_object(call)), indent=2).decode()
    body = f"<pre class=arguments>{escape(arguments)}</pre><pre>{escape(result_text(call))}</pre>"
    return _fold("call", label, body) + "".join(map(_attachment, call.output_parts))


def _fold(kind: str, label: str, body: str) -> str:
    return f"<details class={kind}><summary>{label}</summary>{body}</details>\n"


def _attachment(part: MediaPart) -> str:
    note = escape(text_export.describe(part))
    if part.type == "image" and part.data and part.media_type.startswith("image/"):
        return f'<img alt="{note}" src="{html.escape(data_url(part.media_type, part.data), quote=True)}">\n'
    if part.type == "audio" and part.media_type.startswith("audio/"):
        return f'<audio controls src="{html.escape(data_url(part.media_type, part.data), quote=True)}">{note}</audio>\n'
    return f"<p class=attached>{note}</p>\n"
