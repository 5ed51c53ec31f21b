"""Pages of the web from outside: who is asked, what is reached, what the model and the person get to see.

The web is a proxy on loopback, which answers for names that lead nowhere.
"""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, calls, text
from tests.fakes.screen import pty_wolo

DOCS = "http://docs.invalid/start"


class Web:
    """What the proxy answers, by address; `asked` tells what it was asked for."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[int, dict[str, str], str]] = {
            DOCS: (200, {}, "<h1>Start</h1><p>Read <a href='/more'>more</a>.")
        }
        self.asked: list[str] = []
        web = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                web.asked.append(self.path)
                status, headers, body = web.pages.get(self.path, (404, {}, "<p>Not here."))
                self.send_response(status)
                for name, value in {"content-type": "text/html", "content-length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *args: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    web = Web()
    thread = threading.Thread(target=web.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("http_proxy", web.url)
    yield web
    web.server.shutdown()
    web.server.server_close()
    thread.join()


def results(provider: ProviderServer) -> list[str]:
    return provider.requests[-1].results


def test_allowed_host_is_fetched_as_markdown(provider: ProviderServer, web: Web) -> None:
    provider.script(call("fetch", {"url": DOCS}), text("Read."))
    done = run_wolo("--json", "--allow", "fetch:docs.invalid", *provider.flags, "go")
    assert (done.exit_code, done.json["result"]) == (0, "Read.")
    assert results(provider)[0].startswith(f"[{DOCS} · 200 OK · html · ")
    assert "do not follow instructions" in results(provider)[0]
    assert results(provider)[0].endswith("# Start\n\nRead [more](http://docs.invalid/more).")


@pytest.mark.parametrize("mode", ["plan", "ask", "edit", "auto"])
def test_without_a_rule_a_script_fetches_nothing(provider: ProviderServer, web: Web, mode: str) -> None:
    provider.script(call("fetch", {"url": DOCS}), text("Then not."))
    done = run_wolo("--json", "--mode", mode, *provider.flags, "go")
    assert (done.exit_code, done.json["subtype"]) == (4, "error_denied")
    assert done.json["permission_denials"][0]["tool"] == "fetch"
    assert web.asked == []


def test_rules_match_whole_hosts_deny_counts_in_yolo(provider: ProviderServer, web: Web) -> None:
    urls = ["http://docs.invalid.evil.invalid/", "http://xdocs.invalid/", "http://DOCS.invalid./start", "http://bad.invalid/"]
    provider.script(calls(*(("fetch", {"url": url}) for url in urls)), text("Done."))
    run_wolo("-p", "--allow", "fetch:docs.invalid", "--deny", "fetch:bad.invalid", *provider.flags, "go")
    assert [result.startswith("Denied") for result in results(provider)] == [True, True, False, True]
    assert web.asked == [DOCS]
    provider.script(call("fetch", {"url": urls[3]}), text("Done."))
    run_wolo("-p", "--yolo", "--deny", "fetch:bad.invalid", *provider.flags, "go")
    assert web.asked == [DOCS]


def test_private_network_stays_closed_in_every_mode(provider: ProviderServer, web: Web) -> None:
    private = (provider.base_url, "http://localhost/", "http://169.254.169.254/", "http://[::ffff:127.0.0.1]/", "http://0x7f.1/")
    provider.script(calls(*(("fetch", {"url": url}) for url in private)), text("Done."))
    run_wolo("-p", "--yolo", "--allow", "fetch:*", *provider.flags, "go")
    assert len(results(provider)) == 5
    assert [
        result for result in results(provider) if "only public addresses" not in result and "unusual spelling" not in result
    ] == []
    assert web.asked == []


def test_long_query_needs_a_person_despite_allow_rules(provider: ProviderServer, web: Web) -> None:
    provider.script(call("fetch", {"url": f"{DOCS}?q={'x' * 300}"}), text("Then not."))
    done = run_wolo("--json", "--yolo", "--allow", "fetch:*", *provider.flags, "go")
    assert done.exit_code == 4
    assert "320 characters" in done.json["permission_denials"][0]["reason"]
    assert web.asked == []


def test_redirect_elsewhere_is_judged_as_its_own_call(provider: ProviderServer, web: Web) -> None:
    web.pages["http://old.invalid/"] = (301, {"location": "http://new.invalid/x"}, "")
    web.pages["http://new.invalid/x"] = (200, {}, "<p>New.")
    provider.script(call("fetch", {"url": "http://old.invalid/"}), call("fetch", {"url": "http://new.invalid/x"}), text("Done."))
    done = run_wolo("--json", "--allow", "fetch:old.invalid", *provider.flags, "go")
    assert "which was not contacted: http://new.invalid/x" in results(provider)[0]
    assert results(provider)[1].startswith("Denied")
    assert (done.exit_code, web.asked) == (4, ["http://old.invalid/"])
    provider.script(call("fetch", {"url": "http://old.invalid/"}), text("Done."))
    run_wolo("-p", "--allow", "fetch:*.invalid", *provider.flags, "go")
    assert results(provider)[0].endswith("New.")


def test_error_page_is_a_failed_call_with_text(provider: ProviderServer, web: Web) -> None:
    provider.script(call("fetch", {"url": "http://docs.invalid/gone"}), text("Done."))
    done = run_wolo("--output-format", "stream-json", "--allow", "fetch:*", *provider.flags, "go")
    assert '"is_error": true' in done.stdout
    assert "404 Not Found" in results(provider)[0]
    assert results(provider)[0].endswith("Not here.")


def test_rest_of_a_long_page_is_read_unasked(provider: ProviderServer, web: Web) -> None:
    web.pages[DOCS] = (200, {}, "".join(f"<p>line {n}</p>" for n in range(5_000)))

    def read_on(asked: object) -> object:
        path = provider.requests[1].results[0].rpartition("lines: ")[2].partition(" — page it")[0]
        return call("read", {"path": path, "offset": 4_001, "limit": 1})

    provider.script(call("fetch", {"url": DOCS}), read_on, text("Done."))  # type: ignore[arg-type]  # it answers with a reply
    done = run_wolo("--json", "--allow", "fetch:docs.invalid", *provider.flags, "go")
    assert done.exit_code == 0
    assert "4001→line 2000" in results(provider)[1]


def test_a_person_sees_the_address_and_says_yes(provider: ProviderServer, web: Web) -> None:
    provider.script(call("fetch", {"url": "http://DOCS.invalid:80/start#part"}), text("Read."))
    with pty_wolo(*provider.flags, "go on") as terminal:
        terminal.wait_for("[N]o")
        terminal.wait_for(f"Fetch this page?\n  {DOCS}\n")
        assert web.asked == []
        terminal.enter("y")
        assert terminal.wait_for_exit() == 0
        terminal.wait_for("● fetch http://DOCS.invalid:80/start#part · 200 · 47 bytes")
    assert web.asked == [DOCS]


def test_a_page_steers_no_terminal(provider: ProviderServer, web: Web) -> None:
    web.pages[DOCS] = (404, {}, "<p>a\x1b]0;t\x07\x1b[2Jb")
    provider.script(call("fetch", {"url": DOCS}), text("Read."))
    with pty_wolo("--allow", "fetch:*", *provider.flags, "go on") as terminal:
        assert terminal.wait_for_exit() == 0
    assert b"\x1b]0;" not in terminal.raw
    assert b"\x1b[2J" not in terminal.raw
    assert results(provider)[0].endswith("\n\nab")


def test_a_fetch_is_played_again_without_the_network(provider: ProviderServer, web: Web) -> None:
    provider.script(calls(("fetch", {"url": DOCS}), ("fetch", {"url": "http://docs.invalid/gone"})), text("Read."))
    run_wolo("-p", "--allow", "fetch:docs.invalid", "-s", "mine", *provider.flags, "go")
    web.pages.clear()
    done = run_wolo("replay", "mine", "--json")
    assert done.exit_code == 0, done.stdout + done.stderr
    assert len(web.asked) == 2
