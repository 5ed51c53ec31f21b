"""A module's name says what is in it: names that had to be decoded do not come back."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "wolo"
GIVEN_UP = set(
    """
    adoption alarm anywhere approvals archive around aside asking attention bare bash_line bell beneath beside brake build
    by_folder by_hand cached_tools card catching_up chain change characters chat_reading checkup child chips choice choosing
    clip coming complete composer_keys confined confirming copying course cut denied difference dropped editor elsewhere
    enclosing envelope errand examining examples exporting facts facts_line failures faults file_losses filelocks filling
    finish folded following foot found gathering git_losses given glimpse going_back halves hands hiding hook_answers
    hook_conditions hook_consent hook_digest hook_files hook_names hook_results hook_settings hooking hosts hunks identity
    imported inbox incoming inserting irreversible janitor joints jsonl_reading judging keeping kept_keys key_trial keyed
    kimi_code known ladder last_breath last_word late_tools later launchers layout lead leave led_to levels library likeness
    line link listed live_values log_in logins look look_up losses main_part making_room meanwhile menus misses missing
    mistakes model_facts named_files naming neighbours nested next_request notices observe offered offered_tools offers
    opencode_newer opening outlet outline outside own_commands own_settings own_word page page_style page_text pages
    painting paper paragraph passages patching patterns peek pick placeholders preamble prefix presence printed private
    programs project_names proposal prose protected provider_files pruning query question reaching readable reading_back
    recalled recognise recorded recorded_tool references refusal refusal_codes rehearsal relay remote_tool removing
    repetition replies restoring restraints rewinding round row_layout rulebook safe said same_beginning saved saving
    scratch screen secrecy secret_files secret_text sending settling shades shapes shared_form shelves spellings spoken_text
    spool sqlite_file stage standing start stored succession suggest summary surroundings tags tape task_hooks telling text
    then_and_now thinking_shown tidying tightening todo_shown together told traces typed_line under_way undoing unseen use
    verbatim verifying waiting waits walls watching weighing when which_session whole_answer whose window wire wordings
    write_ahead write_claude_code write_codex write_kimi write_opencode write_pi writing written written_code written_rules
    """.split()  # noqa: SIM905  # a list of so many words is easier to read as text
)
SAY_NOTHING = {"base", "common", "handler", "handlers", "helpers", "manager", "misc", "types", "util", "utils"}
MOST_SIBLINGS = 28
"""Files in a folder; slash commands are a file each."""


def test_no_module_has_a_name_that_was_given_up() -> None:
    assert {path.stem for path in PACKAGE.rglob("*.py")} & (GIVEN_UP | SAY_NOTHING) == set()


def test_folders_stay_small() -> None:
    sizes = {
        folder: len(list(folder.glob("*.py"))) for folder in PACKAGE.rglob("*") if folder.is_dir() and folder.name != "commands"
    }
    assert {str(folder.relative_to(PACKAGE)): size for folder, size in sizes.items() if size > MOST_SIBLINGS} == {}
