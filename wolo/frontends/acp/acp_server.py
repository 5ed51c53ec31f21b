"""Serves one client of the Agent Client Protocol on stdin and stdout."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping

from wolo.config.cli_options import Given
from wolo.frontends.acp import acp_sdk as sdk
from wolo.frontends.acp.acp_agent import AcpAgent
from wolo.frontends.acp.stdio import Stdio

CLOSE_S = 1.5
"""Time for turns and servers to end when the client is gone; sessions are saved as they go."""


async def serve(given: Given, exit_codes: Mapping[signal.Signals, int]) -> None:
    """Ends the process: with exit code 0 at the end of input, else with that of the signal."""
    agent = AcpAgent(given)
    transport = Stdio()
    connection = sdk.connect(agent, transport, agent.more)
    serving = asyncio.create_task(connection.main_loop())
    code = 0

    def stop(number: signal.Signals) -> None:
        nonlocal code
        code = exit_codes[number]
        serving.cancel()

    for number in exit_codes:
        asyncio.get_running_loop().add_signal_handler(number, stop, number)
    await asyncio.wait({serving})
    with contextlib.suppress(TimeoutError, ConnectionError):
        async with asyncio.timeout(CLOSE_S):
            await agent.close()
            await transport.answered()
            await agent.close()  # sessions that were being opened
    agent.kill()
    sys.stderr.flush()
    os._exit(code)  # threads still wait for input
