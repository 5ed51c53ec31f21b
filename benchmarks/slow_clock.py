"""`slow_clock.py TIMES ARGUMENT…` runs wolo on a clock that is so many times slower, as valgrind makes the program itself."""

import selectors
import sys
import time

times, clock = int(sys.argv.pop(1)), time.monotonic
time.monotonic = lambda: clock() / times

from wolo.__main__ import main  # noqa: E402  # asyncio takes the clock when it is imported


class SlowSelector(selectors.DefaultSelector):
    def select(self, timeout=None):
        return super().select(timeout and max(timeout, 0) * times)


selectors.DefaultSelector = SlowSelector
main()
