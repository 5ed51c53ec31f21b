"""An MCP server that answers line by line without any library: it starts at once, and does what no library would.

    python mcp_plain.py [--log FILE] MODE

Every line that it reads goes to FILE, and so does the id of its process.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TEXT = {"type": "string"}
NODE = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/definitions/node"}}}}
DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def of_object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


NASTY: list[Any] = [
    {"name": "cycle", "inputSchema": {**of_object(n={"$ref": "#/$defs/N"}), "$defs": {"N": {"$ref": "#/$defs/N"}}}},
    {
        "name": "tree",
        "inputSchema": {"$schema": DRAFT_7, **of_object(node={"$ref": "#/definitions/node"}), "definitions": {"node": NODE}},
    },
    {"name": "no_schema"},
    {"name": "null_schema", "inputSchema": None},
    {"name": "a_list", "inputSchema": {"type": "array", "items": TEXT}},
    {"name": "no_items", "inputSchema": of_object(xs={"type": "array"})},
    {
        "name": "odd keys",
        "inputSchema": {**of_object(**{"$filter by": TEXT, "ok": {"type": "integer"}}), "required": ["$filter by"]},
    },
    {"name": "empty_more", "inputSchema": {**of_object(), "additionalProperties": {}}},
    {"name": "text_schema", "inputSchema": "anything"},
    {"name": "wrong_required", "inputSchema": {**of_object(a=TEXT), "required": "a"}},
    {"name": "two_types", "inputSchema": {**of_object(a={"type": ["string", "null"]}), "type": ["object", "null"]}},
    {"name": "elsewhere", "inputSchema": of_object(a={"$ref": "https://example.com/schema.json"})},
    {"name": "x" * 90, "description": "A long name."},
    {"name": "dots.and/slashes äöü", "description": "An odd\u001b[31m name\u200b."},
    {"name": 7},
    "no tool at all",
    {"description": "no name"},
]
PLAIN: list[Any] = [{"name": "say", "description": "Say it.", "inputSchema": of_object(text=TEXT)}]
WRITING = threading.Lock()
LOOKS: list[str] = []
"""At tasks."""


def send(message: dict[str, Any]) -> None:
    with WRITING:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def answer(asked: dict[str, Any], result: dict[str, Any]) -> None:
    send({"id": asked["id"], "result": result})


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], **more}


def task(status: str, message: str = "") -> dict[str, Any]:
    times = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": None}
    return {"taskId": "t1", "status": status, "statusMessage": message, "pollInterval": 10, **times}


def call(asked: dict[str, Any], mode: str) -> None:
    told = f"{asked['params']['name']}: {json.dumps(asked['params'].get('arguments'), sort_keys=True)}"
    if mode == "crash":
        print("fatal: out of cheese", file=sys.stderr, flush=True)
        os._exit(7)
    if mode == "crash-once" and not Path("crashed").exists():
        Path("crashed").touch()
        os._exit(7)
    if mode == "hang":
        return
    if mode == "big":
        answer(asked, text("line\n" * 50_000))
    elif mode == "nonsense":
        answer(asked, {"content": [{"type": "text"}], "isError": "perhaps"})
    elif mode == "broken":
        answer(asked, "done")  # type: ignore[arg-type]  # no object
    elif mode == "structured-list":
        answer(asked, {"content": [], "structuredContent": [21, 22]})
    elif mode == "structured":
        answer(asked, {"content": [], "structuredContent": {"temperature": 21}})
    elif mode == "refuse":
        send({"id": asked["id"], "error": {"code": -32603, "message": "not today"}})
    elif mode == "illegible":
        sys.stdout.write(f'{{"jsonrpc":"2.0","id":{json.dumps(asked["id"])},"result":{{"content":[')
        sys.stdout.flush()
        sys.stdout.buffer.write(b'{"type":"text","text":"caf\xe9 \\ud83d"}]}}\n')
        sys.stdout.flush()
    elif mode == "rant":
        send({"id": asked["id"], "error": {"code": -1, "message": "\u001b[2J\u202eno " + "x" * 100_000}})
    elif mode == "escape":
        answer(asked, text("red \u001b[31m\u001b]0;title\u0007 text"))
    elif mode == "grow":
        answer(asked, text(told))
        PLAIN.append({"name": "another", "description": "Came later.", "inputSchema": {"type": "object"}})
        send({"method": "notifications/tools/list_changed"})
    else:
        answer(asked, text(told))


def handle(asked: dict[str, Any], mode: str) -> None:
    method: str = asked.get("method", "")
    if method == "initialize":
        capabilities = {} if mode == "no-tools" else {"tools": {"listChanged": True}}
        if mode.startswith("tasks-"):
            capabilities |= {"tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}}
        if mode.startswith("announces"):
            capabilities |= {"prompts": {}, "resources": {}}
        version = asked["params"]["protocolVersion"]
        info = {"name": mode, "version": "1"}
        said = {"instructions": "Say it softly."} if mode == "wise" else {}
        answer(asked, {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info, **said})
    elif method == "tools/list" and mode != "announces-all":
        tools = NASTY if mode == "nasty" else PLAIN
        if mode.startswith("tasks"):
            tools = [*PLAIN, {"name": "research", "execution": {"taskSupport": "required"}}]
        if mode == "late" and not Path("asked-before").exists():
            Path("asked-before").touch()
            tools = []
        if mode.partition("-")[0] == "many":
            more = range(int(mode.partition("-")[2] or 99))
            tools = [*PLAIN, *({"name": f"thing_{number}", "description": f"Does {number}."} for number in more)]
        if mode == "pages":
            tools = [{"name": f"tool{asked['params']['cursor'] if asked.get('params', {}).get('cursor') else 0}"}]
            at = int(asked.get("params", {}).get("cursor") or 0)
            answer(asked, {"tools": tools, **({"nextCursor": str(at + 1)} if at < 2 else {})})
            return
        if mode == "rotate":
            tools = [{"name": f"at_{time.monotonic_ns()}_{each}"} for each in range(600)]
            answer(asked, {"tools": tools})
            send({"method": "notifications/tools/list_changed"})
            return
        answer(asked, {"tools": tools})
    elif method == "tools/call" and "task" in asked["params"]:
        answer(asked, {"task": task("working")})
    elif method == "tools/call":
        call(asked, mode)
    elif method == "tasks/get":
        LOOKS.append(asked["params"]["taskId"])
        answer(asked, task("completed" if mode == "tasks-end" and len(LOOKS) > 2 else "working", "half\tway"))
    elif method == "tasks/result":
        answer(asked, text(f"result of {asked['params']['taskId']}"))
    elif method == "tasks/cancel":
        answer(asked, task("cancelled"))
    elif "id" in asked and method:
        send({"id": asked["id"], "error": {"code": -32601, "message": "no such method"}})


BEFORE: dict[str, Callable[[], Any]] = {
    "dies": lambda: (print("first\n\x1b[31mno key found, giving up\n\x1b[0m", file=sys.stderr, flush=True), sys.exit(1)),
    "silent": lambda: [None for _ in sys.stdin],
    "slow": lambda: time.sleep(float(os.environ.get("SLOW_S", "8"))),
    "held": lambda: [time.sleep(0.02) for _ in iter(lambda: Path("go").exists(), True)],
    "garbage": lambda: print("Welcome!\n{not json\n[]\n\u00ff\u0000\n" * 50, flush=True),
    "stubborn": lambda: [signal.signal(each, signal.SIG_IGN) for each in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)],
    "family": lambda: subprocess.Popen(["sleep", "600"], start_new_session=True),
}


def main() -> None:
    *options, mode = sys.argv[1:]
    log = open(options[1], "a") if options else None  # noqa: SIM115  # until the end
    if log:
        print(json.dumps({"pid": os.getpid()}), file=log, flush=True)
    BEFORE.get(mode, lambda: None)()
    for line in sys.stdin:
        if log:
            print(line.rstrip("\n"), file=log, flush=True)
        handle(json.loads(line), mode)
    while mode == "stubborn":
        time.sleep(1)


if __name__ == "__main__":
    main()
