"""Extracts the main part of a page with trafilatura, if it is installed (`wolo-cli[web-fetch]`).

Runs in a process with limited time and memory, so that hostile pages cannot hang or crash wolo through C code.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from importlib.util import find_spec

from wolo.operating_system import resource

MOST_CPU_S = 8
MOST_MEMORY_BYTES = 1024**3


def is_installed() -> bool:
    return find_spec("trafilatura") is not None


async def find_main_part(source: str, url: str, most_s: float) -> str:
    """Returns Markdown; empty: not found, or over the limits."""
    program = (sys.executable, "-I", "-m", __name__, url)
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*program, stdin=pipe, stdout=pipe, stderr=nothing, env={})
    try:
        async with asyncio.timeout(most_s):
            output, _ = await process.communicate(source.encode(errors="replace"))
    except TimeoutError:
        return ""
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return output.decode(errors="replace").strip() if process.returncode == 0 else ""


def main(url: str) -> None:
    """Reads HTML from stdin and writes Markdown to stdout."""
    import trafilatura  # noqa: PLC0415  # in the child only

    if resource is not None:
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_S, MOST_CPU_S))
    markdown = trafilatura.extract(
        sys.stdin.buffer.read().decode(),
        url=url,
        output_format="markdown",
        include_links=True,
        include_tables=True,
        include_formatting=True,
        include_comments=False,
        favor_recall=True,
    )
    sys.stdout.buffer.write((markdown or "").encode(errors="replace"))


if __name__ == "__main__":
    main(sys.argv[1])
