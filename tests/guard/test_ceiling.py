"""Rights of an agent: the stricter of its file and the conversation holds, and nothing is granted."""

from __future__ import annotations

from pathlib import Path

import pytest

from wolo.guard.intents import FetchIntent, Intent, ReadIntent, RunIntent, WriteIntent
from wolo.guard.judge import Judge
from wolo.guard.modes import MODES, Ceiling
from wolo.guard.rules import Decision, RuleTool, parse_rule


def intent(call: str) -> Intent:
    tool, _, text = call.partition(":")
    path = Path.cwd() / text
    made: dict[str, Intent] = {
        "shell": RunIntent(text, Path.cwd()),
        "write": WriteIntent(path, text, inside=True),
        "read": ReadIntent(path, text, inside=True),
        "fetch": FetchIntent(f"https://{text}"),
    }
    return made[tool]


def decided(mode: str, ceiling: Ceiling, call: str, *rules: str) -> str:
    judge = Judge(MODES[mode], [parse_rule(rule, "allow") for rule in rules], Path.cwd())
    return judge.under(ceiling).judge("x", [intent(call)]).decision


@pytest.mark.parametrize(
    ("session", "agent", "call", "decision"),
    [
        ("yolo", "ask", "shell:make", "ask"),
        ("yolo", "edit", "write:a.py", "allow"),
        ("yolo", "edit", "shell:make", "ask"),
        ("yolo", "plan", "write:a.py", "deny"),
        ("yolo", "auto", "shell:make", "ask"),
        ("plan", "edit", "write:a.py", "deny"),
        ("ask", "edit", "write:a.py", "ask"),
        ("yolo", "plan", "read:a.py", "allow"),
        ("yolo", "ask", "fetch:example.com", "ask"),
    ],
)
def test_the_stricter_mode_holds(session: str, agent: str, call: str, decision: str) -> None:
    assert decided(session, Ceiling(source="the agent x", mode=agent), call) == decision


@pytest.mark.parametrize(
    ("call", "decision"),
    [
        ("shell:git log -1", "allow"),
        ("shell:make", "deny"),
        ("shell:git log -1 && make", "deny"),
        ("shell:git push", "deny"),
        ("write:a.py", "ask"),
        ("fetch:example.com", "allow"),
        ("shell:echo hi", "deny"),
        ("shell:git log -1 && ls", "deny"),
        ("read:a.py", "deny"),
        ("read:docs/a.md", "allow"),
    ],
)
def test_rules_of_the_agent_limit_and_never_grant(call: str, decision: str) -> None:
    defaults: tuple[tuple[RuleTool, Decision], ...] = (("shell", "deny"), ("write", "ask"), ("read", "deny"))
    rules = (parse_rule("shell:git log *", "allow"), parse_rule("read:docs/**", "allow"))
    ceiling = Ceiling(source="the agent x", rules=rules, defaults=defaults)
    assert decided("yolo", ceiling, call) == decision
    if decision == "allow" and not call.startswith("read"):
        assert decided("plan" if call.startswith("shell") else "ask", ceiling, call.replace("log -1", "fetch")) != "allow"


def test_user_allow_rule_does_not_lift_limits() -> None:
    ceiling = Ceiling(source="the agent x", mode="ask")
    assert decided("auto", ceiling, "shell:make", "shell:make") == "ask"
    assert decided("auto", Ceiling(source="the agent x", asks_nobody=True), "fetch:example.com") == "deny"


def test_user_answer_lifts_questions_never_denials() -> None:
    for default, expected in (("ask", "allow"), ("deny", "deny")):
        judge = Judge(MODES["ask"], [], Path.cwd())
        judge.remember("shell", [intent("shell:make")], allowed=True, rule="shell:make")
        limited = judge.under(Ceiling(source="the agent x", defaults=(("shell", default),)))  # type: ignore[arg-type]  # a pair of words
        assert limited.judge("shell", [intent("shell:make")]).decision == expected


def test_agent_keeps_limits_of_its_parent() -> None:
    outer = Ceiling(source="the agent x", mode="plan")
    inner = Ceiling(source="the agent y", defaults=(("fetch", "ask"),))
    judge = Judge(MODES["yolo"], [], Path.cwd())
    for one, other in ((outer, inner), (inner, outer)):
        limited = judge.under(one).under(other)
        assert limited.judge("x", [intent("write:a.py")]).decision == "deny"
        assert limited.judge("x", [intent("fetch:example.com")]).decision == "ask"


def test_sandbox_does_not_lift_file_limits() -> None:
    judge = Judge(MODES["auto"], [], Path.cwd(), confine="always")
    limited = judge.under(Ceiling(source="the agent x", mode="auto", defaults=(("shell", "deny"),)))
    assert limited.judge("shell", [intent("shell:make")]).decision == "deny"


def test_changed_session_mode_holds_at_once_with_sandbox() -> None:
    judge = Judge(MODES["auto"], [], Path.cwd(), confine="always")
    limited = judge.under(Ceiling(source="the agent x", mode="auto"))
    verdict = limited.judge("shell", [intent("shell:make")])
    assert (verdict.decision, verdict.confined) == ("allow", True)
    asking = judge.under(Ceiling(source="the agent x", mode="ask")).judge("shell", [intent("shell:make")])
    assert (asking.decision, asking.confined, asking.source) == ("ask", True, "the agent x")
    judge.mode = MODES["plan"]
    assert limited.judge("shell", [intent("shell:make")]).decision == "deny"
