"""Opens a conversation: the one place where all rooms are tied together, step by step and without any logic of its own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from wolo.agent.cancellation import Brake
from wolo.agent.compaction.compactor import Compactor
from wolo.agent.compaction.history_cut import cut_of
from wolo.agent.events import ApprovalAsked, ApprovalGiven
from wolo.agent.loop import Agent
from wolo.agent.tool_calls import AskPerson, Emit
from wolo.agent.user_command import Footing, run_by_hand
from wolo.config.cli_options import text
from wolo.conversation.conversation import Conversation
from wolo.conversation.dependencies import Dependencies
from wolo.conversation.handover import Handover
from wolo.conversation.permission_check import PermissionCheck
from wolo.conversation.recorder import Recorder
from wolo.conversation.resources.checkpointing import attach_tracker, tracking_emit
from wolo.conversation.resources.hooks import ConversationHooks, find_hooks, notices_about
from wolo.conversation.resources.mcp_servers import FoundServers, find_servers
from wolo.conversation.resources.model_access import ModelAccess, make_asker
from wolo.conversation.resources.persistence import SavedSession
from wolo.conversation.resources.request_prefix import PromptOptions, RequestPrefix, build_prefix, prompt_options, reload_prompt
from wolo.conversation.resources.run_options import options_of
from wolo.conversation.resources.sandboxing import ModeSwitch, SandboxPlan, apply_sandbox
from wolo.conversation.resources.secrets import make_secrets
from wolo.conversation.resources.session_info import ConversationInfo, EnteredMode
from wolo.conversation.resources.startup import StartOptions, StartupState, prepare_start
from wolo.conversation.resources.tool_context import known_text, make_context, make_judge
from wolo.conversation.resources.user_files import UserFiles, own_folders
from wolo.conversation.resources.verification import make_verify
from wolo.conversation.subagents.subagents import Parent, Subagents
from wolo.guard.judge import Judge
from wolo.guard.secrets.redactor import Secrets
from wolo.mcp.servers import Servers
from wolo.models.protocol import Asker
from wolo.sessions.entries import LabelEntry, SettingEntry
from wolo.sessions.listing import SessionInfo
from wolo.sessions.store import Store
from wolo.tools.question_types import AskQuestions, PutQuestions, Question, Replies
from wolo.tools.tool import ToolContext
from wolo.tools.toolbox import Toolbox


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
    context = make_context(config, workspace, cwd, places, kept, judge, secrets, site.opening.shell)
    hook_notices: list[str] = []
    hook_sets = find_hooks(config, places, workspace.root, cwd, hook_notices)
    hooking = ConversationHooks(
        hook_sets, workspace.root, has_begun=site.opening.hooks_have_begun, variables=site.opening.hook_variables
    )
    judge.protect_files((*hooking.programs(workspace), *found.programs))
    apply_sandbox(site.enclosure, judge, context, places, shown)
    confines = ModeSwitch(config, judge, context, places, shown)
    context.skill = library.offered
    attach_tracker(context, places, kept)
    prompts = _prompts(site)  # read once: a file that is named may be a pipe
    preamble = build_prefix(
        *(config, places, workspace.root, cwd, prompts),
        calls_in_text=site.choice.format == "xml",
        edit_tool=site.choice.edit_tool,
        most_tools=site.choice.most_tools,
        attended=site.opening.attended,
        skills=skills,
        agents=agents,
        more_tools=found.servers.tools,
    )
    reach = _reach(site, secrets)
    subagents = Subagents(Parent(site, reach, preamble, context, judge), agents)
    context.agents, context.delegate = agents.offers, subagents.delegate
    asker = make_asker(reach, site.choice, site.fallback)
    recorder = Recorder(site.kept, site.kept.session_id)
    ending = Handover(
        *(site, found.servers, hooking, subagents, asker, context, recorder),
        follow=open_conversation,
    )
    joints = Dependencies(
        secrets=secrets,
        make_agent=partial(_make_agent, site, asker, preamble, library, context, judge, hooking, subagents, found.servers),
        decided=partial(_keep_rule, site),
        complaint=judge.complaint,
        known_text=partial(known_text, context),
        close=ending.close,
        kill=partial(_kill, context, subagents, found.servers),
        enter_mode=partial(_enter_mode, confines, recorder, subagents),
        run_by_hand=partial(_run_by_hand, context),
        bench=PermissionCheck(judge, config, workspace, lambda: context.shell.cwd, agents.offers),
        library=library,
        sessions=partial(_sessions_here, site),
        tree=site.kept.tree,
        unread=site.kept.unread,
        rescues=site.kept.rescues,
        label=partial(_label, site),
        entitle=partial(_entitle, site, recorder),
        servers=found.servers,
        watch=context.watch,
        file_locks=context.ledger.locks,
        jobs=context.shell.jobs,
        subagents=subagents,
        hooks=hooking.sets,
    )
    facts = _facts(
        site,
        preamble.toolbox,
        (*preamble.notices, *found.notices, *hook_notices, *notices_about(hook_sets, was_asked=site.opening.was_asked)),
    )
    conversation = Conversation(
        facts,
        joints,
        recorder,
        site.kept.history,
        attended=site.opening.attended,
        reopen=ending.reopen,
        options=options_of(config, workspace, prompts, secrets.hide),
        summed_up=site.kept.summed_up,
    )
    conversation.asked_aside = site.kept.asked_aside
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


def _make_agent(
    site: StartupState,
    asker: Asker,
    preamble: RequestPrefix,
    library: UserFiles,
    context: ToolContext,
    judge: Judge,
    hooking: ConversationHooks,
    subagents: Subagents,
    servers: Servers,
    emit: Emit,
    ask_person: AskPerson | None,
    ask_questions: PutQuestions | None,
) -> Agent:
    settings = site.config.settings
    told = partial(_told_with_every_event, site, judge)
    run_hook = hooking.tie(context, site.places.state, told, is_resumed=site.kept.is_begun)
    agent = Agent(
        asker,
        preamble.toolbox,
        context,
        judge,
        emit=tracking_emit(emit, context),
        ask_person=ask_person,
        system=preamble.system,
        session_id=site.kept.session_id,
        limits=settings.limits,
        compactor=Compactor(settings.context, settings.compaction, site.opening.cut or cut_of(site.kept.compaction)),
        verify=make_verify(settings.verify, context, judge.confine),
        run_hook=run_hook,
        late=servers,
        reread=partial(reload_prompt, preamble, site.places, site.workspace.root, site.cwd, partial(_prompts, site), library),
    )
    hooking.messages = lambda: agent.messages
    context.ask = ask_questions and partial(_ask_while_telling, agent, ask_questions)
    subagents.attach(agent, emit, ask_person, ask_questions, run_hook)
    context.recall = lambda: (*site.kept.unread().messages, *agent.recall())
    return agent


def _prompts(site: StartupState) -> PromptOptions:
    """Raises UsageError."""
    if site.agent is None:
        return prompt_options(site.given)
    from wolo.conversation.resources.main_agent import with_prompt  # few conversations work as an agent

    return with_prompt(prompt_options(site.given), site.agent)


def _told_with_every_event(site: StartupState, judge: Judge) -> dict[str, str]:
    told = {"session_id": site.kept.session_id, "cwd": str(site.cwd), "permission_mode": judge.mode.name}
    return {**told, "agent_type": site.agent.name} if site.agent else told


async def _ask_while_telling(agent: Agent, ask: AskQuestions, call_id: str, questions: Sequence[Question]) -> Replies | None:
    return await agent.hooks.while_telling("question", "A question waits for you", ask(call_id, questions))


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


def _kill(context: ToolContext, subagents: Subagents, servers: Servers) -> None:
    context.shell.processes.close_all()
    subagents.kill()
    servers.kill()


def _enter_mode(confines: ModeSwitch, recorder: Recorder, subagents: Subagents, name: str) -> EnteredMode:
    enclosure = confines.enter(name)
    subagents.follow()
    recorder.change(SettingEntry(name="mode", value=enclosure.mode.name))
    return EnteredMode(name=enclosure.mode.name, sandbox=_backend(enclosure), notice=enclosure.notice)


async def _run_by_hand(context: ToolContext, command: str, footing: Footing, brake: Brake, emit: Emit) -> None:
    await run_by_hand(command, footing, context, brake, emit)


def _backend(enclosure: SandboxPlan) -> str:
    return enclosure.found.backend if enclosure.found.make else ""


def _keep_rule(site: StartupState, asked: ApprovalAsked, given: ApprovalGiven) -> None:
    """A person's "always" goes into the user's rules."""
    rule = given.rule or asked.rule
    if given.allowed and given.scope in ("always", "everywhere") and rule:
        from wolo.config.edit import remember_rule

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
