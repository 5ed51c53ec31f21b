"""`wolo trust`: shows whether this folder is trusted, and revokes trust.

Granting trust needs the person at a terminal.
"""

from __future__ import annotations

from typing import Annotated

import typer

from wolo.cli.listing import AsJson, print_json
from wolo.errors import UsageError
from wolo.frontends.streams import print_line

WORDS = {None: "not asked yet", "trusted": "yes", "never": "never"}


def trust(
    word: Annotated[str, typer.Argument(metavar="[status|forget]", show_default=False)] = "status", as_json: AsJson = False
) -> None:
    """Show whether this folder is trusted and which project files it contains; `forget` revokes all consent."""
    from pathlib import Path

    from wolo.config import consents, project, unread_places
    from wolo.places import Notices, find_places
    from wolo.workspace.root import find_root

    if word not in ("status", "forget"):
        raise UsageError(f"Unknown command `wolo trust {word}`.", hint="Use `wolo trust` or `wolo trust forget`.")
    root, notices = find_root(), Notices()
    if word == "forget":
        consents.forget(find_places(), root)
    answer = consents.trust_in(find_places(), root, notices)
    brought, unread = project.find(root, Path.cwd()), project.find_unread(root, Path.cwd())
    if as_json:
        files = [{"kind": each.kind, "path": str(each.path)} for each in brought]
        print_json(
            {
                "folder": str(root),
                "answer": answer,
                "trusted": answer == "trusted",
                "brought": files,
                "unread": [
                    {"agent": place.agent, "kind": place.kind, "path": str(path), "why": place.why} for path, place in unread
                ],
                "notices": list(notices),
            }
        )
        return
    rows = [("folder", project.on_one_line(root)), ("trusted", WORDS[answer])]
    rows += [(each.kind, project.on_one_line(each.path.relative_to(root))) for each in brought]
    rows += [("not read", unread_places.describe(path, place, root)) for path, place in unread]
    for name, value in (*rows, *(("notice", notice) for notice in notices)):
        print_line(f"{name:<12} {value}")
