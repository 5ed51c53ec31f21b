"""The files that a reader of one turn has to open, and how often the way goes from one to another."""

from __future__ import annotations

from tests.architecture.hop_probe import BEFORE, TURN, probe
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text

MOST_FILES_OF_A_PROMPT = 55
MOST_MOVES_OF_A_PROMPT = 400
"""A few more than there are: how many pieces a response arrives in varies."""
PROBES = 2
"""Of the prompt; the one with fewer moves counts, because a busy machine wakes the client more often."""
MOST_FILES_OF_A_SHELL_CALL = 85
MOST_FILES_BEFORE_THE_TURN = 103


def test_prompt_and_shell_call_enter_few_files(provider: ProviderServer) -> None:
    answer = text("Hello.").split(100_000)
    provider.script(answer, *[answer] * PROBES, call("shell", {"command": "echo hi"}).split(100_000), answer)
    probe(provider.base_url, "auto")  # creates the database and tries the sandbox out
    prompts = []
    for _ in range(PROBES):
        provider.forget_prefix()
        prompts.append(probe(provider.base_url, "auto"))
    prompt = min(prompts, key=lambda phases: sum(num for *_, num in phases[TURN]["moves"]))
    provider.forget_prefix()
    shell = probe(provider.base_url, "auto")
    num_moves = sum(num for *_, num in prompt[TURN]["moves"])
    files = {way: len(phases[TURN]["files"]) for way, phases in (("prompt", prompt), ("shell call", shell))}
    print(f"prompt: {files['prompt']} files, {num_moves} moves; shell call: {files['shell call']} files")
    assert files["prompt"] <= MOST_FILES_OF_A_PROMPT
    assert num_moves <= MOST_MOVES_OF_A_PROMPT
    assert files["shell call"] <= MOST_FILES_OF_A_SHELL_CALL
    assert len(prompt[BEFORE]["files"]) <= MOST_FILES_BEFORE_THE_TURN
