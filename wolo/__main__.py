"""`wolo` and `python -m wolo`: answers `--version` before anything is imported."""

import sys


def main() -> None:
    if sys.argv[1:] in (["--version"], ["-V"]):
        from wolo import __version__

        print(f"wolo {__version__}")
        return
    try:
        from wolo.cli.app import main as run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
