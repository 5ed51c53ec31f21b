"""The embedded model for tests of real inference: joined and started once for the whole run."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.components import miss, require_weights
from tests.fakes.turns import PromptRunner
from wolo.models.catalog import Catalog
from wolo.models.http.http_transport import HttpTransport
from wolo.models.local.driver import LocalDriver
from wolo.models.local.embedded import DEFAULT, EmbeddedProcess, ServerAddress, has_engine
from wolo.models.local.local_chat import ChatServer, LocalChat
from wolo.models.local.weights import ensure_weights, find_weights
from wolo.models.protocol import ModelClient
from wolo.models.provider import ModelChoice
from wolo.places import Places


def refuse_plain(choice: ModelChoice) -> ModelClient:
    """Simple mode never falls back to written mode."""
    raise AssertionError(choice.label)


@pytest.fixture(scope="session")
def real_places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    """Directories whose cache holds the real weights."""
    wanted = find_weights(DEFAULT)
    if not has_engine():
        miss("the embedded engine (pip install 'wolo-cli[local]')")
    root = tmp_path_factory.mktemp("real")
    places = Places(root / "config", root / "data", root / "cache", root / "state")
    ensure_weights(wanted, places.cache, archives=require_weights())
    yield places
    shutil.rmtree(places.cache)


@pytest.fixture(scope="session")
def weights(real_places: Places) -> Path:
    return ensure_weights(find_weights(DEFAULT), real_places.cache)


@pytest.fixture(scope="session")
def serving(weights: Path, real_places: Places) -> Iterator[ServerAddress]:
    process = EmbeddedProcess(weights, real_places.state / "embedded.log")
    yield asyncio.run(process.ready())
    process.stop()


@pytest.fixture
async def chat(serving: ServerAddress) -> AsyncIterator[LocalChat]:
    transport = HttpTransport({})
    yield LocalChat(transport, ChatServer(url=serving.url, headers={"authorization": f"Bearer {serving.key}"}))
    await transport.close()


@pytest.fixture
def runner(chat: LocalChat, tmp_path: Path) -> PromptRunner:
    """The real model in simple mode, with real tools, in the empty directory of the test."""
    mode = LocalDriver(chat, Catalog({}).find(f"local/{DEFAULT}"), Path.cwd(), refuse_plain)
    return PromptRunner(mode, tmp_path)
