"""The web page in a real Chromium."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.components import miss, require
from tests.end_to_end.test_limits import limit
from tests.fakes.provider_server import KEY, ProviderServer
from tests.fakes.replies import Hold, Reply, call, text
from tests.frontends.server.running_server import Server, running
from wolo.places import find_places

BIDI = "\u202e"
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
HOSTILE = "<img src=x onerror=document.title='owned'> [x](javascript:alert(1)) `</code><script>document.title='owned'</script>`"


RUNS = "a".join("`" * length for length in range(1, 190))
MARKS = r"""- [ ] a
- [x] \(x\,y\) and `b`"""
DRAW = """const [texts, done] = arguments;
import("/page/markdown.js").then(({ add, markdown }) =>
  done(texts.map((text) => add(document.createElement("div"), markdown(text)).innerHTML)));"""
"""Draws texts that have cost quadratic time, or too many arguments."""


@contextmanager
def browser(*, width: int = 1200) -> Iterator[Any]:
    try:
        from selenium import webdriver
    except ModuleNotFoundError:
        miss("selenium (install the test group)")
    options = webdriver.ChromeOptions()
    options.binary_location = require("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", f"--window-size={width},900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(require("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture
def server(provider: ProviderServer) -> Iterator[Server]:
    with running(provider, "--yolo", WOLO_MODE="ask") as server:
        yield server


def wait(driver: Any, condition: Callable[[], Any]) -> Any:
    from selenium.common.exceptions import StaleElementReferenceException
    from selenium.webdriver.support.ui import WebDriverWait

    waiting = WebDriverWait(driver, 60, poll_frequency=0.05, ignored_exceptions=[StaleElementReferenceException, IndexError])
    return waiting.until(lambda _: condition())


def all_of(driver: Any, selector: str) -> list[Any]:
    return list(driver.find_elements("css selector", selector))


def shown(driver: Any) -> str:
    return str(driver.find_element("id", "log").text)


def say(driver: Any, words: str) -> None:
    driver.find_element("id", "text").send_keys(f"{words}\n")


def say_in(driver: Any, field: str, keys: str) -> None:
    driver.find_element("id", field).send_keys(keys)


def held(words: str, hold: Hold) -> Reply:
    reply = text(words)
    return Reply(pieces=(*reply.pieces[:-3], hold, *reply.pieces[-3:]))


def test_task_with_approval_and_diff_in_two_tabs(server: Server, provider: ProviderServer) -> None:
    provider.script(call("write", {"path": "a.py", "content": "print(1)\n"}), text("**Done** with `a.py`."))
    with browser() as driver:
        driver.get(server.address)
        wait(driver, lambda: "What shall we do?" in shown(driver))
        say(driver, "create it")
        button = wait(driver, lambda: all_of(driver, "[data-decision=once]")[0])
        assert "+print(1)" in driver.find_element("id", "asks").text
        first, session = driver.current_window_handle, driver.current_url.partition("#")[2]
        driver.switch_to.new_window("tab")
        driver.get(f"{server.address}#{session}")
        wait(driver, lambda: all_of(driver, "[data-decision=once]"))
        driver.switch_to.window(first)
        button.click()
        pages = []
        for handle in driver.window_handles:
            driver.switch_to.window(handle)
            wait(driver, lambda: "tokens" in shown(driver))
            assert not all_of(driver, ".ask")
            assert [each.text for each in all_of(driver, ".answer strong")] == ["Done"]
            assert [each.text for each in all_of(driver, ".diff .add")] == ["+print(1)"]
            assert all_of(driver, ".end .note")[0].text == "1 file"
            pages.append(shown(driver))
        assert pages[0].split(" · ")[0] == pages[1].split(" · ")[0]
        driver.refresh()
        wait(driver, lambda: "Done" in shown(driver) and "create it" in shown(driver))
        assert not [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]


def test_plan_is_drawn_edited_and_started(server: Server, provider: ProviderServer) -> None:
    provider.script(call("present_plan", {"plan": f"1. **Measure**\n2. Cache\n\n{HOSTILE}"}), text("Fine."))
    with browser() as driver:
        session = server.new(mode="plan")
        driver.get(f"{server.address}#{session}")
        wait(driver, lambda: all_of(driver, "#mode option"))
        say(driver, "go")
        plan = wait(driver, lambda: all_of(driver, ".ask .plan")[0])
        assert [each.text for each in all_of(driver, ".ask .plan li")] == ["Measure", "Cache"]
        assert driver.title != "owned"
        all_of(driver, "[data-choice=revise]")[0].click()
        field = all_of(driver, ".ask textarea")[0]
        assert (plan.is_displayed(), field.is_displayed()) == (False, True)
        field.clear()
        field.send_keys("1. Only this")
        all_of(driver, "[data-choice=revise]")[0].click()
        wait(driver, lambda: [each.text for each in all_of(driver, ".ask .plan li")] == ["Only this"])
        all_of(driver, "[data-choice=edit]")[0].click()
        wait(driver, lambda: "Fine." in shown(driver))
        assert "Mode edit: " in shown(driver)
        assert not all_of(driver, ".ask")
        wait(driver, lambda: driver.find_element("id", "mode").get_attribute("value") == "edit")
        assert not [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
    assert "edited" in provider.requests[1].results[0]


def test_the_token_leaves_the_address_at_once(server: Server) -> None:
    with browser() as driver:
        driver.get(server.address)
        wait(driver, lambda: all_of(driver, "#mode option"))
        assert driver.current_url == f"{server.origin}/page/index.html"
        assert server.token not in driver.execute_script(
            "return JSON.stringify([history.state, document.cookie, document.referrer])"
        )
        first = driver.find_element("css selector", "head script, head link[rel=stylesheet]")
        assert first.get_attribute("src") == f"{server.origin}/page/token.js"
        driver.refresh()
        wait(driver, lambda: all_of(driver, "#mode option"))
        driver.switch_to.new_window("tab")
        driver.get(f"{server.origin}/page/index.html")
        wait(driver, lambda: "This tab has no token" in driver.find_element("id", "banner").text)


def test_reloading_in_mid_stream_loses_nothing(server: Server, provider: ProviderServer) -> None:
    hold = Hold()
    provider.script(held("one two three four five six", hold))
    with browser(width=400) as driver:
        driver.get(server.address)
        wait(driver, lambda: "What shall we do?" in shown(driver))
        say(driver, "count")
        hold.wait_until_reached()
        before = wait(driver, lambda: all_of(driver, ".answer")[0].text)
        driver.refresh()
        wait(driver, lambda: all_of(driver, ".answer")[0].text.startswith(before))
        hold.release()
        wait(driver, lambda: all_of(driver, ".answer")[0].text == "one two three four five six" and "tokens" in shown(driver))
        assert len(all_of(driver, ".answer")) == len(all_of(driver, ".prompt")) == 1
        assert driver.execute_script("return document.documentElement.scrollWidth <= innerWidth")


def test_hostile_text_stays_text(server: Server, provider: ProviderServer) -> None:
    broken = call("edit", {"path": "a", "edits": [5, {"old": 5, "new": {"toString": None}}]})
    provider.script(broken, call("shell", {"command": f"echo {HOSTILE!r}"}), text(HOSTILE))
    with browser() as driver:
        driver.get(server.address)
        wait(driver, lambda: "What shall we do?" in shown(driver))
        say(driver, HOSTILE)
        wait(driver, lambda: all_of(driver, "[data-decision=no]")[0]).click()
        wait(driver, lambda: "tokens" in shown(driver))
        wait(driver, lambda: any("onerror" in each.text for each in all_of(driver, "#sessions .name")))
        assert not all_of(driver, "main img, main script, #side img, a[href^=javascript]")
        assert "owned" not in driver.title or "<img" in driver.title
        wait(driver, lambda: "<img src=x onerror" in shown(driver))
        drawn = driver.execute_async_script(
            DRAW, ["# a" + " " * 900_000 + "b", "a|b\n" + " " * 900_000 + "x", RUNS, "|-|\n|-|\n" + "|" * 200_000, MARKS]
        )
        assert [each[:4] for each in drawn[:4]] == ["<h2>", "<p>a", "<p>`", "<div"]
        assert drawn[4] == r"<ul><li>☐ a</li><li>☑ <code>\(x\,y\)</code> and <code>b</code></li></ul>"


def test_session_is_set_up_and_used_from_page(server: Server, provider: ProviderServer, tmp_path: Path) -> None:
    image, other = tmp_path / "dot.png", tmp_path / "other"
    image.write_bytes(PNG)
    other.mkdir()
    items = [{"text": "look", "status": "completed"}, {"text": "mend", "status": "in_progress"}]
    todo = call("todo", {"items": items})
    provider.script(todo, call("write", {"path": "../out.txt", "content": f"a{BIDI}b\x1b[31mred\n"}), text("Seen."))
    with browser(width=400) as driver:
        driver.get(server.address)
        wait(driver, lambda: all_of(driver, "#mode option"))
        say_in(driver, "folder", "\ue009a\ue000")
        say_in(driver, "folder", f"{other}\n")
        wait(driver, lambda: driver.find_element("id", "folder").get_attribute("value") == str(other))
        driver.execute_script("mode.value = 'edit'; mode.dispatchEvent(new Event('change'))")
        say_in(driver, "file", str(image))
        wait(driver, lambda: all_of(driver, ".thumb img"))
        say(driver, "look at this")
        panel = wait(driver, lambda: all_of(driver, ".ask")[0])
        assert f"Outside the workspace: {tmp_path / 'out.txt'}" in panel.text
        assert "+a⟨U+202E⟩b⟨U+001B⟩[31mred" in panel.text
        wait(driver, lambda: driver.find_element("css selector", "#todo summary").text == "1/2 mend")
        driver.execute_script("mode.value = 'yolo'; mode.dispatchEvent(new Event('change'))")
        driver.find_element("css selector", "#dialog[open] header button").click()
        wait(driver, lambda: driver.find_element("id", "mode").get_attribute("value") == "edit")
        driver.execute_script("mode.value = 'plan'; mode.dispatchEvent(new Event('change'))")
        all_of(driver, "[data-decision=no]")[0].click()
        wait(driver, lambda: "tokens" in shown(driver))
        assert "image_url" in str(provider.requests[0].messages[-1]["content"])
        assert "completed" not in shown(driver)
        (row,) = server.get("/v1/sessions")
        assert (row["cwd"], row["mode"]) == (str(other), "plan")
        driver.execute_script("rename.click()")
        driver.switch_to.active_element.send_keys("Renamed\n")
        wait(driver, lambda: driver.find_element("id", "title").text == "Renamed")
        say_in(driver, "text", "/ini")
        wait(driver, lambda: [each.text.split()[0] for each in all_of(driver, "#completions li")] == ["/init"])
        say_in(driver, "text", "\ue007")
        assert driver.find_element("id", "text").get_attribute("value") == "/init "
        driver.back()
        wait(driver, lambda: "What shall we do?" in shown(driver))
        server.stop()
        driver.find_element("id", "text").clear()
        say(driver, "anyone?")
        wait(driver, lambda: "cannot be reached" in shown(driver))
        assert driver.find_element("id", "text").get_attribute("value") == "anyone?"


def test_an_undo_asks_and_can_be_redone(server: Server, provider: ProviderServer) -> None:
    provider.script(call("write", {"path": "a.py", "content": "print(1)\n"}), text("Done."), text("More."))
    with browser() as driver:
        driver.get(server.address)
        wait(driver, lambda: "What shall we do?" in shown(driver))
        say(driver, "create it")
        wait(driver, lambda: all_of(driver, "[data-decision=once]")[0]).click()
        wait(driver, lambda: "tokens" in shown(driver))
        for said, exists in (("Undone: a.py", False), ("Redone: a.py", True), ("Undone: a.py", False)):
            driver.execute_script("(document.querySelector('.redo') ?? undo).click()")
            button = wait(driver, lambda: all_of(driver, "#dialog[open] #revert")[0])
            assert "a.py" in driver.find_element("id", "dialog").text
            assert Path("a.py").exists() is not exists
            button.click()
            wait(driver, lambda said=said: said in shown(driver))
            assert Path("a.py").exists() is exists
        provider.forget_prefix()
        say(driver, "")
        wait(driver, lambda: "More." in shown(driver))
        assert not all_of(driver, ".redo")


@pytest.mark.parametrize("other", [False, True], ids=["asked now", "another model"])
def test_limit_wait_is_ended_on_the_page(provider: ProviderServer, *, other: bool) -> None:
    from selenium.webdriver.support.ui import Select

    find_places().config.mkdir(parents=True)
    (find_places().config / "config.toml").write_text(
        f'[retry]\nresume_windows = 1\n[providers.acme]\nbase_url = "{provider.base_url}"\nkey_env = ["ACME_KEY"]\n'
        'models = [{id = "large"}, {id = "small"}]\n'
    )
    provider.linted = False
    provider.script(lambda _: limit(7180), text("Here again."))
    with running(provider, ACME_KEY=KEY) as server, browser() as driver:
        driver.get(server.address)
        wait(driver, lambda: all_of(driver, "#mode option"))
        say(driver, "hello")
        button = wait(driver, lambda: all_of(driver, ".note button")[0])
        assert "It goes on by itself in 120 min" in shown(driver)
        driver.refresh()
        button = wait(driver, lambda: all_of(driver, ".note button")[0])
        if other:
            wait(driver, lambda: driver.find_element("id", "model").is_enabled() and all_of(driver, "option[value='acme/small']"))
            Select(driver.find_element("id", "model")).select_by_value("acme/small")
        else:
            button.click()
        wait(driver, lambda: "Here again." in shown(driver))
        assert not all_of(driver, ".note button")
        assert not [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
    assert provider.requests[1].json["model"] == ("small" if other else provider.requests[0].json["model"])


def test_a_page_of_another_site_gets_nothing(server: Server) -> None:
    with browser() as driver:
        driver.get(server.origin + "/?token=wrong")
        assert "token is missing or wrong" in driver.page_source
        driver.get("data:text/html,<p>another site</p>")
        headers = "{headers: {Authorization: arguments[1]}}"
        script = f"const done = arguments[2]; fetch(arguments[0], {headers}).then(r => done(r.status), () => done(0))"
        status = driver.execute_async_script(script, f"{server.origin}/v1/sessions", f"Bearer {server.token}")
        assert status in (0, 403)
