"""Load of `wolo serve`: many sessions, listeners on real sockets, events at a steady rate; counts what was lost or doubled.

python -m benchmarks.serve_load [--sessions 50] [--listeners 20] [--rate 1000] [--seconds 60]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import socket
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import uvicorn

from wolo.frontends.server.http_server import make_application
from wolo.frontends.server.live_session import LiveSession
from wolo.frontends.server.session_hub import SessionHub

TOKEN = "token"
EVERY = 200
"""Deltas before a message is complete."""


class Load:
    def __init__(self, sessions: int, listeners: int) -> None:
        self.hub = SessionHub(Path.cwd())
        self.live = [LiveSession(f"load_{n}", Path.cwd(), (), mode="ask", model="none/none") for n in range(sessions)]
        for each in self.live:
            each.log.listeners = 1  # it is kept, as if it were open
            self.hub.adopt(each)
        self.received: list[list[int]] = [[] for _ in range(listeners)]
        self.sent = 0

    async def run(self, events: int, rate: int | None, *, with_slow: bool = False) -> list[float]:
        """Resident memory in MB, ten times on the way. Every listener has read all when it returns."""
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        config = uvicorn.Config(make_application(self.hub, TOKEN, port), log_config=None, lifespan="off", ws="none")
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        slow = [await connect(port, self.live[0].id)] if with_slow else []
        readers = [asyncio.create_task(self._listen(port, n)) for n in range(len(self.received))]
        memory, began = [], time.monotonic()
        for n in range(events):
            live = self.live[n % len(self.live)]
            ends = n // len(self.live) % EVERY == EVERY - 1
            live.emit({"type": "stream_event", "event": {"type": "text_delta", "text": f"{n} " * 10}}, passing=True)
            if ends:
                live.emit({"type": "assistant", "message": {}}, completes=True)
            self.sent += 1 + ends
            if n % max(1, events // 10) == 0:
                memory.append(resident())
            if rate is None:
                await asyncio.sleep(0)
            elif (ahead := n / rate - (time.monotonic() - began)) > 0.005:
                await asyncio.sleep(ahead)
        for live in self.live:
            live.log.close()
        await asyncio.gather(*readers)
        for _, writer in slow:
            writer.close()
        server.should_exit = True
        await serving
        return memory

    async def _listen(self, port: int, number: int) -> None:
        """Reads one session; hangs up in the middle now and then and continues with Last-Event-ID."""
        live, ids, hangs_up = self.live[number % len(self.live)], self.received[number], number % 2 == 1
        while True:
            reader, writer = await connect(port, live.id, ids[-1] if ids else None)
            seen = 0
            async for line in reader:
                if line.startswith(b"id: "):
                    ids.append(int(line[4:]))
                    seen += 1
                    await reader.readline()
                if hangs_up and seen == 500:
                    break
            writer.close()
            if live.log.is_closed and ids and ids[-1] == live.log.last_id:
                return

    def faults(self) -> list[str]:
        """Listeners that lost or doubled an event."""
        found = []
        for number, ids in enumerate(self.received):
            last = self.live[number % len(self.live)].log.last_id
            if ids != list(range(ids[0], last + 1)):
                found.append(f"listener {number}: {len(ids)} events of {last + 1 - ids[0]}")
        return found


async def connect(port: int, session_id: str, last: int | None = None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024 * 1024)
    again = f"Last-Event-ID: {last}\r\n" if last is not None else ""
    head = f"GET /api/sessions/{session_id}/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\n"
    writer.write(f"{head}{again}Connection: close\r\n\r\n".encode())
    return reader, writer


def resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("sessions", 50), ("listeners", 20), ("rate", 1000), ("seconds", 60)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    with TemporaryDirectory() as home:
        os.environ["WOLO_HOME"] = home
        load, began = Load(options.sessions, options.listeners), time.monotonic()
        memory = asyncio.run(load.run(options.rate * options.seconds, options.rate, with_slow=True))
        seconds = time.monotonic() - began
    used = resource.getrusage(resource.RUSAGE_SELF)
    received = sum(map(len, load.received))
    print(f"{load.sent} events in {seconds:.0f} s, {received} received, CPU {used.ru_utime + used.ru_stime:.1f} s")
    print("memory in MB:", " ".join(f"{each:.1f}" for each in memory))
    print("\n".join(load.faults()) or "none lost, none doubled")


if __name__ == "__main__":
    main()
