"""Every option has an effect that can be seen: a row for each, and an option without a row fails."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.effects.observing import GO, Effect, Elsewhere, broken, fine, observe, reads, runs, writes
from tests.fakes.provider_server import Script
from wolo.cli.options import OPTIONS

TESTS = Path(__file__).parents[1]
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEElEQVR4nGP4z8AARAwQCgAf7gP9i18U1AAAAABJRU5ErkJggg==")
BEFORE = ("-p", "-m", "here/m", "-s", "mine", "hello")
BLIND = '[providers.here]\nbase_url = "{url}"\nmodels = [{{id = "m", dialect = {{images = false}}}}]'
MAY_RUN = 'mode = "ask"\nsandbox.backend = "off"'
PLAIN = "sandbox.backend = 'off'"
STREAM = ("--output-format", "stream-json", *GO)

PROOFS: dict[str, Effect | Elsewhere] = {
    "print": Effect(("-p",), 'model = "here/m"', ("models",)),
    "interactive": Effect(("-i",)),
    "continue": Effect(("-c",), before=BEFORE),
    "resume": Effect(("-r", "mine"), before=BEFORE),
    "session": Effect(("-s", "mine"), before=BEFORE),
    "fork": Effect(("--fork",), args=("-c", *GO), before=BEFORE),
    "model": Effect(("-m", "here/other"), 'model = "here/m"', ("-p", "go")),
    "base_url": Effect(("--base-url", "{url}/elsewhere"), args=GO),
    "api_key": Effect(("--api-key", "k-0123456789abcdef"), args=("--base-url", "{url}", *GO)),
    "account": Elsewhere("cli/test_accounts.py", "test_account_of_a_run_is_used"),
    "api": Effect(("--api", "xml"), args=("--base-url", "{url}", *GO)),
    "drive": Effect(("--drive", "written")),
    "thinking": Effect(("--thinking", "high")),
    "agent": Effect(("--agent", "explore")),
    "mode": Effect(("--mode", "plan"), PLAIN, script=(writes, fine)),
    "yolo": Effect(("--yolo",), MAY_RUN, script=(lambda: runs("touch made"), fine)),
    "allow": Effect(("--allow", "shell:touch *"), MAY_RUN, script=(lambda: runs("touch made"), fine)),
    "deny": Effect(("--deny", "write:**"), PLAIN, script=(writes, fine)),
    "add_dir": Effect(("--add-dir", "../beside"), PLAIN, script=(reads, fine)),
    "safe_mode": Elsewhere("end_to_end/test_safe_mode.py", "test_safe_mode_uses_nothing_of_user_or_project"),
    "cd": Effect(("-C", "../beside"), PLAIN, script=(writes, fine)),
    "bg": Elsewhere("frontends/server/test_background.py", "test_session_runs_waits_and_is_answered"),
    "worktree": Elsewhere("end_to_end/test_worktrees.py", "test_worktree_takes_the_work_and_gives_it_back"),
    "from": Elsewhere("end_to_end/test_worktrees.py", "test_worktree_takes_the_work_and_gives_it_back"),
    "sandbox": Effect(("--sandbox", "off"), args=STREAM),
    "max_turns": Effect(("--max-turns", "1"), script=(writes, fine)),
    "max_cost": Effect(("--max-cost", "0.000001"), script=(writes, fine)),
    "max_tokens": Effect(("--max-tokens", "1"), script=(writes, fine)),
    "max_seconds": Effect(("--max-seconds", "0.000001"), script=(writes, fine)),
    "output_format": Effect(("--output-format", "json")),
    "json": Effect(("--json",)),
    "partial": Effect(("--include-partial-messages",), args=STREAM),
    "json_schema": Effect(("--json-schema", '{{"type": "object"}}')),
    "input_format": Effect(("--input-format", "stream-json"), args=("--output-format", "stream-json")),
    "output_last_message": Effect(("-o", "answer.txt")),
    "system_prompt": Effect(("--system-prompt", "Be brief.")),
    "append_system_prompt": Effect(("--append-system-prompt", "Be brief.")),
    "name": Effect(("--name", "Wobble")),
    "file": Effect(("-f", "notes.txt"), files=(("notes.txt", b"what is attached\n"),)),
    "no_mentions": Effect(
        ("--no-mentions",), args=("-p", "-m", "here/m", "see @notes.txt"), files=(("notes.txt", b"what is attached\n"),)
    ),
    "ignore_unsupported": Effect(("--ignore-unsupported",), BLIND, ("-f", "dot.png", *GO), files=(("dot.png", PNG),)),
    "tools": Effect(("--tools", "read")),
    "disallow_tools": Effect(("--disallow-tools", "read")),
    "set": Effect(("--set", "thinking=high")),
    "fallback_model": Effect(("--fallback-model", "here/other"), "retry.tries = 1", script=(broken, fine)),
    "wait_for_reset": Elsewhere("end_to_end/test_limits.py", "test_headless_waits_for_every_reset"),
    "mcp_config": Effect(("--mcp-config", '{{"mcpServers": {{"gone": {{"command": "no-such-program"}}}}}}')),
    "strict_mcp_config": Effect(("--strict-mcp-config",), 'mcp_servers.gone.command = "no-such-program"'),
    "verify": Effect(("--verify", "test ! -e written.txt"), PLAIN, script=(writes, fine)),
    "goal": Effect(("--goal", "it is written"), PLAIN),
    "until": Effect(("--until", "test -e written.txt"), PLAIN, ("--goal", "it is written", *GO), script=(writes, fine)),
    "budget": Effect(("--budget", "1turns"), PLAIN, ("--goal", "it is written", *GO), script=(writes, fine)),
    "trust": Effect(("--trust",), files=((".wolo/config.toml", b'permissions.deny = ["write:**"]\n'),), script=(writes, fine)),
    "plain": Elsewhere("end_to_end/test_plain.py", "test_one_reads_and_writes_in_turns"),
    "no_session": Effect(("--no-session",)),
    "debug_wire": Effect(("--debug-wire", "wire")),
    "version": Effect(("--version",)),
    "help": Effect(("--help",)),
    "verbose": Effect(("-v",), PLAIN, script=(writes, fine)),
}
"""For each option by its name, a run that differs with it, or the test that shows what it does."""


def test_every_option_has_a_row() -> None:
    """Add a row to PROOFS for a new option."""
    assert {option.name for option in OPTIONS} == set(PROOFS)


@pytest.mark.sweep(every=4)
@pytest.mark.parametrize("script", [(fine,), (writes, fine), (reads, fine), (lambda: runs("touch made"), fine), (broken, fine)])
@pytest.mark.parametrize("args", [GO, STREAM, ("--json", *GO)])
def test_runs_do_not_differ_by_themselves(
    script: tuple[Callable[[], Script], ...], args: tuple[str, ...], tmp_path: Path
) -> None:
    same = Effect((), MAY_RUN, args, script, before=BEFORE)
    assert observe(same, tmp_path / "one", with_it=True) == observe(same, tmp_path / "two", with_it=True)


@pytest.mark.parametrize("name", [name for name, proof in PROOFS.items() if isinstance(proof, Elsewhere)])
def test_effect_test_named_elsewhere_exists(name: str) -> None:
    proof = PROOFS[name]
    assert isinstance(proof, Elsewhere)
    assert f"def {proof.name}(" in (TESTS / proof.path).read_text()


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("name", [name for name, proof in PROOFS.items() if isinstance(proof, Effect)])
def test_it_makes_a_difference(name: str, tmp_path: Path) -> None:
    effect = PROOFS[name]
    assert isinstance(effect, Effect)
    without = observe(effect, tmp_path / "without", with_it=False)
    with_it = observe(effect, tmp_path / "with", with_it=True)
    assert "Unknown option" not in with_it
    assert without != with_it
