"""The SDKs of other agents, as `make sdks` leaves them in `.venv/sdks`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.components import miss

FOLDER = Path(sys.prefix) / "sdks"
PYTHON_SDK = "claude_agent_sdk-0.2.189"
CLAUDE_NPM, CODEX_NPM = "@anthropic-ai/claude-agent-sdk", "@openai/codex-sdk"
WOLO = Path(sys.executable).with_name("wolo")


def require_python_sdk() -> Path:
    """The unpacked source distribution of `claude-agent-sdk`, with its examples."""
    folder = FOLDER / PYTHON_SDK
    return folder if folder.is_dir() else miss("the package claude-agent-sdk of PyPI (run `make sdks`)")


def require_npm_sdk(package: str) -> Path:
    """The folder that holds its `node_modules`. Without npm, from which it comes, the test is skipped everywhere."""
    if shutil.which("npm") is None:
        pytest.skip(f"this test needs npm and the package {package}")
    return FOLDER if (FOLDER / "node_modules" / package).is_dir() else miss(f"the package {package} of npm (run `make sdks`)")


def run_python(program: Path, *args: str, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs a program of the Python SDK, for which `claude` is wolo."""
    folder = require_python_sdk()
    return _run([sys.executable, str(program), *args], {"PYTHONPATH": str(folder / "src"), **env})


def run_node(program: str, package: str, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs a module beside the SDK, as node looks for packages there."""
    folder = require_npm_sdk(package)
    return _run(["node", "--input-type=module", "--eval", program], env, cwd=folder)


def _run(command: list[str], env: Mapping[str, str], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    programs = Path.cwd().parent / "programs"
    programs.mkdir(exist_ok=True)
    for name in ("claude", "codex"):
        if not (programs / name).is_symlink():
            (programs / name).symlink_to(WOLO)
    whole = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "WOLO": str(WOLO), **env}
    return subprocess.run(command, env=whole, cwd=cwd, capture_output=True, text=True, timeout=90, check=False)


def at(base_url: str, key: str, model: str) -> dict[str, str]:
    """Variables that point wolo at a provider."""
    return {"WOLO_BASE_URL": base_url, "WOLO_API_KEY": key, "WOLO_MODEL": f"custom/{model}"}
