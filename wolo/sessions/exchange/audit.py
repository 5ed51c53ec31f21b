"""The audit log: what was asked, answered, run and deleted on this machine, as JSON lines that are chained by hashes."""

from __future__ import annotations

import getpass
import platform
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import blake2b, sha256
from typing import Any
from urllib.parse import urlsplit

import msgspec

from wolo.messages.parts import ToolPart
from wolo.sessions import deletions, entries, session_rows
from wolo.sessions.exchange import jsonl, redaction
from wolo.sessions.listing import iso
from wolo.sessions.store import Store

_URL = r"\b[a-z][a-z0-9+.-]*://[^\s\"'`<>|;)]+"
MOST_INPUT_CHARS = 4_000
"""Of each argument; its length and hash stand for the rest."""


class AuditChain:
    """Chains lines: each holds the hash of itself and all before it."""

    def __init__(self) -> None:
        self._last = ""
        self.num_lines = 0

    def add(self, line: Mapping[str, Any]) -> bytes:
        self._last = blake2b(self._last.encode() + msgspec.json.encode(line), digest_size=session_rows.DIGEST_BYTES).hexdigest()
        self.num_lines += 1
        return msgspec.json.encode({**line, "chain": self._last}) + b"\n"


def audit_lines(
    stores: Iterable[tuple[Mapping[str, Any], Store]], start_at: float, redactor: redaction.Redactor
) -> Iterator[bytes]:
    """Everything from `start_at` (Unix seconds) on, session by session, the latest first; then deletions; last an `end`.

    Each store comes with fields for its lines. Where the chain of a session is broken, whenever that was, a line has `holds`
    false.
    """
    chain = AuditChain()
    where = {"user": getpass.getuser(), "host": platform.node()}
    for more, store in stores:
        yield from _store_lines(store, start_at, redactor, chain, {**where, **more})
    yield chain.add({"type": "end", "at": iso(time.time(), "milliseconds"), "lines": chain.num_lines, **where})


def _store_lines(
    store: Store, start_at: float, redactor: redaction.Redactor, chain: AuditChain, where: Mapping[str, Any]
) -> Iterator[bytes]:
    for info in store.list(with_tasks=True):
        if info.updated < start_at:
            continue
        about = {**where, "session": info.id, "cwd": info.cwd}
        check, last = jsonl.ChainCheck(), 0
        for row in store.raw.rows(info.id):
            proof = {} if check.add(row) else {"holds": False}
            last = row.seq
            if row.time_utc >= start_at or proof:
                for facts in _facts(row, redactor) if row.time_utc >= start_at else ({"type": "damaged"},):
                    when = {"at": iso(row.time_utc, "milliseconds")}
                    line = {**facts, **when, **about, "seq": row.seq, "hash": row.hash.hex(), **proof}
                    yield chain.add(msgspec.json.decode(redactor.body(msgspec.json.encode(line))))
        if (head := store.head(info.id)) > last:
            yield chain.add({"type": "damaged", "at": iso(info.updated, "milliseconds"), **about, "seq": head, "holds": False})
    for deletion, holds in deletions.read_deletions(store.data_dir, store.end_of_deletions()):
        if deletion is None:
            yield chain.add({"type": "deletion", "holds": False, **where})
        elif deletion.at >= start_at:
            facts = msgspec.to_builtins(deletion)
            facts["deletion_chain"] = facts.pop("chain")
            yield chain.add({"type": "deletion", "holds": holds, **where, **facts, "at": iso(deletion.at, "milliseconds")})


def check_audit(lines: Iterable[bytes]) -> str:
    """Says what is wrong with an exported log; empty: every line is as it was exported, and none is missing."""
    chain, last, number = AuditChain(), "", 0
    for number, data in enumerate(lines, 1):
        try:
            line = msgspec.json.decode(data)
            claimed = line.pop("chain")
            last = line["type"]
        except (msgspec.MsgspecError, UnicodeDecodeError, KeyError, AttributeError, TypeError):
            return f"line {number} cannot be read"
        if msgspec.json.decode(chain.add(line))["chain"] != claimed:
            return f"line {number} or one before it was changed, added or removed"
    return "" if last == "end" else f"its end is missing after line {number}"


def _facts(row: session_rows.StoredRow, redactor: redaction.Redactor) -> Iterator[dict[str, Any]]:
    entry: entries.AnyEntry | None = row.entry
    match entry:
        case entries.MessageEntry(message=message) if message.role == "assistant":
            usage, producer = message.usage, message.producer
            facts: dict[str, Any] = {"type": "answer", "finish_reason": message.finish_reason}
            if producer is not None:
                facts |= {"provider": producer.provider, "model": producer.model}
            if usage is not None:
                counts = {"input_tokens": usage.prompt_tokens, "output_tokens": usage.output_tokens}
                facts |= {**counts, "cost_usd": usage.cost.total if usage.cost else None}
            yield facts
        case entries.MessageEntry(message=message) if message.is_from_user:
            digest = sha256(message.text.encode("utf-8", "surrogatepass")).hexdigest()
            origin = msgspec.json.decode(row.body or b"{}").get("message", {}).get("origin", "")  # no field of a saved message
            yield {"type": "prompt", "origin": origin, "chars": len(message.text), "sha256": digest}
        case entries.ResultsEntry(parts=parts):
            yield from (_call(part, redactor) for part in parts if part.outcome is not None)
        case entries.SettingEntry(name=name, value=value) if name in ("model", "mode"):
            yield {"type": "setting", "name": name, "value": value}
        case None:
            yield {"type": "damaged"}


def _call(part: ToolPart, redactor: redaction.Redactor) -> dict[str, Any]:
    verdict = part.metadata.get("verdict")
    approval = {key: value for key, value in verdict.items() if value} if isinstance(verdict, dict) else {}
    texts = [value for value in part.input.values() if isinstance(value, str)]
    domains: set[str] = set()
    for url in (url for text in texts for url in re.findall(_URL, text)):
        with suppress(ValueError):
            domains.add(urlsplit(url).hostname or "")
    facts = {
        "type": "call",
        "tool": part.tool,
        "input": {name: _shorten(value, redactor) for name, value in part.input.items()},
        "domains": sorted(domains - {""}),
        "approval": {**approval, "by": part.metadata.get("decided_by", "rule or mode")},
        "outcome": part.outcome,
        "output_sha256": sha256(part.output.encode("utf-8", "surrogatepass")).hexdigest(),
        "duration_s": round(max(part.end_time - part.start_time, 0.0), 3) if part.start_time else None,
    }
    more: dict[str, Any] = {name: part.metadata[name] for name in ("exit_code", "connections") if name in part.metadata}
    return {**facts, **more}


def _shorten(value: Any, redactor: redaction.Redactor) -> Any:
    text = value if isinstance(value, str) else ""
    if len(text) <= MOST_INPUT_CHARS:
        return value
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    begin = redactor.text(text)[:MOST_INPUT_CHARS]  # half a secret would not be recognised
    return f"{begin} [… {len(text):,} characters, sha256 {digest}]"
