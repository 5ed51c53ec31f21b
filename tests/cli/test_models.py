"""`wolo models list` and `wolo models show`, as a person runs them; and a provider of one's own from end to end."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.fakes.command import run_wolo, start_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, Reply, text
from wolo.models import probe_cache
from wolo.models.catalog import Catalog
from wolo.models.probe_cache import ProbeResult, ServerFacts, remember
from wolo.places import find_places

KEY = "key-that-is-never-shown"


def write_config(words: str) -> Path:
    places = find_places()
    places.config.mkdir(parents=True, exist_ok=True)
    path = places.config / "config.toml"
    path.write_text(words)
    path.chmod(0o600)
    return path


def test_list_fits_a_terminal_and_marks_usable_models() -> None:
    done = run_wolo("models", "list", env={"GROQ_API_KEY": KEY})
    lines = done.stdout.splitlines()
    assert done.exit_code == 0
    assert len(lines) > 100
    assert max(map(len, [*lines, *done.stderr.splitlines()])) <= 80
    assert any(line.startswith("* groq/openai/gpt-oss-120b") for line in lines)
    assert any(line.startswith("  zai/glm-5.2") for line in lines)
    assert KEY not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("pattern", "providers"),
    [
        ("kimi-k3", {"openrouter", "moonshot", "fireworks", "together"}),
        ("GROQ", {"groq"}),
        ("openai", {"openai"}),
        ("zai", {"zai"}),
        ("xai/*", {"xai"}),
        ("z.ai", {"zai", "zai-coding"}),
    ],
)
def test_a_pattern_narrows_the_list(pattern: str, providers: set[str]) -> None:
    done = run_wolo("models", "list", "--json", pattern)
    assert {row["provider"] for row in done.json} == providers


@pytest.mark.parametrize("group", ["models", "sessions", "config", "auth"])
def test_lone_subcommand_group_prints_whole_lines(group: str) -> None:
    done = run_wolo(group, env={"COLUMNS": "80"})
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: wolo {group} ")
    assert "..." not in done.stdout.partition("Commands:")[2]


def test_wrong_option_names_the_help_of_its_subcommand() -> None:
    done = run_wolo("models", "show", "--bogus")
    assert done.exit_code == 2
    assert "`wolo models show --help`" in done.stderr


def test_nothing_found_is_said_and_no_failure() -> None:
    done = run_wolo("models", "list", "xyzzy")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "xyzzy" in done.stderr
    assert run_wolo("models", "list", "xyzzy", "--json").json == []


def test_all_about_one_model() -> None:
    done = run_wolo("models", "show", "zai:glm-5.2", env={"ZAI_API_KEY": KEY})
    assert done.exit_code == 0
    for words in ("zai/glm-5.2", "1,000,000 tokens", "$1.4 in", "docs.z.ai", "openai-chat", "/chat/completions", "$ZAI_API_KEY"):
        assert words in done.stdout
    facts = run_wolo("models", "show", "zai/glm-5.2", "--json").json
    assert facts["key"] == {"source": "$ZAI_API_KEY or $GLM_API_KEY", "is_set": False}
    assert facts["dialect"]["tool_stream"] is True
    assert facts["price"]["date"]
    assert KEY not in done.stdout + done.stderr


def test_key_source_is_shown_without_fetching_it(tmp_path: Path) -> None:
    trace = tmp_path / "was-run"
    write_config(f'[providers.mine]\nbase_url = "https://llm.example.com/v1"\napi_key = "!touch {trace}"\n')
    facts = run_wolo("models", "show", "mine/big", "--json").json
    assert facts["key"] == {"source": "a program (providers.mine.api_key)", "is_set": True}
    assert not facts["listed"]
    assert run_wolo("models", "list").exit_code == 0
    assert not trace.exists()


def test_key_of_the_kept_file_is_distinguished() -> None:
    path = find_places().config / "keys.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'zai = "{KEY}"\n')
    path.chmod(0o644)
    doctor = run_wolo("doctor", "--json").json
    assert doctor["keys"]["zai"] == "keys.toml"
    assert any("keys.toml" in problem for problem in doctor["problems"]), "that others could read it is passed on"
    assert run_wolo("models", "show", "zai", "--json").json["key"] == {"source": "keys.toml", "is_set": True}


@pytest.mark.parametrize(("name", "said"), [("zai/glm-5.2:hihg", "high"), ("zia/glm", "zai"), ("zai/glm-4.5-a", "could be")])
def test_a_name_that_leads_nowhere_is_a_sentence(name: str, said: str) -> None:
    done = run_wolo("models", "show", name)
    assert done.exit_code == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_own_provider_is_asked_as_described(provider: ProviderServer, tmp_path: Path) -> None:
    program = tmp_path / "vault"
    program.write_text(f"#!/bin/sh\necho {KEY}\necho once >> '{tmp_path}/runs'\n")
    program.chmod(0o755)
    write_config(
        f'[providers.mine]\nbase_url = "{provider.base_url}"\napi_key = "!{program}"\nauth = "api-key"\n'
        'headers = {X-Token = "${MINE_TOKEN}"}\nquery = {api-version = "7"}\ndefault_model = "big"\n'
        '[providers.mine.dialect]\nmax_tokens_field = "max_completion_tokens"\n'
        '[[providers.mine.models]]\nid = "big"\ncontext = 50000\nprice = {input = 1.0, output = 2.0}\n'
    )
    provider.script(text("fine"))
    done = run_wolo("--json", "-p", "go", env={"MINE_TOKEN": "token-of-mine"})
    assert done.exit_code == 0, done.stderr
    asked = provider.requests[0]
    assert asked.path.endswith("/chat/completions?api-version=7")
    assert (asked.headers["api-key"], asked.headers["x-token"]) == (KEY, "token-of-mine")
    assert "authorization" not in asked.headers
    assert asked.json["model"] == "big"
    assert (tmp_path / "runs").read_text() == "once\n"
    assert KEY not in done.stdout + done.stderr
    shown = run_wolo("config", "show").stdout
    assert str(program) not in shown


def test_probe_result_is_shown_and_followed_per_version(provider: ProviderServer) -> None:
    write_config(f'[providers.mine]\nbase_url = "{provider.base_url}"\n')
    kept = ProbeResult(base_url=provider.base_url, model="m", probed="2026-01-02T03:04:05+00:00", format="xml", context=9000)
    probe_cache.write(find_places().cache, kept)
    facts = run_wolo("models", "show", "mine/m", "--json").json
    assert (facts["format"], facts["context"], facts["probed"]) == ("xml", 9000, kept.probed)
    assert kept.probed in run_wolo("models", "show", "mine/m").stdout
    for unknown in (
        ProbeResult(base_url=provider.base_url, model="m", probed="x", format="semaphore", dialect={}),
        ProbeResult(base_url=provider.base_url, model="m", probed="x", dialect={"no_such_flag": 1}),
    ):
        probe_cache.write(find_places().cache, unknown)
        assert run_wolo("models", "show", "mine/m", "--json").json["probed"] is None
        provider.script(text("fine"))
        done = run_wolo("-p", "-m", "mine/m", "go")
        assert (done.exit_code, done.stdout) == (0, "fine\n"), done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-m", "local"), "The embedded model is not a server"),
        (("zai/glm-5.2",), "-m zai/glm-5.2"),
        (("http://127.0.0.1:9/v1",), "Which model should be probed?"),
        (("http://127.0.0.1:9/v1", "-m", "m", "--api", "semaphore"), "no wire format `semaphore`"),
    ],
)
def test_unprobeable_model_is_reported(words: tuple[str, ...], said: str) -> None:
    done = run_wolo("models", "probe", *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr


def test_stopped_probe_says_so_and_keeps_nothing() -> None:
    with (
        ProviderServer(Reply(pieces=(Hold(),))) as silent,
        start_wolo("models", "probe", silent.base_url.replace("//", "//me:SECRET@"), "-m", "m") as process,
    ):
        silent.wait_for_requests(1)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    assert b"nothing was saved" in said
    assert b"SECRET" not in said
    assert not (find_places().cache / "probes").exists()


def test_a_project_brings_no_provider_along(provider: ProviderServer, tmp_path: Path) -> None:
    folder = Path.cwd() / ".wolo"
    folder.mkdir()
    moved = f'[providers.zai]\nbase_url = "{provider.base_url}"\napi_key = "!touch {tmp_path}/run"\n'
    (folder / "config.toml").write_text(moved)
    facts = run_wolo("models", "show", "zai/glm-5.2", "--json").json
    assert facts["address"].startswith("https://api.z.ai/")
    assert run_wolo("-p", "-m", "zai/glm-5.2", "go").exit_code == 2
    assert not (tmp_path / "run").exists()
    assert provider.requests == []


@pytest.mark.parametrize(
    ("name", "driven"),
    [
        ("zai/glm-5.2", "native"),
        ("local/qwen2.5-coder-1.5b", "simple (embedded)"),
        ("ollama/gemma3:1b", "simple (1.0B parameters; its server was not asked yet)"),
        ("ollama/whatever", "native (size unknown; its server was not asked yet)"),
    ],
)
def test_page_explains_how_the_model_is_driven(name: str, driven: str) -> None:
    assert f"driven     {driven}\n" in run_wolo("models", "show", name).stdout


def test_last_server_statement_settles_the_mode_shown() -> None:
    choice = Catalog({}).find("ollama/whatever")
    remember(find_places().cache, choice, ServerFacts(kind="ollama", parameters=7_000_000_000, tools=False))
    assert "driven     constrained (7.0B parameters)\n" in run_wolo("models", "show", "ollama/whatever").stdout
