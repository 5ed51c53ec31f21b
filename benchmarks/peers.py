"""Wolo and the coding agents that are installed (codex, pi), with the same workloads and the same server, interleaved.

`npm install -g @openai/codex @earendil-works/pi-coding-agent` installs the peers; of codex the program itself is started, without
its launcher in JavaScript. Every agent gets its own home directory and asks the scripted server only; an agent that is not on the
PATH is left out.
"""

from __future__ import annotations

import json
import shutil
import ssl
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from runs import Run, Table, base_environment, install, p10, run
from scripted import ScriptedServer

ROUNDS = 5
TURNS = 60
LONG_TURNS = 300
MOST_TURNS = 2_000
WINDOW = 200
"""Turns at each end of the growing session that are compared."""
MODELS = ("text", f"files-{TURNS}", f"reads-{TURNS}", f"shells-{TURNS}", f"reads-{LONG_TURNS}", f"reads-{MOST_TURNS}", "deltas-1")
Runs = dict[str, list[Run]]
"""Runs by the name of the agent."""
Figures = dict[str, tuple[float, ...]]
"""The median and the lowest, or one figure."""
CODEX_CONFIG = """
model_provider = "bench"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
web_search = "disabled"
model_context_window = 100000000
analytics.enabled = false
feedback.enabled = false
model_providers.bench = { name = "bench", env_key = "BENCH_KEY", wire_api = "responses" }
"""


@dataclass(frozen=True)
class Agent:
    name: str
    version: str
    command: Callable[[str, str, bool], list[str | Path]]
    """URL of the server, model, resume the latest session → command line."""
    environment: dict[str, str]
    configure: Callable[[Path, Sequence[str]], None] = lambda home, urls: None
    """Writes the settings to a home directory, for the URLs of all servers."""


def wolo() -> Agent:
    program = install().parent / "wolo"

    def command(url: str, model: str, resume: bool) -> list[str | Path]:
        return [program, "-p", "--mode", "yolo", "--sandbox", "off", "--base-url", url, "-m", model, *(["-c"] * resume), "go"]

    return Agent("wolo", version_of(program), command, {"WOLO_API_KEY": "none"})


def sandboxed(agent: Agent) -> Agent:
    def command(url: str, model: str, resume: bool) -> list[str | Path]:
        return ["required" if word == "off" else word for word in agent.command(url, model, resume)]

    return replace(agent, command=command)


def codex(program: Path) -> Agent:

    def command(url: str, model: str, resume: bool) -> list[str | Path]:
        more = ["-c", f'model_providers.bench.base_url="{url}"', "-m", model, "--skip-git-repo-check"]
        return [program, "exec", *(["resume", "--last"] if resume else []), *more, "go"]

    def configure(home: Path, urls: Sequence[str]) -> None:
        (home / ".codex").mkdir()
        (home / ".codex" / "config.toml").write_text(CODEX_CONFIG)

    return Agent("codex", version_of(program), command, {"BENCH_KEY": "none"}, configure)


def pi(program: Path) -> Agent:

    def command(url: str, model: str, resume: bool) -> list[str | Path]:
        return [program, "-p", "--provider", url.partition(":")[0], "--model", model, *(["-c"] * resume), "go"]

    def configure(home: Path, urls: Sequence[str]) -> None:
        models = [{"id": model, "contextWindow": 100_000_000} for model in MODELS]
        shared = {"api": "openai-completions", "apiKey": "none", "models": models}
        providers = {url.partition(":")[0]: {"baseUrl": url, **shared} for url in urls}
        (home / ".pi" / "agent").mkdir(parents=True)
        (home / ".pi" / "agent" / "models.json").write_text(json.dumps({"providers": providers}))

    return Agent(
        "pi", version_of(program), command, {"PI_OFFLINE": "1", "PI_TELEMETRY": "0", "PI_SKIP_VERSION_CHECK": "1"}, configure
    )


def version_of(program: Path) -> str:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return (done.stdout or done.stderr).split()[-1]


def installed() -> list[Agent]:
    agents = [wolo()]
    if found := shutil.which("codex"):
        programs = Path(found).resolve().parents[2].glob("codex-*/vendor/*/bin/codex")
        agents.append(codex(next(programs, Path(found))))
    if found := shutil.which("pi"):
        agents.append(pi(Path(found)))
    return agents


class Bench:
    """Runs every agent in turn; each has a home directory for each kind of session."""

    def __init__(self, folder: Path, agents: Sequence[Agent]) -> None:
        self.folder = folder
        self.agents = agents
        authority, context = certificates(folder)
        self.http, self.https = ScriptedServer(), ScriptedServer(context)
        self.trust = {name: str(authority) for name in ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS")}
        (folder / "notes.txt").write_text("".join(f"line {number}\n" for number in range(MOST_TURNS)))

    def run(self, agent: Agent, model: str, home: str = "home", *, resume: bool = False, tls: bool = False) -> Run:
        place = self.folder / agent.name / home
        if not place.exists():
            place.mkdir(parents=True)
            agent.configure(place, [self.http.url, self.https.url])
        server = self.https if tls else self.http
        env = base_environment() | {"HOME": str(place)} | agent.environment | (self.trust if tls else {})
        return run(server, agent.command(server.url, model, resume), self.folder, env)

    def rounds(self, model: str, home: str = "home", *, resume: bool = False, tls: bool = False) -> Runs:
        """The same workload of all agents, interleaved."""
        runs: Runs = {agent.name: [] for agent in self.agents}
        for _ in range(ROUNDS):
            for agent in self.agents:
                runs[agent.name].append(self.run(agent, model, home, resume=resume, tls=tls))
        return runs


def certificates(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """A private authority, and a server that it vouches for."""
    new = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2")
    authority = ("-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=Private CA")
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "basicConstraints=critical,CA:false")
    server = ("-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1")
    subprocess.run([*new, *authority], cwd=folder, check=True, capture_output=True)
    subprocess.run([*new, *signed, *server], cwd=folder, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return folder / "ca.pem", context


class Results:
    """The table: a row for each figure, with the goal of wolo beside one peer."""

    def __init__(self, agents: Sequence[Agent]) -> None:
        self.names = [agent.name for agent in agents]
        columns = [f"{agent.name} {agent.version}" for agent in agents]
        self.table = Table(f"Peers, median / lowest of {ROUNDS} runs", "", *columns, "ratio", "goal")

    def row(self, name: str, values: Figures, unit: str, *, peer: str = "", goal: float | None = None) -> None:
        """Adds a row; the goal limits the ratio to the peer, or without one the figure itself."""
        cells = [f"{' / '.join(map(short, values[each]))} {unit}" if each in values else "" for each in self.names]
        ratios = [mine / other for mine, other in zip(values["wolo"], values.get(peer, ()), strict=False)]
        limit = "" if goal is None else f"≤ {goal:.2f} × {peer}" if peer else f"≤ {goal:g} {unit}"
        self.table.row(name, *cells, " / ".join(f"{ratio:.2f}" for ratio in ratios) + f" × {peer}" * bool(ratios), limit)


def main() -> None:
    agents = installed()
    for name in ("codex", "pi"):
        if not any(agent.name == name for agent in agents):
            print(f"{name} is not installed: left out")
    with tempfile.TemporaryDirectory(prefix="peers-") as folder:  # outside of the checkout, which would be the workspace
        bench, results = Bench(Path(folder).resolve(), agents), Results(agents)
        bench.rounds("text")  # the first runs make databases and caches
        one = start_up(bench, results)
        turns(bench, results, one)
        deltas(bench, results, one)
        long_sessions(bench, results, one)
    results.table.save()


def start_up(bench: Bench, results: Results) -> Runs:
    one, tls = bench.rounds("text"), bench.rounds("text", tls=True)
    results.row("spawn to first request, http", of(one, first_ms), "ms", peer="codex", goal=0.75)
    results.row("spawn to first request, https", of(tls, first_ms), "ms", peer="codex", goal=0.75)
    results.row("one turn, CPU", of(one, cpu_ms), "ms", peer="codex", goal=0.62)
    results.row("one turn over https, CPU", of(tls, cpu_ms), "ms", peer="codex")
    results.row("one turn, peak memory", of(one, peak_mb), "MB", goal=40)
    return one


def turns(bench: Bench, results: Results, one: Runs) -> None:
    reads, shells = bench.rounds(f"reads-{TURNS}"), bench.rounds(f"shells-{TURNS}")
    confined = [bench.run(sandboxed(bench.agents[0]), f"shells-{TURNS}") for _ in range(ROUNDS)]
    results.row("read turn, p10", of(reads, turn_ms), "ms", peer="pi", goal=0.60)
    results.row("read turn, CPU", beyond(one, reads, TURNS), "ms", peer="pi", goal=0.50)
    results.row("shell turn, p10", of(shells, turn_ms), "ms", peer="pi", goal=0.55)
    results.row("shell turn, CPU", beyond(one, shells, TURNS), "ms", peer="pi")
    results.row("shell turn, p10; wolo sandboxed", of(shells | {"wolo": confined}, turn_ms), "ms", peer="pi", goal=1.30)


def deltas(bench: Bench, results: Results, one: Runs) -> None:
    runs = bench.rounds("deltas-1")
    results.row("20,000 deltas, CPU beyond one turn", beyond(one, runs, 1), "ms", peer="codex", goal=0.40)
    results.row("20,000 deltas, wall of the run", of(runs, wall_ms), "ms", peer="codex", goal=0.50)


def long_sessions(bench: Bench, results: Results, one: Runs) -> None:
    long = {agent.name: [bench.run(agent, f"reads-{LONG_TURNS}", "long")] for agent in bench.agents}
    results.row(f"{LONG_TURNS} turns, peak memory", of(long, peak_mb), "MB", goal=50)
    resumed = bench.rounds("text", "long", resume=True)
    results.row(f"resume of {LONG_TURNS} turns to first request", of(resumed, first_ms), "ms", peer="codex", goal=0.75)
    growing = {agent.name: [bench.run(agent, f"reads-{MOST_TURNS}", "growth")] for agent in bench.agents}
    # Single runs of short turns differ threefold, with the clock of the processor and where the server runs.
    growing["wolo"] += [bench.run(bench.agents[0], f"reads-{MOST_TURNS}", "growth") for _ in range(ROUNDS - 1)]
    results.row(f"growth of a turn over {MOST_TURNS:,}, p10", of(growing, growth), "×", goal=1.05)
    early, late = beyond(one, long, LONG_TURNS), beyond(long, growing, MOST_TURNS - LONG_TURNS)
    later = {agent: (late[agent][0] / early[agent][0],) for agent in early}
    results.row(f"CPU of a turn after {LONG_TURNS}, by that before", later, "×", goal=1.05)


def of(runs: Runs, figure: Callable[[Run], float]) -> Figures:
    return {agent: middle_and_least([figure(each) for each in several]) for agent, several in runs.items()}


def beyond(one: Runs, runs: Runs, count: int) -> Figures:
    """CPU that each of this many turns adds to a run without turns."""
    base, whole = of(one, cpu_ms), of(runs, cpu_ms)
    return {agent: tuple((more - less) / count for more, less in zip(whole[agent], base[agent], strict=False)) for agent in runs}


def middle_and_least(values: Sequence[float]) -> tuple[float, ...]:
    return (statistics.median(values), min(values)) if len(values) > 1 else tuple(values)


def first_ms(run: Run) -> float:
    return run.first_request_s * 1000


def cpu_ms(run: Run) -> float:
    return run.cpu_s * 1000


def wall_ms(run: Run) -> float:
    return run.wall_s * 1000


def peak_mb(run: Run) -> float:
    return run.peak_mb


def turn_ms(run: Run) -> float:
    return p10(run.turns_s) * 1000


def growth(run: Run) -> float:
    turns_s = run.turns_to_head_s
    return p10(turns_s[-WINDOW:]) / p10(turns_s[:WINDOW])


def short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


if __name__ == "__main__":
    main()
