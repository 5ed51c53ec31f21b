"""The beginning of an exported page and how it looks, by day, by night and on paper."""

from __future__ import annotations

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
