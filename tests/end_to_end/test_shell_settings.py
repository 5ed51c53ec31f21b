"""Environment variables that commands receive, as set by the user."""

from __future__ import annotations

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text


def test_named_variables_pass_and_nothing_else_does(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CARGO_HOME", "GOPATH", "GOPRIVATE_TOKEN", "OTHER", "BASH_ENV"):
        monkeypatch.setenv(name, f"value of {name}")
    provider.script(call("shell", {"command": "env | grep -c ^value; env | grep 'value of' | sort"}), text("ok"))
    done = run_wolo("-p", "--yolo", "--set", 'shell.env=["GO*", "CARGO_HOME"]', *provider.flags, "go")
    assert done.exit_code == 0
    (result,) = provider.requests[1].results
    assert result == "0\nCARGO_HOME=value of CARGO_HOME\nGOPATH=value of GOPATH\n[exit 0]\n"


@pytest.mark.parametrize("name", ["MY_API_KEY", "GIT_DIR", "LD_PRELOAD", "npm_token"])
def test_name_given_to_no_command_is_refused(provider: ProviderServer, name: str) -> None:
    done = run_wolo("-p", "--set", f'shell.env=["{name}"]', *provider.flags, "go")
    assert done.exit_code == 2
    assert f"shell.env: {name} looks like a secret or a shell hook; commands never get those." in done.stderr
    assert provider.requests == []


@pytest.mark.parametrize("value", ['["A=1"]', '["a b"]', '[""]', "7"])
def test_invalid_name_is_refused_at_once(provider: ProviderServer, value: str) -> None:
    done = run_wolo("-p", "--set", f"shell.env={value}", *provider.flags, "go")
    assert (done.exit_code, provider.requests) == (2, [])
    assert "shell.env" in done.stderr
