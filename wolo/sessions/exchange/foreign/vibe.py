"""Imports sessions of Mistral Vibe: folders with `messages.jsonl` (Chat Completions) and `meta.json`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from wolo.messages.parts import AnyPart, Outcome, TextPart, ThinkingPart
from wolo.sessions.exchange import json_files
from wolo.sessions.exchange.foreign import builder, discovery
from wolo.sessions.exchange.json_files import FilePreview, Imported, JsonLines, Record, content, read_object, record, text

MESSAGES, META = "messages.jsonl", "meta.json"
ENDINGS: Mapping[str, Outcome] = {
    "<user_cancellation>": "interrupted",
    "permission": "denied_by_person",
    "skipped": "denied_by_person",
    "<tool_error>": "error",
}
"""Beginnings of results of calls that did not run to the end."""


def matches(preview: FilePreview) -> bool:
    folder = preview.path if preview.path.is_dir() else preview.path.parent
    named = folder == preview.path or preview.path.name in (MESSAGES, META)
    return named and (folder / MESSAGES).is_file() and "session_id" in read_object(folder / META)


def read(source: Path) -> Imported:
    """Reads a session folder or a file in it. Raises SessionError without a conversation."""
    folder = source if source.is_dir() else source.parent
    meta = read_object(folder / META)
    lines = JsonLines(folder / MESSAGES)
    began = json_files.unix_time(meta.get("start_time"))
    return (
        VibeReader(began)
        .read(lines)
        .to_imported(
            source,
            "Mistral Vibe",
            "~/.vibe/logs/session",
            title=text(meta, "title"),
            cwd=_cwd(meta),
            created_at=began,
            skipped=lines.skipped,
            notices=builder.count_notice(
                int(bool(meta.get("parent_session_id"))), "The session that this one continues was left out.", ""
            ),
        )
    )


def find_sessions(cwd: Path, environ: Mapping[str, str]) -> list[discovery.FoundSession]:
    sessions = []
    for path in discovery.children(discovery.home_of(".vibe", environ, "VIBE_HOME") / "logs" / "session", f"*/{MESSAGES}"):
        meta = read_object(path.with_name(META))
        if discovery.same_directory(_cwd(meta), cwd):
            title = text(meta, "title") or discovery.first_prompt(discovery.head(path)).strip()
            sessions.append(discovery.FoundSession(path.parent, path.parent.name, title, discovery.last_change_at(path)))
    return discovery.newest_first(sessions)


def _cwd(meta: Record) -> str:
    return text(record(meta, "environment"), "working_directory")


class VibeReader(builder.RecordReader):
    """Its messages have no times: all get that of the session."""

    def __init__(self, began_at: float) -> None:
        self.builder = builder.ConversationBuilder()
        self._began_at = began_at

    def add(self, line: Record) -> None:
        parts = [part for block in content(line) if (part := _part(block)) is not None]
        match line.get("role"):
            case "user":
                self.builder.add_spoken("user", parts, self._began_at, is_prompt=not line.get("injected"))
            case "assistant":
                thought = text(line, "reasoning_content")
                thoughts: list[AnyPart] = [ThinkingPart(text=thought)] if thought else []
                author = builder.producer("mistral-vibe", "")
                draft = builder.Draft("assistant", [*thoughts, *parts], timestamp=self._began_at, producer=author)
                self.builder.add(draft)
                for each in json_files.records(line, "tool_calls"):
                    function = record(each, "function")
                    arguments = function.get("arguments") or ""
                    self.builder.add_call(draft, builder.tool_part(text(function, "name"), arguments, text(each, "id")))
            case "tool":
                output = "\n".join(part.text for part in parts if isinstance(part, TextPart))
                outcome = builder.outcome_of(output, ENDINGS, otherwise="ok") if output.lstrip().startswith("<") else "ok"
                self.builder.add_result(text(line, "tool_call_id"), builder.ImportedResult(output, outcome))
            case "system":
                pass
            case _:
                self.builder.skipped += "content" in line


def _part(block: Record) -> AnyPart | None:
    match block.get("type"):
        case "text":
            return builder.text_part(text(block, "text"))
        case "image_url":
            return builder.medium(text(record(block, "image_url"), "url") or text(block, "image_url"))
    return None
