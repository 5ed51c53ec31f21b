"""The cache of credentials: one fetch for all, private files, and nothing believed of a damaged one."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from wolo.models.cloud.credentials import CredentialCache, Credentials


class Source:
    """Counts, and lets others run while it fetches."""

    def __init__(self, name: str = "one", lasts_s: float | None = 3600) -> None:
        self.shared_name = name
        self.lasts_s = lasts_s
        self.num_fetches = 0

    async def fetch(self) -> Credentials:
        self.num_fetches += 1
        await asyncio.sleep(0)
        ends_at = None if self.lasts_s is None else time.time() + self.lasts_s
        return Credentials(f"token-{self.num_fetches}", expires_at=ends_at)


async def test_many_caches_fetch_once(tmp_path: Path) -> None:
    source = Source()
    caches = [CredentialCache(source, tmp_path) for _ in range(5)]
    tokens = {each.token for each in await asyncio.gather(*(cache.get() for cache in caches))}
    assert (tokens, source.num_fetches) == ({"token-1"}, 1)
    (file,) = tmp_path.glob("*.json")
    assert file.stat().st_mode & 0o777 == 0o600


async def test_refused_credentials_are_replaced_once_for_all(tmp_path: Path) -> None:
    source = Source()
    caches = [CredentialCache(source, tmp_path) for _ in range(5)]
    old = await caches[0].get()
    tokens = {each.token for each in await asyncio.gather(*(cache.get(old) for cache in caches))}
    assert (tokens, source.num_fetches) == ({"token-2"}, 2)


async def test_credentials_without_an_end_stay_in_memory(tmp_path: Path) -> None:
    await CredentialCache(Source(lasts_s=None), tmp_path).get()
    assert list(tmp_path.glob("*.json")) == []


@pytest.mark.parametrize("damage", ["{", "[]", '{"token": 7}', ""])
async def test_damaged_file_is_fetched_anew(tmp_path: Path, damage: str) -> None:
    source = Source()
    await CredentialCache(source, tmp_path).get()
    (file,) = tmp_path.glob("*.json")
    file.write_text(damage)
    assert (await CredentialCache(source, tmp_path).get()).token == "token-2"


async def test_link_in_place_of_file_is_not_followed(tmp_path: Path) -> None:
    source = Source()
    await CredentialCache(source, tmp_path).get()
    (file,) = tmp_path.glob("*.json")
    elsewhere = tmp_path / "elsewhere"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    assert (await CredentialCache(source, tmp_path).get()).token == "token-2"


async def test_other_sources_have_other_files(tmp_path: Path) -> None:
    one, other = Source("one"), Source("other")
    await CredentialCache(one, tmp_path).get()
    await CredentialCache(other, tmp_path).get()
    assert (one.num_fetches, other.num_fetches) == (1, 1)
