"""A program of the Python API, measured by bench.py: agents of one process with a run each. `library.py URL SESSION COUNT`.

With the session `saved` all of them stay open; with `memory` each is closed and saves nothing.
"""

from __future__ import annotations

import asyncio
import sys

from wolo import Agent


async def main(url: str, session: str, num_agents: int) -> None:
    agents = []
    for _ in range(num_agents):
        agent = Agent("custom/text", base_url=url, api_key="none", session="memory" if session == "memory" else None)
        await agent.run("go")
        if session == "memory":
            await agent.close()
        else:
            agents.append(agent)
    for agent in agents:
        await agent.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
