"""Opens a conversation: the one place where all rooms are tied together, step by step and without any logic of its own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from wolo.agent.agent import Agent
from wolo.agent.agent_services import AgentServices, MessageHistory
from wolo.agent.budget import Account
from wolo.agent.cancellation import Cancellation
from wolo.agent.compaction.compactor import Compactor
from wolo.agent.compaction.history_cut import cut_of
from wolo.agent.events import ApprovalAsked, ApprovalGiven
from wolo.agent.hook_calls import Hooks
from wolo.agent.prompt_prefix import PromptPrefix
from wolo.agent.tool_calls import ToolCalls
from wolo.agent.tool_execution import CommandRights, Emit, run_user_command
from wolo.config.cli_options import text
from wolo.conversation.conversation import Conversation
from wolo.conversation.dependencies import Dependencies
from wolo.conversation.handover import Handover
from wolo.conversation.pending_requests import PendingApprovals, PendingQuestions
from wolo.conversation.permission_check import PermissionCheck
from wolo.conversation.recorder import EventStream, Recorder
from wolo.conversation.resources.hooks import ConversationHooks, find_hooks, notices_about
from wolo.conversation.resources.mcp_servers import FoundServers, find_servers
from wolo.conversation.resources.model_selection import ModelAccess, make_asker
from wolo.conversation.resources.persistence import SavedSession
from wolo.conversation.resources.request_prefix import PromptOptions, build_prefix, options_of, prompt_options, reload_prompt
from wolo.conversation.resources.secrets import make_secrets
from wolo.conversation.resources.startup import ConversationInfo, EnteredMode, StartOptions, StartupState, prepare_start
from wolo.conversation.resources.tool_environment import (
    SandboxPlan,
    SandboxSetup,
    known_text,
    make_judge,
    new_shell,
    passed_variables,
    save_redacted,
    track_session,
    tracking_emit,
)
from wolo.conversation.resources.user_files import UserFiles, own_folders
from wolo.conversation.resources.verification import make_verify
from wolo.conversation.subagents.subagents import Parent, Subagents
from wolo.guard.judge import Judge
from wolo.guard.secrets.redactor import Secrets
from wolo.mcp.servers import Servers
from wolo.sessions.entries import LabelEntry, SettingEntry
from wolo.sessions.listing import SessionInfo
from wolo.sessions.store import Store
from wolo.tools.tool import CommandSandbox, ShellState, ToolServices
from wolo.tools.tool_values import AskQuestions, Question, Replies
from wolo.tools.toolbox import Toolbox
from wolo.workspace.files.file_reading import FileLedger


async def open_conversation(opening: StartOptions) -> Conversation:
    """Raises WoloError for what a person must mend; nothing has been sent or kept then."""
    site = prepare_start(opening)
    try:
        found = await find_servers(
            *(site.config, site.workspace, site.cwd, site.places, opening.servers),
            attended=opening.attended,
            was_asked=opening.was_asked,
        )
    except BaseException:
        site.kept.close()
        raise
    try:
        return _tie(site, found)
    except BaseException:
        await found.servers.close()
        site.kept.close()
        raise


def _tie(site: StartupState, found: FoundServers) -> Conversation:
    config, workspace, cwd, places, kept = site.config, site.workspace, site.cwd, site.places, site.kept
    library = UserFiles(config, places, workspace.root, cwd)
    skills, agents = library.skills(site.choice), library.agents(site.choice)
    shown = (kept.outputs, *own_folders(skills.found))
    judge = make_judge(config, site.enclosure.mode, workspace, cwd, places, shown)
    secrets = make_secrets(places, config.settings, (workspace.root, *workspace.extra), (site.choice, site.fallback))
    opening = site.opening
    shell = opening.shell.go_on(cwd) if opening.shell else new_shell(cwd, places.state, secrets)
    compactor = Compactor(config.settings.context, config.settings.compaction, opening.cut or cut_of(kept.compaction))
    history = MessageHistory(compactor, lambda: kept.unread().messages)
    hook_notices: list[str] = []
    hooking = ConversationHooks(
        find_hooks(config, places, workspace.root, cwd, hook_notices),
        *(workspace, shell, passed_variables(config), history),
        has_begun=opening.hooks_have_begun,
        variables=opening.hook_variables,
    )
    judge.protect_files((*hooking.programs(), *found.programs))
    sandbox = SandboxSetup(config, judge, workspace, shell, CommandSandbox(), places, shown)
    sandbox.apply(site.enclosure)
    watch = track_session(places, workspace, kept)
    prompts = _prompts(site)  # read once: a file that is named may be a pipe
    preamble = build_prefix(
        *(config, places, workspace.root, cwd, prompts),
        calls_in_text=site.choice.format == "xml",
        edit_tool=site.choice.edit_tool,
        most_tools=site.choice.most_tools,
        attended=opening.attended,
        skills=skills,
        agents=agents,
        more_tools=found.servers.tools,
    )
    recorder = Recorder(kept, kept.session_id)
    events = EventStream(recorder, kept.rescues, kept.summed_up)
    approvals = PendingApprovals(events.emit, partial(_keep_rule, site), judge.complaint)
    questions = PendingQuestions(events.emit, secrets.hide_fields)
    ask_user = approvals.ask if opening.attended else None
    emit = tracking_emit(events.emit, watch, shell.processes)
    run_hook = hooking.start(places.state, partial(_told_with_every_event, site, judge), is_resumed=kept.is_begun)
    hooks = Hooks(run_hook, emit, secrets)
    reach = _reach(site, secrets)
    asker = make_asker(reach, site.choice, site.fallback)
    account = Account(config.settings.limits)
    ask_questions = questions.ask if opening.attended else None
    subagents = Subagents(
        Parent(site, reach, preamble, judge, asker, hooks, run_hook, account, events.emit, ask_user, ask_questions), agents
    )
    services = ToolServices(
        workspace=workspace,
        ledger=FileLedger(places.state / "file-locks"),
        save_output=partial(save_redacted, kept, secrets),
        shell=shell,
        secrets=secrets,
        shell_timeout_s=config.settings.shell.timeout_s,
        shell_env=passed_variables(config),
        session_env=hooking.variables,
        may_fetch=judge.may_fetch,
        is_readable=judge.readable,
        ask_user=ask_questions and partial(_ask_and_notify, hooks, ask_questions),
        agents=agents.offers,
        delegate=subagents.delegate,
        find_skill=library.offered,
        recall=history.recall,
        sandbox=sandbox.sandbox,
        watch=watch,
        record_change=watch.note,
    )
    reread = partial(reload_prompt, preamble, places, workspace.root, cwd, partial(_prompts, site), library)
    agent = Agent(
        AgentServices(
            asker=asker,
            emit=emit,
            hooks=hooks,
            calls=ToolCalls(preamble.toolbox, services, judge, emit=emit, ask_user=ask_user, hooks=hooks),
            prefix=PromptPrefix(preamble.system, preamble.toolbox, compactor, secrets, late_tools=found.servers, reread=reread),
            compactor=compactor,
            history=history,
            shell=shell,
            account=account,
            limits=config.settings.limits,
            session_id=kept.session_id,
            verify=make_verify(config.settings.verify, services, judge.confine),
        )
    )
    ending = Handover(
        *(site, found.servers, hooking, subagents, asker, shell, watch, recorder),
        follow=open_conversation,
    )
    joints = Dependencies(
        secrets=secrets,
        agent=agent,
        events=events,
        approvals=approvals,
        questions=questions,
        known_text=partial(known_text, services),
        close=ending.close,
        kill=partial(_kill, shell, subagents, found.servers),
        enter_mode=partial(_enter_mode, sandbox, recorder),
        run_user_command=partial(_run_by_hand, services),
        bench=PermissionCheck(judge, config, workspace, lambda: shell.cwd, agents.offers),
        library=library,
        sessions=partial(_sessions_here, site),
        tree=kept.tree,
        unread=kept.unread,
        label=partial(_label, site),
        entitle=partial(_entitle, site, recorder),
        servers=found.servers,
        watch=watch,
        file_locks=services.ledger.locks,
        jobs=shell.jobs,
        subagents=subagents,
        hooks=hooking.sets,
    )
    facts = _facts(
        site,
        preamble.toolbox,
        (*preamble.notices, *found.notices, *hook_notices, *notices_about(hooking.sets, was_asked=opening.was_asked)),
    )
    conversation = Conversation(
        facts,
        joints,
        recorder,
        kept.history,
        attended=opening.attended,
        reopen=ending.reopen,
        options=options_of(config, workspace, prompts, secrets.hide),
    )
    conversation.asked_aside = kept.asked_aside
    return conversation


def _reach(site: StartupState, secrets: Secrets) -> ModelAccess:
    wire_log = text(site.given, "debug_wire")
    return ModelAccess(
        settings=site.config.settings,
        places=site.places,
        project=secrets.hide(site.cwd.name),
        secrets=secrets,
        attended=site.opening.attended,
        wire_log=Path(wire_log) if wire_log else None,
        progress=site.opening.progress,
    )


def _prompts(site: StartupState) -> PromptOptions:
    """Raises UsageError."""
    if site.agent is None:
        return prompt_options(site.given)
    from wolo.conversation.resources.request_prefix import with_prompt  # few conversations work as an agent

    return with_prompt(prompt_options(site.given), site.agent)


def _told_with_every_event(site: StartupState, judge: Judge) -> dict[str, str]:
    told = {"session_id": site.kept.session_id, "cwd": str(site.cwd), "permission_mode": judge.mode.name}
    return {**told, "agent_type": site.agent.name} if site.agent else told


async def _ask_and_notify(hooks: Hooks, ask: AskQuestions, call_id: str, questions: Sequence[Question]) -> Replies | None:
    return await hooks.notify_while("question", "A question waits for you", ask(call_id, questions))


def _facts(site: StartupState, toolbox: Toolbox, more_notices: tuple[str, ...]) -> ConversationInfo:
    return ConversationInfo(
        session_id=site.kept.session_id,
        model=site.choice.label,
        cwd=site.cwd,
        root=site.workspace.root,
        mode=site.enclosure.mode.name,
        sandbox=_backend(site.enclosure),
        tool_names=tuple(spec.name for spec in toolbox.specs(compacted=site.kept.compaction is not None)),
        ui=site.config.settings.ui,
        keeps_session=isinstance(site.kept, SavedSession),
        begun_in=site.kept.begun_in,
        notices=(*site.notices, *more_notices),
    )


def _kill(shell: ShellState, subagents: Subagents, servers: Servers) -> None:
    shell.processes.close_all()
    subagents.kill()
    servers.kill()


def _enter_mode(sandbox: SandboxSetup, recorder: Recorder, name: str) -> EnteredMode:
    enclosure = sandbox.enter(name)
    recorder.change(SettingEntry(name="mode", value=enclosure.mode.name))
    return EnteredMode(name=enclosure.mode.name, sandbox=_backend(enclosure), notice=enclosure.notice)


async def _run_by_hand(
    services: ToolServices, command: str, rights: CommandRights, cancellation: Cancellation, emit: Emit
) -> None:
    await run_user_command(command, rights, services, cancellation, emit)


def _backend(enclosure: SandboxPlan) -> str:
    return enclosure.found.backend if enclosure.found.make else ""


def _keep_rule(site: StartupState, asked: ApprovalAsked, given: ApprovalGiven) -> None:
    """A person's "always" goes into the user's rules."""
    rule = given.rule or asked.rule
    if given.allowed and given.scope in ("always", "everywhere") and rule:
        from wolo.config.settings_writer import remember_rule

        remember_rule(site.places, site.workspace.root if given.scope == "always" else None, rule)


def _sessions_here(site: StartupState) -> list[SessionInfo]:
    with Store.open(site.places.data) as store:
        return store.list(site.cwd)


def _label(site: StartupState, message_id: str, label: str) -> None:
    site.kept.append(site.kept.session_id, [LabelEntry(message_id=message_id, label=label)])


def _entitle(site: StartupState, recorder: Recorder, title: str) -> None:
    setting = SettingEntry(name="title", value=title)
    if site.kept.is_begun:
        site.kept.append(site.kept.session_id, [setting])
    else:
        recorder.change(setting)
