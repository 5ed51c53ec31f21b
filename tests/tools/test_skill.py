"""The tool that loads a skill: judged as a read of its file, and never another file than the one that was judged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from wolo.errors import ToolError
from wolo.guard.intents import ReadIntent
from wolo.tools.skill import SkillArgs, SkillTool
from wolo.tools.tool import CallContext, OfferedSkill, ShellState, ToolServices
from wolo.tools.tool_values import CallResult
from wolo.tools.toolbox import Toolbox
from wolo.workspace.files.file_reading import FileLedger
from wolo.workspace.root import Workspace

INSIDE, OUTSIDE = Path("/project/.agents/skills/pdf/SKILL.md"), Path("/home/me/.agents/skills/pdf/SKILL.md")


def offering(path: Path) -> Callable[[str], OfferedSkill]:
    def offered(name: str) -> OfferedSkill:
        if name != "pdf":
            raise ToolError(f"Unknown skill: `{name}`.")
        return OfferedSkill(path, lambda: f"The text of {path}.")

    return offered


def services_with(tmp_path: Path, skill: Callable[[str], OfferedSkill] | None) -> ToolServices:
    return ToolServices(
        workspace=Workspace(Path("/project")),
        ledger=FileLedger(tmp_path / "locks"),
        save_output=lambda name, data: tmp_path / name,
        shell=ShellState(tmp_path),
        find_skill=skill,
    )


@pytest.mark.parametrize(("path", "is_inside"), [(INSIDE, True), (OUTSIDE, False)])
async def test_skill_is_judged_as_reading_its_file(tmp_path: Path, path: Path, is_inside: bool) -> None:
    at_hand = services_with(tmp_path, offering(path))
    assert SkillTool().intents(SkillArgs(name="pdf"), at_hand) == (ReadIntent(path, str(path), is_inside),)
    assert await SkillTool().run(SkillArgs(name="pdf"), CallContext(at_hand)) == CallResult(f"The text of {path}.")


@pytest.mark.parametrize("name", ["pdf", " pdf ", "/pdf", "skill:pdf", "/skill:pdf"])
async def test_name_matches_as_a_person_types_it(tmp_path: Path, name: str) -> None:
    tool, args = Toolbox().decode("skill", {"skill_name": name})
    assert (await tool.run(args, CallContext(services_with(tmp_path, offering(INSIDE))))).text.startswith("The text")


async def test_file_other_than_the_judged_is_not_read(tmp_path: Path) -> None:
    args = SkillArgs(name="pdf")
    at_hand = services_with(tmp_path, offering(INSIDE))
    judged = at_hand.for_call("call_1", lambda text: None, SkillTool().intents(args, at_hand))
    assert (await SkillTool().run(args, judged)).text == f"The text of {INSIDE}."
    other = replace(judged, services=services_with(tmp_path, offering(OUTSIDE)))
    with pytest.raises(ToolError, match="has changed since"):
        await SkillTool().run(args, other)


@pytest.mark.parametrize(("skill", "said"), [(None, "There are no skills here"), (offering(INSIDE), "Unknown skill: `nope`")])
def test_missing_skill_is_explained_to_the_model(tmp_path: Path, skill: Callable[[str], OfferedSkill] | None, said: str) -> None:
    with pytest.raises(ToolError, match=said):
        SkillTool().intents(SkillArgs(name="nope"), services_with(tmp_path, skill))


async def test_a_replay_takes_the_text_on_record(tmp_path: Path) -> None:
    at_hand = replace(services_with(tmp_path, offering(INSIDE)), recorded_result=lambda call_id: CallResult("As it was."))
    assert (await SkillTool().run(SkillArgs(name="pdf"), CallContext(at_hand))).text == "As it was."
