"""`wolo doctor` for people: a mark a row, keys by origin, and one question to the model on request."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import error, text

KEY = "sk-acme-0123456789abcdefWXYZ"


def settings(provider: ProviderServer, folder: Path) -> None:
    path = folder / "wolo/config/config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f'model = "acme/large"\n[providers.acme]\nlabel = "Acme"\nbase_url = "{provider.base_url}"\n'
        f'api_key = "{KEY}"\nmodels = [{{id = "large"}}]\n'
    )


def test_every_row_begins_with_a_mark(tmp_path: Path) -> None:
    done = run_wolo("doctor", env={"OPENAI_API_KEY": KEY, "GROQ_API_KEY": KEY, "XDG_CONFIG_HOME": str(tmp_path)})
    rows = [row for row in done.stdout.splitlines() if not row.startswith(" ")]
    assert {row.split()[0] for row in rows} <= {"ok", "note", "warn", "fail"}
    assert "ok    keys      from $OPENAI_API_KEY: openai; from $GROQ_API_KEY: groq" in done.stdout
    assert run_wolo("doctor", "--json").json["answer"] is None


def test_online_asks_the_model_once(provider: ProviderServer, tmp_path: Path) -> None:
    settings(provider, tmp_path)
    provider.linted = False
    provider.script(text("OK"))
    done = run_wolo("doctor", "--online")
    assert "ok    answer    acme/large answered." in done.stdout
    assert len(provider.requests) == 1


def test_online_names_what_the_server_said(provider: ProviderServer, tmp_path: Path) -> None:
    settings(provider, tmp_path)
    provider.linted = False
    provider.script(error(401, '{"error": {"message": "no such key"}}'))
    report = run_wolo("doctor", "--online", "--json")
    assert report.exit_code == 1
    assert report.json["answer"]["works"] is False
    assert any("acme/large did not answer: no such key" in each for each in report.json["problems"])
    provider.script(error(401, '{"error": {"message": "no such key"}}'))
    assert "warn  answer    acme/large did not answer" in run_wolo("doctor", "--online").stdout


def test_config_get_prints_one_value(tmp_path: Path) -> None:
    path = tmp_path / "wolo/config/config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('mode = "ask"\n[ui]\nstatus = ["mode", "cost"]\n')
    assert run_wolo("config", "get", "mode").stdout == "ask\n"
    assert run_wolo("config", "get", "ui.status").stdout == '["mode", "cost"]\n'
    assert run_wolo("config", "get", "agent").stdout == "\n"
    assert run_wolo("config", "get", "mode", "--json").json["source"] == str(path)
    refused = run_wolo("config", "get", "ui.statu")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "Did you mean ui.status?" in refused.stderr
