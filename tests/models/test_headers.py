"""Headers that identify wolo."""

from __future__ import annotations

import os

import pytest

import wolo
from wolo.models.headers import HeaderSettings, introduce, may_be_set


def sent(settings: HeaderSettings | None = None, project: str = "calculator") -> dict[str, str]:
    return introduce(settings or HeaderSettings(), project=project, session_id="session_123", prompt_id="msg_1")


def test_opencode_headers_name_wolo_by_default() -> None:
    names = os.uname()
    assert sent() == {
        "user-agent": f"opencode/1.0.0 ({names.sysname} {names.machine}) wolo/{wolo.__version__}",
        "x-opencode-project": "calculator",
        "x-opencode-session": "session_123",
        "x-opencode-request": "msg_1",
        "x-opencode-client": "cli",
    }


def test_the_session_profile_helps_caches_and_nothing_else() -> None:
    assert sent(HeaderSettings(profile="session")) == {
        "user-agent": f"wolo/{wolo.__version__}",
        "x-session-id": "session_123",
        "x-session-affinity": "session_123",
    }


def test_none_and_custom_name_wolo_only() -> None:
    assert sent(HeaderSettings(profile="none")) == {"user-agent": f"wolo/{wolo.__version__}"}
    assert sent(HeaderSettings(profile="custom", extra={"X-Team": "blue", "User-Agent": "mine/1"})) == {
        "user-agent": "mine/1",
        "x-team": "blue",
    }


@pytest.mark.parametrize(
    ("project", "value"),
    [
        ("Rechner größer", "Rechner gr%C3%B6%C3%9Fer"),
        ("a\r\nx-evil: 1", "a%0D%0Ax-evil: 1"),
        ("計算", "%E8%A8%88%E7%AE%97"),
        ("\ud800", "?"),
    ],
)
def test_values_are_ascii_without_line_breaks(project: str, value: str) -> None:
    assert sent(project=project)["x-opencode-project"] == value


def test_an_empty_value_is_left_out() -> None:
    assert "x-opencode-project" not in sent(project="")


@pytest.mark.parametrize("name", ["x y", "", "x:y", "Content-Length", "Host", "x\r\ny"])
def test_header_breaking_the_request_is_refused(name: str) -> None:
    assert not may_be_set(name)
