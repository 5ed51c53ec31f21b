"""Child process of the embedded model: llama.cpp on loopback HTTP, ending with its parent.

`python -m wolo.models.local.embedded_server MODEL.gguf` reads its key from WOLO_LOCAL_KEY and prints one JSON line, either
`{"url", "n_params"}` or `{"error", "missing_engine"}`. It serves until stdin is closed; the engine logs to stderr.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
import threading

CONTEXT_TOKENS = 8192
MAX_THREADS = 8
PROMPT_CACHE_MIB = 128
"""Cache for earlier prompts; the engine's default grows to 8 GiB."""


def main(argv: list[str]) -> None:
    # Watch the parent from the start: if it dies while weights load, this process must end too.
    watcher = threading.Thread(target=_end_with_parent, name="parent", daemon=True)
    watcher.start()
    key = os.environ.pop("WOLO_LOCAL_KEY")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read when the engine loads; spinning threads slow each other down
    try:
        import xllamacpp  # noqa: PLC0415  # the environment must be set first

        params = xllamacpp.CommonParams()
        params.model.path = argv[1]
        params.n_ctx = CONTEXT_TOKENS
        params.n_parallel = 1
        params.cache_ram_mib = PROMPT_CACHE_MIB
        # A container or `taskset` may limit the usable cores.
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = min(cores, MAX_THREADS)
        params.verbosity = 1
        params.ui = False
        params.offline = True
        params.hostnames = ["127.0.0.1"]
        params.port = 0
        params.api_keys = [key]
        server = xllamacpp.Server(params)
        url = server.listening_address
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
        connection.request("GET", "/v1/models", headers={"authorization": f"Bearer {key}"})
        listed = json.loads(connection.getresponse().read())
        connection.close()
        report = {"url": url, "n_params": int(listed["data"][0]["meta"]["n_params"])}
    except ImportError as error:
        _print_line({"error": str(error), "missing_engine": True})
        os._exit(1)
    except Exception as error:  # the engine raises plain RuntimeErrors; the parent explains them
        _print_line({"error": str(error) or type(error).__name__, "missing_engine": False})
        os._exit(1)
    _print_line(report)
    watcher.join()
    del server  # never reached; keeps the server alive until the process ends


def _print_line(line: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def _end_with_parent() -> None:
    """Exit without the engine's cleanup, which can hang before the first request."""
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv)
