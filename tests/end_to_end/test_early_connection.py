"""A run connects to its provider while the prompt is saved."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.fakes.command import run_wolo, start_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import text


def test_provider_is_connected_to_while_prompt_is_saved(provider: ProviderServer, isolated: Path) -> None:
    provider.script(text("One."), text("Two."))
    assert run_wolo("-p", *provider.flags, "first").exit_code == 0
    provider.forget_prefix()
    before = provider.num_connections
    with closing(sqlite3.connect(isolated / "wolo" / "data" / "wolo.db", isolation_level=None)) as store:
        store.execute("BEGIN IMMEDIATE")
        with start_wolo("-p", *provider.flags, "second") as running:
            provider.wait_for_connections(before + 1)
            assert len(provider.requests) == 1, "nothing is sent before it is saved"
            store.execute("ROLLBACK")
            assert running.communicate(timeout=60)[0].strip() == b"Two."
