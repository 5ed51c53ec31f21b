"""Writes a session as one self-contained HTML page."""

from __future__ import annotations

import html
from collections.abc import Iterator
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

STYLE = """
:root { color-scheme: light dark; --ink: #1d2228; --soft: #5d6670; --paper: #fbfaf8; --card: #fff; --line: #dfdcd6;
  --user: #eaf1fb; --bad: #b3261e; --link: #1a5fb4; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e3e4e6; --soft: #9aa3ad; --paper: #16181b; --card: #1e2125; --line: #33383e; --user: #1f2a3a; --bad: #ff8a80;
    --link: #8ab4f8; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 56rem; padding: 1.5rem 1rem 4rem; color: var(--ink); background: var(--paper);
  font: 1rem/1.55 system-ui, sans-serif; overflow-wrap: anywhere; }
header { border-bottom: 1px solid var(--line); margin-bottom: 1.5rem; }
h1 { font-size: 1.4rem; margin: 0; }
header p, small { color: var(--soft); font-weight: normal; }
article { margin: 0 0 1rem; padding: .75rem 1rem; border: 1px solid var(--line); border-radius: .5rem; background: var(--card); }
article.user { background: var(--user); }
article h2 { font-size: .85rem; margin: 0 0 .5rem; color: var(--soft); }
.answer h1, .answer h2, .answer h3 { font-size: 1.05rem; color: inherit; }
.text, pre { white-space: pre-wrap; }
pre, code { font: .85rem/1.45 ui-monospace, "Cascadia Code", Menlo, Consolas, monospace; }
pre { margin: .5rem 0 0; padding: .6rem .75rem; border-radius: .35rem; background: var(--paper); border: 1px solid var(--line); }
details { margin: .5rem 0; border-left: 3px solid var(--line); padding-left: .75rem; }
summary { cursor: pointer; color: var(--soft); }
summary b, summary code { color: var(--ink); }
.bad { color: var(--bad); }
.attached { color: var(--soft); }
a { color: var(--link); }
img { display: block; max-width: 100%; margin: .5rem 0; border: 1px solid var(--line); }
table { border-collapse: collapse; } td, th { border: 1px solid var(--line); padding: .25rem .5rem; }
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; background: none; color: #000; }
  article { border: 0; border-top: 1px solid #bbb; border-radius: 0; padding: .5rem 0; background: none; }
  article.user { background: none; }
  pre { border: 1px solid #ccc; background: none; }
  article h2, summary { break-after: avoid; }
  details::details-content { content-visibility: visible; display: block; height: auto; }
}
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
    yield HEAD.format(title=title, style=STYLE)
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
