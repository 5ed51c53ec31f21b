"""Clients that generators from PyPI and npm make of the OpenAPI document drive a session."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.components import require_clients
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from tests.frontends.server.running_server import running

PROGRAMS = Path(__file__).parent / "clients"
SEEN = {
    "result": "Done.",
    "changed": ["made.py"],
    "answers": ["tool_use", "text"],
    "refused": 404,
    "names": ["made.py"],
    "rest": [],
}


def run(*argv: str | Path, cwd: Path) -> str:
    env = {"PATH": os.environ["PATH"], "HOME": str(cwd), "NO_PROXY": "127.0.0.1"}
    done = subprocess.run([*map(str, argv)], cwd=cwd, capture_output=True, text=True, timeout=110, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def made_document(folder: Path) -> Path:
    path = folder / "openapi.json"
    path.write_text(run_wolo("serve", "--openapi").stdout)
    return path


def script(provider: ProviderServer) -> None:
    provider.script(call("write", {"path": "made.py", "content": "print(1)\n"}), text("Done."))


def last_line(output: str) -> Any:
    return json.loads(output.splitlines()[-1])


def test_python_client_drives_a_session(provider: ProviderServer, tmp_path: Path) -> None:
    python = require_clients() / "python" / "bin"
    document = made_document(tmp_path)
    output = run(
        python / "openapi-python-client",
        "generate",
        "--path",
        document,
        "--output-path",
        "generated",
        "--meta",
        "none",
        cwd=tmp_path,
    )
    assert "WARNING" not in output
    assert "Cannot" not in output
    assert "Skipping endpoint" not in output
    (tmp_path / "drive.py").write_text((PROGRAMS / "drive.py").read_text())
    script(provider)
    with running(provider) as server:
        seen = last_line(run(python / "python", "drive.py", server.origin, server.token, cwd=tmp_path))
    assert seen == SEEN


def test_typescript_client_drives_a_session(provider: ProviderServer, tmp_path: Path) -> None:
    modules = require_clients() / "npm" / "node_modules"
    (tmp_path / "node_modules").symlink_to(modules)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    document = made_document(tmp_path)
    run(modules / ".bin" / "openapi-typescript", document, "-o", "api.d.ts", cwd=tmp_path)
    (tmp_path / "drive.ts").write_text((PROGRAMS / "drive.ts").read_text())
    options = ("--strict", "--noUncheckedIndexedAccess", "--skipLibCheck", "--target", "es2022", "--module", "esnext")
    run(
        modules / ".bin" / "tsc",
        "drive.ts",
        *options,
        "--moduleResolution",
        "bundler",
        "--lib",
        "es2022,dom,dom.iterable",
        cwd=tmp_path,
    )
    script(provider)
    with running(provider) as server:
        seen = last_line(run("node", "drive.js", server.origin, server.token, cwd=tmp_path))
    assert seen == SEEN | {"streamed": "Done."}
