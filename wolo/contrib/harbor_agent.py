"""Defines the agent class that Harbor loads; importing this module imports Harbor."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from harbor.agents.capabilities import AgentCapabilities
from harbor.agents.installed import base
from harbor.agents.options import InstalledAgentOptions
from pydantic import model_validator

from wolo.contrib.harbor import WITH_TOOLS, install_command, model_variables, read_usage, run_command, server_options

_FLAGS = ("mode", "thinking", "max_turns", "max_cost", "max_tokens", "max_seconds")
_ERRORS = {
    "auth": base.AgentAuthenticationError,
    "quota": base.ApiUsageLimitError,
    "rate_limited": base.ApiRateLimitError,
    "context_overflow": base.ContextWindowExceededError,
    "content_refused": base.AgentSafetyRefusalError,
    "unavailable": base.ApiOverloadedError,
    "bad_request": base.UnknownApiError,
    "bad_answer": base.UnknownApiError,
    "provider": base.UnknownApiError,
}
"""Harbor's classes, by which it retries, for the kinds in a result of wolo."""


class WoloOptions(InstalledAgentOptions):  # type: ignore[misc]  # Harbor is not installed where types are checked
    """The options of `--ak NAME=VALUE`; Harbor refuses every other one."""

    mode: str = "yolo"  # the container is the sandbox
    thinking: str | None = None
    max_turns: int | None = None
    max_cost: float | None = None
    max_tokens: int | None = None
    max_seconds: int | None = None
    wheel: str | None = None

    @model_validator(mode="after")
    def check(self) -> WoloOptions:
        if self.base_url:
            raise ValueError(f"set the variable instead: --ae WOLO_BASE_URL={self.base_url}, with --ae WOLO_API_KEY=…")
        if self.thinking and self.reasoning_effort:
            raise ValueError("thinking and reasoning_effort are the same; give one of them")
        if self.wheel and self.version:
            raise ValueError("wheel and version exclude each other")
        if self.wheel and not (self.wheel.endswith(".whl") and Path(self.wheel).is_file()):
            raise ValueError(f"wheel: {self.wheel} is no wheel on this machine")
        return self


class WoloAgent(base.BaseInstalledAgent):  # type: ignore[misc]  # as above
    """Installs wolo in the container of a task and runs it there."""

    capabilities = AgentCapabilities(atif=True, mcp_servers=True, reasoning_effort=True, native_web_tools=True)
    options_model = WoloOptions
    ERROR_PATTERNS = [  # noqa: RUF012  # Harbor's own declaration
        *(base.ErrorPattern(rf'"kind": ?"{kind}"', error) for kind, error in _ERRORS.items()),
        base.ErrorPattern(r'"code": ?"model_not_found"', base.ModelNotFoundError),
        *(each for each in base.BaseInstalledAgent.ERROR_PATTERNS if each.exception is base.NetworkConnectionError),
    ]

    @staticmethod
    def name() -> str:
        return "wolo"

    def get_version_command(self) -> str:
        return f"{WITH_TOOLS}wolo --version"

    def parse_version(self, stdout: str) -> str:
        return stdout.strip().removeprefix("wolo").strip()

    async def install(self, environment: Any) -> None:
        await self.ensure_system_dependencies(environment, ("curl", "git"))
        wheel = ""
        if self.options.wheel:
            wheel = f"/tmp/{Path(self.options.wheel).name}"  # of the container
            await environment.upload_file(self.options.wheel, wheel)
            await self.exec_as_root(environment, command=f"chmod a+r {wheel}")
        await self.exec_as_agent(environment, command=install_command(self._version, wheel))

    @base.with_prompt_template  # type: ignore[untyped-decorator]  # as above
    async def run(self, instruction: str, environment: Any, context: Any) -> None:
        """`context` is filled afterwards, from the result that the run leaves in the logs."""
        model = ["--model", self.model_name] if self.model_name else []
        options = {name: getattr(self.options, name) for name in _FLAGS}
        options["thinking"] = self.options.thinking or self.options.reasoning_effort
        flags = [
            word for name, value in options.items() if value is not None for word in (f"--{name.replace('_', '-')}", str(value))
        ]
        flags += ["--set", 'tools.hide=["fetch", "web_search"]'] if self.options.disable_web_search else []
        command = run_command(instruction, self.environment_logs_dir, *model, *flags, *server_options(self.mcp_servers))
        variables = model_variables(self.model_name or "", {**os.environ, **self.extra_env})
        await self.exec_as_agent(environment, command=command, env=variables)

    def populate_context_post_run(self, context: Any) -> None:
        if (used := read_usage(self.logs_dir)) is None:
            return
        context.n_input_tokens, context.n_cache_tokens = used.input_tokens, used.cached_tokens
        context.n_output_tokens, context.cost_usd = used.output_tokens, used.cost_usd
        context.metadata = {"session_id": used.session_id, "exit_code": used.exit_code}
