"""Forms of files that public projects keep for other agents, rewritten in short: place, content, what becomes of it.

Frontmatter, keys and their oddities are those of public repositories and manuals; texts, names and addresses are not.
"""

from __future__ import annotations

from typing import Any, Literal

Outcome = Literal["read", "named"]
"""`named`: it cannot be used here, and a sentence says so."""
RULES: tuple[tuple[str, str], ...] = (
    ("AGENTS.md", "# Working here\n\nUse tabs."),
    ("AGENT.md", "Use tabs."),
    ("CLAUDE.md", "# CLAUDE.md\r\n\r\nUse tabs.\r\n"),
    (".claude/CLAUDE.md", "\ufeff# Project\n\nUse tabs."),
    ("GEMINI.md", "<!-- generated -->\nUse tabs."),
    ("QWEN.md", "# Projekt\n\nTabulatoren."),
    (".junie/guidelines.md", "## Guidelines\n- Use tabs"),
    (".junie/AGENTS.md", "Use tabs."),
    (".github/copilot-instructions.md", "- [Style](../docs/style.md)\n- Use tabs"),
    (".cursorrules", "You are an expert in Rust.\n\nKey Principles\n- Use tabs\n"),
    (".windsurfrules", '{\n  "rules": "Use tabs"\n}'),
    (".clinerules", "# Rules\nUse tabs."),
    (".roorules", "Use tabs."),
    (".rules", "Use tabs.\n---\nAnd spaces in YAML."),
    (".goosehints", "This is a Go project. @README.md"),
    (".claude/rules/style.md", "Use tabs."),
    (".claude/rules/api/routes.md", '---\npaths:\n  - "src/**/*.py"\n---\n# Routes\nUse tabs.'),
    (".claude/rules/web.md", '---\npaths: "src/**/*.{ts,tsx,py}"\n---\nUse tabs.'),
    (
        ".cursor/rules/always.mdc",
        "---\ndescription: Security baseline — no secrets, no PII.\nalwaysApply: true\n---\n\n# Security\nUse tabs.",
    ),
    (".cursor/rules/empty.mdc", "---\ndescription: \nglobs: \nalwaysApply: true\n---\nUse tabs."),
    (".cursor/rules/globs.mdc", "---\ndescription: Python\nglobs: *.py, **/*.pyi\nalwaysApply: false\n---\nUse tabs."),
    (".cursor/rules/star.mdc", "---\nglobs: **/*.py\n---\nUse tabs."),
    (
        ".cursor/rules/quoted.mdc",
        '---\ndescription: "Architecture: layers"\nglobs: "src/**/*.py"\nalwaysApply: false\n---\nUse tabs.',
    ),
    (".cursor/rules/list.mdc", '---\nglobs: ["src/**", "lib/**"]\nalwaysApply: false\n---\nUse tabs.'),
    (".cursor/rules/subject.mdc", "---\ndescription: Agent 路由规则\nalwaysApply: false\n---\n\n# Agent 路由规则\n\n何时激活。"),
    (
        ".cursor/rules/order.mdc",
        '---\nalwaysApply: false\ndescription: "当用户涉及 Java 代码编写时触发。适用于: 规范"\n---\nUse tabs.',
    ),
    (".cursor/rules/colon.mdc", "---\ndescription: Use it so: first this, then that\nalwaysApply: true\n---\nUse tabs."),
    (".cursor/rules/manual.mdc", "---\nalwaysApply: false\n---\nUse tabs."),
    (".cursor/rules/plain.md", "Use tabs."),
    (".cursor/rules/deep/er/x.mdc", "---\ndescription: x\nglobs: src/app/**\nalwaysApply: false\n---\nUse tabs."),
    (".github/instructions/all.instructions.md", "---\ndescription: 'Keep a safe environment.'\napplyTo: '**'\n---\n\nUse tabs."),
    (".github/instructions/py.instructions.md", '---\napplyTo: "src/**/*.py"\n---\n\nUse tabs.'),
    (
        ".github/instructions/two.instructions.md",
        "---\ndescription: Rules for tests\napplyTo: src/**/*.py, src/**/*.ts\n---\nUse tabs.",
    ),
    (
        ".github/instructions/braces.instructions.md",
        "---\napplyTo: '{src/**,types/**}'\ndescription: 'Schema, relations'\n---\nUse tabs.",
    ),
    (".github/instructions/odd.instructions.md", "---\napplyTo: workspace\nowner: someone\nupdated: 2025-08-10\n---\nUse tabs."),
    (".github/instructions/on-request.instructions.md", "---\ndescription: 'How to release'\n---\nUse tabs."),
    (".github/instructions/sub/name.instructions.md", "---\nname: x\napplyTo: ['**/*.py']\n---\nUse tabs."),
    (".windsurf/rules/always.md", "---\ntrigger: always_on\n---\n\nUse tabs."),
    (".windsurf/rules/glob.md", "---\ntrigger: glob\nglobs: src/**/*.py\ndescription: Standards for the core.\n---\nUse tabs."),
    (".windsurf/rules/list.md", "---\ntrigger: glob\nglobs:\n  - Dockerfile\n  - src/**/*\n  - pyproject.toml\n---\nUse tabs."),
    (".windsurf/rules/flow.md", '---\ntrigger: glob\nglobs: ["docker/**", "src/**", ".env*"]\n---\nUse tabs.'),
    (".windsurf/rules/one.md", "---\ntrigger: glob\nglob: '**/*.{py,ts,tsx}'\ndescription: Standards.\n---\nUse tabs."),
    (".windsurf/rules/none.md", '---\ntrigger: glob\ndescription: "Manages projects: plans, sprints."\n---\nUse tabs.'),
    (".windsurf/rules/model.md", "---\ntrigger: model_decision\ndescription: When writing tests\n---\nUse tabs."),
    (".windsurf/rules/manual.md", "---\ntrigger: manual\nauto_execution_mode: 3\n---\nUse tabs."),
    (".windsurf/rules", "Use tabs."),
    (".clinerules/01-style.md", "# Style\nUse tabs."),
    (".clinerules/testing.md", '---\npaths:\n  - "src/**"\n---\nUse tabs.'),
    (".cline/rules/a.txt", "Use tabs."),
    (".roo/rules/01-a.md", "Use tabs."),
    (".roo/rules-code/b.md", "Use tabs."),
    (".continue/rules/py.md", '---\nname: Python\nglobs: "**/*.py"\n---\n\nUse tabs.'),
    (".continue/rules/repo.md", "---\ndescription: Repository Information Overview\nalwaysApply: true\n---\n\nUse tabs."),
    (".continue/rules/regex.md", "---\nname: x\nregex: 'import'\nalwaysApply: false\ndescription: Imports\n---\nUse tabs."),
    (".kiro/steering/product.md", "# Product\nUse tabs."),
    (".kiro/steering/match.md", '---\ninclusion: fileMatch\nfileMatchPattern: "src/**/*"\n---\n\nUse tabs.'),
    (
        ".kiro/steering/many.md",
        '---\ninclusion: fileMatch\nfileMatchPattern: ["**/*.dart", "**/*.py"]\ndescription: Checklist for x\n---\nUse tabs.',
    ),
    (".kiro/steering/single.md", "---\ninclusion: fileMatch\nfileMatchPattern: 'src/**/*.{ts,py}'\n---\nUse tabs."),
    (
        ".kiro/steering/comma.md",
        '---\ninclusion: fileMatch\nfileMatchPattern: "site/db/**,**/migrations/**,src/a*"\n---\nUse tabs.',
    ),
    (".kiro/steering/bare.md", "---\ninclusion: fileMatch\nfileMatchPattern: src/**\n---\nUse tabs."),
    (".kiro/steering/manual.md", "---\ninclusion: manual\n---\nUse tabs."),
    (".kiro/steering/auto.md", "---\ninclusion: auto\nname: api\ndescription: API standards\n---\nUse tabs."),
)
NPX: dict[str, Any] = {"command": "npx", "args": ["-y", "@scope/server@latest"]}
URL = "https://mcp.example.org/mcp"
SERVERS: tuple[tuple[str, Any, Outcome], ...] = (
    (".mcp.json", {"mcpServers": {"a": {"type": "stdio", **NPX, "env": {}}}}, "read"),
    (
        ".mcp.json",
        {"mcpServers": {"a": {"type": "http", "url": URL, "headers": {"Authorization": "Bearer ${TOKEN:-x}"}}}},
        "read",
    ),
    (".cursor/mcp.json", {"mcpServers": {"a": {**NPX, "env": {"KEY": "${env:KEY}"}}}}, "read"),
    (
        ".continue/mcpServers/a.yaml",
        "name: A\nversion: 0.0.1\nschema: v1\nmcpServers:\n  - name: a\n    command: npx\n    args:\n      - -y\n"
        "    env:\n      KEY: ${{ secrets.KEY }}\n",
        "read",
    ),
    (
        ".continue/config.yaml",
        "models: []\nmcpServers:\n  - name: a\n    type: sse\n    url: https://mcp.example.org/sse\n",
        "read",
    ),
    (".continue/config.yaml", "mcpServers:\n  - uses: owner/server\n", "named"),
    (".cursor/mcp.json", {"mcpServers": {"My Server (dev)": {"url": URL}}}, "named"),
    (".cursor/mcp.json", '{\n  // ours\n  "mcpServers": {"a": {"url": "https://mcp.example.org/sse",},},\n}', "read"),
    (".vscode/mcp.json", {"servers": {"a": {"type": "stdio", **NPX}}, "inputs": []}, "read"),
    (".vscode/mcp.json", {"servers": {"a": {"type": "http", "url": URL, "gallery": True, "version": "1.0.0"}}}, "read"),
    (".vscode/mcp.json", {"mcp": {"inputs": [], "servers": {"a": {**NPX, "cwd": "${workspaceFolder}/x"}}}}, "read"),
    (".vscode/mcp.json", {"inputs": [{"id": "t"}], "servers": {"a": {"url": URL, "headers": {"X": "${input:t}"}}}}, "named"),
    (".roo/mcp.json", {"mcpServers": {"a": {**NPX, "disabled": False, "alwaysAllow": ["search"], "timeout": 60}}}, "read"),
    (".roo/mcp.json", {"mcpServers": {"a": {"type": "streamable-http", "url": URL, "alwaysAllow": []}}}, "read"),
    (".github/mcp.json", {"mcpServers": {"a": {"type": "local", **NPX, "tools": ["*"]}}}, "read"),
    (
        ".gemini/settings.json",
        {"ui": {"theme": "x"}, "mcpServers": {"a": {"httpUrl": URL, "timeout": 5000, "trust": True}}},
        "read",
    ),
    (".gemini/settings.json", {"mcpServers": {"a": {"url": URL, "includeTools": ["x"]}}}, "read"),
    (".qwen/settings.json", {"$version": 3, "mcpServers": {"a": {**NPX, "cwd": "./x"}}}, "read"),
    (".codex/config.toml", 'model = "x"\n[mcp_servers.a]\ncommand = "npx"\nargs = ["-y", "x"]\nenv = { KEY = "v" }\n', "read"),
    (
        ".codex/config.toml",
        f'[mcp_servers.a]\nurl = "{URL}"\nbearer_token_env_var = "T"\nenabled = true\nstartup_timeout_sec = 20\n',
        "read",
    ),
    (
        "opencode.json",
        {"$schema": "https://opencode.ai/config.json", "mcp": {"a": {"type": "local", "command": ["npx", "x"], "enabled": True}}},
        "read",
    ),
    (
        "opencode.jsonc",
        '{"mcp": {"a": {"type": "remote", "url": "https://mcp.example.org/mcp", "headers": {"K": "{env:K}"}}}} // end',
        "read",
    ),
    (".zed/settings.json", {"context_servers": {"a": {"source": "custom", **NPX, "env": {}}}}, "read"),
    (
        ".zed/settings.json",
        {"context_servers": {"a": {"command": {"path": "npx", "args": ["x"], "env": {}}, "settings": {}}}},
        "read",
    ),
    (".zed/settings.json", {"context_servers": {"a": {"url": URL, "headers": {"A": "b"}}}}, "read"),
    (".zed/settings.json", {"context_servers": {"a": {"settings": {"url": URL}}}}, "named"),
    (".amp/settings.json", {"amp.mcpServers": {"a": NPX}}, "read"),
    (".kiro/settings/mcp.json", {"mcpServers": {"a": {**NPX, "disabled": False, "autoApprove": ["x"]}}}, "read"),
    (".junie/mcp/mcp.json", {"mcpServers": {"a": NPX}}, "read"),
    (".factory/mcp.json", {"mcpServers": {"a": {"type": "http", "url": URL, "disabled": False}}}, "read"),
)
GROUP: dict[str, Any] = {"matcher": "Bash", "hooks": [{"type": "command", "command": "./guard.sh"}]}
HOOKS: tuple[tuple[str, Any, Outcome], ...] = (
    (".claude/settings.json", {"hooks": {"PreToolUse": [GROUP]}}, "read"),
    (".claude/settings.json", {"hooks": {"PreToolUse": [{**GROUP, "matcher": "Read|Grep|Bash|Edit|Write|MultiEdit"}]}}, "read"),
    (
        ".cursor/hooks.json",
        {"version": 1, "hooks": {"beforeShellExecution": [{"command": "./hooks/audit.sh", "timeout": 5}]}},
        "read",
    ),
    (".cursor/hooks.json", {"hooks": {"beforeShellExecution": [{"command": "x", "matcher": "rm -rf|DROP TABLE"}]}}, "read"),
    (".cursor/hooks.json", {"hooks": {"afterFileEdit": [{"command": "$CURSOR_PROJECT_DIR/f.sh", "matcher": "Write"}]}}, "read"),
    (".cursor/hooks.json", {"hooks": {"beforeMCPExecution": [{"command": "x evaluate"}], "stop": [{"command": "y"}]}}, "read"),
    (".cursor/hooks.json", {"hooks": {"preToolUse": [{"command": "x", "matcher": "StrReplace"}]}}, "read"),
    (".cursor/hooks.json", {"hooks": {"beforeSubmitPrompt": [{"type": "prompt", "prompt": "Is it safe?"}]}}, "read"),
    (".cursor/hooks.json", {"hooks": {"afterAgentResponse": [{"command": "x"}]}}, "named"),
    (
        ".github/hooks/a.json",
        {
            "version": 1,
            "hooks": {"preToolUse": [{"type": "command", "bash": "./g.sh", "powershell": "./g.ps1", "timeoutSec": 30}]},
        },
        "read",
    ),
    (
        ".github/hooks/b.json",
        {
            "version": 1,
            "hooks": {"preToolUse": [{"matcher": "bash", "type": "command", "bash": "./g.sh", "cwd": ".", "env": {"M": "deny"}}]},
        },
        "read",
    ),
    (
        ".github/hooks/c.json",
        {"version": 1, "hooks": {"sessionStart": [{"type": "command", "bash": "date", "comment": "x"}], "preToolUse": []}},
        "read",
    ),
    (".github/hooks/d.json", {"hooks": {"PreToolUse": [{"type": "command", "command": "./g.sh"}]}}, "read"),
    (".github/hooks/e.json", {"version": 1, "hooks": {"sessionStart": [{"type": "prompt", "prompt": "/plan"}]}}, "named"),
    (
        ".gemini/settings.json",
        {
            "hooks": {
                "BeforeTool": [
                    {
                        "matcher": "write_file|replace",
                        "hooks": [{"name": "lint", "type": "command", "command": "x", "timeout": 5000}],
                    }
                ]
            }
        },
        "read",
    ),
    (
        ".gemini/settings.json",
        {"hooks": {"AfterAgent": [{"hooks": [{"type": "command", "command": "x", "description": "y"}]}]}},
        "read",
    ),
    (".gemini/settings.json", {"hooks": {"BeforeModel": [{"hooks": [{"type": "command", "command": "x"}]}]}}, "named"),
    (
        ".qwen/settings.json",
        {"hooks": {"PreToolUse": [{"matcher": "^run_shell_command$", "hooks": [{"type": "command", "command": "x"}]}]}},
        "read",
    ),
    (
        ".codex/hooks.json",
        {"hooks": {"PreToolUse": [{"matcher": "^Bash$", "hooks": [{"type": "command", "command": "x", "statusMessage": "y"}]}]}},
        "read",
    ),
    (
        ".codex/hooks.json",
        {"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "x", "shell": "bash", "async": False}]}]}},
        "read",
    ),
    (
        ".factory/settings.json",
        {"hooks": {"PostToolUse": [{"matcher": "Edit|Create", "hooks": [{"type": "command", "command": "x"}]}]}},
        "read",
    ),
    (".windsurf/hooks.json", {"hooks": {"pre_run_command": [{"command": "python3 x.py", "show_output": True}]}}, "read"),
    (".windsurf/hooks.json", {"hooks": {"pre_write_code": [{"command": "x", "working_directory": "tools"}]}}, "read"),
    (".windsurf/hooks.json", {"hooks": {"post_setup_worktree": [{"command": "x"}]}}, "named"),
    (
        ".kiro/hooks/lint.json",
        {
            "version": "v1",
            "hooks": [
                {
                    "name": "guard",
                    "description": "y",
                    "trigger": "PreToolUse",
                    "matcher": "fs_write|str_replace|fs_append",
                    "action": {"type": "command", "command": "./check.sh"},
                    "timeout": 30,
                    "enabled": True,
                }
            ],
        },
        "read",
    ),
    (
        ".kiro/hooks/old.kiro.hook",
        {
            "enabled": True,
            "name": "n",
            "version": "1.0.0",
            "when": {"type": "promptSubmit"},
            "then": {"type": "runCommand", "command": "date", "timeout": 30},
        },
        "read",
    ),
    (
        ".kiro/hooks/save.json",
        {
            "version": "v1",
            "hooks": [{"trigger": "PostFileSave", "matcher": "ts$", "action": {"type": "command", "command": "x"}}],
        },
        "named",
    ),
    (
        ".kiro/hooks/ask.kiro.hook",
        {"enabled": True, "when": {"type": "agentStop"}, "then": {"type": "askAgent", "prompt": "Update the docs."}},
        "named",
    ),
    (".clinerules/hooks/PreToolUse.py", "#!/usr/bin/env python3\n", "read"),
    (".cline/hooks/TaskComplete.js", "console.log('{}')\n", "read"),
    (".clinerules/hooks/PreToolUse", "#!/usr/bin/env bash\n", "named"),
    (".clinerules/hooks/TaskCancel.sh", "", "named"),
)
TEXT = "---\ndescription: Does it\n---\nDo it."
COMMANDS: tuple[tuple[str, str], ...] = (
    (
        ".goose/recipes/review.yaml",
        'version: "1.0.0"\ntitle: Review\ndescription: Reviews\ninstructions: |\n  Do it for {{ branch }}.\nparameters:\n'
        "  - key: branch\n    input_type: string\n    requirement: optional\n    default: main\n    description: x\n",
    ),
    (".goose/recipes/a.json", '{"title": "A", "description": "d", "prompt": "Do it.", "extensions": [{"type": "builtin"}]}'),
    (".cursor/commands/fix it.md", "# Fix\n\nDo it."),
    (
        ".claude/commands/git/commit.md",
        "---\nallowed-tools: Bash(git add:*), Bash(git status:*)\ndescription: Commit\nargument-hint: [message]\n---\nDo it.",
    ),
    (
        ".github/prompts/docs.prompt.md",
        "---\ndescription: 'Docs'\nmode: 'agent'\nmodel: GPT-4.1\ntools: ['codebase', 'editFiles']\n---\nDo it.",
    ),
    (".github/prompts/new.prompt.md", "---\nagent: agent\ntools: [search/codebase, 'edit']\n---\nDo it for ${input:name}."),
    (
        ".windsurf/workflows/test.md",
        '---\ntitle: "/run-tests"\ndescription: "运行构建+单测，并修复。"\nauto_execution_mode: 1\n---\n\n1. Do it.',
    ),
    (".windsurf/workflows/empty.md", "---\ndescription: \nauto_execution_mode: 3\n---\n\nDo it."),
    (".windsurf/workflows/related.md", "---\ntitle: Delete\ndescription: ลบไฟล์\nrelated:\n  - /edit\n---\nDo it."),
    (".clinerules/workflows/pr.md", "# PR\n<detailed_sequence>Do it.</detailed_sequence>"),
    (".roo/commands/review.md", "---\ndescription: Review\nargument-hint: <file>\nmode: code\n---\nDo it."),
    (".qwen/commands/a.toml", 'description = "x"\nprompt = """Do it {{args}}"""\n'),
    (".gemini/commands/git/a.toml", "prompt = 'Do it !{git status}'\n"),
    (".opencode/command/a.md", "---\ndescription: x\nagent: build\nsubtask: false\n---\nDo it $ARGUMENTS"),
    (".factory/commands/a.md", TEXT),
    (".kiro/prompts/a.md", "Do it."),
    (".continue/prompts/a.md", "---\nname: x\ndescription: y\ninvokable: true\n---\nDo it."),
    (".pi/prompts/c++.md", TEXT),
    (".junie/commands/a.md", TEXT),
)
AGENTS: tuple[tuple[str, str], ...] = (
    (
        ".roomodes",
        "customModes:\n  - slug: docs\n    name: 📝 Docs\n    roleDefinition: >-\n      Do it.\n    whenToUse: For texts\n"
        "    groups:\n      - read\n      - - edit\n        - fileRegex: \\.md$\n          description: Markdown\n",
    ),
    (".roomodes", '{"customModes": [{"slug": "t", "name": "T", "roleDefinition": "Do it.", "groups": ["read", "command"]}]}'),
    (
        ".claude/agents/r.md",
        "---\nname: code-reviewer\ndescription: Use it PROACTIVELY: after edits\n"
        "tools: Read, Grep, Bash\nmodel: sonnet\ncolor: green\n---\nDo it.",
    ),
    (
        ".cursor/agents/v.md",
        "---\nname: verifier\ndescription: x\nmodel: inherit\nreadonly: true\nis_background: false\n---\nDo it.",
    ),
    (
        ".github/agents/Plan.agent.md",
        "---\ndescription: Plans\ntools: ['read', 'search', 'edit']\nhandoffs:\n"
        "  - label: Go\n    agent: plan.implement\n    prompt: Start\n    send: true\n---\nDo it.",
    ),
    (".github/agents/c#.agent.md", "---\nname: C# Expert\ndescription: x\n---\nDo it."),
    (".github/chatmodes/Ask.chatmode.md", "---\ndescription: 'Asks'\ntools: []\nmodel: Claude Sonnet 4\n---\nDo it."),
    (".factory/droids/q.md", '---\nname: qa\ndescription: x\nmodel: inherit\ntools: ["Read", "Execute"]\n---\nDo it.'),
    (".qwen/agents/t.md", "---\nname: tester\ndescription: x\ntools:\n  - read_file\n---\nDo it ${project_name}."),
    (".opencode/agents/d.md", "---\ndescription: x\nmode: subagent\ntemperature: 0.1\ntools:\n  write: false\n---\nDo it."),
    (".gemini/agents/g.md", "---\nname: g\ndescription: x\nkind: local\ntools: [read_file]\nmax_turns: 5\n---\nDo it."),
    (".junie/agents/j.md", "---\nname: j\ndescription: x\n---\nDo it."),
)
SKILLS: tuple[tuple[str, str], ...] = tuple(
    (f"{folder}/{name}/SKILL.md", text)
    for folder in (
        *(".claude/skills", ".agents/skills", ".github/skills", ".cursor/skills", ".windsurf/skills", ".cline/skills"),
        *(".roo/skills", ".qwen/skills", ".goose/skills", ".factory/skills", ".junie/skills", ".kiro/skills", ".continue/skills"),
    )
    for name, text in (
        ("pdf", "---\nname: pdf\ndescription: Fills PDFs. Use when: forms\nlicense: MIT\nmetadata:\n  version: 1.0\n---\nDo it."),
        ("審查", "---\nname: 審查\ndescription: >\n  審查代碼\n  的技能\nallowed-tools: Read Bash(git:*)\n---\nDo it."),
    )
)
