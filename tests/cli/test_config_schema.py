"""`wolo config schema`: the JSON Schema of the settings, for editors."""

from __future__ import annotations

from typing import Any

import jsonschema
import msgspec
import pytest

from tests.fakes.command import run_wolo
from wolo.config.schema import Settings
from wolo.places import find_places


@pytest.fixture
def schema() -> Any:
    return run_wolo("config", "schema").json


def test_schema_names_its_dialect_first(schema: Any) -> None:
    assert next(iter(schema)) == "$schema"
    jsonschema.Draft202012Validator.check_schema(schema)
    assert {*schema["properties"]} == {each.encode_name for each in msgspec.structs.fields(Settings)}


@pytest.mark.parametrize(
    "settings",
    [
        {"mode": "ask", "limits": {"max_turns": 3}, "permissions": {"deny": ["read:x/**"]}},
        {"providers": {"here": {"base_url": "http://localhost/v1"}}, "mcp_servers": {"x": {"command": "y"}}},
    ],
)
def test_settings_that_load_are_valid(schema: Any, settings: dict[str, Any]) -> None:
    jsonschema.validate(settings, schema)


@pytest.mark.parametrize("settings", [{"mod": "ask"}, {"mode": "any"}, {"limits": {"max_turn": 1}}, {"shell": {"timeout_s": 0}}])
def test_settings_that_fail_are_invalid(schema: Any, settings: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(settings, schema)


def test_unknown_theme_is_not_set() -> None:
    done = run_wolo("config", "set", "ui.theme", "nonsense")
    assert done.exit_code == 2
    assert "There is no theme nonsense." in done.stderr
    folder = find_places().config / "themes"
    folder.mkdir(parents=True)
    (folder / "nonsense.toml").write_text("[colors]\n")
    assert run_wolo("config", "set", "ui.theme", "nonsense").exit_code == 0
    assert run_wolo("config", "set", "ui.theme", "high-contrast").exit_code == 0
