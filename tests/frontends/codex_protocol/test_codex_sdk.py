"""The Codex SDK drives wolo; written for @openai/codex-sdk 0.163.0."""

from __future__ import annotations

import json
from pathlib import Path

from tests.fakes import replies_responses as responses
from tests.fakes.provider_server import KEY, MODEL, ProviderServer
from tests.fakes.replies import call, calls, text
from tests.frontends.sdks import CODEX_NPM, at, run_node

PROGRAM = """
import { Codex } from '@openai/codex-sdk';
const codex = new Codex({ codexPathOverride: process.env.WOLO });
const options = { workingDirectory: process.env.WORK, skipGitRepoCheck: true, sandboxMode: 'danger-full-access' };
const thread = codex.startThread(options);
const { events } = await thread.runStreamed('work');
for await (const event of events) console.log(event.type, event.item?.type ?? '', event.item?.status ?? '');
const turn = await codex.resumeThread(thread.id, options).run([{ type: 'text', text: 'again' }], {
  outputSchema: { type: 'object', properties: { x: { type: 'number' } }, required: ['x'] },
});
console.log(turn.finalResponse, turn.usage.input_tokens);
try {
  await codex.startThread({ ...options, modelReasoningEffort: 'ultra' }).run('x');
} catch (error) {
  console.log(error.message.split(String.fromCharCode(10))[0]);
}
"""


def test_threads_run_and_resume(provider: ProviderServer) -> None:
    script = calls(("shell", {"command": "echo hi"}), ("write", {"path": "a.txt", "content": "a"}))
    provider.script(script, text("Done."), text('{"x": 3}'))
    run = run_node(PROGRAM, CODEX_NPM, {"WORK": str(Path.cwd()), **at(provider.base_url, KEY, MODEL)})
    assert run.returncode == 0, run.stderr
    lines = [line.strip() for line in run.stdout.splitlines()]
    assert lines[:5] == [
        "thread.started",
        "turn.started",
        "item.started command_execution in_progress",
        "item.completed command_execution completed",
        "item.completed file_change completed",
    ]
    assert lines[5:8] == ["item.completed agent_message", "turn.completed", '{"x": 3} 100']
    assert "ultra" in lines[8]
    assert Path("a.txt").read_text() == "a"


ADDRESS = """
import { Codex } from '@openai/codex-sdk';
const codex = new Codex({ codexPathOverride: process.env.WOLO, baseUrl: process.env.URL_OF_MODEL, apiKey: 'sk-of-the-program' });
const thread = codex.startThread({
  workingDirectory: process.env.WORK, skipGitRepoCheck: true, model: 'gpt-5', modelReasoningEffort: 'low',
  approvalPolicy: 'never',
  webSearchEnabled: false, networkAccessEnabled: false, additionalDirectories: [process.env.WORK],
});
console.log((await thread.run('hello')).finalResponse);
"""


def test_address_and_key_of_the_program_are_used(provider: ProviderServer) -> None:
    provider.script(responses.answer(responses.message("Hi.")))
    run = run_node(ADDRESS, CODEX_NPM, {"WORK": str(Path.cwd()), "URL_OF_MODEL": provider.base_url})
    assert run.stdout == "Hi.\n", run.stderr
    asked = provider.requests[0]
    assert asked.path.endswith("/responses")
    assert asked.headers["authorization"] == "Bearer sk-of-the-program"
    assert asked.json["model"] == "gpt-5"
    assert "fetch" not in json.dumps([tool["name"] for tool in asked.json["tools"]])


def test_denied_call_is_no_failure(provider: ProviderServer) -> None:
    provider.script(call("write", {"path": "a.txt", "content": "a"}), text("I may not."))
    program = PROGRAM.partition("const options")[0]
    program += """const thread = codex.startThread({ workingDirectory: process.env.WORK, skipGitRepoCheck: true });
console.log((await thread.run('work')).finalResponse);"""
    run = run_node(program, CODEX_NPM, {"WORK": str(Path.cwd()), **at(provider.base_url, KEY, MODEL)})
    assert run.stdout == "I may not.\n", run.stderr
    assert not Path("a.txt").exists()
