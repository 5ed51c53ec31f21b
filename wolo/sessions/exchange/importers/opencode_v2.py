"""Messages as newer versions of OpenCode keep them, a row each, told in the words of the older ones."""

from __future__ import annotations

from wolo.sessions.exchange.importers.fields import content, record, records, text
from wolo.sessions.exchange.importers.jsonl_lines import Record
from wolo.sessions.exchange.importers.opencode_messages import Told


def told(kind: str, data: Record) -> Told | None:
    """None for a row that is no part of the conversation, such as a change of the model."""
    match kind:
        case "user":
            said = [{"type": "text", "text": text(data, "text")}]
            files = [
                {**each, "type": "file", "url": _address(each), "filename": text(each, "name")} for each in records(data, "files")
            ]
            return Told({**data, "role": "user"}, [*said, *files])
        case "synthetic" | "system" | "skill":
            return Told({**data, "role": "user"}, [{"type": "text", "text": text(data, "text"), "synthetic": True}])
        case "shell":
            ran = f"I ran this command myself:\n{text(data, 'command')}\n\nIt printed:\n{_printed(data)}"
            return Told({**data, "role": "user"}, [{"type": "text", "text": ran, "synthetic": True}])
        case "assistant":
            return _answer(data)
        case "compaction" if data.get("status", "completed") == "completed":
            words = "\n\n".join(filter(None, (text(data, "summary"), text(data, "recent"))))
            return Told({**data, "role": "assistant", "summary": True}, [{"type": "text", "text": words}])
    return None


def _answer(data: Record) -> Told:
    model, failed = record(data, "model"), record(data, "error")
    error = {"name": _name(failed), "data": {"message": text(failed, "message")}} if failed else {}
    info = {**data, "role": "assistant", "providerID": text(model, "providerID"), "modelID": text(model, "id"), "error": error}
    return Told(info, [_part(each) for each in content(data)])


def _name(failed: Record) -> str:
    kind = text(failed, "type") or text(failed, "name")
    return "MessageAbortedError" if "abort" in kind.lower() or "interrupt" in kind.lower() else kind


def _part(each: Record) -> Record:
    of = record(each, "native") or record(each, "providerState") or record(each, "state")
    if each.get("type") != "tool":
        return {**each, "metadata": of}
    state, times = record(each, "state"), record(each, "time")
    given = content(state)
    ended = {
        **state,
        "output": "\n".join(text(block, "text") for block in given if block.get("type") == "text"),
        "error": text(record(state, "error"), "message"),
        "attachments": [{**block, "url": _address(block)} for block in given if block.get("type") == "file"],
        "time": {"start": times.get("ran") or times.get("created"), "end": times.get("completed")},
    }
    metadata = record(each, "native") or record(each, "providerState")
    return {"type": "tool", "tool": text(each, "name"), "callID": text(each, "id"), "state": ended, "metadata": metadata}


def _address(file: Record) -> str:
    return text(file, "uri") or text(file, "url") or text(record(file, "source"), "uri") or text(file, "data")


def _printed(data: Record) -> str:
    return text(record(data, "output"), "output") or text(record(data, "output"), "text") or text(data, "output") or "(no output)"
