"""Logins against a real authorization server: how a token is got, kept, refreshed, used, and where it never goes."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from urllib.request import HTTPError, urlopen

import httpx2
import pytest

from tests.fakes.command import run_wolo
from tests.fakes.oauth_server import OAuthServer
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import text
from tests.fakes.screen import pty_wolo
from wolo.config.keys import written_down
from wolo.config.mcp_logins import MCPLogins
from wolo.config.schema import Settings
from wolo.errors import ConfigError, ToolError
from wolo.guard.secrets.redactor import Secrets
from wolo.mcp.connection import ADDRESSES, PEER
from wolo.mcp.listings import CachedListings
from wolo.mcp.logins import SavedLogin, login_key
from wolo.mcp.oauth.callback import LoginFailed
from wolo.mcp.oauth.clients import revocations
from wolo.mcp.oauth.login import log_in, log_out
from wolo.mcp.oauth.provider import MetadataAddresses
from wolo.mcp.sdk_transport import plain_client
from wolo.mcp.server import ConfiguredServer, OAuth, Server, ServerEnvironment
from wolo.mcp.server_requests import Caller
from wolo.mcp.servers import Servers
from wolo.places import find_places
from wolo.tools.web.address import Hosts
from wolo.workspace.processes.process_runner import Processes
from wolo.workspace.root import Workspace

METADATA_URL = "https://wolo.example/client.json"


@pytest.fixture
def remote() -> Iterator[OAuthServer]:
    with OAuthServer() as server:
        yield server


@pytest.fixture
def store() -> MCPLogins:
    return MCPLogins(find_places(), in_keyring=False)


def browse(address: str) -> None:
    """A user who approves everything."""
    threading.Thread(target=_follow, args=[address], daemon=True).start()


def _follow(address: str) -> None:
    with urlopen(address, timeout=10) as page:
        page.read()


async def login(remote: OAuthServer, store: MCPLogins, **oauth: Any) -> int | None:
    server = Server(url=remote.url, oauth=OAuth(**oauth))
    listing = await log_in("web", server, store, os.environ, browse)
    return None if listing is None else len(listing.tools)


def saved(remote: OAuthServer, store: MCPLogins) -> SavedLogin:
    found = store.read(login_key("web", remote.url))
    assert found is not None
    return found


@asynccontextmanager
async def running(remote: OAuthServer, store: MCPLogins, **oauth: Any) -> Any:
    """The servers of a conversation, started."""
    work = Path.cwd()
    around = ServerEnvironment(Workspace(work), work, os.environ, Processes(work.parent / "traces"), store)
    wanted = ConfiguredServer(name="web", server=Server(url=remote.url, oauth=OAuth(**oauth)), source="the test")
    servers = Servers([wanted], around, CachedListings(work.parent / "cache"), attended=False)
    try:
        await servers.restart("web")
        await servers.until_settled("web")
        yield servers
    finally:
        await servers.close()


async def call(servers: Servers, tool: str) -> str:
    client = servers._clients["web"]
    answer = await client.call(tool, {}, Caller("1", lambda text: None, None))
    return str(answer.items[0])


async def test_login_registers_once_and_serves_later_runs(remote: OAuthServer, store: MCPLogins) -> None:
    assert await login(remote, store) == 2
    (registered,) = remote.asked("/register")
    (asked,) = remote.asked("/authorize")
    assert registered["redirect_uris"] == [asked["redirect_uri"]]
    assert asked["code_challenge_method"] == "S256"
    assert asked["resource"] == remote.url
    assert urlsplit(asked["redirect_uri"]).hostname == "127.0.0.1"
    async with running(remote, store) as servers:
        assert servers.statuses()[0].state == "ready"
        assert await call(servers, "look") == "done"
    assert len(remote.asked("/authorize")) == 1


async def test_token_file_is_private_and_tokens_are_secrets(remote: OAuthServer, store: MCPLogins) -> None:
    await login(remote, store)
    path = find_places().config / "mcp_logins.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    values = {each.value for each in written_down(find_places(), Settings())}
    assert {*remote.access, *remote.refresh} <= values


async def resolve(host: str, port: int) -> list[str]:
    return ["127.0.0.2"] if host == "inside.example" else ["127.0.0.1"]


@pytest.mark.parametrize("place", ["https://127.0.0.2:1", "https://inside.example", "https://localhost:1", "https://printer.lan"])
@pytest.mark.parametrize("name", ["issuer", "registration_endpoint", "authorization_endpoint", "token_endpoint"])
async def test_a_public_server_leads_to_no_private_address(remote: OAuthServer, store: MCPLogins, name: str, place: str) -> None:
    """The only public address of this network is that of the server."""
    if name == "issuer":
        remote.resource_metadata["authorization_servers"] = [place]
    else:
        remote.metadata[name] = f"{place}/there"
    network = Hosts(resolve, lambda address: address == "127.0.0.1")
    with pytest.raises(LoginFailed, match=r"leads to https.*private network"):
        await log_in("web", Server(url=remote.url), store, os.environ, browse, hosts=network)
    assert not remote.access


async def test_a_private_server_leads_to_private_addresses(remote: OAuthServer, store: MCPLogins) -> None:
    with OAuthServer() as other:
        remote.metadata["registration_endpoint"] = f"{other.origin}/register"
        assert await login(remote, store) == 2
        assert len(other.asked("/register")) == 1


async def test_a_named_issuer_may_be_anywhere() -> None:
    network = Hosts(resolve, lambda address: address == "127.0.0.1")
    addresses = MetadataAddresses("https://public.example/mcp", "https://login.lan", network)
    assert await addresses.resolve("https://login.lan/token?secret=1") == ()
    with pytest.raises(LoginFailed, match="private network"):
        await addresses.resolve("https://other.lan/token")
    assert await addresses.resolve("https://login.example/token") == ("127.0.0.1",)


@pytest.mark.parametrize("server", ["https://inside.example/mcp", "https://printer.lan/mcp"])
async def test_a_name_of_the_private_network_leads_anywhere(server: str) -> None:
    """Asked before anything was sent, so that no connection tells where the server is."""
    addresses = MetadataAddresses(server, hosts=Hosts(resolve, lambda address: address == "127.0.0.1"))
    assert await addresses.resolve("https://other.lan/token") == ()


async def test_a_checked_request_goes_to_the_checked_address(remote: OAuthServer) -> None:
    """A second lookup of the name could mean another machine."""
    port = urlsplit(remote.url).port
    async with plain_client(remote.url, {}, 10) as client:
        request = httpx2.Request(
            "GET", f"http://no-such-name.example:{port}/revoke?token=x", extensions={ADDRESSES: ("127.0.0.1",)}
        )
        response = await client.send(request)
    assert (response.status_code, response.extensions[PEER]) == (200, "127.0.0.1")
    assert len(remote.asked("/revoke")) == 1


async def test_a_second_login_uses_the_registered_client_again(remote: OAuthServer, store: MCPLogins) -> None:
    await login(remote, store)
    await login(remote, store)
    assert len(remote.asked("/register")) == 1
    assert len(remote.asked("/authorize")) == 2


async def test_run_without_login_names_the_remedy(remote: OAuthServer, store: MCPLogins) -> None:
    async with running(remote, store) as servers:
        (status,) = servers.statuses()
    assert (status.state, status.why) == ("failed", "it requires a login: `wolo mcp login web`")
    assert remote.asked("/register") == []


async def test_expired_token_is_refreshed_before_use(remote: OAuthServer, store: MCPLogins) -> None:
    remote.expires_in = 1
    await login(remote, store)
    first = saved(remote, store)
    remote.expires_in = 3600
    async with running(remote, store) as servers:
        assert await call(servers, "look") == "done"
    refreshes = [each for each in remote.asked("/token") if each["grant_type"] == "refresh_token"]
    assert len(refreshes) == 1
    assert refreshes[0]["resource"] == remote.url
    assert saved(remote, store).tokens != first.tokens


async def test_token_refreshed_during_run_is_a_secret(remote: OAuthServer, store: MCPLogins) -> None:
    await login(remote, store)
    secrets = Secrets()
    async with running(remote, store) as servers:
        servers.report_secrets(secrets.learn)
        remote.revoke_access()
        assert await call(servers, "look") == "done"
    (token,) = remote.access
    assert token not in secrets.hide(f"Bearer {token}")


async def test_revoked_token_refreshes_and_repeats_the_call(remote: OAuthServer, store: MCPLogins) -> None:
    await login(remote, store)
    async with running(remote, store) as servers:
        remote.revoke_access()
        assert await call(servers, "look") == "done"


async def test_a_refused_refresh_asks_for_a_login(remote: OAuthServer, store: MCPLogins) -> None:
    await login(remote, store)
    remote.revoke_access()
    remote.refresh.clear()
    async with running(remote, store) as servers:
        assert servers.statuses()[0].why == "it requires a login: `wolo mcp login web`"
    assert len(remote.asked("/authorize")) == 1


REFRESHING = """
import asyncio, os, sys
from pathlib import Path
from tests.fakes.oauth_server import OAuthServer
from tests.mcp.test_oauth import call, running
from wolo.config.mcp_logins import MCPLogins
from wolo.places import find_places

class Remote:
    url = sys.argv[1]

async def main():
    async with running(Remote, MCPLogins(find_places(), in_keyring=False)) as servers:
        print(await call(servers, "look"))

asyncio.run(main())
"""


async def test_two_processes_refresh_once(remote: OAuthServer, store: MCPLogins) -> None:
    remote.expires_in = 1
    await login(remote, store)
    remote.expires_in = 3600
    argv = [sys.executable, "-c", REFRESHING, remote.url]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    pipe = asyncio.subprocess.PIPE
    both = [await asyncio.create_subprocess_exec(*argv, env=env, stdout=pipe, stderr=pipe) for _ in range(2)]
    said = await asyncio.gather(*(each.communicate() for each in both))
    assert [out for out, _ in said] == [b"done\n"] * 2, said
    assert [each["grant_type"] for each in remote.asked("/token")].count("refresh_token") == 1


async def test_missing_scope_is_named_and_requested_next_login(remote: OAuthServer, store: MCPLogins) -> None:
    remote.needs_scope = {"change": "web:write"}
    remote.resource_metadata = {"scopes_supported": ["web:read"]}
    await login(remote, store)
    async with running(remote, store) as servers:
        assert await call(servers, "look") == "done"
        with pytest.raises(ToolError, match="its login lacks the scope web:write: `wolo mcp login web`"):
            await call(servers, "change")
    assert len(remote.asked("/authorize")) == 1
    await login(remote, store)
    assert remote.asked("/authorize")[1]["scope"].split() == ["web:read", "web:write"]
    assert saved(remote, store).refused_scope == ""
    async with running(remote, store) as servers:
        assert await call(servers, "change") == "done"


async def test_a_configured_client_is_used_and_not_registered(
    remote: OAuthServer, store: MCPLogins, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_SECRET", "s3cret-value")
    remote.metadata = {"token_endpoint_auth_methods_supported": ["client_secret_post", "client_secret_basic"]}
    await login(remote, store, client_id="me", client_secret="${THE_SECRET}", auth_method="client_secret_post")
    assert remote.asked("/register") == []
    (token,) = remote.asked("/token")
    assert (token["client_id"], token["client_secret"]) == ("me", "s3cret-value")
    await login(remote, store, client_id="me", client_secret="${THE_SECRET}")
    assert remote.asked("/token")[1]["authorization"].startswith("Basic ")
    remote.metadata = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    await login(remote, store, client_id="me", client_secret="${THE_SECRET}")
    assert remote.asked("/token")[2]["client_secret"] == "s3cret-value"


async def test_the_settings_of_a_login_are_used(remote: OAuthServer, store: MCPLogins, unused_tcp_port: int) -> None:
    remote.metadata = {"client_id_metadata_document_supported": True}
    address = f"http://localhost:{unused_tcp_port}/here"
    await login(remote, store, client_metadata_url=METADATA_URL, scopes=("a", "b"), redirect_uri=address)
    (asked,) = remote.asked("/authorize")
    assert (asked["client_id"], asked["scope"], asked["redirect_uri"]) == (METADATA_URL, "a b", address)
    assert remote.asked("/register") == []


async def test_a_secret_goes_to_its_own_issuer_only(remote: OAuthServer, store: MCPLogins) -> None:
    with pytest.raises(LoginFailed, match=r"another authorization server than oauth.issuer"):
        await login(remote, store, client_id="me", client_secret="s3cret-value", issuer="https://login.example")
    assert remote.asked("/token") == []
    assert await login(remote, store, client_id="me", client_secret="s3cret-value", issuer=remote.origin) == 2


async def test_a_client_with_credentials_needs_no_browser(remote: OAuthServer, store: MCPLogins) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    remote.grants_refresh = False
    async with running(remote, store, client_id="me", client_secret="s3cret-value", grant="client_credentials") as servers:
        assert await call(servers, "look") == "done"
    assert remote.asked("/authorize") == []
    assert remote.asked("/token")[0]["grant_type"] == "client_credentials"
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    Path("key.pem").write_bytes(pem)
    store.remove(login_key("web", remote.url))
    async with running(remote, store, client_id="me", private_key="key.pem", grant="client_credentials") as servers:
        assert await call(servers, "look") == "done"
    assert remote.asked("/token")[1]["client_assertion"].count(".") == 2


async def test_an_identity_provider_vouches_for_the_user(remote: OAuthServer, store: MCPLogins) -> None:
    with OAuthServer() as idp:
        given = {"client_id": "me", "client_secret": "s3cret-value", "id_token": "who-i-am", "idp_client_id": "us"}
        oauth = {**given, "grant": "identity_assertion", "idp_token_endpoint": f"{idp.origin}/token"}
        async with running(remote, store, **oauth) as servers:
            assert await call(servers, "look") == "done"
        (exchanged,) = idp.asked("/token")
        assert (exchanged["subject_token"], exchanged["client_id"]) == ("who-i-am", "us")
        assert (exchanged["audience"], exchanged["resource"]) == (remote.origin, remote.url)
        (token,) = remote.asked("/token")
        assert token["assertion"] in idp.access
        assert "who-i-am" not in str(remote.heard)


async def test_workload_token_is_sent_as_is(remote: OAuthServer, store: MCPLogins) -> None:
    async with running(remote, store, client_id="me", id_token="what-i-am", grant="identity_assertion") as servers:
        assert await call(servers, "look") == "done"
    (token,) = remote.asked("/token")
    assert token["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    assert (token["assertion"], token["authorization"]) == ("what-i-am", "")


async def test_logging_out_revokes_and_removes(remote: OAuthServer, store: MCPLogins) -> None:
    await login(remote, store)
    assert await log_out("web", Server(url=remote.url), store, os.environ)
    assert (remote.access, remote.refresh) == ({}, {})
    assert store.keys() == frozenset()
    assert not await log_out("web", Server(url=remote.url), store, os.environ)


async def test_a_refusal_at_the_login_is_said(remote: OAuthServer, store: MCPLogins) -> None:
    remote.login_error = "access_denied"
    with pytest.raises(LoginFailed, match="the authorization server refused: access_denied"):
        await login(remote, store)


async def test_the_answer_to_another_login_is_refused(remote: OAuthServer, store: MCPLogins) -> None:
    statuses: list[int] = []

    def attacked(address: str) -> None:
        threading.Thread(target=attack, args=[address], daemon=True).start()

    def attack(address: str) -> None:
        back = parse_qs(urlsplit(address).query)["redirect_uri"][0]
        for wrong in ("?code=evil&state=guessed", "?code=evil", "", "/../other?code=evil"):
            try:
                urlopen(back + wrong, timeout=10).close()
            except HTTPError as error:
                statuses.append(error.code)
                error.close()
        _follow(address)

    server = Server(url=remote.url)
    assert await log_in("web", server, store, os.environ, attacked) is not None
    assert statuses == [400, 400, 400, 404]
    assert "evil" not in {each.get("code") for each in remote.asked("/token")}


async def test_no_token_follows_a_redirect_to_another_server(remote: OAuthServer, store: MCPLogins) -> None:
    await login(remote, store)
    with OAuthServer() as other:
        remote.redirects_to = other.url
        async with running(remote, store) as servers:
            assert servers.statuses()[0].state == "failed"
        assert other.heard == []


async def test_server_at_another_address_gets_no_token(remote: OAuthServer, store: MCPLogins) -> None:
    await login(remote, store)
    with OAuthServer() as other:
        async with running(other, store) as servers:
            assert "requires a login" in servers.statuses()[0].why
        assert {given["authorization"] for _, given in other.heard} == {""}


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"authorization_endpoint": "http://login.example/authorize"}, "which is not https"),
        ({"token_endpoint": "http://login.example/token"}, "which is not https"),
        ({"code_challenge_methods_supported": ["plain"]}, "does not support PKCE"),
        ({"issuer": "https://login.example"}, "issuer"),
    ],
)
async def test_metadata_that_would_leak_a_login_end_it(
    remote: OAuthServer, store: MCPLogins, metadata: dict[str, Any], said: str
) -> None:
    remote.metadata = metadata
    with pytest.raises(LoginFailed, match=said):
        await login(remote, store)


async def test_tokens_are_not_revoked_without_tls(remote: OAuthServer, store: MCPLogins) -> None:
    remote.metadata = {"revocation_endpoint": "http://login.example/revoke"}
    await login(remote, store)
    with pytest.raises(LoginFailed, match="not https"):
        next(revocations(remote.url, OAuth(), saved(remote, store)))


async def test_a_server_without_a_login_needs_none(store: MCPLogins) -> None:
    with OAuthServer() as remote:
        remote.access[""] = ""  # every token is good
        assert await login(remote, store) is None
        assert remote.asked("/authorize") == []


def test_a_damaged_file_says_so(store: MCPLogins) -> None:
    path = find_places().config / "mcp_logins.json"
    store.write("web https://h", SavedLogin(refused_scope="a"))
    rows: Mapping[str, Any] = json.loads(path.read_text())
    assert rows == {"web https://h": {"refused_scope": "a"}}
    path.write_text(json.dumps({"web https://h": {"expires_at": "soon"}}))
    with pytest.raises(ConfigError, match="damaged"):
        store.read("web https://h")


def test_login_without_terminal_works_and_run_continues_without(remote: OAuthServer, provider: ProviderServer) -> None:
    run_wolo("mcp", "add", "-t", "http", "web", remote.url)
    provider.script(text("Without it."), text("With it."))
    before = run_wolo("-p", "--no-session", *provider.flags, "hello")
    assert (before.exit_code, before.stdout) == (0, "Without it.\n")
    assert "it requires a login: `wolo mcp login web`" in before.stderr
    browser = Path("browser.py").absolute()
    browser.write_text("import sys, urllib.request\nurllib.request.urlopen(sys.argv[1]).read()\n")
    logged_in = run_wolo("mcp", "login", "web", env={"BROWSER": f"{sys.executable} {browser}"})
    address, result = logged_in.stdout.splitlines()
    assert address.startswith(f"{remote.origin}/authorize?")
    assert result == "Logged in to web: 2 tools."
    after = run_wolo("-p", "--no-session", *provider.flags, "hello")
    assert (after.exit_code, after.stdout) == (0, "With it.\n")
    assert "mcp__web__look" in str(provider.requests[-1].json["tools"])
    assert run_wolo("mcp", "logout", "web").stdout == "Logged out of web.\n"


def test_login_in_a_session_starts_the_server(remote: OAuthServer, provider: ProviderServer) -> None:
    run_wolo("mcp", "add", "-t", "http", "web", remote.url)
    browser = Path("browser.py").absolute()
    browser.write_text("import sys, urllib.request\nurllib.request.urlopen(sys.argv[1]).read()\n")
    with pty_wolo(*provider.flags, env={"BROWSER": f"{sys.executable} {browser}"}) as terminal:
        terminal.wait_for_prompt()
        terminal.enter("/mcp login web")
        terminal.wait_for("Open this address to log in to web")
        terminal.wait_for("Logged in to web: 2 tools.")
        terminal.enter("/mcp login nothing")
        terminal.wait_for("There is no MCP server nothing")
        provider.script(text("With it."))
        terminal.enter("hello")
        terminal.wait_for("With it.")
    assert "mcp__web__look" in str(provider.requests[-1].json["tools"])
