"""Permission rules in the settings of other agents of a project: what they deny and ask about holds, what they allow does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from wolo.config import consents
from wolo.config.layers import load
from wolo.foreign_places import PERMISSION_RULES, paths_of
from wolo.places import find_places
from wolo.workspace.root import find_site

FORMS: dict[str, Any] = {
    ".claude/settings.json": {"permissions": {"deny": ["Bash(rm:*)"], "allow": ["Bash"]}},
    ".claude/settings.local.json": {"permissions": {"deny": ["Bash(rm:*)"]}},
    ".opencode/opencode.json": {"permission": {"bash": {"rm *": "deny", "ls *": "allow"}}},
    "opencode.json": {"permission": {"bash": {"rm *": "deny"}, "edit": "allow"}},
    ".gemini/settings.json": {"tools": {"exclude": ["run_shell_command(rm)"], "allowed": ["run_shell_command(ls)"]}},
    ".qwen/settings.json": {"permissions": {"deny": ["Bash(rm *)"]}},
    ".cursor/cli.json": {"permissions": {"allow": ["Shell(ls)"], "deny": ["Shell(rm)"]}},
    ".amp/settings.json": {
        "amp.permissions": [
            {"tool": "Bash", "matches": {"cmd": "rm *"}, "action": "reject"},
            {"tool": "*", "action": "allow"},
        ]
    },
    ".factory/settings.json": {"commandDenylist": ["rm"], "commandAllowlist": ["ls"]},
}


def put(place: str, form: object) -> None:
    Path(place).parent.mkdir(parents=True, exist_ok=True)
    Path(place).write_text(form if isinstance(form, str) else json.dumps(form))
    consents.save_trust(find_places(), Path.cwd(), "trusted")


def test_every_place_with_rules_is_tried() -> None:
    assert {*paths_of(PERMISSION_RULES)} == {*FORMS, "opencode.jsonc", ".opencode/opencode.jsonc"}


@pytest.mark.parametrize("place", FORMS)
def test_denial_of_a_trusted_project_holds(place: str) -> None:
    put(place, FORMS[place])
    config = load(find_site())
    assert [(f"{rule.decision} {rule}", rule.source) for rule in config.rules] == [("deny shell:rm *", place)]
    assert list(config.notices) == []


def test_denied_command_does_not_run(provider: ProviderServer) -> None:
    Path("a").write_text("here")
    put("opencode.jsonc", '{"permission": {"bash": {"rm *": "deny",}} /* ours */}')
    provider.script(call("shell", {"command": "rm a"}), text("Done."))
    done = run_wolo("--json", *provider.flags, "--mode", "yolo", "go")
    assert (done.exit_code, Path("a").exists()) == (4, True)
    assert "denied by the rule shell:rm *" in done.json["permission_denials"][0]["reason"]


def test_file_with_rules_alone_needs_trust() -> None:
    put(".cursor/cli.json", FORMS[".cursor/cli.json"])
    consents.forget(find_places(), Path.cwd())
    config = load(find_site())
    assert (list(config.rules), "these are not used: .cursor/cli.json" in "".join(config.notices)) == ([], True)


def test_question_about_every_command_sets_the_mode() -> None:
    put("opencode.json", {"permission": {"bash": "ask"}})
    config = load(find_site())
    assert (config.settings.mode, config.sources["mode"]) == ("ask", str(Path("opencode.json").absolute()))


@pytest.mark.parametrize(
    ("place", "form", "notice"),
    [
        (".amp/settings.json", {"amp.permissions": [3]}, "amp.permissions 3: it is no table."),
        (".amp/settings.json", {"amp.permissions": [{"tool": "oracle", "action": "reject"}]}, "wolo has no such tool"),
        (".amp/settings.json", {"amp.permissions": [{"tool": 3, "action": ["reject"]}, {"action": "ask"}]}, "NOT asked about"),
        ("opencode.json", {"permission": {"bash": "never"}}, "'never' is no decision of wolo"),
        (".gemini/settings.json", "{broken", "its permission rules do NOT hold"),
    ],
)
def test_rule_without_equivalent_is_named(place: str, form: object, notice: str) -> None:
    put(place, form)
    assert [place in each and notice in each for each in load(find_site()).notices] == [True]
