"""The Claude Agent SDK for TypeScript drives wolo; written for @anthropic-ai/claude-agent-sdk 0.3.332."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.provider_server import KEY, MODEL, ProviderServer
from tests.fakes.replies import calls, text
from tests.frontends.sdks import CLAUDE_NPM, at, run_node

PROGRAM = """
import { query, tool, createSdkMcpServer } from '@anthropic-ai/claude-agent-sdk';
import { z } from 'zod';

const add = tool('add', 'Adds', { a: z.number(), b: z.number() }, async (args) => ({
  content: [{ type: 'text', text: `sum ${args.a + args.b}` }],
}));
const before = async (input) => {
  console.log('before', input.tool_name);
  return {};
};
const running = query({
  prompt: (async function* () {
    yield { type: 'user', message: { role: 'user', content: 'work' }, parent_tool_use_id: null, session_id: '' };
  })(),
  options: {
    pathToClaudeCodeExecutable: process.env.WOLO,
    cwd: process.env.WORK,
    mcpServers: { calc: createSdkMcpServer({ name: 'calc', version: '1.0.0', tools: [add] }) },
    allowedTools: ['mcp__calc__add'],
    canUseTool: async (name, input) => {
      console.log('asked', name);
      return name === 'Bash' ? { behavior: 'deny', message: 'no commands' } : { behavior: 'allow', updatedInput: input };
    },
    hooks: { PreToolUse: [{ matcher: 'Write', hooks: [before] }] },
    agents: { reviewer: { description: 'reviews', prompt: 'You review.', tools: ['Read'] } },
    includePartialMessages: true,
    settings: { permissions: { deny: ['Read(.env)'] } },
    outputFormat: { type: 'json_schema', schema: { type: 'object', properties: { x: { type: 'number' } }, required: ['x'] } },
  },
});
console.log('models', (await running.supportedModels()).map((each) => each.value).join());
console.log('agents', (await running.supportedAgents()).map((each) => each.name).join());
console.log('servers', (await running.mcpServerStatus()).map((each) => `${each.name} ${each.status}`).join());
for await (const message of running) {
  if (message.type === 'result') console.log('result', message.subtype, JSON.stringify(message.structured_output));
}
"""


def test_callbacks_servers_and_agents_work(provider: ProviderServer) -> None:
    provider.script(
        calls(
            ("mcp__calc__add", {"a": 1, "b": 2}),
            ("shell", {"command": "touch made"}),
            ("write", {"path": "a.txt", "content": "a"}),
        ),
        text('{"x": 3}'),
    )
    run = run_node(PROGRAM, CLAUDE_NPM, {"WORK": str(Path.cwd()), **at(provider.base_url, KEY, MODEL)})
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [
        "models custom/test-model",
        "agents explore,general,reviewer",
        "servers calc connected",
        *("asked Bash", "before Write", "asked Write"),
        'result success {"x":3}',
    ]
    assert Path("a.txt").read_text() == "a"
    assert not Path("made").exists()
    assert provider.requests[1].results[0] == "sum 3"


REWINDING = """
import { query } from '@anthropic-ai/claude-agent-sdk';
const uuid = '5d0b1bb5-2f5c-4b7d-8b1c-6f3a4a0f6a11';
let finish;
const running = query({
  prompt: (async function* () {
    yield { type: 'user', message: { role: 'user', content: 'work' }, parent_tool_use_id: null, session_id: '', uuid };
    await new Promise((resolve) => { finish = resolve; });
  })(),
  options: {
    pathToClaudeCodeExecutable: process.env.WOLO,
    cwd: process.env.WORK,
    permissionMode: 'acceptEdits',
    enableFileCheckpointing: true,
  },
});
for await (const message of running) {
  if (message.type === 'result') {
    const [preview, rewound] = [await running.rewindFiles(uuid, { dryRun: true }), await running.rewindFiles(uuid)];
    console.log(preview.canRewind, rewound.canRewind, rewound.filesChanged.length);
    finish();
    break;
  }
}
"""


def test_files_are_rewound(provider: ProviderServer) -> None:
    provider.script(calls(("write", {"path": "a.txt", "content": "a"})), text("Done."))
    run = run_node(REWINDING, CLAUDE_NPM, {"WORK": str(Path.cwd()), **at(provider.base_url, KEY, MODEL)})
    assert (run.stdout, Path("a.txt").exists()) == ("true true 1\n", False), run.stderr


INTERRUPTED = """
import { query } from '@anthropic-ai/claude-agent-sdk';
let finish;
const running = query({
  prompt: (async function* () {
    yield { type: 'user', message: { role: 'user', content: 'work' }, parent_tool_use_id: null, session_id: '' };
    await new Promise((resolve) => { finish = resolve; });
  })(),
  options: { pathToClaudeCodeExecutable: process.env.WOLO, cwd: process.env.WORK, allowedTools: ['Bash'] },
});
for await (const message of running) {
  if (message.type === 'assistant') await running.interrupt();
  if (message.type === 'result') { console.log(message.subtype, message.errors.join()); finish(); break; }
}
"""


def test_interrupt_ends_the_turn(provider: ProviderServer) -> None:
    provider.script(calls(("shell", {"command": "sleep 60"})))
    run = run_node(INTERRUPTED, CLAUDE_NPM, {"WORK": str(Path.cwd()), **at(provider.base_url, KEY, MODEL)})
    assert run.stdout == "error_during_execution Interrupted.\n", run.stderr
