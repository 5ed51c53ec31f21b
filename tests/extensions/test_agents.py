"""Agents that a person writes: what a file means, what it cannot mean, and which of two counts."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from wolo.config import consents, layers, project
from wolo.conversation.resources.user_files import search_paths
from wolo.extensions.agent_files import AgentProfile, Agents, find_agents
from wolo.extensions.markdown_files import ExtensionFolder
from wolo.places import find_home, find_places
from wolo.workspace.root import find_root, find_site

REVIEWER = """\
---
name: reviewer
description: finds mistakes
tools: Read, Grep, Bash
model: zai/glm-5.2
max_turns: 7
---
Be strict.
"""


def write(path: Path, text: str | bytes = REVIEWER) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


def shelf(folder: Path, root: Path | None = None) -> ExtensionFolder:
    return ExtensionFolder(folder, partial(project.read_file, root=root or Path("/")), root)


def found(*texts: str) -> Agents:
    for number, text in enumerate(texts):
        write(Path(f"agents/agent-{number}.md"), text)
    return find_agents([shelf(Path("agents").absolute())])


def named(agents: Agents, name: str) -> AgentProfile:
    return next(profile for profile in agents.profiles if profile.name == name)


def first(text: str) -> AgentProfile:
    agents = found(text)
    assert not agents.notices, agents.notices
    return next(profile for profile in agents.profiles if profile.path is not None)


@pytest.mark.parametrize(
    ("file", "name", "called"),
    [("C# Expert", "C# Expert", "C#-Expert"), ("c-sharp", "C# Expert", "C#-Expert"), ("a b", "", "a-b")],
)
def test_agent_name_that_is_no_word_is_changed(file: str, name: str, called: str) -> None:
    write(Path(f"agents/{file}.md"), f"---\nname: {name}\ndescription: x\n---\nbody")
    agents = find_agents([shelf(Path("agents").absolute())])
    assert named(agents, called).prompt == "body"
    assert f"the agent is called {called}" in agents.notices[0]


def test_a_file_says_what_an_agent_is() -> None:
    profile = first(REVIEWER)
    assert profile.name == "reviewer"
    assert profile.description == "finds mistakes"
    assert profile.tools == ("read", "grep", "shell", "jobs")
    assert profile.model == "zai/glm-5.2"
    assert profile.max_turns == 7
    assert profile.prompt == "Be strict."
    assert not profile.only_reads
    assert profile.path == Path.cwd() / "agents/agent-0.md"


def test_wolos_own_are_there_without_any_file() -> None:
    agents = find_agents([])
    assert [(each.name, each.only_reads) for each in agents.profiles] == [("explore", True), ("general", False)]
    assert named(agents, "explore").tools == ("read", "grep", "glob", "fetch")
    assert named(agents, "general").tools is None


def test_a_file_may_say_hardly_anything() -> None:
    profile = first("# Reads logs\n\nYou read logs.")
    assert (profile.name, profile.description, profile.tools, profile.mode) == ("agent-0", "Reads logs", None, "all")
    assert not profile.is_hidden


@pytest.mark.parametrize("tools", ["Read, Grep, Glob, WebFetch", "[read, grep]", "\n  - read\n  - LS", "todo", "[]"])
def test_one_with_reading_tools_only_reads(tools: str) -> None:
    assert first(f"---\ndescription: x\ntools: {tools}\n---\n").only_reads


@pytest.mark.parametrize("tools", ["Read, Write", "Bash", "edit", "mcp__github__search", "read, jobs", "read, unknown"])
def test_one_with_any_other_tool_does_more(tools: str) -> None:
    assert not first(f"---\ndescription: x\ntools: {tools}\n---\n").only_reads


@pytest.mark.parametrize("tools", ["'*'", "all", "Read, *", ""])
def test_every_tool_may_be_meant(tools: str) -> None:
    assert first(f"---\ndescription: x\ntools: {tools}\n---\n").tools is None


RIGHTS = "---\ndescription: x\n{said}\n---\n"


@pytest.mark.parametrize(
    ("said", "defaults", "rules"),
    [
        ("tools: Read, Bash(git log:*)", {"shell": "deny"}, ["allow shell:git log *"]),
        ("permission:\n  bash: ask\n  edit: allow", {"shell": "ask", "write": "allow"}, []),
        ("permission:\n  bash:\n    '*': deny\n    git diff *: allow", {"shell": "deny"}, ["allow shell:git diff *"]),
        ("permission:\n  bash:\n    rm -rf {a,b}: deny\n    'a | b': ask", {"shell": "deny"}, []),
        ("permission: ask", dict.fromkeys(("shell", "write", "read", "fetch", "mcp", "task"), "ask"), []),
    ],
)
def test_rights_of_a_file_are_limits(said: str, defaults: dict[str, str], rules: list[str]) -> None:
    ceiling = first(RIGHTS.format(said=said)).ceiling
    assert ceiling is not None
    assert dict(ceiling.defaults) == defaults
    assert [f"{rule.decision} {rule}" for rule in ceiling.rules] == rules


@pytest.mark.parametrize(
    ("said", "mode", "asks_nobody"),
    [
        ("permissionMode: default", "ask", False),
        ("permissionMode: acceptEdits", "edit", False),
        ("permissionMode: plan", "plan", False),
        ("permissionMode: dontAsk", "", True),
        ("sandbox_mode: read-only", "plan", False),
    ],
)
def test_a_mode_of_a_file_is_a_limit(said: str, mode: str, asks_nobody: bool) -> None:
    ceiling = first(RIGHTS.format(said=said)).ceiling
    assert ceiling is not None
    assert (ceiling.mode, ceiling.asks_nobody) == (mode, asks_nobody)


def test_no_agent_gives_tasks_to_a_third() -> None:
    assert first("---\ndescription: x\ntools: Read, Task, Agent\n---\n").tools == ("read",)


@pytest.mark.parametrize(
    ("said", "without"),
    [
        ("disallowedTools: Bash, Write", {"shell", "jobs", "write"}),
        ("tools:\n  bash: false\n  read: true", {"shell", "jobs"}),
        ("permission:\n  edit: deny\n  bash: ask\n  webfetch: deny", {"edit", "write", "fetch"}),
        ("disallowed-tools: Bash(rm:*)", {"shell", "jobs"}),
    ],
)
def test_tool_denied_by_a_file_is_removed(said: str, without: set[str]) -> None:
    profile = first(f"---\ndescription: x\n{said}\n---\n")
    assert profile.tools is None
    assert {*profile.without} == without


def test_nothing_in_a_file_allows_anything() -> None:
    profile = first("---\ndescription: x\npermissionMode: bypassPermissions\nmode: all\n---\n")
    assert not profile.without
    assert profile.ceiling is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("---\ndescription: x\ntemperature: hot\n---\n", "'temperature' must be a number from 0 to 2"),
        ("---\ndescription: x\neffort: huge\n---\n", "'effort' must be one of"),
        ("---\ndescription: x\npermissionMode: bossy\n---\n", "'permissionMode' must be one of"),
        ("---\ndescription: x\npermission:\n  bash: perhaps\n---\n", "'permission' for bash must be one of"),
        ("---\ndescription: x\nkind: remote\n---\n", "agents of other servers are not supported"),
        ("---\nname: a\n---\n", "'description' is missing"),
        ("---\ndescription: x\nmode: boss\n---\n", "'mode' must be one of primary, subagent, all"),
        ("---\ndescription: x\nmax_turns: 0\n---\n", "'max_turns' must be a number above 0"),
        ("---\ndescription: x\nmax_steps: many\n---\n", "'max_steps' must be"),
        pytest.param(f"---\ndescription: x\nsteps: {'9' * 5000}\n---\n", "'steps' must be", id="5,000 digits"),
        ("---\ndescription: x\nhidden: perhaps\n---\n", "'hidden' must be true or false"),
        ("---\ndescription: x\ntools: [[read]]\n---\n", "'tools' must be a list of words"),
        ("---\ndescription: x\n", "no second line of '---'"),
        ("---\n\tx: [\n---\n", "agent-0.md"),
    ],
)
def test_bad_file_is_one_notice_and_others_remain(text: str, complaint: str) -> None:
    agents = found(text, REVIEWER)
    assert len(agents.notices) == 1
    assert complaint in agents.notices[0]
    assert {each.name for each in agents.profiles} == {"reviewer", "explore", "general"}


@given(st.text(max_size=300))
def test_any_file_is_an_agent_or_a_notice(text: str) -> None:
    agents = found(f"---\n{text}\n---\nBody.")
    assert len(agents.notices) + len([each for each in agents.profiles if each.path]) == 1
    assert all("\n" not in notice for notice in agents.notices)


def test_primary_agent_takes_no_tasks_hidden_stays_unmentioned() -> None:
    agents = found(
        "---\nname: boss\ndescription: x\nmode: primary\n---\n", "---\nname: ghost\ndescription: x\nhidden: true\n---\n"
    )
    assert {offer.name for offer in agents.offers} == {"ghost", "explore", "general"}
    assert [offer.name for offer in agents.offers if offer.is_hidden] == ["ghost"]


def test_nearer_of_two_equal_names_counts() -> None:
    write(Path("near/a.md"), "---\nname: same\ndescription: near\n---\n")
    write(Path("far/b.md"), "---\nname: same\ndescription: far\n---\n")
    write(Path("far/explore.md"), "---\ndescription: my own\ntools: read\n---\n")
    agents = find_agents([shelf(Path("near").absolute()), shelf(Path("far").absolute())])
    assert named(agents, "same").description == "near"
    assert named(agents, "explore").description == "my own"


def test_control_characters_of_a_description_reach_nobody() -> None:
    profile = first('---\ndescription: "one\\n\\e[31mtwo\\u202e"\n---\n')
    assert "\x1b" not in profile.description
    assert "\n" not in profile.description
    assert "\u202e" not in profile.description


def test_invisible_characters_in_text_are_spelled_out() -> None:
    assert first("---\ndescription: x\n---\nDo\u202e it.\U000e0041").prompt == "Do\\u{202e} it.\\u{e0041}"


def test_agents_may_be_in_folders_readme_is_none() -> None:
    write(Path("agents/team/backend/api.md"), "---\nname: api\ndescription: x\n---\n")
    write(Path("agents/team/README.md"), "# Our agents\n")
    write(Path("agents/off.md"), "---\ndescription: x\ndisable: true\n---\n")
    Path("agents/team/again").symlink_to(Path("agents").absolute())
    Path("agents/itself").symlink_to("itself")
    agents = found(REVIEWER)
    assert {each.name for each in agents.profiles} == {"api", "reviewer", "explore", "general"}
    assert not agents.notices


def test_equal_names_in_one_folder_are_reported() -> None:
    agents = found(REVIEWER, REVIEWER.replace("mistakes", "more"))
    assert named(agents, "reviewer").description == "finds mistakes"
    (notice,) = agents.notices
    assert notice.endswith("agent-0.md has the same name, reviewer.")


def test_file_fields_take_effect_or_are_reported() -> None:
    agents = found(
        "---\nname: Code Reviewer\ndescription: When: asked.\\nNow\ntemperature: 0.2\neffort: HIGH\ncolor: red\n"
        "skills: [pdf, sql]\nisolation: worktree\nmemory:\n  Stop: [x]\n---\n"
    )
    profile = named(agents, "Code-Reviewer")
    assert (profile.description, profile.temperature, profile.thinking) == ("When: asked. Now", 0.2, "high")
    assert (profile.color, profile.skills) == ("red", ("pdf", "sql"))
    told = " ".join(agents.notices)
    for words in ("the agent is called Code-Reviewer", "this is not YAML", "'isolation' has no effect", "'memory' has no effect"):
        assert words in told
    assert len(agents.notices) == 4


def test_roles_of_codex_are_read() -> None:
    text = 'name = "sql"\ndescription = "d"\nmodel_reasoning_effort = "low"\ndeveloper_instructions = "Be brief."\n'
    write(Path(".codex/agents/sql.toml"), text)
    write(Path(".codex/agents/bad.toml"), "name =")
    agents = find_agents([shelf(Path(".codex/agents").absolute())])
    assert (named(agents, "sql").prompt, named(agents, "sql").thinking) == ("Be brief.", "low")
    assert "bad.toml cannot be read: Invalid value" in agents.notices[0]


@pytest.mark.parametrize(
    ("said", "tools"),
    [
        ("tools:\n  '*': false\n  read: true\n  hub_*: true", ("read", "mcp__hub")),
        ("tools: [read_file, search_file_content, google_web_search]", ("read", "grep", "web_search")),
        ("tools: Read`, [Grep", ("read", "grep")),
    ],
)
def test_tools_of_other_agents_are_known(said: str, tools: tuple[str, ...]) -> None:
    assert named(found(f"---\ndescription: x\n{said}\n---\n"), "agent-0").tools == tools


def test_a_person_reads_no_thousand_notices() -> None:
    agents = found(*["---\nname: x\n---\n"] * 20)
    assert len(agents.notices) == 13
    assert agents.notices[-1] == "The same goes for 8 more files."


def of_this_directory() -> Agents:
    site = find_site()
    return find_agents(search_paths(project.AGENTS, layers.load(replace(site, environ={})), site))


def test_a_projects_agents_count_once_it_is_trusted() -> None:
    for number, folder in enumerate((".wolo/agents", ".opencode/agent", ".gemini/agents/deep")):
        write(Path(folder, f"a{number}.md"), f"---\nname: p{number}\ndescription: x\n---\n")
    write(find_places().config / "agents/mine.md", "---\ndescription: mine\n---\n")
    write(find_home() / ".claude/agents/other.md", "---\ndescription: other\n---\n")
    own = {"mine", "other", "explore", "general"}
    assert {each.name for each in of_this_directory().profiles} == own
    consents.save_trust(find_places(), find_root(Path.cwd()), "trusted")
    agents = of_this_directory()
    assert {each.name for each in agents.profiles} == own | {"p0", "p1", "p2"}
    assert [each.name for each in agents.profiles if each.is_projects] == ["p0", "p1", "p2"]


def test_link_out_of_the_project_is_not_read(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere/agents/a.md")
    Path(".wolo").symlink_to(tmp_path / "elsewhere")
    write(Path(".claude/agents/x.md"), "---\ndescription: x\n---\n")
    Path(".claude/agents/y.md").symlink_to(tmp_path / "elsewhere/agents/a.md")
    consents.save_trust(find_places(), find_root(Path.cwd()), "trusted")
    agents = of_this_directory()
    assert {each.name for each in agents.profiles} == {"x", "explore", "general"}
    assert len(agents.notices) == 2


def test_mode_of_roo_has_rights_of_its_groups() -> None:
    text = "customModes:\n  - slug: docs\n    roleDefinition: Write.\n    description: Docs\n    customInstructions: Briefly.\n"
    limit = '      - [edit, {fileRegex: "md$"}]\n'
    write(
        Path(".roomodes"),
        f"{text}    groups:\n      - read\n{limit}  - slug: look\n    roleDefinition: Look.\n    groups: [read]\n",
    )
    agents = find_agents([shelf(Path(".roomodes").absolute())])
    docs, look = named(agents, "docs"), named(agents, "look")
    assert agents.notices == ()
    assert docs.prompt == "Write.\n\nBriefly.\n\nEdit only files that match the regular expression md$."
    assert docs.without == ("shell", "jobs", "fetch", "web_search", "mcp")
    assert look.without == ("edit", *docs.without, "write")
    assert docs.ceiling is not None
    assert dict(docs.ceiling.defaults)["write"] == "ask"
    assert look.ceiling is not None
    assert dict(look.ceiling.defaults)["write"] == "deny"


@pytest.mark.parametrize("bad", ["customModes: 3", "customModes: [x]", "- a", "customModes: &a [*a]", "{"])
def test_damaged_modes_of_roo_are_named(bad: str) -> None:
    write(Path(".roomodes"), bad)
    agents = find_agents([shelf(Path(".roomodes").absolute())])
    assert ".roomodes" in agents.notices[0]
