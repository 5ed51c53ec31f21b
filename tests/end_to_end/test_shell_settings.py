"""Environment variables that commands receive: the user's, but secrets and what makes programs load code."""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.fakes.command import Completed, run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from tests.guard.sandbox_setup import land

_ORDINARY = """
VIRTUAL_ENV CONDA_PREFIX JAVA_HOME MAVEN_OPTS GRADLE_USER_HOME ANDROID_HOME GOPATH GOROOT GOFLAGS GOPROXY CARGO_HOME RUSTUP_HOME
RUSTFLAGS NVM_DIR NODE_ENV NODE_PATH NPM_CONFIG_REGISTRY PYTHONPATH PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PIP_INDEX_URL
UV_CACHE_DIR DATABASE_URL REDIS_URL HTTP_PROXY HTTPS_PROXY NO_PROXY SSL_CERT_FILE REQUESTS_CA_BUNDLE CUDA_VISIBLE_DEVICES
CUDA_HOME CC CXX CFLAGS PKG_CONFIG_PATH CMAKE_PREFIX_PATH AWS_PROFILE AWS_REGION KUBECONFIG XDG_DATA_DIRS DJANGO_SETTINGS_MODULE
ENVIRONMENT GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL TOKENIZERS_PARALLELISM
"""
ORDINARY = _ORDINARY.split()
SECRETS = ("MY_API_KEY", "GITHUB_TOKEN", "DB_PASSWORD", "aws_secret_access_key")
LOADS_CODE = ("BASH_ENV", "LD_LIBRARY_PATH", "NODE_OPTIONS", "PERL5OPT", "PYTHONSTARTUP", "GIT_SSH_COMMAND", "BASH_FUNC_hello%%")
SOCKETS = ("SSH_AUTH_SOCK", "DOCKER_HOST", "DBUS_SESSION_BUS_ADDRESS")


def values(names: Sequence[str]) -> dict[str, str]:
    """A value for each that no program acts on."""
    own = {"BASH_FUNC_hello%%": "() {  echo hi\n}", "PERL5OPT": "-w", "NODE_OPTIONS": "--no-warnings"}
    return {name: own.get(name, f"/nowhere/{name.lower()}") for name in names}


def command_variables(provider: ProviderServer, *flags: str, cwd: Path | None = None, **environ: str) -> dict[str, str]:
    provider.script(call("shell", {"command": "env -0 | base64 -w0 > seen"}), text("ok"))
    done = run_wolo("-p", *flags, *provider.flags, "go", env=environ, cwd=cwd)
    assert done.exit_code == 0, done.stderr
    pairs = base64.b64decode(((cwd or Path.cwd()) / "seen").read_bytes()).split(b"\0")
    return dict(os.fsdecode(pair).split("=", 1) for pair in pairs if pair)


def write_settings(line: str) -> None:
    config = Path(os.environ["WOLO_HOME"]) / "config"
    config.mkdir(parents=True, exist_ok=True)
    (config / "config.toml").write_text(f"[shell]\n{line}\n")


def test_ordinary_variables_reach_commands_outside_the_sandbox(provider: ProviderServer) -> None:
    variables = values([*ORDINARY, *LOADS_CODE, *SOCKETS])
    seen = command_variables(provider, "--yolo", **variables)
    assert {name: seen.get(name) for name in variables} == variables


def test_ordinary_variables_reach_commands_in_the_sandbox(provider: ProviderServer) -> None:
    hidden = values([*LOADS_CODE, *SOCKETS, *SECRETS])
    with land() as folder:
        seen = command_variables(provider, "--mode", "auto", cwd=folder, **values(ORDINARY), **hidden)
    assert seen["WOLO_SANDBOX"]
    assert {name: seen.get(name) for name in ORDINARY} == values(ORDINARY)
    assert not hidden.keys() & seen.keys()


@pytest.mark.parametrize("name", SECRETS)
def test_secret_name_reaches_no_command(provider: ProviderServer, name: str) -> None:
    assert name not in command_variables(provider, "--yolo", **{name: "hunter2-hunter2"})


def test_secret_value_reaches_no_command(provider: ProviderServer) -> None:
    Path(".env").write_text("SERVICE_PASSWORD=hunter2-hunter2\n")
    variables = {
        "COPY": "hunter2-hunter2",
        "DATABASE_URL": "postgres://app:correct-horse9@db/app",
        "ACCOUNT": '{"key": "-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBgkq\\n-----END PRIVATE KEY-----"}',
        "PLAIN_URL": "postgres://postgres:postgres@localhost/app",
    }
    seen = command_variables(provider, "--yolo", **variables)
    assert [name for name in variables if name in seen] == ["PLAIN_URL"]


def test_values_of_any_form_start_a_command(provider: ProviderServer) -> None:
    variables = {"LINES_OF_IT": "one\ntwo=2\n", "NOT_UTF_8": "caf\udce9", "EMPTY": "", "LONG": "x" * 100_000}
    seen = command_variables(provider, "--yolo", **variables)
    assert {name: seen[name] for name in variables} == variables


def test_virtual_environment_stays_on_the_path(provider: ProviderServer) -> None:
    path = f"{Path.cwd()}/.venv/bin:node_modules/.bin:{os.environ['PATH']}"
    assert command_variables(provider, "--yolo", PATH=path)["PATH"] == path


@pytest.mark.parametrize(("inherit", "kept"), [("core", {"HOME", "TZ"}), ("none", set())])
def test_inheriting_less_leaves_the_named_ones(provider: ProviderServer, inherit: str, kept: set[str]) -> None:
    names = ("--set", f"shell.inherit={inherit}", "--set", 'shell.env=["GO*"]')
    seen = command_variables(provider, "--yolo", *names, GOPATH="/go", GO_TOKEN="hunter2-hunter2", TZ="UTC", JAVA_HOME="/java")
    assert {"HOME", "TZ", "GOPATH", "GO_TOKEN", "JAVA_HOME"} & seen.keys() == kept | {"GOPATH"}


def test_named_secret_passes_redacted(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "echo $GITHUB_TOKEN; echo ${#GITHUB_TOKEN}"}), text("ok"))
    flags = ("--set", 'shell.env=["GITHUB_TOKEN"]')
    run_wolo("-p", "--yolo", *flags, *provider.flags, "go", env={"GITHUB_TOKEN": "hunter2-hunter2"})
    (result,) = provider.requests[1].results
    assert result.startswith("SECRET_GITHUB_TOKEN_")
    assert "\n15\n" in result


def test_named_loader_path_acts_in_the_sandbox_only(provider: ProviderServer) -> None:
    with land() as folder:
        (folder / "libc.so.6").write_text("no library: a program that loads it ends at once")
        variables = {"LD_LIBRARY_PATH": str(folder)}
        flags = ("-p", "--mode", "auto", "--set", 'shell.env=["LD_LIBRARY_PATH"]', *provider.flags)
        provider.script(call("shell", {"command": "echo it ran"}), text("ok"))
        run_wolo(*flags, "go", env=variables, cwd=folder)
        (result,) = provider.requests[1].results
    assert "it ran" not in result
    assert "invalid ELF header" in result or "file too short" in result
    assert "bash: error while loading shared libraries" in result or "env: error while loading" not in result


def test_hidden_variables_are_hidden_by_name_and_pattern(provider: ProviderServer) -> None:
    flags = ("--set", 'shell.hide=["JAVA_*", "NODE_ENV"]', "--set", 'shell.env=["NODE_ENV"]')
    seen = command_variables(provider, "--yolo", *flags, JAVA_HOME="/java", NODE_ENV="test", OTHER="1")
    assert {"JAVA_HOME", "NODE_ENV", "OTHER"} & seen.keys() == {"OTHER"}


FAILING = ["python3 -c 'import os; os.environ[\"GITHUB_TOKEN\"]'", 'echo "${GITHUB_TOKEN:?is not set}"', "printenv GITHUB_TOKEN"]


@pytest.mark.parametrize("command", FAILING)
def test_failed_command_names_the_setting_that_passes_it(provider: ProviderServer, command: str) -> None:
    provider.script(call("shell", {"command": command}), text("ok"))
    run_wolo("-p", "--yolo", *provider.flags, "go", env={"GITHUB_TOKEN": "hunter2-hunter2"})
    (result,) = provider.requests[1].results
    note = (
        '[GITHUB_TOKEN is set, but hidden from commands (secret name): the user\'s setting shell.env = ["GITHUB_TOKEN"] passes it'
    )
    assert note in result
    assert "; SECRET_GITHUB_TOKEN_" in result
    assert "hunter2" not in result


def test_failed_check_names_the_setting_too(provider: ProviderServer) -> None:
    check = 'test ! -e new || echo "${GITHUB_TOKEN:?is not set}"'
    provider.script(call("write", {"path": "new", "content": "x"}), *[text("Done.")] * 4)
    run_wolo("-p", "--mode", "edit", "--verify", check, *provider.flags, "go", env={"GITHUB_TOKEN": "hunter2-hunter2"})
    assert "GITHUB_TOKEN is set, but hidden from commands" in str(provider.requests[2].messages[-1]["content"])


def test_failed_job_names_the_setting_too(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "printenv GITHUB_TOKEN", "background": True}), text("ok"))
    run_wolo("-p", "--yolo", *provider.flags, "go", env={"GITHUB_TOKEN": "hunter2-hunter2"})
    assert "[GITHUB_TOKEN is set, but hidden from commands" in provider.requests[1].results[0]


@pytest.mark.parametrize("command", ["true GITHUB_TOKEN", "cat GITHUB_TOKEN", "echo MY_GITHUB_TOKENS; false"])
def test_other_commands_explain_nothing(provider: ProviderServer, command: str) -> None:
    provider.script(call("shell", {"command": command}), text("ok"))
    run_wolo("-p", "--yolo", *provider.flags, "go", env={"GITHUB_TOKEN": "hunter2-hunter2"})
    assert "shell.env" not in provider.requests[1].results[0]


def doctor(**environ: str) -> Completed:
    return run_wolo("doctor", "--json", env=environ)


def test_doctor_lists_hidden_variables_with_reasons() -> None:
    variables = values(["MY_API_KEY", "LD_PRELOAD", "SSH_AUTH_SOCK", "CDPATH", "GOPATH"]) | {
        "COPY": "postgres://a:correct-horse9@db/a"
    }
    listed = doctor(**variables).json["environment"]["hidden"]
    assert [each for each in listed if each["name"] in variables] == [
        {"name": "CDPATH", "reason": "changes the shell"},
        {"name": "COPY", "reason": "secret value"},
        {"name": "LD_PRELOAD", "reason": "loads code"},
        {"name": "MY_API_KEY", "reason": "secret name"},
        {"name": "SSH_AUTH_SOCK", "reason": "agent socket"},
    ]
    lines = run_wolo("doctor", env=variables).stdout
    assert "hidden    in the sandbox (loads code): " in lines
    assert "correct-horse9" not in lines


def test_doctor_warns_of_names_that_a_rule_hides() -> None:
    write_settings('env = ["GITHUB_TOKEN", "GOPATH"]')
    report = doctor(GITHUB_TOKEN="hunter2-hunter2").json
    assert report["environment"]["warnings"] == [
        "shell.env passes GITHUB_TOKEN to every command, which is hidden otherwise (secret name)."
    ]
    assert not any(each["name"] == "GITHUB_TOKEN" for each in report["environment"]["hidden"])


def test_doctor_warns_of_patterns_without_effect() -> None:
    write_settings('env = ["CARGO_*"]')
    assert "the pattern CARGO_*, which has no effect" in doctor().json["environment"]["warnings"][0]
    write_settings('env = ["CARGO_*"]\ninherit = "core"')
    assert doctor().json["environment"]["warnings"] == []


@pytest.mark.parametrize("pattern", ["*_TOKEN", "LD_*", "GIT_*"])
def test_pattern_of_hidden_names_is_refused(provider: ProviderServer, pattern: str) -> None:
    done = run_wolo("-p", "--set", f'shell.env=["{pattern}"]', *provider.flags, "go")
    assert done.exit_code == 2
    assert f"shell.env: {pattern} would pass variables that are hidden by rule" in done.stderr
    assert provider.requests == []


@pytest.mark.parametrize("value", ['["A=1"]', '["a b"]', '[""]', "7"])
@pytest.mark.parametrize("key", ["env", "hide"])
def test_invalid_name_is_refused_at_once(provider: ProviderServer, key: str, value: str) -> None:
    done = run_wolo("-p", "--set", f"shell.{key}={value}", *provider.flags, "go")
    assert (done.exit_code, provider.requests) == (2, [])
    assert f"shell.{key}" in done.stderr


def test_trusted_project_only_hides_more(provider: ProviderServer) -> None:
    Path(".wolo").mkdir()
    settings = '[shell]\ninherit = "all"\nenv = ["GITHUB_TOKEN", "LD_PRELOAD"]\nhide = ["JAVA_HOME"]\nsnapshot = true\n'
    Path(".wolo/config.toml").write_text(settings)
    write_settings('hide = ["NODE_ENV"]')
    variables = {"GITHUB_TOKEN": "hunter2-hunter2", "JAVA_HOME": "/java", "NODE_ENV": "test", "GOPATH": "/go"}
    seen = command_variables(provider, "--trust", "--yolo", **variables)
    assert variables.keys() & seen.keys() == {"GOPATH"}
