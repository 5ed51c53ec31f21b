"""Loads one extension in a process of its own, and runs its functions as wolo asks. Its pipe is that of `function_server.py`."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from wolo import extension
from wolo.extensions.custom_tools.function_schema import ArgumentError, FunctionTool, as_json
from wolo.extensions.custom_tools.function_server import (
    ENTRY_POINT,
    as_text,
    declarations,
    explain,
    load_module,
    make_tools,
    serve,
)


def main(where: str, text: str, requests: IO[bytes], *, only_lists: bool) -> None:
    serve(where, text, requests, (_load, _answer), only_lists=only_lists)


class LoadedExtension:
    def __init__(self, ext: extension.Extension, tools: Mapping[str, tuple[FunctionTool, Any]]) -> None:
        self.ext, self.tools = ext, tools
        self.loop = asyncio.new_event_loop()
        """One for all functions, so that what they open outlives a call."""

    def run(self, result: Any) -> Any:
        return self.loop.run_until_complete(result) if inspect.isawaitable(result) else result


def _load(where: str, text: str) -> tuple[LoadedExtension, dict[str, Any]]:
    if where.startswith(ENTRY_POINT):
        path, _, attribute = where.removeprefix(ENTRY_POINT).partition("=")[2].partition(":")
        module = importlib.import_module(path)
        extend = getattr(module, attribute or "extend")
    else:
        module = load_module(where, text)
        extend = getattr(module, "extend", None)
    if not callable(extend):
        raise ValueError("it has no function extend(ext: Extension)")
    ext = extension.Extension()
    extend(ext)
    tools, listing = make_tools(((function.__name__, function) for function, _ in ext.tools), needs_docstring=True)
    renders = {function.__name__: render for function, render in ext.tools}
    return LoadedExtension(ext, {name: (tool, renders[name]) for name, tool in tools.items()}), {
        **listing,
        "events": sorted({name for _, names, _ in ext.observers for name in names}),
        "task_events": sorted({name for _, names, tasks in ext.observers if tasks for name in names}),
        "hooks": {
            event: sorted(
                frozenset() if any(not names for _, names in functions) else frozenset().union(*(names for _, names in functions))
            )
            for event, functions in ext.listeners.items()
        },
        "commands": [
            {"name": each.name, "help": each.help, "usage": each.usage, "completes": bool(each.complete)}
            for each in ext.commands.values()
        ],
        "providers": as_json(ext.providers),
        "logins": sorted(ext.logins),
        "dialogs": sorted(ext.dialogs),
        **declarations(module),
    }


def _answer(loaded: LoadedExtension, request: Mapping[str, Any]) -> dict[str, Any]:
    ext = loaded.ext
    if facts := request.get("facts"):
        ext.session_id, ext.cwd, ext.mode = facts["session_id"], Path(facts["cwd"]), facts["permission_mode"]
    if "state" in request:
        ext.state = request["state"]
    try:
        answer = _DO[request["do"]](loaded, request)
        json.dumps(answer)
        json.dumps(ext.actions)
    except ArgumentError as error:
        answer = {"output": str(error), "is_error": True}
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        answer = {"error": explain(error), "output": explain(error), "is_error": True}
    actions, ext.actions = ext.actions, []
    return {**answer, "actions": actions}


def _observe(loaded: LoadedExtension, request: Mapping[str, Any]) -> dict[str, Any]:
    """An error of one observer costs no other, and no later event."""
    errors: dict[str, None] = {}
    for task, data in request["events"]:
        event = extension.TurnEvent(data["type"], data, task)
        for function, names, tasks in loaded.ext.observers:
            if (event.type in names or "*" in names) and (tasks or not task):
                try:
                    loaded.run(function(event))
                except Exception as error:
                    errors[explain(error)] = None
    return {"error": "\n".join(errors)} if errors else {}


def _hook(loaded: LoadedExtension, request: Mapping[str, Any]) -> dict[str, Any]:
    event, payload = request["event"], request["payload"]
    if event == "SessionEnd":
        subject: Any = None
    elif event == "SessionStart":
        subject = extension.SessionBeginning(payload["source"])
    elif event == "UserPromptSubmit":
        subject = extension.CheckedPrompt(payload["prompt"])
    elif event == "PreToolUse":
        subject = extension.CheckedCall(payload["tool_name"], payload["tool_input"], payload["tool_use_id"])
    elif event in ("PostToolUse", "PostToolUseFailure"):
        result = payload["tool_response"]
        subject = extension.CheckedResult(
            payload["tool_name"],
            payload["tool_input"],
            result["output"],
            result["is_error"],
            result["files_changed"],
            payload["tool_use_id"],
        )
    elif event == "Stop":
        subject = extension.CheckedAnswer(payload["last_assistant_message"], payload["stop_hook_active"])
    else:
        subject = extension.CheckedCompaction(payload.get("trigger", "auto"))
    before = json.dumps(payload.get("tool_input"))
    for function, names in loaded.ext.listeners.get(event, ()):
        if not names or payload.get("tool_name") in names:
            loaded.run(function() if subject is None else function(subject))
            if subject is not None and subject.reply.get("decision") == "deny":
                break
    reply = {} if subject is None else dict(subject.reply)
    if isinstance(subject, extension.CheckedCall) and json.dumps(subject.arguments) != before:
        reply["updated_input"] = subject.arguments
    if isinstance(subject, extension.CheckedResult) and subject.output != payload["tool_response"]["output"]:
        reply["updated_output"] = str(subject.output)
    return {"reply": reply}


def _request(loaded: LoadedExtension, request: Mapping[str, Any]) -> dict[str, Any]:
    messages = [extension.RequestMessage(**each) for each in request["messages"]]
    numbers = {id(message): number for number, message in enumerate(messages)}
    subject = extension.CheckedRequest(request["model"], request["system"], messages, request["num_tokens"])
    for function, _ in loaded.ext.listeners["Request"]:
        loaded.run(function(subject))
        if subject.blocked:
            break
    kept = [(numbers[id(each)], each.text) for each in subject.messages if id(each) in numbers]
    if len(kept) != len(subject.messages) or kept != sorted(kept, key=lambda each: each[0]):
        raise ValueError("request.messages may be shortened; use request.add to add a text")
    texts = {str(at): text for at, text in kept if text != request["messages"][at]["text"]}
    return {
        "system": None if subject.system == request["system"] else subject.system,
        "texts": texts,
        "dropped": sorted(set(numbers.values()) - {at for at, _ in kept}),
        "added": list(map(str, subject.added)),
        "blocked": subject.blocked,
    }


def _tool(loaded: LoadedExtension, request: Mapping[str, Any]) -> dict[str, Any]:
    tool, render = loaded.tools[request["tool"]]
    result = loaded.run(tool.function(**tool.values(request["input"])))
    text = as_text(result)
    answer: dict[str, Any] = {"output": text, "is_error": False}
    if render is not None:
        answer["rows"] = list(map(str, render(dict(request["input"]), text)))
    return answer


def _command(loaded: LoadedExtension, request: Mapping[str, Any]) -> dict[str, Any]:
    output = loaded.run(loaded.ext.commands[request["name"]].run(request["arguments"]))
    return {"output": "" if output is None else str(output)}


def _complete(loaded: LoadedExtension, request: Mapping[str, Any]) -> dict[str, Any]:
    complete = loaded.ext.commands[request["name"]].complete
    return {"values": list(map(str, loaded.run(complete()) if callable(complete) else complete))}


def _login(loaded: LoadedExtension, request: Mapping[str, Any]) -> dict[str, Any]:
    saved = request["saved"]
    result = loaded.run(loaded.ext.logins[request["provider"]](*([saved] if saved else [])))
    key, saved = result if isinstance(result, tuple) else (result, saved)
    return {"key": str(key), "saved": str(saved)}


def _dialog(loaded: LoadedExtension, request: Mapping[str, Any]) -> dict[str, Any]:
    """Up to the next step of the dialog; without an answer it begins."""
    ext = loaded.ext
    try:
        if ext.open_dialog is not None and "answer" in request:
            step = ext.open_dialog.send(request["answer"])
        else:
            ext.open_dialog = ext.dialogs[request["provider"]]()
            step = next(ext.open_dialog)
    except StopIteration as end:
        return {"key": str(end.value or "")}
    if not isinstance(step, extension.LoginStep):
        raise TypeError(f"a login dialog yields LoginStep(…), not {step!r}")
    return {"step": vars(step)}


_DO = {
    "events": _observe,
    "hook": _hook,
    "request": _request,
    "tool": _tool,
    "command": _command,
    "complete": _complete,
    "login": _login,
    "dialog": _dialog,
}
