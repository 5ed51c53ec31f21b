"""`wolo doctor`: what works here and what does not."""

from __future__ import annotations

from typing import Annotated

import typer

from wolo.cli.as_json import AsJson, print_json
from wolo.frontends.streams import tell


def doctor(
    as_json: AsJson = False,
    bundle: Annotated[
        str,
        typer.Option(
            "--bundle", help="Put it into this zip, with settings and logs, without secrets.", metavar="FILE", show_default=False
        ),
    ] = "",
    session: Annotated[str, typer.Option("--session", help="And this session.", metavar="ID", show_default=False)] = "",
) -> None:
    """What works here and what does not."""
    from wolo.diagnostics.doctor import examine, lines

    report = examine()
    if bundle or session:
        from wolo.cli.bundle import write_bundle

        write_bundle(bundle, report, session)
        return
    if as_json:
        print_json(report)
        return
    for line in lines(report):
        tell(line)
