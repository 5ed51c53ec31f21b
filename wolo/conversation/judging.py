"""Asking the guard about a call that nobody makes: for people who want to know what their rules do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from wolo.config import layers
from wolo.config.given import Given
from wolo.config.schema import Config
from wolo.conversation.enclosing import settle_walls
from wolo.errors import UsageError
from wolo.guard.intents import CallIntent, FetchIntent, Intent, ReadIntent, RunIntent, WriteIntent
from wolo.guard.judge import Judge
from wolo.guard.rules import TOOLS
from wolo.places import find_places
from wolo.workspace.root import Workspace, find_root


class Bench(NamedTuple):
    judge: Judge
    config: Config
    workspace: Workspace

    def intent(self, call: str) -> Intent:
        """`shell:git push`, `read:src/a.py`, `fetch:docs.python.org`. Raises UsageError, and ToolError for an impossible path."""
        tool, colon, text = call.partition(":")
        if tool not in TOOLS or not colon or not text.strip():
            hint = f'Write "tool:what", as in "shell:git push"; the tools are {", ".join(TOOLS)}.'
            raise UsageError(f'"{call}" is no call.', hint=hint)
        if tool in ("read", "write"):
            found = self.workspace.resolve(text)
            kind = ReadIntent if tool == "read" else WriteIntent
            return kind(found.path, text, found.inside)
        if tool == "shell":
            return RunIntent(text, self.workspace.start)
        if tool == "fetch":
            return FetchIntent(text if "://" in text else f"https://{text}")
        return CallIntent(call)


def open_bench(given: Given) -> Bench:
    """The rules, the mode and the sandbox that a conversation would have here. Raises ConfigError and UsageError as one would."""
    places, cwd = find_places(), Path.cwd()
    config = layers.load(places, os.environ, given, (), cwd)
    workspace = Workspace(find_root(cwd), (), cwd)
    enclosure = settle_walls(config, workspace, places)
    own = (places.config, places.data, places.state, places.cache)
    judge = Judge(enclosure.mode, config.rules, workspace.root, cwd=cwd, own_places=own, confine=enclosure.confine)
    return Bench(judge, config, workspace)
