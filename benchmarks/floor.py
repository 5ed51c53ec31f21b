"""A minimal agent loop in Python, without any safety: one socket and the `json` module.

`floor.py URL MODEL PROMPT` sends the prompt, answers calls of `read`, and prints the answer.
"""

import json
import socket
import sys
from pathlib import Path

TOOLS = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}]


def ask(connection, buffer, host, model, messages):
    body = json.dumps({"model": model, "stream": True, "messages": messages, "tools": TOOLS}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)
    text, calls, line_buffer = [], {}, b""
    for data in chunks(connection, buffer):
        line_buffer += data
        *lines, line_buffer = line_buffer.split(b"\n")
        for line in lines:
            if line.startswith(b"data: ") and line != b"data: [DONE]":
                delta = json.loads(line[6:])["choices"][0]["delta"]
                if delta.get("content"):
                    text.append(delta["content"])
                for call in delta.get("tool_calls", ()):
                    calls.setdefault(call["index"], call)
    return "".join(text), list(calls.values())


def chunks(connection, buffer):
    while b"\r\n\r\n" not in buffer:
        buffer += connection.recv(1 << 16)
    del buffer[: buffer.index(b"\r\n\r\n") + 4]
    while True:
        while b"\r\n" not in buffer:
            buffer += connection.recv(1 << 16)
        size, _, _ = buffer.partition(b"\r\n")
        start, length = len(size) + 2, int(size, 16)
        while len(buffer) < start + length + 2:
            buffer += connection.recv(1 << 16)
        data = bytes(buffer[start : start + length])
        del buffer[: start + length + 2]
        if not length:
            return
        yield data


def main():
    url, model, prompt = sys.argv[1:]
    host = url.removeprefix("http://").partition("/")[0]
    name, _, port = host.partition(":")
    connection, buffer = socket.create_connection((name, int(port))), bytearray()
    messages = [{"role": "system", "content": "You are a coding agent."}, {"role": "user", "content": prompt}]
    while True:
        text, calls = ask(connection, buffer, host, model, messages)
        if not calls:
            print(text)
            return
        messages.append({"role": "assistant", "content": text, "tool_calls": calls})
        for call in calls:
            arguments = json.loads(call["function"]["arguments"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": Path(arguments["path"]).read_text()})


main()
