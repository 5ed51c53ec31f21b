"""Applies Landlock and the system call filter, then becomes the command: `RULESET FILTER KEPT WORDS WATCH [PROXY] -- …`.

All but KEPT, the set of capabilities to keep, are descriptors (-1: none). WORDS lists variables to set (`NAME=VALUE`) and,
without a ruleset, the only paths (`/…`) to write below. WATCH is told that the command begins, PROXY gets the
listener of wolo's proxy. Runs in a bare Python.
"""

import posix as os
import sys

from wolo.guard.sandbox.calls import (
    become,
    close_calls,
    complain,
    decode_words,
    drop_capabilities,
    hand_over_listener,
    lower_limits,
    read_filter,
    read_whole,
    report_begin,
    restrict,
    write_only_below,
)


def main() -> None:
    at = sys.argv.index("--")
    ruleset, filter_fd, kept, words_fd, watch, proxy = map(int, (*sys.argv[1:at], "-1")[:6])
    words = decode_words(read_whole(words_fd))
    variables = {name: value for name, _, value in (word.partition("=") for word in words if word[0] != "/")}
    text = read_filter(filter_fd)
    report_begin(watch)
    hand_over_listener(proxy)
    lower_limits()
    drop_capabilities(kept if os.geteuid() == 0 else 0)
    if ruleset >= 0:
        restrict(ruleset)
        os.close(ruleset)
    else:
        write_only_below([word for word in words if word[0] == "/"])
    if text:
        close_calls(text)
    become(sys.argv[at + 1 :], variables)


try:
    main()
except OSError as error:
    complain(error)
    os._exit(127)
