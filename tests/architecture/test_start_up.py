"""The set of modules that each way of starting wolo imports."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes import replies_anthropic
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from tests.fakes.screen import pty_wolo

HEAVY = {
    "rich",
    "prompt_toolkit",
    "pydantic",
    "mcp",
    "acp",
    "opentelemetry",
    "starlette",
    "uvicorn",
    "typer",
    "pygments",
    "keyring",
    "PIL",
    "rapidfuzz",
    "tomlkit",
    "yaml",
}
PROXIES = {"httpx2", "httpcore2", "anyio"}
"""Loaded for connections through a proxy only."""
DRAWN_LATER = {"pygments", "markdown_it", "httpx2", "httptools", "tree_sitter"}
"""What answers, requests and calls need, and no prompt."""
LATER = {
    "rich.table",
    "wolo.models.client",
    "wolo.models.http.http_transport",
    "wolo.formats.openai_chat",
    "wolo.commands.table",
    "wolo.commands.undo",
    "wolo.frontends.terminal.dialogs.first_run",
    "wolo.frontends.terminal.dialogs.picker",
    "wolo.tools.editing.edit",
    "wolo.tools.shell",
    "wolo.workspace.checkpoints",
    "http.client",
    "email",
}
MOST_OF_SERVERS = 15
MOST_MODULES = 200
PROBE_OF_SANDBOX = "wolo.guard.sandbox.escape_probe"
MOST_ANNOTATIONS = 65
"""That are text and are compiled; those of NamedTuples count."""
NEEDLESS = {
    *("typing_extensions", "platform", "shutil", "bz2", "lzma", "tomllib", "shlex", "termios", "platformdirs"),
    *("inspect", "ast", "dis", "tokenize", "textwrap", "ipaddress", "locale", "uuid", "decimal"),
    *("ssl", "_ssl", "asyncio.sslproto", "msgspec.inspect", "msgspec.msgpack", "msgspec.toml", "msgspec.yaml"),
    *("json.decoder", "encodings.idna", "wolo.models.http.network_errors"),
}
"""Modules that a plain turn without settings and without TLS does not use; together a sixth of its instructions."""
UNPACKED = {
    "wolo.agent.compaction.history_cut.Move",
    "wolo.cli.options.CommandLine",
    "wolo.cli.options.Option",
    "wolo.config.dotted_keys.Leaf",
    "wolo.config.dotted_keys.SettingsPlace",
    "wolo.guard.precedence.Paths",
    "wolo.guard.precedence.Subject",
    "wolo.guard.precedence.Target",
    "wolo.guard.shell.named_paths.NamedPaths",
    "wolo.sessions.index.IndexPosition",
}
"""NamedTuples of a plain turn, because they are unpacked, or loaded without msgspec."""
COMPILED = {"wolo.guard.shell.words", "wolo.formats.text_recovery.text_filter"}
"""Modules whose patterns are compiled at import, for their speed."""
SHARED = {"encoding"}
"""What the wire formats have in common."""
HEAVY_AT_HELP = HEAVY - {"typer"} | {"httpx2", "msgspec"}

PROBE = """
import atexit, runpy, sys
sys.argv = ["wolo", *{argv!r}]
atexit.register(lambda: print("MODULES", *sorted(sys.modules), file=sys.stderr))
runpy.run_module("wolo", run_name="__main__")
"""

COUNTING = """
import atexit, builtins, collections, dataclasses, json, re, runpy, sys, typing
patterns, tuples, classes, annotations, compiled = [], [], [], [], []
compile_pattern, make_tuple, make_class = re._compiler.compile, collections.namedtuple, dataclasses._process_class

def on_pattern(pattern, flags=0):
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__", "").partition(".")[0] in ("re", "functools"):
        frame = frame.f_back
    if frame.f_code.co_name == "<module>":
        patterns.append(frame.f_globals["__name__"])
    return compile_pattern(pattern, flags)

def on_tuple(name, *args, **options):
    tuples.append(f"{options.get('module')}.{name}")
    return make_tuple(name, *args, **options)

def on_class(made, *args):
    classes.append(made.__qualname__)
    return make_class(made, *args)

compile_source = builtins.compile

def on_source(source, name, *args, **options):
    if name == "<string>":
        compiled.append(source)
    return compile_source(source, name, *args, **options)

builtins.compile = on_source
make_reference = typing.ForwardRef.__init__

def on_reference(self, text, *args, **options):
    annotations.append(text)
    make_reference(self, text, *args, **options)

typing.ForwardRef.__init__ = on_reference

re._compiler.compile, collections.namedtuple, dataclasses._process_class = on_pattern, on_tuple, on_class
import threading
threads, start_thread = [], threading.Thread.start

def on_thread(thread):
    threads.append(thread.name)
    start_thread(thread)

threading.Thread.start = on_thread
sys.argv = ["wolo", *ARGV]

def print_counts():
    by_wolo = sys._getframe().f_back is not None
    slow = [name for name, each in sys.modules.items() if name.startswith("wolo.") and not hasattr(each.__loader__, "head")]
    counts = patterns, tuples, classes, len(annotations), compiled, slow, threads, sorted(sys.modules), by_wolo
    print("COUNTED", json.dumps(counts), file=sys.stderr)

atexit.register(print_counts)
runpy.run_module("wolo", run_name="__main__")
"""


def imported_by(*argv: str) -> set[str]:
    return {name.partition(".")[0] for name in modules_of(*argv)}


def modules_of(*argv: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(argv=list(argv))],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.rpartition("MODULES")[2].split())


def test_version_imports_nothing_at_all() -> None:
    assert not imported_by("--version") & {*HEAVY, "typer", "msgspec", "asyncio", "json", "httpx2"}


@pytest.mark.parametrize("argv", [["--help"], ["sessions", "--help"]])
def test_help_needs_no_rich_and_no_network_library(argv: list[str]) -> None:
    assert not imported_by(*argv) & HEAVY_AT_HELP


def test_a_headless_turn_loads_no_heavy_library(provider: ProviderServer, tmp_path: Path) -> None:
    provider.script(text("Hello."))
    modules = imported_by("-p", "--base-url", provider.base_url, "--api-key", "k", "-m", "test-model", "hi")
    assert "httptools" in modules
    assert not modules & (HEAVY | PROXIES)


def test_stand_ins_are_gone_after_the_start() -> None:
    code = """
import sys
from wolo.cli.app import _import_libraries
_import_libraries()
assert {"asyncio", "msgspec"} <= {*sys.modules}
assert not {"inspect", "ipaddress", "locale", "textwrap", "ssl", "uuid", "decimal", "msgspec.toml"} & {*sys.modules}
import json, logging, re, string
assert json.loads("[1]") == [1] and isinstance(json.JSONDecoder(), json.decoder.JSONDecoder) and sys.modules["json"] is not json
assert string.Template("$a").substitute(a=1) == "1"
assert logging.Formatter("{message:>3}", style="{").format(logging.makeLogRecord({"msg": "a"})) == "  a"
assert isinstance(re.compile("a"), re.Pattern)
import msgspec
assert msgspec.toml.decode("a = 1") == {"a": 1} and msgspec.inspect.type_info(int) == msgspec.inspect.IntType()
import asyncio.coroutines, functools, inspect, ipaddress, locale, platform, ssl, subprocess, textwrap
import typing_extensions, urllib.parse
from unittest.mock import AsyncMock

async def function(): pass

assert all(map(asyncio.iscoroutinefunction, (function, functools.partial(function), AsyncMock())))
assert not asyncio.iscoroutinefunction(len) and not asyncio.iscoroutinefunction(lambda: None)
assert asyncio.base_events.ssl.SSLContext is ssl.SSLContext
assert asyncio.selector_events.sslproto.SSLProtocol is asyncio.sslproto.SSLProtocol
assert asyncio.coroutines.inspect.isfunction is inspect.isfunction
assert urllib.parse.urlsplit("http://[::1]:8").port == 8
assert subprocess.check_output(["echo", "é"], text=True) == "é\\n"
print(platform.machine())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip(), done.stderr


def test_a_proxy_loads_the_library_for_it(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", provider.origin)
    provider.script(text("Hello."))
    assert imported_by("-p", "--base-url", "http://model.example.com/v1", "--api-key", "k", "-m", "test-model", "hi") >= PROXIES


def test_a_plain_turn_makes_and_loads_little(provider: ProviderServer) -> None:
    """A dataclass costs 2 to 10 million instructions at every start, a NamedTuple 0.8, a pattern 0.3 and a module 0.5."""
    provider.script(text("Hello."), text("Hello."), text("Hello."))
    argv = ["-p", "--base-url", provider.base_url, "--api-key", "k", "-m", "test-model", "hi"]
    imported_by(*argv)  # the first one creates the database and tries the sandbox out
    assert modules_of(*argv) & NEEDLESS == set()
    code = COUNTING.replace("ARGV", repr(argv))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    counts = json.loads(done.stderr.rpartition("COUNTED")[2])
    patterns, tuples, classes, num_annotations, compiled, slow, threads, modules, by_wolo = counts
    assert by_wolo, "a thread that nobody ended makes the interpreter end slowly, which costs 15 million"
    assert PROBE_OF_SANDBOX not in modules, "the compiled launcher is older than its source: install wolo again"
    assert "urllib.parse" not in patterns, "patterns of libraries are compiled when they are used"
    assert len(threads) <= 2, f"besides one that saves and one that looks at git: {threads}"
    assert {*slow} == {"wolo.module_finder"}, "Python's own way to a module costs three times the system calls"
    assert not compiled, "the first compile() makes the classes of `ast`, which costs 10 million"
    assert num_annotations <= MOST_ANNOTATIONS, "msgspec compiles each annotation of a decoded struct that is text"
    assert not classes, "a msgspec.Struct costs a fiftieth of a dataclass"
    assert {name for name in tuples if name.startswith("wolo.")} <= UNPACKED, "a msgspec.Struct costs a sixth of a NamedTuple"
    assert {name for name in patterns if name.startswith("wolo.")} <= COMPILED, "re.search(PATTERN, …) compiles at the first use"
    assert len([name for name in modules if name.startswith("wolo")]) <= MOST_MODULES


def test_first_prompt_waits_for_no_answer_library(provider: ProviderServer) -> None:
    with pty_wolo(*provider.flags, env={"PYTHONPROFILEIMPORTTIME": "1"}) as terminal:
        terminal.wait_until(lambda: "›".encode() in terminal.raw)
    modules = set(re.findall(r"import time: .*\| +([\w.]+)", terminal.raw.decode(errors="replace")))
    assert "prompt_toolkit.application" in modules
    assert not {name.partition(".")[0] for name in modules} & (HEAVY - {"rich", "prompt_toolkit"} | DRAWN_LATER)
    assert not modules & LATER


def test_uncalled_known_servers_cost_no_library(provider: ProviderServer, isolated: Path) -> None:
    server = Path(__file__).parents[1] / "fakes" / "mcp_plain.py"
    config = isolated / "wolo" / "config" / "config.toml"
    config.parent.mkdir(parents=True, mode=0o700)
    names = ("good", "better", "best")
    rows = (f"[mcp_servers.{name}]\ncommand = {sys.executable!r}\nargs = [{str(server)!r}, 'good']\n" for name in names)
    config.write_text("".join(rows))
    config.chmod(0o600)
    provider.script(text("First."), text("Second."))
    given = ("-p", "--base-url", provider.base_url, "--api-key", "k", "-m", "test-model", "hi")
    assert {"mcp", "pydantic"} <= imported_by(*given)
    provider.forget_prefix()
    modules = modules_of(*given)
    assert not {name.partition(".")[0] for name in modules} & {*HEAVY, "jsonschema", "mimetypes"}
    assert len([name for name in modules if name.startswith("wolo.mcp.")]) <= MOST_OF_SERVERS
    first, second = ([tool["function"]["name"] for tool in asked.json["tools"]] for asked in provider.requests)
    assert {f"mcp__{name}__say" for name in names} <= {*first}
    assert first == second


def test_without_servers_little_of_their_room_is_loaded(provider: ProviderServer) -> None:
    provider.script(text("Hello."))
    modules = modules_of("-p", "--base-url", provider.base_url, "--api-key", "k", "-m", "test-model", "hi")
    assert (
        not {f"wolo.mcp.{name}" for name in ("sdk", "client", "connection", "mcp_tool", "server_requests", "tool_answer")}
        & modules
    )


def test_without_edits_nothing_of_language_servers_is_loaded(provider: ProviderServer) -> None:
    provider.script(call("read", {"path": "a.py"}), text("Hello."))
    modules = modules_of("-p", "--base-url", provider.base_url, "--api-key", "k", "-m", "test-model", "hi")
    beside = {"wolo.conversation.resources.edit_checks", "wolo.conversation.resources.web_search", "pypdf"}
    assert not {name for name in modules if name.startswith(("wolo.lsp", "wolo.tools.documents", "wolo.tools.web"))} | (
        beside & modules
    )


def test_without_hooks_nothing_of_them_is_loaded(provider: ProviderServer) -> None:
    provider.script(text("Hello."))
    modules = modules_of("-p", "--base-url", provider.base_url, "--api-key", "k", "-m", "test-model", "hi")
    of_hooks = {
        name for name in modules if name.startswith("wolo.extensions.hooks.") or name == "wolo.workspace.processes.run_with_input"
    }
    assert of_hooks == {"wolo.extensions.hooks.definitions"}


def test_only_the_wire_format_in_use_is_loaded(provider: ProviderServer) -> None:
    at = ("-p", "--api-key", "k", "-m", "test-model", "hi")
    provider.script(text("Hello."), replies_anthropic.text("Hello."))
    assert packages_of("--base-url", provider.base_url, *at) == SHARED | {"openai_chat", "text_recovery"}
    assert packages_of("--api", "anthropic", "--base-url", provider.origin, *at) == SHARED | {"anthropic"}


def test_without_clouds_nothing_of_them_is_loaded(provider: ProviderServer) -> None:
    provider.script(text("Hello."))
    modules = modules_of("-p", "--base-url", provider.base_url, "--api-key", "k", "-m", "test-model", "hi")
    assert not {name for name in modules if name.startswith(("wolo.models.cloud", "wolo.models.http.event_stream", "jwt"))}


def packages_of(*argv: str) -> set[str]:
    """The rooms of `formats/` that a run enters."""
    inside = [name.split(".")[2:] for name in modules_of(*argv) if name.startswith("wolo.formats.")]
    return {first for first, *rest in inside if rest}


def test_package_version_is_the_distribution_version() -> None:
    from importlib.metadata import version

    from wolo import __version__

    assert version("wolo-cli") == __version__


def test_a_module_found_by_name_is_never_stale(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    (first / "part").mkdir(parents=True)
    for place in (first / "late.py", first / "part" / "__init__.py"):
        place.write_text("def name(): return 'source'\n")
    assert find_late(first) == ["source", "True"] * 2, "compiled"
    cached = next((first / "__pycache__").iterdir())
    cached.write_bytes(cached.read_bytes().replace(b"source", b"memory"))
    assert find_late(first) == ["memory", "True", "source", "True"], "read from bytecode"
    first.rename(second)
    assert find_late(second) == ["memory", "True", "source", "True"], "where it is, not where it was compiled"
    (second / "late.py").write_text("def name(): return 'newer'\n")
    assert find_late(second)[0] == "newer"
    next((second / "__pycache__").iterdir()).write_bytes(b"")
    assert find_late(second)[0] == "newer"
    (second / "late.py").unlink()
    assert find_late(second) == ["none"]


def find_late(folder: Path) -> list[str]:
    """What two modules of wolo in a folder return, and whether they know their files."""
    code = """
import sys, wolo
from wolo.module_finder import ModuleFinder
sys.meta_path.insert(0, ModuleFinder)
wolo.__path__.insert(0, sys.argv[1])
try:
    from wolo import late, part
except ImportError:
    sys.exit(print("none"))
for module in (late, part):
    print(module.name(), isinstance(module.__loader__, ModuleFinder) and module.name.__code__.co_filename == module.__file__)
"""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, timeout=60, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()
