"""`wolo batch export`: writes the results of a run in a format of another program."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Annotated, TextIO, cast

import typer

from wolo.errors import UsageError, WoloError
from wolo.frontends.streams import print_messages, stdout_bytes
from wolo.workspace.files.unfinished import replacing


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of the run.", show_default=False)],
    format: Annotated[str, typer.Option("--format", help="jsonl, csv, junit, swebench or html.", metavar="FORMAT")],
    out: Annotated[Path | None, typer.Option("--out", help="Stdout if not given.", metavar="FILE", show_default=False)] = None,
) -> None:
    """Print the tasks of a run with their results, also while it runs.

    html is a report for the browser in one file, swebench the predictions that its harness reads.
    """
    from wolo.fleet.coordinator import open_run, options_of
    from wolo.fleet.exports.export_formats import WRITERS
    from wolo.fleet.exports.tables import ExportedRun

    write = WRITERS.get(format)
    if write is None:
        raise UsageError(f"There is no format {format}.", hint=f"Formats: {', '.join(WRITERS)}.")
    folder = run.absolute()
    with closing(open_run(folder, reads=True)) as ledger:
        exported = ExportedRun(folder=folder, model=options_of(ledger.meta()).agent.model, rows=ledger.each_row())
        if out is None:
            with stdout_bytes() as take:
                notices = write(exported, cast("TextIO", _Encoder(take)))
        else:
            notices = _write_file(out, lambda file: write(exported, file))
    print_messages(notices)


class _Encoder(io.TextIOBase):
    """Passes text on as UTF-8."""

    def __init__(self, take: Callable[[bytes], object]) -> None:
        self._take = take

    def write(self, text: str) -> int:
        self._take(text.encode("utf-8", "replace"))
        return len(text)


def _write_file(out: Path, write: Callable[[TextIO], list[str]]) -> list[str]:
    """A file that cannot be written whole is left as it was."""
    try:
        with replacing(out, mode=0o666) as file:
            text = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="")
            notices = write(text)
            text.detach()
    except OSError as error:
        raise WoloError(f"Cannot write {out}: {(error.strerror or str(error)).lower()}.") from error
    return notices
