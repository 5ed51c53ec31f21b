"""What ties a conversation to the rooms it does not know."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path

from msgspec import Struct

from wolo.agent.agent import Agent
from wolo.agent.cancellation import Cancellation
from wolo.agent.tool_execution import CommandRights, Emit
from wolo.conversation.pending_requests import PendingApprovals, PendingQuestions
from wolo.conversation.permission_check import PermissionCheck
from wolo.conversation.recorder import EventStream
from wolo.conversation.resources.hooks import HookSet
from wolo.conversation.resources.persistence import UnloadedHistory
from wolo.conversation.resources.startup import EnteredMode
from wolo.conversation.resources.user_files import UserFiles
from wolo.conversation.subagents.subagents import Subagents
from wolo.guard.secrets.redactor import Secrets
from wolo.mcp.servers import Servers
from wolo.sessions.listing import SessionInfo
from wolo.sessions.loading import Node
from wolo.tools.background_jobs import Jobs
from wolo.workspace.checkpoints.tracker import Watch


class Dependencies(Struct, frozen=True):
    secrets: Secrets
    """What a prompt must not tell."""
    agent: Agent
    events: EventStream
    approvals: PendingApprovals
    questions: PendingQuestions
    known_text: Callable[[Path], str | None]
    """What a file holds, where the session knows it as it is now."""
    close: Callable[[], Awaitable[None]]
    kill: Callable[[], None]
    """Ends all processes at once."""
    enter_mode: Callable[[str], EnteredMode]
    run_user_command: Callable[[str, CommandRights, Cancellation, Emit], Coroutine[None, None, None]]
    bench: PermissionCheck
    """The rules and the judge that calls are held to."""
    library: UserFiles
    """Skills and commands that were written for here."""
    sessions: Callable[[], list[SessionInfo]]
    """Of this directory, newest first."""
    tree: Callable[[], tuple[list[Node], int]]
    """All entries of this session, and where the conversation stands."""
    unread: Callable[[], UnloadedHistory]
    """What of a huge session is only on the disk."""
    label: Callable[[str, str], None]
    """Names a message of this session."""
    entitle: Callable[[str], None]
    """Gives this session another title."""
    servers: Servers
    """Those whose tools the model has."""
    hooks: tuple[HookSet, ...] = ()
    """All there are, also those that may not run."""
    watch: Watch | None = None
    """Knows what was done to files."""
    file_locks: Path | None = None
    """Where the locks of single files lie."""
    jobs: Jobs | None = None
    """The commands in the background."""
    subagents: Subagents | None = None
    """The agents that tasks are given to."""
