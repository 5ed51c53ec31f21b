"""Approvals on the page, in a real Chromium: all of a call can be read before a Yes counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from tests.frontends.server.running_server import running
from tests.frontends.server.test_web_page import all_of, browser, say, shown, wait
from tests.frontends.shown_arguments import CHANGES, FOREIGN_CALLS, change, foreign_call, is_drawn
from tests.tools.harness import ToolHarness
from wolo.agent.events import ApprovalAsked
from wolo.frontends.server.session_lines import approval_line

DRAW = """const [lines, done] = arguments;
import("/page/views.js").then(({ approvalNode }) => done(lines.map((line) => {
  const said = [], node = approvalNode(line, (decision) => said.push(decision));
  document.body.append(node);
  const all = (selector) => [...node.querySelectorAll(selector)].map((each) => each.textContent);
  const yes = node.querySelector("[data-decision=once]"), folded = all(".more");
  yes.click();
  const early = said.length;
  yes.click();
  node.remove();
  return { folded, early, said, drawn: all(".diff > span"), texts: all("pre:not(.diff)"), title: all("h2")[0], names: all("h3") };
})));"""
FEW = settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def drawn_by(driver: Any, asked: list[ApprovalAsked]) -> list[dict[str, Any]]:
    found = driver.execute_async_script(DRAW, [approval_line(each) for each in asked])
    assert isinstance(found, list)
    return found


def test_the_page_shows_every_argument(provider: ProviderServer, tmp_path: Path) -> None:
    with running(provider) as server, browser() as driver:
        driver.get(server.address)
        wait(driver, lambda: "What shall we do?" in shown(driver))

        @FEW
        @given(st.lists(FOREIGN_CALLS, min_size=10, max_size=10))
        def foreign(calls: list[ApprovalAsked]) -> None:
            for asked, page in zip(calls, drawn_by(driver, calls), strict=True):
                assert page["names"] == [each.name for each in asked.arguments]
                assert page["texts"] == [each.text for each in asked.arguments]
                assert page["early"] == (not page["folded"])
                assert page["said"][0] == "once"

        @FEW
        @given(st.lists(CHANGES, min_size=5, max_size=5))
        def own(given: list[dict[str, Any]]) -> None:
            calls = [asked for each in given if (asked := change(ToolHarness(tmp_path), each)) is not None]
            for asked, page in zip(calls, drawn_by(driver, calls), strict=True):
                for each in asked.arguments:
                    is_listed = each.name in page["names"] and each.text in page["texts"]
                    assert is_listed or (
                        each.is_in_view and is_drawn(each, "\n".join([f" {page['title']}", *page["drawn"]]), asked)
                    )

        foreign()
        own()
        (page,) = drawn_by(driver, [foreign_call("mcp__files__edit", {"old": "a", "new": "b", "to": "line\n" * 45 + "end"})])
        assert page["folded"] == ["30 more lines"]
        assert not page["early"]
        (page,) = drawn_by(driver, [foreign_call("mcp__x__run", {"script": "x" * 2_600})])
        assert page["folded"] == ["1000 more characters"]
        assert not [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]


def test_line_separators_reach_the_page(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "echo a\u2028b"}), text("one\u2028two\u2029three\u200b and \u00e9"))
    with running(provider, WOLO_MODE="ask") as server, browser() as driver:
        driver.get(server.address)
        wait(driver, lambda: "What shall we do?" in shown(driver))
        say(driver, "go")
        panel = wait(driver, lambda: all_of(driver, ".ask")[0])
        assert "echo a⟨U+2028⟩b" in panel.text
        all_of(driver, "[data-decision=once]")[0].click()
        wait(driver, lambda: "tokens" in shown(driver))
        assert [each.text for each in all_of(driver, ".answer")] == ["one⟨U+2028⟩two⟨U+2029⟩three⟨U+200B⟩ and é"]
        assert "Something could not be shown" not in shown(driver)
