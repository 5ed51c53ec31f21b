"""Which files of the workspace a command changed: the conversation's watch looks at it before and after."""

from __future__ import annotations

import asyncio

from wolo.tools.tool import CallContext
from wolo.workspace.checkpoints.path_state import Changes

_MAX_KEPT = 200


class Looks:
    """Around one command, but for those that are known to read only. Without a watch nothing is seen."""

    def __init__(self, call: CallContext) -> None:
        self._watch = None if call.only_reads else call.services.watch
        # Commands that one task runs are told apart all the same: some may leave something running.
        self._call = f"{call.services.works_for}/{call.call_id}" if call.services.works_for else call.call_id
        self._is_over = False

    async def before(self) -> None:
        """Raises ToolError where what the command may change cannot be saved: then it must not run."""
        if self._watch is None:
            return
        look = asyncio.ensure_future(asyncio.to_thread(self._watch.before, self._call))
        try:
            await asyncio.shield(look)
        except asyncio.CancelledError:
            await asyncio.wait([look])
            self.after()
            raise

    def after(self, *, runs_on: bool = False) -> Changes:
        """Blocks. `runs_on`: it has left something running, of which a later look will tell. Only the first call counts."""
        if self._watch is None or self._is_over:
            return Changes()
        self._is_over = True
        return self._watch.after(self._call, runs_on=runs_on)


def told(changes: Changes) -> dict[str, list[str]]:
    """What is kept of it with the call; nothing where it is much."""
    kinds = {name: list(paths) for name, paths in zip(changes._fields, changes, strict=True) if paths}
    return kinds if sum(map(len, changes)) <= _MAX_KEPT else {}
