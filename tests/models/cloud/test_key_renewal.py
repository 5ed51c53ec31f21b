"""A key that a program prints is fetched again in a running conversation."""

from __future__ import annotations

import json
import time
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import calls, error, text
from wolo import Agent, RunError

REFUSAL = error(401, {"error": {"message": "The token has expired."}})


def agent_of(provider: ProviderServer, folder: Path, *keys: str) -> Agent:
    """The program prints the next of the keys, and the last one again."""
    waiting = folder / "keys"
    waiting.write_text("".join(f"{key}\n" for key in keys))
    program = folder / "print-key"
    program.write_text(f'#!/bin/sh\nhead -n 1 {waiting}\n[ "$(wc -l < {waiting})" = 1 ] || sed -i 1d {waiting}\n')
    program.chmod(0o755)
    table = {"base_url": provider.base_url, "api_key": f"!{program}", "models": [{"id": "large"}]}
    return Agent("company/large", session="memory", settings={f"providers.company.{name}": each for name, each in table.items()})


def sent_keys(provider: ProviderServer) -> list[str]:
    return [asked.headers["authorization"].removeprefix("Bearer ") for asked in provider.requests]


def web_token(seconds: float) -> str:
    claims = json.dumps({"exp": time.time() + seconds}).encode()
    return f"head.{urlsafe_b64encode(claims).decode().rstrip('=')}.signature"


async def test_refused_key_is_fetched_again_once(provider: ProviderServer, tmp_path: Path) -> None:
    async with agent_of(provider, tmp_path, "first-token", "second-token") as agent:
        provider.script(text("One."), REFUSAL, text("Two."), REFUSAL, REFUSAL)
        assert (await agent.run("Hello")).answer == "One."
        assert (await agent.run("And now?")).answer == "Two."
        with pytest.raises(RunError):
            await agent.run("And now?")
    assert sent_keys(provider) == ["first-token"] * 2 + ["second-token"] * 3


async def test_key_is_fetched_before_it_expires(provider: ProviderServer, tmp_path: Path) -> None:
    ending, lasting = web_token(100), web_token(10_000)
    async with agent_of(provider, tmp_path, ending, lasting, "never") as agent:
        provider.script(text("One."), text("Two."))
        await agent.run("Hello")
        await agent.run("And now?")
    assert sent_keys(provider) == [lasting] * 2


async def test_key_fetched_later_is_hidden(provider: ProviderServer, tmp_path: Path) -> None:
    async with agent_of(provider, tmp_path, "first-token", "second-token") as agent:
        provider.script(REFUSAL, text("It is second-token."))
        answer = (await agent.run("Hello")).answer
    assert answer.startswith("It is SECRET_API_KEY_")


async def test_subagents_have_the_newest_key(provider: ProviderServer, tmp_path: Path) -> None:
    tasks = [("task", {"prompt": name, "agent": "explore"}) for name in "ab"]
    async with agent_of(provider, tmp_path, "first-token", "second-token", "never") as agent:
        provider.script(REFUSAL, calls(*tasks), text("A."), text("B."), text("Done."))
        await agent.run("Hello")
    assert sent_keys(provider) == ["first-token"] + ["second-token"] * 4


async def test_failed_renewal_ends_the_turn_alone(provider: ProviderServer, tmp_path: Path) -> None:
    async with agent_of(provider, tmp_path, "first-token") as agent:
        print_once(tmp_path)
        provider.script(text("One."), REFUSAL, text("Three."))
        await agent.run("Hello")
        with pytest.raises(RunError, match="print-key` failed with status 1") as failed:
            await agent.run("And now?")
        assert getattr(failed.value.result.error, "kind", "") == "auth"
        assert (await agent.run("And now?")).answer == "Three."


async def test_valid_key_outlives_a_failed_renewal(provider: ProviderServer, tmp_path: Path) -> None:
    async with agent_of(provider, tmp_path, web_token(100)) as agent:
        print_once(tmp_path)
        provider.script(text("One."))
        assert (await agent.run("Hello")).answer == "One."


def print_once(folder: Path) -> None:
    """Makes the program fail the second time."""
    (folder / "print-key").write_text(f"#!/bin/sh\nmv {folder}/keys {folder}/printed 2>/dev/null && cat {folder}/printed\n")
