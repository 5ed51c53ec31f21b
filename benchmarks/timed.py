"""Runs a command and writes its times and its peak memory to a file, as JSON: `timed.py FILE COMMAND…`.

A process inherits the peak of memory of the one that starts it, so commands are started from here, not from the benchmark.
"""

import json
import os
import sys
import time
from pathlib import Path

path, *argv = sys.argv[1:]
started = time.perf_counter()
process = os.posix_spawnp(argv[0], argv, os.environ)
_, status, usage = os.wait4(process, 0)
times = {"started": started, "wall_s": time.perf_counter() - started, "cpu_s": usage.ru_utime + usage.ru_stime}
peak = {"peak_mb": usage.ru_maxrss / 1024, "exit_code": os.waitstatus_to_exitcode(status)}
Path(path).write_text(json.dumps({**times, **peak}))
