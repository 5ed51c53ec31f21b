"""`wolo sessions tree`: the prompts of one session, with all branches."""

from __future__ import annotations

from datetime import UTC, datetime

from wolo.cli.as_json import AsJson, print_json
from wolo.cli.sessions.lookup import SessionSpec, open_store, require_session
from wolo.frontends.streams import tell


def print_tree(id: SessionSpec = "", as_json: AsJson = False) -> None:
    """Draw the tree of a session.

    Its prompts, its branches, and where it stands.
    """
    import msgspec

    from wolo.sessions.session_text import draw, outline

    with open_store(only_to_read=True) as store:
        info = require_session(store, id)
        places = outline(store.nodes(info.id), store.head(info.id))
    if as_json:
        rows = [msgspec.to_builtins(place) for place in places]
        print_json([row | {"at": datetime.fromtimestamp(row["at"], UTC).isoformat(timespec="seconds")} for row in rows])
        return
    tell(f"{info.id}  {info.name or info.title}")
    for line in draw(places):
        tell(line)
    if not places:
        tell("Nothing was said yet.")
