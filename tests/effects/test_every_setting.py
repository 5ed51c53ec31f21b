"""Every setting has an effect that can be seen: a row for each, and a setting without a row fails."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.effects.observing import GO, PAGE, Effect, Elsewhere, broken, fine, observe, runs, writes
from wolo.agent.compaction.compactor import CompactionSettings, Compactor, Context, Fixed
from wolo.config.schema import Settings
from wolo.guard.rules import RuleWithExamples
from wolo.messages.message import Message, user
from wolo.messages.parts import ToolPart

TESTS = Path(__file__).parents[1]
ALLOWED = 'mode = "auto"\npermissions.allow = ["shell:*"]\nsandbox.backend = "off"'
LADDER, SUBAGENTS, CLIENT = "agent/test_ladder.py", "conversation/subagents/test_subagents.py", "mcp/test_client.py"
DOMAINS = "end_to_end/test_allowed_domains.py"
OAUTH = "mcp/test_oauth.py"
NOTIFY, HOOKS, SHARED = "end_to_end/test_notifications.py", "end_to_end/test_hooks.py", "mcp/test_mcp_json.py"
TYPES = "end_to_end/test_hook_types.py"
LONG = ("-p", "-m", "here/m", "word " * 400)


def model(row: str) -> Effect:
    """Seen on the page of the model."""
    return Effect(f'[providers.here]\nbase_url = "{{url}}"\nmodels = [{{{{id = "m", {row}}}}}]', BARE_MODEL, PAGE)


def provider(line: str, args: tuple[str, ...] = PAGE) -> Effect:
    return Effect(f'[providers.here]\nbase_url = "{{url}}"\n{line}', BARE, args)


BARE = '[providers.here]\nbase_url = "{url}"'
BARE_MODEL = '[providers.here]\nbase_url = "{url}"\nmodels = [{{id = "m"}}]'

PROOFS: dict[str, Effect | Elsewhere] = {
    "sessions.retention_days": Elsewhere("cli/test_audit.py", "test_retention_deletes_what_is_old"),
    **{
        f"managed.{name}.allow": Elsewhere("end_to_end/test_managed.py", test)
        for name, test in {
            "models": "test_other_models_are_never_asked",
            "providers": "test_other_models_are_never_asked",
            "base_urls": "test_other_models_are_never_asked",
            "mcp": "test_other_servers_are_left_out",
            "plugins": "test_forbidden_plugin_is_not_installed",
            "marketplaces": "test_forbidden_marketplace_is_not_added",
            "modes": "test_modes_are_limited_at_every_door",
        }.items()
    },
    "model": Effect('model = "here/m"', args=("doctor", "--json")),
    "fallback_model": Effect('fallback_model = "here/other"', "retry.tries = 1", script=(broken, fine)),
    "small_model": Elsewhere(SUBAGENTS, "test_aliases_and_small_model_select_agent_models"),
    "model_aliases": Elsewhere(SUBAGENTS, "test_aliases_and_small_model_select_agent_models"),
    "mode": Effect('mode = "edit"', script=(writes, fine), args=("-p", "--set", "sandbox.backend=off", *GO[1:])),
    "thinking": Effect('thinking = "high"'),
    "agent": Effect('agent = "explore"'),
    "output_style": Elsewhere("end_to_end/test_output_styles.py", "test_chosen_style_is_part_of_the_prompt"),
    "context.window": Effect("context.window = 100", "compaction.auto = false"),
    "context.reserve": Elsewhere("agent/compaction/test_compactor.py", "test_smaller_of_declared_and_known_window_counts"),
    "context.local": Elsewhere("end_to_end/test_local_context.py", "test_switched_off_context_is_not_sent"),
    "compaction.auto": Effect("compaction.auto = false", "context.window = 100"),
    "compaction.keep_turns": Elsewhere("effects/test_every_setting.py", "test_the_latest_turns_are_shortened_last"),
    "compaction.summary": Elsewhere(LADDER, "test_disabled_summary_is_not_requested"),
    "compaction.protected_tools": Elsewhere(
        "effects/test_every_setting.py", "test_outputs_of_protected_tools_are_not_shortened_first"
    ),
    "approvals.reviewer": Elsewhere("end_to_end/test_reviewer.py", "test_approved_command_runs_and_is_recorded"),
    "finish.check": Elsewhere("end_to_end/test_finish_check.py", "test_disabled_check_is_silent"),
    "compaction.at_tokens": Elsewhere("end_to_end/test_masked_outputs.py", "test_limit_masks_without_a_known_price"),
    "compaction.timeout_s": Elsewhere(LADDER, "test_turn_continues_after_any_summary_result"),
    "limits.max_turns": Effect("limits.max_turns = 1", script=(writes, fine)),
    "limits.max_cost": Effect("limits.max_cost = 0.000001", script=(writes, fine)),
    "limits.max_tokens": Effect("limits.max_tokens = 1", script=(writes, fine)),
    "limits.max_seconds": Effect("limits.max_seconds = 0.000001", script=(writes, fine)),
    "limits.max_answer_bytes": Elsewhere("models/test_stream_limits.py", "test_an_answer_may_only_be_so_long"),
    "retry.tries": Effect("retry.tries = 1", script=(broken, fine)),
    "retry.total_s": Effect("retry.total_s = 0", script=(broken, fine)),
    "retry.resume_windows": Elsewhere("end_to_end/test_limits.py", "test_zero_windows_end_the_turn"),
    "retry.wait_for_reset_s": Elsewhere("end_to_end/test_limits.py", "test_headless_waits_for_every_reset"),
    "retry.idle_s": Elsewhere("models/test_client.py", "test_stalled_stream_is_abandoned_and_retried"),
    "retry.first_byte_s": Elsewhere("conversation/test_no_effect.py", "test_silence_limit_holds_beside_every_other_limit"),
    "headers.profile": Effect('headers.profile = "none"'),
    "headers.extra": Effect('headers.extra = {{x-mark = "seen"}}'),
    "permissions.allow": Effect('permissions.allow = ["shell:touch *"]', 'mode = "ask"', script=(lambda: runs("touch y"), fine)),
    "permissions.ask": Effect('permissions.ask = ["write:**"]', script=(writes, fine)),
    "permissions.deny": Effect('permissions.deny = ["write:**"]', script=(writes, fine)),
    "sandbox.allowed_domains": Elsewhere(DOMAINS, "test_only_allowed_hosts_are_reached_and_recorded"),
    "sandbox.denied_domains": Elsewhere(DOMAINS, "test_denied_host_is_not_asked_about"),
    "sandbox.backend": Effect('sandbox.backend = "off"', args=("--output-format", "stream-json", *GO)),
    "shell.timeout_s": Effect("shell.timeout_s = 0.2", ALLOWED, script=(lambda: runs("sleep 1; echo done"), fine)),
    "shell.inherit": Effect('shell.inherit = "core"', ALLOWED, script=(lambda: runs("printenv SHELL_MARK"), fine)),
    "shell.env": Effect('shell.env = ["SHELL_MARK_TOKEN"]', ALLOWED, script=(lambda: runs("printenv SHELL_MARK_TOKEN"), fine)),
    "shell.wake": Elsewhere("end_to_end/test_job_wakes.py", "test_setting_keeps_lines_for_next_prompt"),
    "shell.snapshot": Elsewhere("end_to_end/test_login_shell.py", "test_functions_aliases_and_path_reach_commands"),
    "shell.hide": Effect('shell.hide = ["SHELL_*"]', ALLOWED, script=(lambda: runs("printenv SHELL_MARK"), fine)),
    "tools.offer": Effect('tools.offer = ["read"]'),
    "tools.repo_map": Effect("tools.repo_map = true"),
    "tools.hide": Effect('tools.hide = ["read"]'),
    "web_search.backend": Effect('web_search.backend = "searxng"', 'web_search.url = "{url}"'),
    "web_search.url": Effect('web_search.url = "{url}"', 'web_search.backend = "searxng"'),
    "web_search.api_key": Effect('web_search.api_key = "k-0123456789"', 'web_search.backend = "brave"'),
    "lsp.enabled": Elsewhere("end_to_end/test_language_servers.py", "test_one_setting_turns_it_off"),
    "lsp.tool": Elsewhere("end_to_end/test_code_lookup.py", "test_tool_is_offered_only_where_asked_for"),
    "lsp.servers.*.command": Elsewhere("end_to_end/test_language_servers.py", "test_a_server_of_ones_own"),
    "lsp.servers.*.extensions": Elsewhere("end_to_end/test_language_servers.py", "test_a_server_of_ones_own"),
    "lsp.servers.*.enabled": Elsewhere("lsp/test_language_servers.py", "test_own_servers_come_first_and_complete_known_ones"),
    "tasks.timeout_s": Elsewhere(SUBAGENTS, "test_stalled_child_times_out_and_parent_continues"),
    "tasks.max_turns": Elsewhere(SUBAGENTS, "test_project_agent_turns_stay_within_settings"),
    "memory.learn": Effect("memory.learn = false"),
    "batch.lease_s": Elsewhere("fleet/test_batch.py", "test_queue_is_made_first_and_worked_later"),
    "batch.requests_per_minute": Elsewhere("fleet/test_batch.py", "test_limits_of_settings_hold_for_all_agents"),
    "batch.tokens_per_minute": Elsewhere("fleet/test_batch.py", "test_limits_of_settings_hold_for_all_agents"),
    "batch.container": Elsewhere("fleet/test_containers.py", "test_second_engine_answers_for_a_dead_first"),
    "batch.wolo_folder": Elsewhere("fleet/test_containers.py", "test_wolo_comes_from_its_folder"),
    "server.cors": Elsewhere("frontends/server/test_version_1.py", "test_permitted_site_may_use_the_api"),
    "telemetry.endpoint": Elsewhere("telemetry/test_telemetry.py", "test_managed_endpoint_holds_whatever_variables_say"),
    "update.signers": Elsewhere("cli/test_update.py", "test_release_is_signed_where_a_key_is_known"),
    "telemetry.content": Elsewhere("telemetry/test_telemetry.py", "test_content_is_exported_where_the_setting_allows_it"),
    "verify.command": Effect('verify.command = "test ! -e written.txt"', script=(writes, fine)),
    "verify.rounds": Elsewhere("end_to_end/test_verify.py", "test_unmended_work_ends_in_a_failed_run"),
    "verify.timeout_s": Elsewhere("end_to_end/test_verify.py", "test_hanging_check_is_a_failure_of_work"),
    "ui.theme": Elsewhere("frontends/terminal/io/test_theme.py", "test_background_is_recognised"),
    "ui.status": Elsewhere("frontends/terminal/repl/test_status_bar.py", "test_the_order_is_the_persons"),
    "ui.status_command": Elsewhere("end_to_end/test_status_line.py", "test_own_command_prints_the_status_row"),
    "ui.keys": Elsewhere("end_to_end/test_composer.py", "test_vi_keys"),
    "ui.keymap": Elsewhere("end_to_end/test_composer.py", "test_a_keymap_of_ones_own"),
    "ui.plain": Elsewhere("end_to_end/test_plain.py", "test_one_reads_and_writes_in_turns"),
    **{
        f"ui.{name}": Elsewhere("frontends/terminal/io/test_terminal_marks.py", "test_each_mark_can_be_turned_off")
        for name in ("title", "progress", "prompt_marks")
    },
    "ui.notify": Elsewhere(NOTIFY, "test_it_can_be_turned_off"),
    "ui.notify_after_s": Elsewhere(NOTIFY, "test_a_long_turn_calls_only_whoever_looks_elsewhere"),
    "ui.notify_command": Elsewhere(NOTIFY, "test_own_program_replaces_the_call_without_shell"),
    "providers.*.base_url": Effect(
        'providers.openai.base_url = "{url}/elsewhere"', args=("models", "show", "openai/gpt-5", "--json")
    ),
    "providers.*.api": provider('api = "anthropic"'),
    "providers.*.api_key": provider('api_key = "k-0123456789abcdef"', GO),
    "providers.*.key_env": provider('key_env = ["NO_SUCH_KEY"]'),
    "providers.*.account": Elsewhere("cli/test_accounts.py", "test_account_of_the_settings_is_used_and_listed"),
    "providers.*.label": provider('label = "Over here"'),
    "providers.*.headers": provider('headers = {{x-mark = "seen"}}', GO),
    "providers.*.query": provider('query = {{version = "seen"}}', GO),
    "providers.*.auth": Effect(
        '[providers.here]\nbase_url = "{url}"\napi_key = "k-0123456789abcdef"\nauth = "x-api-key"',
        '[providers.here]\nbase_url = "{url}"\napi_key = "k-0123456789abcdef"',
    ),
    "providers.*.client_cert": Elsewhere("models/test_client_certificates.py", "test_server_that_requires_a_certificate_gets_it"),
    "providers.*.client_key": Elsewhere("models/test_client_certificates.py", "test_server_that_requires_a_certificate_gets_it"),
    "providers.*.region": Elsewhere("models/cloud/test_cloud_address.py", "test_settings_of_region_and_project_come_first"),
    "providers.*.project": Elsewhere("models/cloud/test_cloud_address.py", "test_settings_of_region_and_project_come_first"),
    "providers.*.token_scope": Elsewhere("end_to_end/test_clouds.py", "test_scope_of_a_token_may_be_set"),
    "providers.*.dialect": provider('dialect = {{system_role = "developer"}}', GO),
    "providers.*.edit_tool": provider('edit_tool = "apply_patch"', GO),
    "providers.*.models.*.id": Effect(
        '[providers.here]\nbase_url = "{url}"\nmodels = [{{id = "m"}}]', BARE, ("models", "list", "here/m")
    ),
    "providers.*.models.*.context": model("context = 12345"),
    "providers.*.models.*.max_output": model("max_output = 1234"),
    "providers.*.models.*.price.*.input": model("price = {{input = 1.5}}"),
    "providers.*.models.*.price.*.output": model("price = {{output = 1.5}}"),
    "providers.*.models.*.price.*.cache_read": model("price = {{cache_read = 1.5}}"),
    "providers.*.models.*.price.*.cache_write": model("price = {{cache_write = 1.5}}"),
    "providers.*.models.*.price.*.source": model('price = {{source = "a list"}}'),
    "providers.*.models.*.price.*.date": model('price = {{date = "2026-11-01"}}'),
    "providers.*.models.*.abilities": model('abilities = ["tools", "images"]'),
    "providers.*.models.*.aliases": model('aliases = ["also"]'),
    "providers.*.models.*.format": model('format = "anthropic"'),
    "providers.*.models.*.edit_tool": model('edit_tool = "apply_patch"'),
    "providers.*.models.*.dialect": model("dialect = {{usage_option = false}}"),
    "providers.*.default_model": Effect(
        '[providers.here]\nbase_url = "{url}"\ndefault_model = "small"', BARE, ("-p", "-m", "here/", "go")
    ),
    "providers.*.loopback": Effect(f"{BARE}\nkey_env = ['NO_SUCH_KEY']\nloopback = true", f"{BARE}\nkey_env = ['NO_SUCH_KEY']"),
    "providers.*.drive": provider('drive = "written"', GO),
    "providers.*.any_model": provider("any_model = false", ("-p", "-m", "here/unknown", "go")),
    "mcp_servers.*.command": Elsewhere(CLIENT, "test_other_command_line_is_another_unknown_server"),
    "mcp_servers.*.args": Elsewhere(CLIENT, "test_other_command_line_is_another_unknown_server"),
    "mcp_servers.*.env": Elsewhere(CLIENT, "test_server_sees_command_variables_and_its_own"),
    "mcp_servers.*.cwd": Elsewhere(SHARED, "test_any_change_of_access_makes_another_server"),
    "mcp_servers.*.url": Elsewhere("end_to_end/test_mcp.py", "test_http_server_gets_headers_and_answers"),
    "mcp_servers.*.headers": Elsewhere("end_to_end/test_mcp.py", "test_http_server_gets_headers_and_answers"),
    "mcp_servers.*.oauth.client_id": Elsewhere(OAUTH, "test_a_configured_client_is_used_and_not_registered"),
    "mcp_servers.*.oauth.client_secret": Elsewhere(OAUTH, "test_a_configured_client_is_used_and_not_registered"),
    "mcp_servers.*.oauth.client_metadata_url": Elsewhere(OAUTH, "test_the_settings_of_a_login_are_used"),
    "mcp_servers.*.oauth.grant": Elsewhere(OAUTH, "test_a_client_with_credentials_needs_no_browser"),
    "mcp_servers.*.oauth.id_token": Elsewhere(OAUTH, "test_an_identity_provider_vouches_for_the_user"),
    "mcp_servers.*.oauth.idp_token_endpoint": Elsewhere(OAUTH, "test_an_identity_provider_vouches_for_the_user"),
    "mcp_servers.*.oauth.idp_client_id": Elsewhere(OAUTH, "test_an_identity_provider_vouches_for_the_user"),
    "mcp_servers.*.oauth.scopes": Elsewhere(OAUTH, "test_the_settings_of_a_login_are_used"),
    "mcp_servers.*.oauth.issuer": Elsewhere(OAUTH, "test_a_secret_goes_to_its_own_issuer_only"),
    "mcp_servers.*.oauth.auth_method": Elsewhere(OAUTH, "test_a_configured_client_is_used_and_not_registered"),
    "mcp_servers.*.oauth.private_key": Elsewhere(OAUTH, "test_a_client_with_credentials_needs_no_browser"),
    "mcp_servers.*.oauth.redirect_uri": Elsewhere(OAUTH, "test_the_settings_of_a_login_are_used"),
    "mcp_servers.*.transport": Elsewhere(SHARED, "test_a_program_and_an_address_are_read"),
    "mcp_servers.*.startup_timeout_s": Elsewhere(CLIENT, "test_failed_servers_are_reported_together_with_last_words"),
    "mcp_servers.*.tool_timeout_s": Elsewhere(CLIENT, "test_late_answer_costs_its_call_only"),
    "mcp_servers.*.enabled_tools": Elsewhere(CLIENT, "test_only_some_of_its_tools_are_offered"),
    "mcp_servers.*.disabled_tools": Elsewhere(CLIENT, "test_only_some_of_its_tools_are_offered"),
    "mcp_servers.*.enabled": Elsewhere("end_to_end/test_mcp.py", "test_the_stream_names_the_servers"),
    "mcp_servers.*.sampling_tokens": Elsewhere("mcp/test_features.py", "test_sampling_ends_with_its_budget"),
    "mcp_servers.*.elicitation": Elsewhere("mcp/test_features.py", "test_defaults_of_required_fields_are_sent_by_setting"),
    "hooks.*.*.command": Effect('[[hooks.UserPromptSubmit]]\ncommand = "echo told by a hook"'),
    "hooks.*.*.matcher": Effect(
        '[[hooks.PreToolUse]]\ncommand = "exit 2"\nmatcher = "Read"',
        '[[hooks.PreToolUse]]\ncommand = "exit 2"',
        script=(writes, fine),
    ),
    "hooks.*.*.if": Elsewhere("extensions/test_hook_conditions.py", "test_commands"),
    "hooks.*.*.timeout_s": Effect(
        '[[hooks.PreToolUse]]\ncommand = "sleep 1"\ntimeout_s = 0.1',
        '[[hooks.PreToolUse]]\ncommand = "sleep 1"',
        script=(writes, fine),
    ),
    **{f"hooks.*.*.{name}": Elsewhere(TYPES, "test_a_server_denies_a_call") for name in ("url", "headers", "allowed_env_vars")},
    "hooks.*.*.type": Elsewhere(TYPES, "test_model_hook_judges_a_call_and_costs_count"),
    "hooks.*.*.prompt": Elsewhere(TYPES, "test_model_hook_judges_a_call_and_costs_count"),
    "hooks.*.*.model": Elsewhere(TYPES, "test_a_hook_may_name_its_model"),
    "hooks.*.*.async": Elsewhere(TYPES, "test_background_hook_blocks_nothing_and_reports_later"),
    "hooks.*.*.once": Elsewhere(TYPES, "test_once_hook_runs_once_per_session_others_repeat"),
    "hooks.*.*.strict": Elsewhere(HOOKS, "test_failing_guard_asks_and_strict_denies"),
}
"""For each setting, as the schema names it (`*` stands for a name, an event or a row), what shows that it has an effect."""


def settings(kind: Any = Settings, path: tuple[str, ...] = ()) -> Iterator[str]:
    for each in msgspec.structs.fields(kind):
        inner = _struct_in(each.type)
        here = (*path, each.encode_name)
        if inner is None:
            yield ".".join(here)
        elif path == ("hooks",):
            yield from settings(inner, ("hooks", "*", "*"))
        else:
            yield from settings(inner, here if inner is each.type else (*here, "*"))


def _struct_in(kind: Any) -> type[msgspec.Struct] | None:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return None if kind is RuleWithExamples else kind
    return next(filter(None, map(_struct_in, typing.get_args(kind))), None)


def test_every_setting_has_a_row() -> None:
    """Add a row to PROOFS for a new setting: a run that differs with it, or the test that shows what it does."""
    assert set(settings()) == set(PROOFS)


@pytest.mark.parametrize("key", [key for key, proof in PROOFS.items() if isinstance(proof, Elsewhere)])
def test_effect_test_named_elsewhere_exists(key: str) -> None:
    proof = PROOFS[key]
    assert isinstance(proof, Elsewhere)
    assert f"def {proof.name}(" in (TESTS / proof.path).read_text()


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("key", [key for key, proof in PROOFS.items() if isinstance(proof, Effect)])
def test_it_makes_a_difference(key: str, tmp_path: Path) -> None:
    effect = PROOFS[key]
    assert isinstance(effect, Effect)
    without = observe(effect, tmp_path / "without", with_it=False)
    with_it = observe(effect, tmp_path / "with", with_it=True)
    assert "config.toml" not in with_it, "the settings of this row make no sense"
    assert without != with_it


# What shortens, and how


def said(turns: int, tool: str = "read") -> list[Message]:
    messages: list[Message] = []
    for number in range(turns):
        messages.append(user(f"prompt {number}"))
        done = ToolPart(
            tool=tool, input={"path": f"{number}.py"}, status="completed", outcome="ok", output=f"{number} words " * 300
        )
        messages.append(Message(role="assistant", parts=[done], finished=True))
    return [*messages, user("and now?")]


def sizes(messages: list[Message], **settings: Any) -> list[int]:
    """How much of each output is sent."""
    compaction = msgspec.convert({"summary": False, **settings}, CompactionSettings)
    sent, _ = Compactor(Context(window=3_100, reserve=100), compaction).view(messages, Fixed("", (), None))
    return [len(part.output) for message in sent for part in message.calls]


def test_the_latest_turns_are_shortened_last() -> None:
    assert len(sizes(said(5), keep_turns=1)) == 5 > len(sizes(said(5), keep_turns=4))


def test_outputs_of_protected_tools_are_not_shortened_first() -> None:
    messages = [*said(2, "todo")[:-1], *said(3)]
    assert sizes(messages, keep_turns=1, protected_tools=["todo"]) != sizes(messages, keep_turns=1, protected_tools=[])
