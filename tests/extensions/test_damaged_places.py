"""Every place that a reader takes, with damaged and hostile files: each is named or read, and costs itself only."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.extensions.public_setups import HOOKS, SERVERS
from tests.extensions.test_public_setups import put
from wolo.config import layers, project, unread_places
from wolo.config.configured_servers import untrusted_servers, wanted_servers
from wolo.config.foreign_servers import find_foreign
from wolo.config.imports.agents import AGENTS, findings
from wolo.config.schema import Config
from wolo.conversation.resources.conversation_hooks import find_hooks
from wolo.conversation.resources.user_files import UserFiles
from wolo.extensions.agent_files import ROO_MODES
from wolo.extensions.instructions.instruction_files import read_folder, read_instructions, users_rules
from wolo.foreign_places import IMPORTED, PERMISSION_RULES, TABLE, Place, paths_of
from wolo.places import Notices, Site, find_home
from wolo.workspace.root import find_site

Reading = tuple[set[str], list[str]]
"""What is used, and sentences about what is not."""
HUGE = 64 << 20
MOST_BYTES = 24 << 20
"""Of memory, while a huge file is read."""
SECONDS = 20
DEPTH = 10_000
FIELDS = (
    *(b"name", b"description", b"tools", b"globs", b"paths", b"model", b"permission", b"hooks", b"mode", b"applyTo"),
    *(b"alwaysApply", b"arguments", b"skills"),
)
KEYS = (
    *(b"mcpServers", b"servers", b"mcp", b"hooks", b"inputs", b"instructions", b"permissions", b"context", b"projects"),
    *(b"tools", b"model", b"providers", b"permission", b"amp.permissions", b"commandDenylist"),
)
CODE = ("tools", "extensions", "settings")
"""Kinds of wolo's own that are not read as data, or that are the user's business to correct."""
SCRIPTS = (".wolo/hooks", ".claude/hooks")
"""Programs of hooks: run, not read."""


def is_imported(row: Place) -> bool:
    return row.why == IMPORTED or "takes them over" in row.why


PLACES = [
    (row, path)
    for row in TABLE
    for path in row.paths
    if (not row.why or is_imported(row)) and row.kind not in CODE and path not in SCRIPTS
]


def of_instructions(site: Site, config: Config) -> Reading:
    read, later = read_instructions(site.root, site.real_cwd, site.places.config), Notices()
    rules = [*read_folder(site.root, site.root, later), *users_rules(site.root, later)]
    return {each.section for each in (*read.loaded, *rules)}, [*read.notices, *read.remarks]


def of_skills(site: Site, config: Config) -> Reading:
    skills = UserFiles(config, site).skills()
    return {str(each.path) for each in skills.skills}, [*skills.notices]


def of_agents(site: Site, config: Config) -> Reading:
    agents = UserFiles(config, site).all_agents()
    return {str(each.path) for each in agents.profiles if each.path}, [*agents.notices]


def of_commands(site: Site, config: Config) -> Reading:
    commands = UserFiles(config, site).commands()
    broken = [each.description for each in commands.commands if not each.is_usable]
    return {str(each.path) for each in commands.commands if each.is_usable}, [*commands.notices, *broken]


def of_styles(site: Site, config: Config) -> Reading:
    notices = Notices()
    return {each.text for each in UserFiles(config, site).output_styles(notices)}, [*notices]


def of_hooks(site: Site, config: Config) -> Reading:
    sets = find_hooks(config, site)
    used = {f"{each.source} {event} {hook.action}" for each in sets for event, hook in each.hooks}
    return used, [problem for each in sets for problem in each.problems]


def of_servers(site: Site, config: Config) -> Reading:
    untrusted_servers(site)
    return {each.source for each in wanted_servers(config, site)}, [*site.notices]


def of_imports(site: Site, config: Config) -> Reading:
    found = [each for agent in AGENTS for each in findings(agent, site.root)]
    servers = [each.source for each in find_foreign("", site)]
    complaints = [f"{each.source} {each.what}: {each.why}" for each in found if each.kind == "skip"]
    return {str(each.source) for each in found if each.kind != "skip"} | {*servers}, [*complaints, *site.notices]


def of_permission_rules(site: Site, config: Config) -> Reading:
    return {rule.source for rule in config.rules}, [*config.notices]


READERS: Mapping[str, Callable[[Site, Config], Reading]] = {
    "instructions": of_instructions,
    "rules": of_instructions,
    "skills": of_skills,
    "agents": of_agents,
    "commands": of_commands,
    "output-styles": of_styles,
    "hooks": of_hooks,
    "MCP servers": of_servers,
    PERMISSION_RULES: of_permission_rules,
}

MARKDOWN = "---\nname: bad\ndescription: d\nalwaysApply: true\napplyTo: '**'\ntrigger: always_on\ninclusion: always\n---\nDo it."
TOMLS = {
    "agents": 'name = "bad"\ndescription = "d"\ndeveloper_instructions = "Do it."\n',
    "commands": 'description = "d"\nprompt = "Do it."\n',
    "policies": '[[rule]]\ntoolName = "run_shell_command"\ndecision = "deny"\npriority = 1\n',
}
SETTINGS = {
    "model": "openai/gpt-5",
    "mcpServers": {"bad": {"command": "npx", "args": ["x"]}},
    "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "x"}]}]},
}
DENIALS = {
    "permissions": {"deny": ["Bash(x)", "Shell(x)"]},
    "permission": {"bash": {"x": "deny"}},
    "tools": {"exclude": ["run_shell_command(x)"]},
    "commandDenylist": ["x"],
    "amp.permissions": [{"tool": "Bash", "matches": {"cmd": "x"}, "action": "reject"}],
}


def file_of(row: Place, path: str, name: str = "bad") -> Path:
    """The file to write for a place, which may be a folder."""
    at = (find_home() if row.is_users else Path.cwd()) / path
    if row.kind == "skills":
        return at / name / "SKILL.md"
    if row.kind == "instructions" or at.suffix in (".json", ".jsonc", ".toml", ".yaml") or at.name == ROO_MODES:
        return at
    if row.kind == "MCP servers" or path.endswith("goose/recipes"):
        return at / f"{name}.yaml"
    if path.endswith("/rules") and row.agent == "Codex":
        return at / f"{name}.rules"
    if row.kind == "hooks":
        return at / ("PreToolUse.py" if row.agent == "Cline" else f"{name}.json")
    if path.endswith("/instructions"):
        return at / f"{name}.instructions.md"
    is_toml = (row.kind == "commands" and row.agent in ("Gemini CLI", "Qwen Code")) or (
        row.kind == "agents" and row.agent == "Codex"
    )
    return at / f"{name}{'.toml' if is_toml or row.kind == 'policies' else '.md'}"


def content_of(row: Place, path: str) -> str:
    file = file_of(row, path)
    if file.suffix in (".md", ".py") or row.kind in ("instructions", "rules"):
        return MARKDOWN
    if file.name == ROO_MODES:
        return "customModes:\n  - slug: bad\n    name: Bad\n    roleDefinition: Do it.\n    groups: [read]\n"
    if file.suffix == ".yaml":
        return "title: bad\ndescription: d\nprompt: Do it.\nmcpServers:\n  - name: bad\n    command: npx\n    args: [x]\n"
    if file.suffix == ".rules":
        return 'prefix_rule(pattern = ["rm"], decision = "forbidden")\n'
    if path.endswith("config.toml"):
        group = '[[hooks.PreToolUse]]\nmatcher = "Bash"\n[[hooks.PreToolUse.hooks]]\ntype = "command"\ncommand = "x"\n'
        return f'loop_control.max_steps_per_turn = 5\nmodel = "gpt-5"\n[mcp_servers.bad]\ncommand = "npx"\n{group}'
    if file.suffix == ".toml":
        return TOMLS[row.kind]
    forms = HOOKS if row.kind == "hooks" else SERVERS if row.kind == "MCP servers" else ()
    here = (form for place, form, outcome in forms if outcome == "read" and (place == path or place.startswith(f"{path}/")))
    form = next(here, DENIALS if row.kind == PERMISSION_RULES else SETTINGS)
    return form if isinstance(form, str) else json.dumps(form)


def beside(row: Place, path: str) -> tuple[Place, str]:
    """Another place of the kind, whose file must be read all the same."""
    if row.kind in ("instructions", "rules"):
        other = "CLAUDE.local.md" if path != "CLAUDE.local.md" else "AGENTS.md"
        return Place("", "instructions", (other,)), other
    if is_imported(row):
        other = ".gemini/settings.json" if path != ".gemini/settings.json" else ".kimi/mcp.json"
        return Place("", "", (other,), is_users=True), other
    other = next(each for each in paths_of(row.kind) if each not in (path, *SCRIPTS))
    return Place("wolo", row.kind, (other,)), other


def texts(good: str) -> Iterator[tuple[str, bytes]]:
    yield "cut", good.encode()[: len(good) // 2]
    yield "nul", b"\0" * 200 + good.encode()
    yield "utf-16", good.encode("utf-16")
    yield "latin-1", good.replace("x", "é").replace("d", "é").encode("latin-1")
    yield "surrogate", b'{"mcpServers": {"\\ud800": {"command": "x"}}, "hooks": {"\\udfff": [{"command": "x"}]}}\xed\xa0\x80'
    entry = b'{"command": "\\ud800"}'
    hooks = b'"preToolUse": [%s], "pre_run_command": [%s], "PreToolUse": [{"hooks": [%s]}]' % (entry, entry, entry)
    yield "escaped surrogate", b'{"mcpServers": {"a": %s}, "hooks": {%s}, "instructions": ["\\ud800"]}' % (entry, hooks)
    for value in (b"[]", b"1", b"null", b'"x"', b"true", b"- x"):
        yield f"only {value.decode()}", value
    group = b'{"PreToolUse": [{"hooks": [1]}], "preToolUse": [[1]]}'
    for value in (b"1", b"[1]", b'"x"', b"null", b'{"a": 1}', b'{"a": [1]}', b'{"a": {"command": 1, "hooks": 1}}', group):
        yield f"fields are {value.decode()}", b"{%s}" % b", ".join(b'"%s": %s' % (name, value) for name in KEYS)
        yield f"settings are {value.decode()}", b"---\n%s\n---\nDo it." % b"\n".join(b"%s: %s" % (name, value) for name in FIELDS)
    yield "surrogate in settings", b'---\nname: "a\\ud800"\ndescription: "\\ud800 x"\n---\nDo it.'
    yield "digits", b'{"mcpServers": {"a": {"command": "x", "timeout": %s}}}' % (b"9" * 5_000)
    yield "digits in toml", b"a = " + b"9" * 5_000
    many = b"[" * DEPTH + b"]" * DEPTH
    yield "open json", b'{"a":' * DEPTH
    yield "deep json", b'{"a":' * DEPTH + b"1" + b"}" * DEPTH
    yield "deep lists", b'{"hooks": %s, "mcpServers": %s, "instructions": %s}' % (many, many, many)
    less = b"[" * 900 + b"]" * 900
    yield (
        "less deep",
        b'{"hooks": {"PreToolUse": %s}, "mcpServers": {"a": {"args": %s}}, "instructions": %s}' % (less, less, less),
    )
    yield "deep toml", b"a = " + many
    yield "deep tables", b"[%s]\nb = 1" % b".".join([b"a"] * DEPTH)
    yield "deep settings", b"---\ndescription: %s\n---\nDo it." % many
    yield "deep yaml", b"rules: " + many
    yield "deep block", b"---\n%s---\nDo it." % b"".join(b" " * at + b"a:\n" for at in range(200))
    bomb = b"a0: &a0 [x, x]\n" + b"".join(
        b"a%d: &a%d [%s]\n" % (at, at, b", ".join([b"*a%d" % (at - 1)] * 9)) for at in range(1, 20)
    )
    yield "bomb in settings", b"---\n%sdescription: *a19\n---\nDo it." % bomb
    yield "bomb", bomb
    yield "open comment", b"/*" * 100_000
    yield "commas", b"{" + b"," * 100_000


def damages(good: str, file: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Names, and functions that leave such a file in an existing folder."""
    for name, data in texts(good):
        yield name, partial(file.write_bytes, data)

    def write_and(change: Callable[[], object]) -> Callable[[], object]:
        return lambda: (file.write_text(good), change())

    yield "huge", write_and(lambda: os.truncate(file, HUGE))
    yield "pipe", lambda: os.mkfifo(file)
    yield "folder", lambda: (file / "inner").mkdir(parents=True)
    for target in ("/dev/zero", str(file), "nothing", "/etc/shadow", "/proc/self/environ"):
        yield f"link to {target}", partial(file.symlink_to, target)
    yield "writable by all", write_and(lambda: file.chmod(0o666))
    if os.getuid() == 0:
        yield "of another user", write_and(lambda: os.chown(file, 65534, 65534))
    else:
        yield "unreadable", write_and(lambda: file.chmod(0))


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def bounded(name: str) -> Iterator[None]:
    """No reader waits for a pipe or reads a huge file whole."""

    def stop(*_: object) -> None:
        raise AssertionError(f"{name}: still reading after {SECONDS} s")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    is_measured = name in ("huge", "bomb", "bomb in settings")
    if is_measured:
        tracemalloc.start()
    try:
        yield
        assert not is_measured or tracemalloc.get_traced_memory()[1] < MOST_BYTES, name
    finally:
        tracemalloc.stop()
        signal.alarm(0)


def test_each_kind_with_a_reader_is_tried() -> None:
    assert {row.kind for row, _ in PLACES if not is_imported(row)} == {*READERS}


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize(("row", "path"), PLACES, ids=lambda each: each if isinstance(each, str) else each.kind.replace(" ", "-"))
def test_damaged_file_is_named_and_rest_read(row: Place, path: str) -> None:
    file, good = file_of(row, path), content_of(row, path)
    other, other_path = beside(row, path)
    put(str(file_of(other, other_path, "good")), content_of(other, other_path).replace("bad", "good").replace("Do it", "Do more"))
    reader = of_imports if is_imported(row) else READERS[row.kind]

    def read() -> Reading:
        site = find_site()
        return reader(site, layers.load(site, {"trust": str(site.root)}))

    rest, silent = read()
    assert rest
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(good)
    whole, _ = read()
    assert whole > rest, "the reader takes nothing from here"
    file.write_text(f"\ufeff{good}")
    assert read()[0] == whole, "a byte order mark"
    remove(file)
    wrong = []
    for name, damage in damages(good, file):
        damage()
        with bounded(name):
            used, notices = read()
            site = find_site()
            project.find(site.root, site.real_cwd)
            unread_places.name_once(site.places, site.root, project.find_unread(site.root, site.real_cwd))
        remove(file)
        new = [each for each in notices if each not in silent]
        if not used >= rest:
            wrong.append((name, "the rest is lost", new))
        is_folder_of_rules = name == "folder" and row.kind == "rules"  # which may hold more of them
        says_nothing = name == "fields are null"
        says_nothing |= row.kind == PERMISSION_RULES and name.startswith(("fields", "escaped", "digits", "less", "deep lists"))
        says_nothing |= file.suffix == ".rules" and name.startswith(("only", "fields", "escaped"))  # to Codex
        if not (used > rest or any(file.name in each for each in new) or is_folder_of_rules or says_nothing):
            wrong.append((name, "not named", new))
        wrong += [(name, "not one printable line", each) for each in new if not each.isprintable()]
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize("place", [".github/hooks", ".kiro/hooks", ".clinerules/hooks"])
def test_folder_of_guards_that_is_none_is_named(place: str) -> None:
    put(place, "")
    site = find_site()
    _, problems = of_hooks(site, layers.load(site, {"trust": str(site.root)}))
    assert [each.endswith("Not a directory. Guards in it are NOT run.") for each in problems] == [True]


def test_guards_beyond_the_limit_are_named() -> None:
    for number in range(51):
        put(f".github/hooks/{number:02}.json", {"hooks": {"preToolUse": [{"command": "x"}]}})
    site = find_site()
    used, problems = of_hooks(site, layers.load(site, {"trust": str(site.root)}))
    assert (len(used), ["the others are NOT run" in each for each in problems]) == (50, [True])
