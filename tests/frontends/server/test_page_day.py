"""A day with the page: drafts, earlier prompts, files, notifications, folders, and accessibility in every state."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.components import require_clients
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from tests.frontends.server.running_server import Server, running
from tests.frontends.server.test_server_api import batch_run
from tests.frontends.server.test_web_page import all_of, browser, say, say_in, shown, wait
from tests.sessions.samples import said
from wolo.messages.message import Message
from wolo.messages.parts import TextPart
from wolo.places import find_places
from wolo.sessions.entries import AnyEntry, MessageEntry
from wolo.sessions.store import Store

UP, DOWN, TAB, ESCAPE, ALT = "\ue013", "\ue015", "\ue004", "\ue00c", "\ue00a"
NOTIFICATIONS = """window.told = []; window.Notification = class {
  static permission = "granted"; constructor(title, more) { window.told.push(`${title}: ${more.body}`); } close() {} };
  document.hasFocus = () => false;"""
AXE = """const done = arguments[0]; axe.run(document, {resultTypes: ["violations"]}).then((found) =>
  done(found.violations.map((each) => `${each.id}: ${each.nodes.map((node) => node.html.slice(0, 120)).join(" | ")}`)));"""


@pytest.fixture
def server(provider: ProviderServer) -> Iterator[Server]:
    with running(provider, WOLO_MODE="ask") as server:
        yield server


def written(driver: Any) -> str:
    return str(driver.find_element("id", "text").get_attribute("value"))


def test_draft_survives_a_reload_and_other_sessions(server: Server, provider: ProviderServer) -> None:
    provider.script(text("Fine."))
    with browser() as driver:
        driver.get(server.address)
        wait(driver, lambda: all_of(driver, "#mode option"))
        say_in(driver, "text", "not yet sent")
        driver.refresh()
        wait(driver, lambda: written(driver) == "not yet sent")
        say_in(driver, "text", "\n")
        wait(driver, lambda: "Fine." in shown(driver))
        assert written(driver) == ""
        say_in(driver, "text", "the next")
        driver.find_element("id", "new").click()
        wait(driver, lambda: written(driver) == "")
        all_of(driver, "#sessions [data-id]")[0].click()
        wait(driver, lambda: written(driver) == "the next")
        driver.refresh()
        wait(driver, lambda: written(driver) == "the next" and "Fine." in shown(driver))


def test_arrow_recalls_earlier_prompts(server: Server, provider: ProviderServer) -> None:
    provider.script(text("One."), text("Two."))
    with browser() as driver:
        driver.get(server.address)
        wait(driver, lambda: all_of(driver, "#mode option"))
        for words, answer in (("the first", "One."), ("the second", "Two.")):
            say(driver, words)
            wait(driver, lambda answer=answer: answer in shown(driver) and not driver.find_element("id", "stop").is_displayed())
        driver.refresh()
        wait(driver, lambda: "Two." in shown(driver))
        seen = []
        for key in (UP, UP, UP, DOWN, DOWN):
            say_in(driver, "text", key)
            seen.append(written(driver))
        assert seen == ["the second", "the first", "the first", "the second", ""]
        say_in(driver, "text", "mine")
        say_in(driver, "text", UP)
        assert written(driver) == "mine"


def test_files_are_completed_before_and_in_a_session(server: Server, provider: ProviderServer) -> None:
    Path("src").mkdir()
    Path("src/main.py").write_text("print(1)\n")
    Path("two words.txt").touch()
    Path(".env").write_text("KEY=1\n")
    provider.script(text("Seen."))
    with browser() as driver:
        driver.get(server.address)
        wait(driver, lambda: all_of(driver, "#mode option"))
        say_in(driver, "text", "read @mai")
        wait(driver, lambda: [each.text for each in all_of(driver, "#completions b")] == ["src/main.py"])
        say_in(driver, "text", TAB)
        assert written(driver) == "read @src/main.py "
        say_in(driver, "text", "and @two")
        wait(driver, lambda: [each.text for each in all_of(driver, "#completions b")] == ["two words.txt"])
        say_in(driver, "text", TAB)
        assert written(driver) == 'read @src/main.py and @"two words.txt" '
        say_in(driver, "text", "\n")
        wait(driver, lambda: "Seen." in shown(driver))
        say_in(driver, "text", "@src/ma")
        wait(driver, lambda: driver.find_element("id", "completions").is_displayed())
        say_in(driver, "text", "\n")
        assert written(driver) == "@src/main.py "
        say_in(driver, "text", "@.en")
        wait(driver, lambda: not driver.find_element("id", "completions").is_displayed())
    assert "print(1)" in str(provider.requests[0].messages)


def test_waiting_approval_notifies_and_marks_the_title(server: Server, provider: ProviderServer) -> None:
    provider.script(call("write", {"path": "a.py", "content": "1\n"}), text("Done."))
    with browser() as driver:
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": NOTIFICATIONS})
        driver.get(server.address)
        wait(driver, lambda: all_of(driver, "#mode option"))
        say(driver, "create it")
        wait(driver, lambda: all_of(driver, "[data-decision=once]"))
        assert driver.title.startswith("! ")
        wait(driver, lambda: driver.execute_script("return told") == ["wolo waits for you: create it"])
        all_of(driver, "[data-decision=once]")[0].click()
        wait(driver, lambda: "Done." in shown(driver))
        wait(driver, lambda: len(driver.execute_script("return told")) == 2)
        assert not driver.title.startswith("! ")
        driver.refresh()
        wait(driver, lambda: "Done." in shown(driver))
        driver.execute_async_script("setTimeout(arguments[0], 300)")  # behind those that the page has set
        assert driver.execute_script("return told") == [], "what was there before is no news"


def test_changed_files_show_their_diffs(server: Server, provider: ProviderServer) -> None:
    provider.script(
        call("write", {"path": "a.py", "content": "1\n"}), call("write", {"path": "b.py", "content": "2\n"}), text("Done.")
    )
    with browser() as driver:
        session = server.new(mode="edit")
        driver.get(f"{server.address}#{session}")
        say(driver, "create them")
        button = wait(driver, lambda: all_of(driver, ".end .changes")[0])
        assert button.text == "2 files"
        button.click()
        files = wait(driver, lambda: all_of(driver, "dialog .file"))
        assert [each.find_element("css selector", "summary").text.strip("▾ ") for each in files] == ["a.py", "b.py"]
        assert [each.text for each in all_of(driver, "dialog .diff .add")] == ["+1", "+2"]


def test_sessions_are_in_folders(server: Server, provider: ProviderServer, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    for cwd in (".", str(tmp_path / "other")):
        provider.script(text("Fine."))
        provider.forget_prefix()
        id = server.new(cwd=cwd)
        server.prompt(id, f"hello from {Path(cwd).name or 'here'}")
        server.events(id).result()
    with browser() as driver:
        driver.get(server.address)
        folders = wait(driver, lambda: all_of(driver, "#sessions summary"))
        assert [each.text.strip("▾ ") for each in folders] == ["other", Path.cwd().name]
        folders[0].click()
        wait(driver, lambda: [each.text for each in all_of(driver, "#sessions details[open] .name")] == ["hello from here"])
        say_in(driver, "search", "other")
        wait(driver, lambda: [each.text for each in all_of(driver, "#sessions .name")] == ["hello from other"])


def emulate(driver: Any, scheme: str, width: int) -> None:
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def violations(driver: Any) -> list[str]:
    axe = require_clients() / "npm" / "node_modules" / "axe-core" / "axe.min.js"
    driver.execute_script(axe.read_text(encoding="utf-8"))
    found: list[str] = driver.execute_async_script(AXE)
    return found


SCREENS = pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 1200), ("light", 420), ("dark", 420)])


@SCREENS
def test_batches_and_plans_have_no_violations(provider: ProviderServer, tmp_path: Path, scheme: str, width: int) -> None:
    plan = "# Plan\n\n1. **Measure**\n2. Cache `a.py`\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    provider.script(call("present_plan", {"plan": plan}), text("Fine."))
    with running(provider, "--run", str(batch_run(tmp_path)), WOLO_MODE="plan") as server, browser(width=width) as driver:
        emulate(driver, scheme, width)
        driver.get(server.address)
        wait(driver, lambda: driver.execute_script("return !document.getElementById('runs').hidden"))
        driver.execute_script("document.getElementById('runs').click()")
        wait(driver, lambda: all_of(driver, "#dialog[open] td"))
        assert violations(driver) == []
        driver.execute_script("document.getElementById('dialog').close()")
        say(driver, "plan it")
        wait(driver, lambda: all_of(driver, ".ask .plan li"))
        assert violations(driver) == []
        all_of(driver, "[data-choice=revise]")[0].click()
        wait(driver, lambda: all_of(driver, ".ask textarea")[0].is_displayed())
        assert violations(driver) == []
        driver.execute_script("document.querySelector('[data-choice=edit]').click()")
        wait(driver, lambda: "Fine." in shown(driver))


HOLD_ANSWERS = """window.ask = window.fetch; window.held = [];
window.fetch = async (...all) => {
  const answer = await ask(...all);
  if (String(all[0]).includes("/v1/runs/")) await new Promise((release) => window.held.push(release));
  return answer; };"""


def test_batches_closed_during_a_refresh_stay_closed(provider: ProviderServer, tmp_path: Path) -> None:
    with running(provider, "--run", str(batch_run(tmp_path))) as server, browser() as driver:
        driver.get(server.address)
        wait(driver, lambda: driver.execute_script("return !document.getElementById('runs').hidden"))
        driver.execute_script("document.getElementById('runs').click()")
        wait(driver, lambda: all_of(driver, "#dialog[open] td"))
        driver.execute_script(HOLD_ANSWERS)
        wait(driver, lambda: driver.execute_script("return held.length"))
        driver.execute_script(
            "document.getElementById('dialog').close(); window.fetch = ask; held.forEach((release) => release())"
        )
        driver.execute_async_script("setTimeout(arguments[0], 100)")  # behind what the answer sets off
        assert not all_of(driver, "#dialog[open]")


@SCREENS
def test_no_state_of_the_page_has_violations(server: Server, provider: ProviderServer, scheme: str, width: int) -> None:
    question = {"question": "Which one?", "options": [{"label": "red", "description": "warm"}, {"label": "blue"}]}
    table = "## Heading\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- [x] done\n\n```py\nx = 1\n```\n\n[link](https://example.com)"
    provider.script(
        call("todo", {"items": [{"text": "measure", "status": "completed"}, {"text": "cut", "status": "completed"}]}),
        call("write", {"path": "a.py", "content": "1\n"}),
        call("shell", {"command": "touch b.txt"}),
        call("ask", {"questions": [question]}),
        text(table),
    )
    found: dict[str, list[str]] = {}
    with browser(width=width) as driver:
        emulate(driver, scheme, width)

        def look(state: str) -> None:
            found[state] = violations(driver)

        driver.get(server.address)
        wait(driver, lambda: all_of(driver, "#mode option"))
        look("welcome")
        say_in(driver, "text", "@a")
        say_in(driver, "text", "\ue003\ue003")
        say(driver, "do it")
        for subject in ("a.py", "touch"):
            wait(driver, lambda subject=subject: subject in driver.find_element("id", "asks").text)
            look(f"approval of {subject}")
            driver.execute_script("document.querySelector('[data-decision=once]').click()")
        wait(driver, lambda: "Which one?" in driver.find_element("id", "asks").text)
        look("question")
        driver.execute_script("document.querySelector('.ask input').click()")
        driver.execute_script("[...document.querySelectorAll('.ask button')].at(0).click()")
        wait(driver, lambda: all_of(driver, ".answer table"))
        wait(driver, lambda: all_of(driver, ".end .changes"))
        driver.execute_script("for (const each of document.querySelectorAll('#log details, #todo')) each.open = true")
        look("conversation")
        say_in(driver, "text", "/in")
        wait(driver, lambda: all_of(driver, "#completions li"))
        look("completions")
        say_in(driver, "text", ESCAPE + "\ue003" * 3)
        for name in ("diff", "undo", "rename", "export", "help"):
            driver.execute_script(f"document.getElementById('{name}').click()")
            wait(driver, lambda: driver.find_element("id", "dialog").is_displayed())
            look(name)
            driver.execute_script("document.getElementById('dialog').close()")
        if width < 600:
            for name in ("menu", "more"):
                driver.find_element("id", name).click()
                wait(driver, lambda name=name: name in (driver.find_element("tag name", "body").get_attribute("class") or ""))
                look(name)
                driver.execute_script("document.body.className = ''")
    assert {state: each for state, each in found.items() if each} == {}


def test_model_and_thinking_are_shown(provider: ProviderServer) -> None:
    with running(provider, WOLO_MODEL="zai/glm-4.6:high") as server, browser() as driver:
        session = server.new()
        driver.get(f"{server.address}#{session}")
        wait(driver, lambda: driver.find_element("id", "thinking").text.startswith("thinking "))
        assert driver.find_element("id", "model").get_attribute("value") == "zai/glm-4.6"


def answered(number: int) -> Message:
    text = TextPart(text=f"answer {number} with `code` and a [link](https://example.org)")
    return Message(role="assistant", parts=[text], finished=True, finish_reason="stop")


def test_two_thousand_messages_open_in_few_steps(server: Server) -> None:
    """One layout for each message would be ten times as many."""
    entries: list[AnyEntry] = []
    for number in range(1_000):
        entries += [said(f"prompt {number}"), MessageEntry(message=answered(number))]
    with Store.open(find_places().data) as store:
        session = store.create(Path.cwd(), model="custom/test-model", mode="ask", entries=entries)
    with browser() as driver:
        driver.execute_cdp_cmd("Performance.enable", {})
        driver.get(f"{server.address}#{session.id}")
        wait(driver, lambda: "answer 999" in shown(driver))
        metrics = {each["name"]: each["value"] for each in driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]}
        assert metrics["LayoutCount"] < 200
        assert driver.execute_script("return performance.getEntriesByType('resource').length") < 30
        assert 2_000 <= driver.execute_script("return document.querySelectorAll('#log *').length") < 8_000
