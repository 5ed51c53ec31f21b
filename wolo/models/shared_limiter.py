"""Asks the worker of a batch before each request, so that all processes with a key stay under its limits."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from wolo.messages.message import Usage
from wolo.models.protocol import Listener

_LONGEST_SLEEP_S = 5.0
_ANSWER_S = 60.0
_SHOWN_FROM_S = 1.0
_HEADERS = {
    "requests": ("x-ratelimit-limit-requests", "anthropic-ratelimit-requests-limit"),
    "tokens": ("x-ratelimit-limit-tokens", "anthropic-ratelimit-tokens-limit"),
}


class SharedLimiter:
    """Without an answer of the worker, requests are sent as if there were no batch."""

    def __init__(self, path: str, base_url: str, api_key: str, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._path, self._sleep = path, sleep
        self._key = hashlib.sha256(f"{base_url}\0{api_key}".encode()).hexdigest()[:16]
        self._limits: dict[str, float] = {}

    async def enter(self, tokens: int, listener: Listener) -> None:
        """Waits until a request of about so many tokens may be sent."""
        is_shown = False
        while wait_s := (await self._say("acquire", tokens=tokens)).get("wait_s", 0.0):
            if wait_s >= _SHOWN_FROM_S and not is_shown:
                is_shown = True
                await listener.on_notice(f"Waiting {wait_s:.0f} s: the tasks of a batch share the limit of the key.", "info")
            await self._sleep(min(wait_s, _LONGEST_SLEEP_S))

    async def answered(self, usage: Usage | None, tokens: int) -> None:
        used = usage.input_tokens + usage.output_tokens + usage.cache_read_tokens + usage.cache_write_tokens if usage else tokens
        await self._say("answered", more_tokens=used - tokens, **self._limits)

    def learn(self, headers: Mapping[str, str]) -> None:
        """Notes the limits a minute that a refusal names."""
        for name, spellings in _HEADERS.items():
            for value in (headers.get(each, "") for each in spellings):
                if value.isdecimal() and int(value):
                    self._limits[name] = float(value)

    async def refused(self, wait_s: float) -> None:
        await self._say("refused", wait_s=wait_s, **self._limits)

    async def _say(self, what: str, **values: float) -> dict[str, Any]:
        try:
            async with asyncio.timeout(_ANSWER_S):
                reader, writer = await asyncio.open_unix_connection(self._path)
                try:
                    writer.write(msgspec.json.encode({"do": what, "key": self._key, **values}) + b"\n")
                    line = await reader.readline()
                finally:
                    writer.close()
            found = msgspec.json.decode(line)
        except (OSError, TimeoutError, msgspec.MsgspecError):
            return {}
        return found if isinstance(found, dict) else {}
