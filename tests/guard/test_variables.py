"""Variables that make a program load code: each family is tried on a command in the sandbox and on what builds it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from tests.guard.sandbox_setup import land
from wolo.config.keys import in_environment
from wolo.guard.secrets.redactor import Secrets
from wolo.messages.secret_values import SECRET_WORDS, Secret
from wolo.workspace.processes.command_environment import CommandVariables, rule_against

LIBRARY = '#include <unistd.h>\n__attribute__((constructor)) void on_load(void) { write(2, "LOADED\\n", 7); }\n'
FAMILIES = {
    "BASH_ENV": ({"BASH_ENV": "{here}/code.sh"}, "true"),
    "exported function": ({"BASH_FUNC_ls%%": "() {{ echo LOADED\n}}"}, "ls"),
    "exported builtin": ({"BASH_FUNC_cd%%": "() {{ echo LOADED\n}}"}, "cd ."),
    "shell options": ({"SHELLOPTS": "xtrace", "PS4": "$(echo LOADED)"}, "true"),
    "LD_PRELOAD": ({"LD_PRELOAD": "{here}/library.so"}, "/bin/true"),
    "LD_AUDIT": ({"LD_AUDIT": "{here}/library.so"}, "/bin/true"),
    "PYTHONSTARTUP": ({"PYTHONSTARTUP": "{here}/startup.py"}, "echo 1 | python3 -i"),
    "PYTHONBREAKPOINT": ({"PYTHONBREAKPOINT": "code_of.run", "PYTHONPATH": "{here}"}, "python3 -c 'breakpoint()'"),
    "NODE_OPTIONS": ({"NODE_OPTIONS": "--require={here}/code.js"}, "node -e 0"),
    "PERL5OPT": ({"PERL5OPT": "-I{here} -MCodeOf"}, "perl -e 0"),
    "GIT_EXTERNAL_DIFF": (
        {"GIT_EXTERNAL_DIFF": "{here}/code.sh"},
        "git init -q r; cd r; echo a >f; git add f; echo b >f; git diff",
    ),
    "GIT_CONFIG": (
        {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "alias.go", "GIT_CONFIG_VALUE_0": "!echo LOADED"},
        "git go; git config alias.go",
    ),
    "GIT_SSH_COMMAND": ({"GIT_SSH_COMMAND": "{here}/code.sh"}, "git ls-remote ssh://nowhere/x"),
    "LESSOPEN": ({"LESSOPEN": "|{here}/code.sh %s"}, "less {here}/plain.txt"),
    "MAKEFILES": ({"MAKEFILES": "{here}/code.mk"}, "make -f /dev/null"),
}


def build(folder: Path) -> None:
    """One piece of code for each family, which prints LOADED."""
    (folder / "library.c").write_text(LIBRARY)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", folder / "library.so", folder / "library.c"], check=True)
    (folder / "code.sh").write_text("#!/bin/sh\necho LOADED >&2\n")
    (folder / "code.sh").chmod(0o755)
    (folder / "code.js").write_text("process.stderr.write('LOADED\\n')\n")
    (folder / "code.mk").write_text("$(info LOADED)\n")
    for name in ("startup.py", "code_of.py"):
        (folder / name).write_text("def run(): print('LOADED')\nprint('LOADED')\n")
    (folder / "plain.txt").write_text("plain\n")
    (folder / "CodeOf.pm").write_text("print STDERR 'LOADED'; 1;\n")


@pytest.mark.sweep(every=4)
@pytest.mark.skipif(shutil.which("gcc") is None, reason="builds a library")
@pytest.mark.parametrize("family", FAMILIES)
def test_variable_loads_no_code_in_the_sandbox(family: str, provider: ProviderServer) -> None:
    with land() as folder:
        build(folder)
        variables, command = FAMILIES[family]
        env = {name: value.format(here=folder) for name, value in variables.items()}
        provider.script(call("shell", {"command": command.format(here=folder)}), text("ok"))
        done = run_wolo("-p", "--mode", "auto", *provider.flags, "go", env=env, cwd=folder, forked=False)
    assert "[exit " in (result := provider.requests[1].results[0])
    assert "LOADED" not in result.replace("echo LOADED", "")
    assert done.exit_code == 0


def test_safe_command_outside_loads_no_code(provider: ProviderServer) -> None:
    build(Path.cwd())
    env = {"LD_LIBRARY_PATH": str(Path.cwd()), "LD_PRELOAD": str(Path("library.so").resolve())}
    provider.script(call("shell", {"command": "cat code.mk"}), text("ok"))
    run_wolo("-p", "--mode", "ask", "--set", "sandbox.backend=off", *provider.flags, "go", env=env)
    assert provider.requests[1].results == ["$(info LOADED)\n[exit 0]\n"]


def test_hook_file_of_a_project_passes_no_code() -> None:
    shell = {"LD_PRELOAD": "/of/the/user.so", "PATH": "/bin"}
    variables = CommandVariables(environ=shell)
    planted = {"LD_PRELOAD": "/of/the/project.so", "BASH_ENV": ".env.sh", "NODE_OPTIONS": "-r ./x", "CDPATH": "/", "PLAIN": "1"}
    for is_outside in (True, False):
        got = variables.select(is_outside=is_outside, more=planted)
        assert {name: got[name] for name in planted if name in got} == {"PLAIN": "1"} | (
            {"LD_PRELOAD": shell["LD_PRELOAD"]} if is_outside else {}
        )


NAMES = st.from_regex(r"\A[A-Z_][A-Z0-9_]{0,12}\Z")


@given(NAMES, st.sampled_from(SECRET_WORDS), NAMES, st.booleans())
def test_telling_names_never_pass_unnamed(before: str, word: str, after: str, is_outside: bool) -> None:
    name = f"{before}{word}{after}"
    got = CommandVariables(environ={name: "hunter2-hunter2"}).select(is_outside=is_outside)
    assert name not in got or name.endswith("_ASKPASS")


SHORT = ("GIT_PASSWORD", "GIT_TOKEN", "LD_ACCESS_TOKEN", "VAULT_SECRET_SOCK", "MYSQL_PWD")


@pytest.mark.parametrize("name", SHORT)
def test_short_secret_of_any_family_passes_nowhere(name: str) -> None:
    assert rule_against(name) == "secret name"
    assert name not in CommandVariables(environ={name: "hunter2"}).select(is_outside=True)


EMBEDDED = {
    "AZURE_STORAGE_CONNECTION_STRING": "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={}==;EndpointSuffix=core",
    "DATABASE_DSN": "host=db user=app password={}",
    "APP_CONFIG": '{{"user": "app", "password": "{}"}}',
    "MAVEN_OPTS": "-Xmx1g -Djavax.net.ssl.keyStorePassword={}",
    "GIT_CONFIG_VALUE_0": "AUTHORIZATION: basic {}",
}


@pytest.mark.parametrize("name", EMBEDDED)
def test_secret_within_a_value_passes_nowhere(name: str) -> None:
    environ = {name: EMBEDDED[name].format("correct9Horse")}
    redact = Secrets(in_environment(environ)).hide
    assert name not in CommandVariables(environ=environ, redact=redact).select(is_outside=True)


ORDINARY = {
    "LS_COLORS": "di=01;34:*.key=00;32:*.token=01;31;40;01",
    "PATH": "/home/me/token:/usr/bin",
    "GRADLE_OPTS": "-Dorg.gradle.token=${CI_TOKEN} -Dsecret=/run/secrets/gradle",
    "PYTEST_ADDOPTS": "-k 'token: password'",
}


def test_ordinary_value_with_telling_words_passes() -> None:
    redact = Secrets(in_environment(ORDINARY)).hide
    assert CommandVariables(environ=ORDINARY, redact=redact).select(is_outside=True).items() >= ORDINARY.items()


def test_variables_that_commands_have_are_not_explained() -> None:
    variables = CommandVariables(inherit="core", environ={"TERM": "xterm", "EDITOR": "vi", "JAVA_HOME": "/java", "GOPATH": "/go"})
    assert [each.name for each in variables.list_hidden()] == ["GOPATH", "JAVA_HOME"]
    (note,) = variables.explain("TERM EDITOR JAVA_HOME GOPATH", is_outside=True, more={"GOPATH": "/of/a/hook"})
    assert note.startswith("JAVA_HOME is set")


def test_terminal_passes_only_by_name() -> None:
    assert CommandVariables(environ={"TERM": "xterm"}).select(is_outside=True)["TERM"] == "dumb"
    assert CommandVariables(passed=("TERM",), environ={"TERM": "xterm"}).select(is_outside=True)["TERM"] == "xterm"
    assert CommandVariables().select(is_outside=True, more={"GIT_EDITOR": "sh code.sh"})["GIT_EDITOR"] == "true"


@given(NAMES, st.text(st.characters(codec="utf-8"), min_size=8, max_size=40), st.text(max_size=10), st.booleans())
def test_known_values_never_pass(name: str, value: str, around: str, is_outside: bool) -> None:
    variables = CommandVariables(environ={name: f"{around}{value}{around}"}, redact=Secrets([Secret("IT", value)]).hide)
    assert value not in variables.select(is_outside=is_outside).get(name, "")


def test_lists_of_git_settings_pass_whole_or_not() -> None:
    whole = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "http.extraheader", "GIT_CONFIG_VALUE_0": "X: correct-horse9"}
    assert whole.items() <= CommandVariables(environ=whole).select(is_outside=True).items()
    knowing = CommandVariables(environ=whole, redact=Secrets([Secret("IT", "correct-horse9")]).hide)
    assert not whole.keys() & knowing.select(is_outside=True).keys()
