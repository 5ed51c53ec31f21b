"""`wolo replay`: runs a saved session again in a copy, without a model, and compares."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wolo.cli.listing import AsJson, print_json
from wolo.cli.sessions.lookup import open_store, require_session
from wolo.errors import SessionError, UsageError
from wolo.frontends.streams import confirm, print_line, print_lines, print_message, print_messages

if TYPE_CHECKING:
    from wolo.config.cli_options import Flags
    from wolo.replay.player import Replayed
    from wolo.replay.replay_setup import Recording

UNCONFINED = "This system cannot confine commands to the copy: a command with absolute paths may have changed other files."
NOUNS = {
    "request": "the request differs",
    "preamble": "the request begins differently",
    "result": "the result of a call differs",
    "call": "a call is decided differently",
    "left over": "not all of the record was used",
}

Rules = list[str] | None


def replay(
    id: Annotated[
        str,
        typer.Argument(
            metavar="[ID|FILE]", show_default=False, help="A session or a cassette; the latest of this directory if not given."
        ),
    ] = "",
    strict: Annotated[bool, typer.Option("--strict", help="Also compare system prompt and tools.")] = False,
    as_json: AsJson = False,
    at: Annotated[str, typer.Option("--at", help="Start from a copy of this directory.", metavar="DIR", show_default=False)] = "",
    keep: Annotated[bool, typer.Option("--keep", help="Do not delete the copy.")] = False,
    record: Annotated[
        str,
        typer.Option(
            "--record", help="Write session and files to this file, and replay that.", metavar="FILE", show_default=False
        ),
    ] = "",
    mode: Annotated[str, typer.Option("--mode", help="Use this permission mode.", metavar="MODE", show_default=False)] = "",
    allow: Annotated[Rules, typer.Option("--allow", help="Add this rule.", metavar="RULE", show_default=False)] = None,
    deny: Annotated[Rules, typer.Option("--deny", help="Add this rule.", metavar="RULE", show_default=False)] = None,
    sandbox: Annotated[
        str, typer.Option("--sandbox", help="Sandbox of the commands: auto, or off to run them without one.", metavar="BACKEND")
    ] = "auto",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask about a recording that was not made here.")] = False,
) -> None:
    """Run a session again in a copy of its workspace, with the recorded answers.

    Commands run in the sandbox, without network. A recording that was not made here is shown first, and you are asked once.

    Exit status: 0 without differences; 1 at the first difference, which is printed.
    """
    if sandbox not in ("auto", "off"):
        raise UsageError(f"replay --sandbox: {sandbox!r} is neither auto nor off.")
    start = Path(at).expanduser().absolute() if at else None
    flags: dict[str, str | bool | list[str]] = {"allow": allow or [], "deny": deny or []}
    if mode:
        flags["mode"] = mode
    if record:
        yes = _record(id, Path(record), start) or yes
        id, start = record, None
    with _folder(keep) as folder, _recording(id, folder) as recording:
        _require_consent(recording, is_given=yes)
        replayed = _play(recording, folder, start, flags, is_strict=strict, is_sandboxed=sandbox == "auto")
        if as_json:
            differs = replayed.divergence
            names = () if differs is None else differs.__struct_fields__
            print_json(
                {
                    "session": recording.info.id,
                    "same": differs is None,
                    "steps": replayed.num_steps,
                    "divergence": {name: getattr(differs, name) for name in names} or None,
                    "notices": list(replayed.notices),
                }
            )
        else:
            _print(recording, replayed)
    raise typer.Exit(1 if replayed.divergence else 0)


def _require_consent(recording: Recording, *, is_given: bool) -> None:
    """Shows the calls of a recording that was not made here, and asks once. Raises UsageError without a terminal."""
    import sys

    from wolo.places import find_places
    from wolo.replay import recording_consent

    places = find_places()
    if not recording.is_foreign or recording_consent.is_given(places, recording):
        return
    if not is_given:
        print_messages(recording_consent.lines_of(recording))
        if not sys.stdin.isatty():
            raise UsageError(
                f"The recording {recording.info.id} was not made here, and its commands were not allowed, so nothing was run.",
                hint="Read the commands above; --yes runs them.",
            )
        if not confirm("Run these calls in a copy?"):
            raise UsageError("Nothing was run.")
    recording_consent.save(places, recording)


def _play(recording: Recording, folder: Path, at: Path | None, flags: Flags, *, is_strict: bool, is_sandboxed: bool) -> Replayed:
    from msgspec import structs

    from wolo.replay.player import ReplayOptions, replay
    from wolo.replay.replay_setup import prepare_workspace
    from wolo.workspace.landlock import ConfinedRunner

    info = recording.info
    stage = prepare_workspace(recording, folder / "stage", at)
    rerun = ReplayOptions(
        tape=recording.tape,
        stage=stage,
        model=info.model,
        mode=info.mode,
        flags=flags,
        is_foreign=recording.is_foreign,
        is_sandboxed=is_sandboxed,
        is_strict=is_strict,
    )
    os.environ["TMPDIR"] = str(stage.temporary)
    confined = ConfinedRunner(lambda: replay(rerun), stage.folder, only_writes=is_sandboxed)
    replayed = confined.run()
    return replayed if is_sandboxed or confined.is_held else structs.replace(replayed, notices=(*replayed.notices, UNCONFINED))


def _record(spec: str, file: Path, at: Path | None) -> bool:
    """Writes the recording of a session. True: the session was made here, so no consent to the file is needed."""
    from wolo.conversation.resources.secrets import redactor
    from wolo.replay import cassette
    from wolo.replay.replay_setup import prepare_workspace
    from wolo.sessions.exchange.export_stream import write_file

    with _folder(keep=False) as folder, _recording(spec, folder) as recording:
        stage = prepare_workspace(recording, folder / "stage", at)
        secrets = redactor()
        write_file(file, lambda out: cassette.write(recording.store, recording.info, recording.tape, stage, out, secrets))
        return not recording.is_foreign


@contextmanager
def _recording(spec: str, folder: Path) -> Iterator[Recording]:
    from wolo.replay.replay_setup import from_file, from_store

    if spec and Path(spec).is_file():
        recording = from_file(Path(spec), folder)
    else:
        store = open_store()
        try:
            recording = from_store(store, require_session(store, spec))
        except BaseException:
            store.close()
            raise
    try:
        if not recording.tape.steps:
            raise SessionError(f"Session {recording.info.id} has no answers to replay.")
        yield recording
    finally:
        recording.store.close()


@contextmanager
def _folder(keep: bool) -> Iterator[Path]:
    from tempfile import mkdtemp

    folder = Path(os.path.realpath(mkdtemp(prefix="wolo-replay-")))
    try:
        (folder / "stage").mkdir()
        yield folder
        if keep:
            print_message(f"The copy is in {folder / 'stage'}.")
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def _print(recording: Recording, replayed: Replayed) -> None:
    print_messages(replayed.notices)
    total = recording.tape.steps
    if replayed.divergence is None:
        print_line(f"{recording.info.id}: {total} step{'s' if total != 1 else ''}, all as recorded.")
        return
    from wolo.messages.comparison import difference

    differs = replayed.divergence
    lines = (f"  {line}" for line in difference(differs.expected, differs.got).splitlines())
    print_lines((f"Step {differs.step} of {total}: {NOUNS[differs.kind]}.", f"  {differs.where}", *lines))
