"""Batches of small tasks against the scripted provider."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.fakes.provider_server import KEY, MODEL, Asked, ProviderServer
from tests.fakes.replies import Hold, Reply, call, delta, sse, text


def serve(provider: ProviderServer) -> dict[str, str]:
    """Answers every task: one command, then an answer. Returns the environment that points wolo there."""
    provider.linted = False  # every attempt is a conversation of its own
    provider.otherwise = _answer
    return {"WOLO_BASE_URL": provider.base_url, "WOLO_API_KEY": KEY, "WOLO_MODEL": f"custom/{MODEL}"}


def _answer(asked: Asked) -> Reply:
    prompt = str(asked.messages)
    if "HOLD ON" in prompt:
        return sse(delta("so"), Hold())
    return text("Done.") if asked.results else call("shell", {"command": "echo made >> made.txt"})


def write_tasks(file: Path, count: int, **fields: Any) -> Path:
    lines = [json.dumps({"id": f"t{number}", "prompt": "go", **fields}) for number in range(count)]
    file.write_text("\n".join(lines) + "\n")
    return file


def results(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]


def agents(run: Path) -> list[int]:
    """Processes at work in the run's folder."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and (entry / "cwd").resolve().is_relative_to(run.resolve() / "work"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found
