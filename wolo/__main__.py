"""`wolo` and `python -m wolo`: answers `--version`, and a Tab, before anything else is imported."""

import atexit
import os
import sys


def print_version() -> int:
    """The exit status. What cannot be written is given up at once: nothing is left to fail when the interpreter ends."""
    from wolo import __version__

    try:
        print(f"wolo {__version__}", flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 3
    return 0


def forget_cwd() -> None:
    """`python -m` looks for modules where it was started first, and a checkout may bring along a `json.py`."""
    try:
        if sys.path[0] in ("", os.getcwd()):  # noqa: PTH109  # pathlib is not loaded yet
            del sys.path[0]
    except FileNotFoundError:
        pass  # the directory was deleted: nothing is found in it


def end(code: int) -> None:
    """Ends the process like `sys.exit`, without taking every module apart first; that costs as much as a turn's own work.

    Waits for other threads first. Returns where something may still go on: a daemon thread, or output that cannot be written.
    """
    threading = sys.modules.get("threading")
    try:
        if threading is None or threading._shutdown() or threading.active_count() > 1:
            return
        atexit._run_exitfuncs()
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except Exception:
        return  # the interpreter reports it
    os._exit(code)


def main() -> None:
    if sys.argv[1:] in (["--version"], ["-V"]):
        sys.exit(print_version())
    if sys.argv[1:3] == ["completion", "--line"]:
        from wolo.cli.completion.answer import answer

        sys.exit(answer(sys.argv[3:]))
    if sys.getfilesystemencoding() != "utf-8":
        # Under some locales Python could name no file with other letters than ASCII, whatever is on the disk.
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
    if sys.platform == "win32":
        for stream in filter(None, (sys.stdin, sys.stdout, sys.stderr)):
            stream.reconfigure(encoding="utf-8", errors="surrogateescape")
    elif not sys.flags.optimize:
        from wolo.module_finder import ModuleFinder

        sys.meta_path.insert(0, ModuleFinder)
    try:
        from wolo.cli.app import main as run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        code = 130
    end(code)
    sys.exit(code)


if __name__ == "__main__":
    if not sys.flags.safe_path:
        forget_cwd()
    main()
