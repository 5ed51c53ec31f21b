"""Refuses runs of others whose files allow more than this user has chosen."""

from __future__ import annotations

from collections.abc import Sequence

from wolo.errors import UsageError
from wolo.fleet.agent_run import AgentSettings
from wolo.fleet.tasks import BatchTask
from wolo.guard.modes import is_looser

_NAMED = 5


def refuse_foreign(settings: AgentSettings, cluster: str, images: Sequence[str], own_mode: str) -> None:
    """For options that nobody here has chosen. Raises UsageError if they allow more than `own_mode`, or name anything else."""
    found = [f"--mode {settings.mode}"] if settings.mode and is_looser(settings.mode, own_mode) else []
    found += [f"--set {text}" for text in settings.sets]
    found += [f"--ray-address {cluster}"] if cluster else []
    found += [f"--image {image}" for image in images]
    if found:
        raise UsageError(
            f"This run was not made here, and its maker has chosen {', '.join(found)}.",
            hint="--as-saved uses that; or run its tasks.jsonl anew with options of your own.",
        )


def refuse_looser(tasks: Sequence[BatchTask], mode: str) -> None:
    """Raises UsageError for tasks that were put into the queue in a looser mode than that of the run."""
    looser = [f"{task.id} ({task.mode})" for task in tasks if task.mode and is_looser(task.mode, mode)]
    if looser:
        more = f" and {len(looser) - _NAMED} more" if len(looser) > _NAMED else ""
        raise UsageError(
            f"Tasks of the run have a mode looser than {mode}, which was chosen for it: {', '.join(looser[:_NAMED])}{more}.",
            hint="`wolo batch cancel RUN TASK` removes them; `wolo batch run … --mode` chooses for all.",
        )


def refuse_images(tasks: Sequence[BatchTask], images: Sequence[str]) -> None:
    """Raises UsageError for tasks in images that were not chosen for the run."""
    found = [f"{task.id} ({task.image})" for task in tasks if task.image and task.image not in images]
    if found:
        raise UsageError(
            f"Tasks of the run name images that were not chosen for it and would get your keys: {', '.join(found[:_NAMED])}.",
            hint="`wolo batch cancel RUN TASK` removes them; `wolo batch run … --image IMAGE` chooses.",
        )
