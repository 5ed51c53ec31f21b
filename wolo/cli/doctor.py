"""`wolo doctor`: checks the installation, and packs a bundle for a bug report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wolo.cli.listing import AsJson, print_json
from wolo.errors import ConfigError, UsageError
from wolo.frontends.streams import error_text, print_line, print_lines

if TYPE_CHECKING:
    from wolo.sessions.exchange.export_stream import Write
    from wolo.sessions.exchange.redaction import Redactor


def doctor(
    as_json: AsJson = False,
    online: Annotated[
        bool, typer.Option("--online", help="Ask the model once: a tiny request, which may cost a little.")
    ] = False,
    report_file: Annotated[
        str,
        typer.Option(
            "--report",
            "--bundle",
            help="Write everything that support needs to this text file or .zip, without secrets.",
            metavar="FILE",
            show_default=False,
        ),
    ] = "",
    session: Annotated[
        str, typer.Option("--session", help="Add this session to the file of --report.", metavar="ID", show_default=False)
    ] = "",
) -> None:
    """Check what works here and what does not."""
    from wolo.diagnostics.health_check import examine, lines

    report = examine(online=online)
    if report_file or session:
        write_report(report_file, report, session)
        return
    if as_json:
        print_json(report)
    else:
        print_lines(lines(report))
    if report["problems"]:
        raise typer.Exit(1)


LOG_BYTES = 1024 * 1024
"""Size of the end of the log that is included."""
CRASHES = 3
"""Number of crash reports, the newest ones."""


def write_report(file: str, report: dict[str, Any], session: str) -> None:
    """Raises UsageError, ConfigError and SessionError."""
    import io

    from wolo.conversation.resources.secrets import best_redactor, redactor
    from wolo.sessions.exchange.export_stream import write_file

    if not file:
        raise UsageError("--session needs --report.", hint="Add --report FILE.")
    try:
        secrets, trouble = redactor(), ""
    except ConfigError as error:
        if session:
            raise
        secrets, trouble = best_redactor(), error_text(error)
    packed = io.BytesIO()
    pack = _pack if file.endswith(".zip") else _join
    names = pack(packed, _contents(report, session, trouble), secrets)

    def write_to(out: Write) -> None:
        out(packed.getvalue())

    write_file(Path(file), write_to)
    print_line(f"{file} contains {', '.join(names)}. Secrets were removed; check it before you share it.")


def _pack(packed: Any, contents: Iterable[tuple[str, bytes]], secrets: Redactor) -> list[str]:
    from zipfile import ZIP_DEFLATED, ZipFile

    names = []
    with ZipFile(packed, "w", ZIP_DEFLATED) as archive:
        for name, content in contents:
            archive.writestr(name, secrets.data(content) if not name.startswith("session") else content)
            names.append(name)
    return names


def _join(joined: Any, contents: Iterable[tuple[str, bytes]], secrets: Redactor) -> list[str]:
    names = []
    for name, content in contents:
        shown = secrets.data(content) if not name.startswith("session") else content
        joined.write(b"===== %s =====\n%s\n\n" % (name.encode(), shown.rstrip(b"\n")))
        names.append(name)
    return names


def _contents(report: dict[str, Any], session: str, trouble: str) -> Iterator[tuple[str, bytes]]:
    import json
    from importlib.metadata import distributions

    from wolo.cli.sessions.lookup import open_store, require_session
    from wolo.config import layers
    from wolo.conversation.resources.secrets import redactor
    from wolo.diagnostics.health_check import lines
    from wolo.places import find_places
    from wolo.sessions.exchange import jsonl
    from wolo.workspace.root import find_site

    def as_json(value: object) -> bytes:
        return json.dumps(value, ensure_ascii=False, indent=2, default=str).encode("utf-8", "replace")

    yield "doctor.txt", "\n".join(lines(report)).encode("utf-8", "replace")
    yield "doctor.json", as_json(report)
    yield "versions.json", as_json(dict(sorted((each.metadata["Name"] or "?", each.version) for each in distributions())))
    if trouble:  # keys in unreadable settings cannot be redacted, so the logs are left out
        yield "settings.json", as_json({"cannot be read": trouble})
    else:
        rows = layers.rows(layers.load(find_site()))
        yield "settings.json", as_json([{"key": key, "value": value, "source": source} for key, value, source in rows])
        state = find_places().state
        crashes = sorted(state.glob("crash-*.txt"), key=lambda path: path.name)[-CRASHES:]
        for path in (state / "wolo.log", *crashes):
            try:
                with path.open("rb") as file:
                    file.seek(max(path.stat().st_size - LOG_BYTES, 0))
                    yield path.name, file.read()
            except OSError:
                continue
    if session:
        pieces: list[bytes] = []
        with open_store() as store:
            jsonl.write(store, require_session(store, session), pieces.append, redactor())
        yield "session.jsonl", b"".join(pieces)
