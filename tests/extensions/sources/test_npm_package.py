"""Packages of an npm registry: which version, from where, with which login, and what is refused."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.npm_registry import NpmRegistry, npm_registry
from wolo.errors import ExtensionError
from wolo.extensions.sources import npm_package
from wolo.extensions.sources.fetching import FetchedSource, fetch
from wolo.extensions.sources.source import read_source
from wolo.extensions.sources.tree_copy import files_in


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[NpmRegistry]:
    with npm_registry() as served:
        monkeypatch.setenv("npm_config_registry", served.url)
        yield served


def fetched(text: str) -> FetchedSource:
    return fetch(read_source(text, Path.cwd()), Path(tempfile.mkdtemp(dir=Path.cwd())))


def test_version_or_tag_is_fetched(registry: NpmRegistry) -> None:
    registry.publish("tools", "1.0.0", {"one.md": "x"})
    registry.publish("tools", "2.0.0", {"two.md": "x"})
    for end, name in (("", "two.md"), ("@latest", "two.md"), ("@1.0.0", "one.md")):
        assert [str(each) for each in files_in(fetched(f"npm:tools{end}").folder)] == sorted([name, "package.json"])
    with pytest.raises(ExtensionError, match="no version or tag 3") as raised:
        fetched("npm:tools@3")
    assert raised.value.hint == "Tags: latest (2.0.0)."


def test_missing_package_and_absent_registry_are_named(registry: NpmRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ExtensionError, match=r"/none cannot be fetched: the answer is 404"):
        fetched("npm:none")
    for address, said in (
        ("http://127.0.0.1:9", "the connection was refused"),
        ("http://npm.host.example", "is not encrypted"),
        ("nothing", "cannot be fetched"),
        ("https://[", "not a usable address"),
    ):
        monkeypatch.setenv("npm_config_registry", address)
        with pytest.raises(ExtensionError, match=said):
            fetched("npm:tools")


def test_archive_without_the_named_hash_is_refused(registry: NpmRegistry) -> None:
    weak = base64.b64encode(hashlib.sha1(b"").digest()).decode()
    for integrity, said in (
        ("sha512-AAAA", "does not have the hash"),
        (f"sha1-{weak}", "names no hash"),
        ("", "names no hash"),
        ("sha512", "does not have the hash"),
    ):
        registry.publish("tools", "1.0.0", {"a.md": "x"}, integrity=integrity)
        with pytest.raises(ExtensionError, match=said):
            fetched("npm:tools")
    registry.publish("tools", "1.0.0", {"a.md": "x"}, tarball="")
    with pytest.raises(ExtensionError, match="names no archive"):
        fetched("npm:tools")
    registry.publish("tools", "1.0.0", {"a.md": "x"}, tarball="file:///etc/passwd")
    with pytest.raises(ExtensionError, match="cannot be fetched"):
        fetched("npm:tools")


@pytest.mark.parametrize("start", ["HTTP://", "http://localhost:@", " http://"])
def test_archive_without_encryption_is_refused(registry: NpmRegistry, start: str) -> None:
    registry.publish("tools", "1.0.0", {"a.md": "x"}, tarball=f"{start}npm.host.example/x.tgz")
    with pytest.raises(ExtensionError, match="the address is not encrypted"):
        fetched("npm:tools")


def test_other_registries_reach_no_local_server(registry: NpmRegistry) -> None:
    with pytest.raises(ExtensionError, match="the address is not encrypted"):
        npm_package._load(f"{registry.url}/tools", {}, "https://npm.host.example")
    assert registry.requests == []


def test_changed_archive_is_refused(registry: NpmRegistry) -> None:
    registry.publish("tools", "1.0.0", {"a.md": "x"})
    registry.answers["/tools/-/1.0.0.tgz"] += b"\0"
    with pytest.raises(ExtensionError, match="does not have the hash"):
        fetched("npm:tools")


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"versions": []}', b'{"dist-tags": {"latest": []}}', b"[" * 100_000])
def test_unreadable_listing_is_an_error(registry: NpmRegistry, body: bytes) -> None:
    registry.answers["/tools"] = body
    with pytest.raises(ExtensionError, match="npm:tools cannot be fetched"):
        fetched("npm:tools")


def test_links_and_outer_paths_are_refused(registry: NpmRegistry) -> None:
    outside, link = tarfile.TarInfo("package/../../evil"), tarfile.TarInfo("package/a")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    for entry, said in ((outside, "leads outside"), (link, "link or special file")):
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w:gz") as archive:
            archive.addfile(entry, io.BytesIO(b""))
        sha512 = base64.b64encode(hashlib.sha512(made.getvalue()).digest()).decode()
        registry.publish("tools", "1.0.0", {}, integrity=f"sha512-{sha512}")
        registry.answers["/tools/-/1.0.0.tgz"] = made.getvalue()
        with pytest.raises(ExtensionError, match=said):
            fetched("npm:tools")


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_SPARSE])
def test_header_as_large_as_a_file_is_refused(registry: NpmRegistry, kind: bytes) -> None:
    entry = tarfile.TarInfo("package/a")
    entry.type, entry.size = kind, 2 << 20
    made = gzip.compress(entry.tobuf() + bytes(entry.size + 1024))
    sha512 = base64.b64encode(hashlib.sha512(made).digest()).decode()
    registry.publish("tools", "1.0.0", {}, integrity=f"sha512-{sha512}")
    registry.answers["/tools/-/1.0.0.tgz"] = made
    with pytest.raises(ExtensionError, match="a header of 2,097,152 bytes"):
        fetched("npm:tools")


def test_login_without_a_host_goes_nowhere(registry: NpmRegistry) -> None:
    Path("~/.npmrc").expanduser().write_text("//:_authToken=s3cret\n///:_auth=s3cret\n")
    registry.publish("tools", "1.0.0", {"a.md": "x"})
    fetched("npm:tools")
    assert [headers.get("authorization") for _, headers in registry.requests] == [None, None]


def test_login_goes_to_its_registry_only(registry: NpmRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("npm_config_registry")
    monkeypatch.setenv("TOKEN", "s3cret")
    place = registry.url.removeprefix("http:")
    with npm_registry() as other:
        Path("~/.npmrc").expanduser().write_text(
            f"; a comment\nregistry={other.url}\n@acme:registry = {registry.url}/\n{place}/:_authToken=${{TOKEN}}\n"
        )
        archive = registry.publish("@acme/tools", "1.0.0", {"a.md": "x"}, tarball=f"{other.url}/tools.tgz")
        other.answers["/tools.tgz"] = archive
        fetched("npm:@acme/tools")
        assert [(path, headers.get("authorization")) for path, headers in registry.requests] == [
            ("/@acme/tools", "Bearer s3cret")
        ]
        assert [(path, headers.get("authorization")) for path, headers in other.requests] == [("/tools.tgz", None)]


def test_project_settings_choose_no_registry(registry: NpmRegistry) -> None:
    registry.publish("tools", "1.0.0", {"a.md": "x"})
    Path(".npmrc").write_text("registry=http://127.0.0.1:9\n")
    assert json.loads((fetched("npm:tools").folder / "package.json").read_text())["version"] == "1.0.0"


def test_proxy_of_the_environment_is_used(registry: NpmRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("npm_config_registry", "https://npm.host.example")
    monkeypatch.setenv("HTTPS_PROXY", registry.url)
    with pytest.raises(ExtensionError, match=r"The proxy 127\.0\.0\.1:\d+ refused to connect to npm\.host\.example"):
        fetched("npm:tools")
