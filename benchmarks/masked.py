"""Input cost of a task of 60 calls: wolo with and without masking of old outputs, beside codex and pi where they are installed.

The scripted server has every agent read 60 files of some 2,800 tokens. The cost is computed from the requests as they came: what
begins like the request before is billed at the cached price, everything else at the fresh one.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from peers import TURNS, Agent, Bench, installed
from runs import Table

PRICE = {"input": 1.0, "output": 4.0, "cache_read": 0.1}
"""US dollars per million tokens."""
BYTES_PER_TOKEN = 4
FILE = "".join(f"line {line} says something of its own about this\n" for line in range(260))


def main() -> None:
    agents = installed()
    mine = priced(agents[0])
    agents = [mine, without_masking(mine), *agents[1:]]
    with tempfile.TemporaryDirectory(prefix="masked-") as folder:
        for number in range(TURNS):
            (Path(folder) / f"{number}.txt").write_text(f"{number}\n{FILE}")
        bench = Bench(Path(folder).resolve(), agents)
        dollars = {agent.name: input_dollars(bench.run(agent, f"files-{TURNS}").log.pieces) for agent in agents}
    missing = [name for name in ("codex", "pi") if name not in dollars]
    table = Table("Input cost of a task", "", *(f"{agent.name} {agent.version}" for agent in agents), *missing)
    ratio = dollars[mine.name] / dollars[agents[1].name]
    cells = [f"{dollars[agent.name]:.3f} USD" for agent in agents]
    cells[0] += f" ({ratio:.2f} ×)"
    table.row(f"{TURNS} reads of 2,800 tokens, cached at a tenth", *cells, *("not installed" for _ in missing))
    table.save()


def priced(agent: Agent) -> Agent:
    """Wolo with a model whose prices it knows."""
    program = agent.command("", "", False)[0]

    def command(url: str, model: str, resume: bool) -> list[str | Path]:
        return [program, "-p", "--mode", "yolo", "--sandbox", "off", "-m", f"bench/{model}", "go"]

    def configure(home: Path, urls: Sequence[str]) -> None:
        price = ", ".join(f"{name} = {dollars}" for name, dollars in PRICE.items())
        models = f'[{{id = "files-{TURNS}", context = 1_000_000, price = {{{price}}}}}]'
        settings = home / ".config" / "wolo" / "config.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text(f'[providers.bench]\nbase_url = "{urls[0]}"\nmodels = {models}\n')

    return replace(agent, command=command, configure=configure)


def without_masking(agent: Agent) -> Agent:
    def command(url: str, model: str, resume: bool) -> list[str | Path]:
        return [*agent.command(url, model, resume), "--set", "compaction.at_tokens=0"]

    return replace(agent, name=f"{agent.name}, whole", command=command)


def input_dollars(requests: Sequence[Sequence[bytes]]) -> float:
    dollars, before = 0.0, [b""]
    for pieces in requests:
        same = next((at for at, (one, other) in enumerate(zip(before, pieces, strict=False)) if one != other), len(before))
        cached, whole = sum(map(len, pieces[:same])), sum(map(len, pieces))
        dollars += (cached * PRICE["cache_read"] + (whole - cached) * PRICE["input"]) / BYTES_PER_TOKEN / 1e6
        before = list(pieces)
    return dollars


if __name__ == "__main__":
    if not shutil.which("codex") or not shutil.which("pi"):
        print("codex or pi is not installed: its column stays empty")
    main()
