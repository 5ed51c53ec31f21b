"""Measures how many small tasks wolo, in each driving mode, and other agents solve with a local model; the results are run.

`python benchmarks/local_tasks.py --model qwen2.5-coder-0.5b --agents wolo,pi --seeds 0-35` serves the embedded model with
llama.cpp and asks every agent the same. `--embedded` leaves the server out. Seed and temperature of requests are set on
their way to the server. `--tasks FILE` takes tasks that somebody wrote, instead of drawing them: a Python file with `TASKS`,
a list of the fields of `Task`.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import http.client
import json
import os
import platform
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from local_task_grammar import Task, draw

ROOT = Path(__file__).parent.parent
KEY = "bench"
TEMPERATURE = 0.2
"""Seeds matter only above 0."""
HARNESS = """
import importlib.util, json, os, pathlib, re, subprocess, sys
answer = pathlib.Path(sys.argv[1]).read_text(errors="replace")
def load(path):
    sys.path.insert(0, ".")
    spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
def read(path):
    return pathlib.Path(path).read_text(encoding="utf-8")
def run(path, *arguments):
    program = "bash" if path.endswith(".sh") else sys.executable
    return subprocess.run([program, path, *arguments], capture_output=True, text=True, check=True, timeout=20, stdin=-3).stdout
"""


@dataclass(frozen=True)
class Outcome:
    agent: str
    model: str
    seed: int
    kind: str
    name: str
    passed: bool
    exit_code: int | None
    """None: stopped at the time limit."""
    lost: bool
    """Content is gone that nobody asked to lose."""
    seconds: float
    fault: str

    @property
    def claims(self) -> bool:
        """Success was reported although the work is wrong."""
        return self.exit_code == 0 and not self.passed


class Agent:
    """An agent with a home directory of its own."""

    def __init__(self, name: str, home: Path, url: str, model: str, mode: str, window: int) -> None:
        self.name, self._home, self._url, self._model, self._mode, self._window = name, home, url, model, mode, window
        self.environment = {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "dumb", "WOLO_API_KEY": KEY}
        getattr(self, f"_set_up_{name}")()

    def command(self, prompt: str) -> list[str]:
        if self.name == "wolo":
            where = ["--base-url", self._url, "--api-key", KEY] if self._url else []
            drive = ["--drive", self._mode] if self._mode else []
            return [str(Path(sys.executable).parent / "wolo"), "-p", "--mode", "yolo", *where, *drive, "-m", self._model, prompt]
        if self.name == "pi":
            return ["pi", "-p", "--provider", "bench", "--model", self._model, prompt]
        if self.name == "opencode":
            return ["opencode", "run", "--model", f"bench/{self._model}", prompt]
        return ["codex", "exec", "--skip-git-repo-check", "-m", self._model, prompt]

    def _set_up_wolo(self) -> None:
        weights = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "wolo" / "weights"
        (self._home / ".cache" / "wolo").mkdir(parents=True)
        (self._home / ".cache" / "wolo" / "weights").symlink_to(weights)

    def _set_up_pi(self) -> None:
        models = [{"id": self._model, "contextWindow": self._window, "maxTokens": self._window // 4}]
        provider = {"baseUrl": self._url, "api": "openai-completions", "apiKey": KEY, "models": models}
        folder = self._home / ".pi" / "agent"
        folder.mkdir(parents=True)
        (folder / "models.json").write_text(json.dumps({"providers": {"bench": provider}}))
        self.environment |= {"PI_OFFLINE": "1", "PI_TELEMETRY": "0", "PI_SKIP_VERSION_CHECK": "1"}

    def _set_up_opencode(self) -> None:
        models = {self._model: {"name": self._model, "limit": {"context": self._window, "output": self._window // 4}}}
        provider = {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": self._url, "apiKey": KEY}, "models": models}
        folder = self._home / ".config" / "opencode"
        folder.mkdir(parents=True)
        (folder / "opencode.json").write_text(json.dumps({"provider": {"bench": provider}, "autoupdate": False}))

    def _set_up_codex(self) -> None:
        (self._home / ".codex").mkdir()
        provider = f'{{ name = "bench", base_url = "{self._url}", env_key = "WOLO_API_KEY", wire_api = "responses" }}'
        lines = ('model_provider = "bench"', 'approval_policy = "never"', 'sandbox_mode = "danger-full-access"')
        more = (
            "check_for_update_on_startup = false",
            f"model_context_window = {self._window}",
            f"model_providers.bench = {provider}",
        )
        (self._home / ".codex" / "config.toml").write_text("\n".join((*lines, *more, "")))


def do(agent: Agent, task: Task, model: str, seed: int, limit_s: float, keep: str = "") -> Outcome:
    with tempfile.TemporaryDirectory(prefix="local-task-") as folder:
        work = Path(folder, "work")
        work.mkdir()
        for name, text in task.files.items():
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_text(text, encoding="utf-8")
        before = _contents(work)
        began = time.monotonic()
        output = Path(folder, "output")
        with output.open("wb") as log, Path(folder, "errors").open("wb") as errors:
            process = subprocess.Popen(
                agent.command(task.prompt),
                cwd=work,
                env=agent.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=errors,
                start_new_session=True,
            )
            try:
                code: int | None = process.wait(limit_s)
            except subprocess.TimeoutExpired:
                code = None
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        seconds = time.monotonic() - began
        changed = _contents(work) != before
        lost = bool(task.files) and changed and bool(_fault(task.kept, work, output))
        fault = "the answer was written to a file" if changed and task.kind == "question" else _fault(task.check, work, output)
        fault = "content was lost" if lost and not fault else fault
        last = (output.read_text(errors="replace") + Path(folder, "errors").read_text(errors="replace")).strip()[-300:]
        if keep:
            shutil.copytree(folder, Path(keep, f"{agent.name}-{seed}"), dirs_exist_ok=True)
    passed = not fault and code == 0
    reason = "" if passed else f"{fault or 'exit code'} | {last}"
    return Outcome(agent.name, model, seed, task.kind, task.name, passed, code, lost, round(seconds, 1), reason)


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts}


def _fault(check: str, work: Path, output: Path) -> str:
    command = [sys.executable, "-I", "-c", HARNESS + check, str(output)]
    try:
        done = subprocess.run(
            command, cwd=work, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False
        )
    except subprocess.TimeoutExpired:
        return "the check did not end"
    return (done.stderr.strip().splitlines() or ["failed"])[-1] if done.returncode else ""


# The server, and the way to it


@contextlib.contextmanager
def serving(model: str, window: int) -> Iterator[str]:
    """Serve an embedded model on this machine; yields the address of its API."""
    from wolo.models.local.weights import find_cached, find_weights
    from wolo.places import find_places

    path = find_cached(find_weights(model), find_places().cache)
    if path is None:
        raise SystemExit(f"No weights: run `wolo models pull local/{model}` first.")
    environment = {**os.environ, "WOLO_LOCAL_KEY": KEY}
    code = f"import sys; from wolo.models.local import embedded_server as it; it.CONTEXT_TOKENS = {window}; it.main(sys.argv)"
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        if "url" not in said:
            raise SystemExit(f"The model cannot be served: {said['error']}")
        try:
            yield said["url"]
        finally:
            process.kill()


class Relay(ThreadingHTTPServer):
    """Passes requests on with a seed and a temperature, so that every agent is sampled alike."""

    daemon_threads = True

    def __init__(self, upstream: str) -> None:
        super().__init__(("127.0.0.1", 0), _Relayed)
        self.upstream = urlsplit(upstream).netloc
        self.seed = 1
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Relayed(BaseHTTPRequestHandler):
    server: Relay

    def do_GET(self) -> None:
        self._pass_on(b"")

    def do_POST(self) -> None:
        self._pass_on(self._sampled(self.rfile.read(int(self.headers.get("content-length", 0)))))

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""

    def _sampled(self, body: bytes) -> bytes:
        request = json.loads(body)
        if isinstance(request, dict) and ("messages" in request or "input" in request):
            own = request.get("seed")
            request["seed"] = self.server.seed * 1000 + (own if isinstance(own, int) else 0)
            request["temperature"] = max(TEMPERATURE, request.get("temperature") or 0.0)
        return json.dumps(request).encode()

    def _pass_on(self, body: bytes) -> None:
        connection = http.client.HTTPConnection(self.server.upstream)
        headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
        with contextlib.closing(connection), contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.request(self.command, self.path, body or None, headers)
            answer = connection.getresponse()
            self.send_response(answer.status)
            self.send_header("content-type", answer.getheader("content-type", "application/json"))
            self.end_headers()
            while piece := answer.read1():
                self.wfile.write(piece)


# The command


def main(argv: Sequence[str] | None = None) -> None:
    asked = _arguments().parse_args(argv)
    first, _, last = asked.seeds.partition("-")
    numbers = range(int(first), int(last or first) + 1, asked.every)
    written = [Task(**{key: each[key] for key in each.keys() & Task.__match_args__}) for each in _written(asked.tasks)]
    tasks = {seed: written[seed] if written else draw(seed) for seed in numbers if not written or seed < len(written)}
    kinds = asked.kinds.split(",") if asked.kinds else dict.fromkeys(task.kind for task in tasks.values())
    agents = [name for name in asked.agents.split(",") if name == "wolo" or shutil.which(name)]
    with contextlib.ExitStack() as stack:
        relay = None
        if not asked.embedded:
            relay = Relay(asked.base_url.removesuffix("/v1") or stack.enter_context(serving(asked.model, asked.window)))
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="local-tasks-")))
        done: list[Outcome] = []
        for name in agents:
            (home / name).mkdir()
            model = asked.model if relay else f"local/{asked.model}"
            agent = Agent(name, home / name, relay.url if relay else "", model, asked.mode, asked.window)
            for seed, task in tasks.items():
                if task.kind not in kinds:
                    continue
                if relay:
                    relay.seed = seed
                done.append(outcome := do(agent, task, model, seed, asked.limit, asked.keep))
                verdict = "ok  " if outcome.passed else "CLAIMS" if outcome.claims else "FAIL"
                print(verdict, name, task.kind, task.name, f"{outcome.seconds} s", repr(outcome.fault[:400]), flush=True)
                if asked.out:
                    with Path(asked.out).open("a") as lines:
                        lines.write(json.dumps(asdict(outcome)) + "\n")
        print(table(done, asked.mode or "chosen by wolo"))


def _written(path: str) -> list[dict[str, Any]]:
    return list(runpy.run_path(path)["TASKS"]) if path else []


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Tasks for local models, judged by running.")
    parser.add_argument("--model", default="qwen2.5-coder-0.5b", help="an embedded model, or one of --base-url")
    parser.add_argument("--base-url", default="", help="a server that runs already")
    parser.add_argument("--embedded", action="store_true", help="without a server; wolo only, one deterministic seed")
    parser.add_argument("--agents", default="wolo", help="wolo, pi, codex and opencode, with commas")
    parser.add_argument("--mode", default="", help="driving mode of wolo")
    parser.add_argument("--kinds", default="", help="only these, with commas")
    parser.add_argument("--tasks", default="", metavar="FILE", help="tasks of this file by their numbers, not drawn ones")
    parser.add_argument("--seeds", default="0-11", metavar="FIRST-LAST", help="tasks to draw; 1000-1099 are for measuring alone")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each Nth of them")
    parser.add_argument("--window", type=int, default=8192, help="tokens of the served model; codex and opencode need 16384")
    parser.add_argument("--limit", type=float, default=300, help="seconds for a task")
    parser.add_argument("--keep", default="", metavar="FOLDER", help="keep what every agent made and printed there")
    parser.add_argument("--out", default="", help="file to which every outcome is added as a JSON line")
    return parser


def table(done: Sequence[Outcome], mode: str) -> str:
    """Solved of all by kind, in Markdown."""
    day = datetime.datetime.now(tz=datetime.UTC).date()
    kinds = [*dict.fromkeys(outcome.kind for outcome in done)]
    lines = [
        f"{day}, {platform.machine()}, {os.cpu_count()} cores, mode {mode}",
        "",
        f"| agent, model | {' | '.join(kinds)} | all | false success | lost content | stopped at the limit | median s |",
        "|---|" + "---|" * (len(kinds) + 5),
    ]
    for key in dict.fromkeys((outcome.agent, outcome.model) for outcome in done):
        own = [outcome for outcome in done if (outcome.agent, outcome.model) == key]
        cells = []
        for kind in kinds:
            of_kind = [outcome.passed for outcome in own if outcome.kind == kind]
            cells.append(f"{sum(of_kind)} of {len(of_kind)}" if of_kind else "–")
        seconds = sorted(outcome.seconds for outcome in own)[len(own) // 2]
        ends = [sum(outcome.exit_code is None for outcome in own), seconds]
        solved = f"{sum(outcome.passed for outcome in own)} of {len(own)}"
        more = [solved, sum(outcome.claims for outcome in own), sum(outcome.lost for outcome in own), *ends]
        lines.append(f"| {', '.join(key)} | {' | '.join([*cells, *map(str, more)])} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
