"""Opens a conversation: the one place that wires all rooms together."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from wolo.agent.agent import AgentLoop
from wolo.agent.agent_services import AgentServices, MessageHistory
from wolo.agent.budget import Account, BudgetNotices, Limits
from wolo.agent.compaction.compactor import Compactor
from wolo.agent.compaction.history_cut import cut_of
from wolo.agent.events import Event, Noticed
from wolo.agent.hook_calls import AgentHooks
from wolo.agent.prompt_prefix import PromptPrefix
from wolo.agent.tool_calls import ToolCalls
from wolo.agent.tool_execution import Emit
from wolo.config.cli_options import text
from wolo.conversation.conversation import Conversation, ConversationInfo, ConversationParts
from wolo.conversation.handover import Handover
from wolo.conversation.pending_requests import PendingApprovals, PendingQuestions
from wolo.conversation.permission_check import PermissionCheck
from wolo.conversation.recorder import EventStream, Recorder, SessionAccess
from wolo.conversation.resources import conversation_hooks, request_prefix, tool_environment
from wolo.conversation.resources.file_tracking import track_files
from wolo.conversation.resources.mcp_servers import FoundServers, connect_servers, find_servers
from wolo.conversation.resources.model_selection import ModelAccess, make_asker, make_limit_wait
from wolo.conversation.resources.persistence import SavedSession
from wolo.conversation.resources.request_prefix import NestedGiven
from wolo.conversation.resources.secrets import make_secrets
from wolo.conversation.resources.startup import HookSessionStart, StartOptions, StartupState, prepare_start
from wolo.conversation.resources.user_files import UserFiles, find_custom_tools, find_extensions, own_folders
from wolo.conversation.subagents.subagents import MakeReviewer, Parent, Subagents
from wolo.errors import UsageError
from wolo.extensions.agent_files import Agents
from wolo.extensions.instructions.instruction_files import byte_limit
from wolo.extensions.skill_files import Skills
from wolo.guard.judge import Judge
from wolo.guard.modes import PLAN
from wolo.models.provider import DRIVEN, ModelChoice
from wolo.places import Notices, Site
from wolo.tools.tool import CommandSandbox, EditChecks, ExternalTool, ModeSwitch, ToolServices
from wolo.tools.tool_values import AskQuestions, Question, Replies
from wolo.workspace.files.file_reading import FileLedger

if TYPE_CHECKING:
    from wolo.agent.finish.finish_check import FinishCheck
    from wolo.config.python_files.custom_tools import FoundExtensions, FoundTools
    from wolo.conversation.running_extensions import Extensions
    from wolo.conversation.telemetry import Telemetry
    from wolo.tools.web.search_backends import ProviderSearch, SearchService
    from wolo.workspace.processes.login_shell import LoginShell

OTEL_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")
"""Variables that turn telemetry on."""


async def open_conversation(options: StartOptions) -> Conversation:
    """Raises WoloError for the user; then nothing has been sent or saved."""
    state = prepare_start(options)
    try:
        found_servers = await find_servers(
            state.config,
            state.workspace,
            state.site,
            options.servers,
            attended=options.attended,
            was_asked=options.was_asked,
            hosted=options.hosted_servers,
        )
    except BaseException:
        state.sink.close()
        raise
    try:
        custom = await find_custom_tools(state.config, state.site)
        extensions = await find_extensions(state.config, state.site)
        login = await tool_environment.find_login_shell(state.config, state.site.places, state.workspace, options.shell)
        env = _Environment(state, found_servers, login, extensions)
        conversation = _assemble_conversation(env, custom)
        if options.change is None and {"goal", "until", "budget"} & {*state.flags}:
            from wolo.conversation.goals import make_goal  # most sessions have no goal

            await conversation.set_goal(
                make_goal(*(text(state.flags, name) if name in state.flags else None for name in ("goal", "until", "budget")))
            )
        await connect_servers(found_servers.servers, state.workspace, conversation.agent.services)
        return conversation
    except BaseException:
        await found_servers.servers.close()
        state.sink.close()
        raise


class _Environment:
    """Tools and hooks, before the model and the front end are connected."""

    def __init__(
        self, state: StartupState, found_servers: FoundServers, login: LoginShell | None, extensions: FoundExtensions | None
    ) -> None:
        self.state, self.found_servers = state, found_servers
        config, workspace, cwd, places, options = state.config, state.workspace, state.site.cwd, state.site.places, state.options
        self.user_files = UserFiles(config, state.site, options.agents, options.files)
        self.skills = self.user_files.skills(state.choice)
        outputs, skill_folders = state.sink.outputs, own_folders(self.skills.skills, places)
        judge = tool_environment.make_judge(config, state.sandbox_plan.mode, workspace, state.site, outputs, skill_folders)
        if state.agent is not None and state.agent.ceiling is not None:
            judge = judge.under(state.agent.ceiling)
        self.judge = judge
        search_key = "" if state.web_search is None or isinstance(state.web_search, ModelChoice) else state.web_search.key
        roots, models = (workspace.root, *workspace.extra), (state.choice, *state.fallbacks)
        secrets = self.secrets = make_secrets(places, config.settings, roots, models, search_key=search_key)
        found_servers.servers.report_secrets(secrets.learn)
        shell = options.shell.go_on(cwd) if options.shell else tool_environment.new_shell(cwd, places.state, secrets)
        self.shell = shell
        cut = options.cut or cut_of(state.sink.compaction)
        self.compactor = Compactor(config.settings.context, config.settings.compaction, cut)
        self.history = MessageHistory(self.compactor, lambda: state.sink.read_unloaded().messages)
        site = replace(state.site, notices=Notices())
        self.agents = self.user_files.agents(state.choice)
        own_hooks = _hooks_of_components(state, self.user_files, self.skills, self.agents, site)
        if own_hooks:
            self.skills, self.agents = self.user_files.skills(state.choice), self.user_files.agents(state.choice)
        hook_sets = (*conversation_hooks.find_hooks(config, site), *own_hooks)
        if login is not None:
            login_judge = tool_environment.make_judge(config, judge.mode, workspace, state.site, outputs, skill_folders)
            tool_environment.adopt_login_shell(shell, login, login_judge, secrets)
        self.variables = tool_environment.command_variables(config, secrets, shell.login_shell)
        running: Extensions | None = None
        if extensions is not None:
            from wolo.conversation.running_extensions import Extensions  # few users have some

            running = Extensions(extensions, state.site, state.sink.session_id, secrets, self.variables, self.compactor)
        self.hooks = conversation_hooks.ConversationHooks(
            hook_sets,
            workspace,
            shell,
            self.variables,
            self.history,
            before=options.hooks,
            extensions=running,
            callbacks=options.hook_callbacks,
        )
        judge.protect_files((*self.hooks.programs(), *found_servers.programs))
        shown = (outputs, *skill_folders)
        self.sandbox = tool_environment.SandboxSetup(config, judge, workspace, shell, CommandSandbox(), places, shown)
        self.sandbox.apply(state.sandbox_plan, runs_commands=_runs_commands(state))
        if options.sends_local_context:  # a program's conversation may have no call at all
            self.sandbox.sandbox.prepare()
        self.tracking = track_files(places, workspace, state.sink)
        self.notices = (
            *found_servers.notices,
            *(login.notices if login else ()),
            *site.notices,
            *conversation_hooks.notices_about(self.hooks.sets, cwd, was_asked=options.was_asked),
            *(extensions.notices if extensions else ()),
        )


def _runs_commands(state: StartupState) -> bool:
    """False: the model has no tools but the functions of a program, and nothing else runs a command for it."""
    settings, program = state.config.settings, {each.name for each in state.options.tools}
    offer = settings.tools.offer
    return state.options.attended or offer is None or not program.issuperset(offer) or bool(settings.verify.command)


def _hooks_of_components(
    state: StartupState, user_files: UserFiles, skills: Skills, agents: Agents, site: Site
) -> list[conversation_hooks.HookSet]:
    """The hooks of skills and agents; where they do not run, it is not used. Raises UsageError for the conversation's agent."""
    profiles = {each.name: each for each in (*agents.profiles, *filter(None, (state.agent,)))}
    if not any(each.hooks for each in skills.skills) and not any(each.hooks for each in profiles.values()):
        return []
    component_sets = conversation_hooks.component_hooks(skills.skills, profiles.values(), site)
    running = {each.active_with[0] for each in component_sets if each.runs}
    known = {f"skill {each.name}": each.hooks for each in skills.skills} | {
        f"agent {name}": each.hooks for name, each in profiles.items()
    }
    user_files.use_hooks({name: hooks for name, hooks in known.items() if name in running})
    if state.agent and state.agent.hooks and f"agent {state.agent.name}" not in running:
        raise UsageError(
            f"The agent {state.agent.name} is not used, because its hooks do not run.",
            hint="`wolo hooks allow` shows and allows them.",
        )
    return component_sets


class _Requests:
    """What the model is sent, and who sends it."""

    def __init__(self, env: _Environment, tools: Sequence[ExternalTool]) -> None:
        """`tools` are those of the user's Python files."""
        state, config, choice = env.state, env.state.config, env.state.choice
        window = config.settings.context.window_of(choice.model.context)
        # Read once: a file that is named may be a pipe
        self.prompts = prompts = request_prefix.read_prompts(state.flags, state.agent, state.style)
        self.reader = request_prefix.InstructionReader(
            state.workspace,
            state.site,
            byte_limit(window),
            is_readable=lambda path: env.judge.rule_against_reading(path) is None,
            is_safe=config.is_safe,
        )
        self.prefix = request_prefix.build_prefix(
            config,
            state.site,
            prompts,
            calls_in_text=choice.format == "xml",
            edit_tool=choice.edit_tool,
            most_tools=choice.most_tools,
            budget=request_prefix.tool_budget(window),
            attended=state.options.asks_questions,
            skills=env.skills,
            agents=env.agents,
            can_search=state.web_search is not None,
            can_look_up=_can_look_up(state),
            has_map=config.settings.tools.repo_map,
            custom_tools=(*tools, *state.options.tools),
            more_tools=env.found_servers.servers.tools,
            instructions=self.reader.read(),
            can_learn=isinstance(state.sink, SavedSession) and choice.provider.name != "local",
            can_plan=choice.provider.name != "local" and env.judge.mode_ceiling != PLAN,
        )
        wire_log = text(state.flags, "debug_wire")
        self.access = ModelAccess(
            settings=config.settings,
            places=state.site.places,
            project=env.secrets.hide(state.site.cwd.name),
            cwd=state.site.cwd,
            secrets=env.secrets,
            attended=state.options.attended,
            wire_log=Path(wire_log) if wire_log else None,
            progress=state.options.progress,
            transport=state.options.transport,
            limit_wait=make_limit_wait(config.settings.retry, attended=state.options.attended),
            extend=env.hooks.extensions.extend if env.hooks.extensions else None,
        )
        self.ahead: list[Callable[[], object]] = []
        self.asker = make_asker(replace(self.access, ahead=self.ahead), choice, state.fallbacks)
        self.account = Account(config.settings.limits)


class _Outlets:
    """Where events go: to the disk, the front end, hooks and telemetry."""

    def __init__(self, env: _Environment, requests: _Requests) -> None:
        state = env.state
        facts = partial(_hook_facts, state, env.judge)
        beginning = HookSessionStart(
            places=state.site.places,
            facts=facts,
            instructions=requests.prefix.instructions.files,
            is_resumed=state.sink.is_started,
            is_attended=state.options.attended,
            agent=state.agent.name if state.agent else "",
        )
        self.run_hook = env.hooks.start(beginning, partial(_ask_for_hook, state, requests))
        if state.options.hook_functions:
            from wolo.conversation.hook_functions import HookFunctions  # the Python API's

            self.run_hook = HookFunctions(state.options.hook_functions, facts, self.run_hook).run
        self.recorder = Recorder(state.sink, state.sink.session_id, has_hooks=self.run_hook is not None)
        self.recorder.ahead, self.recorder.may_block = requests.ahead, state.options.owns_loop
        events = self.events = EventStream(self.recorder, state.sink, env.tracking, env.shell.processes)
        self.telemetry: Telemetry | None = None
        self.notices = Notices()
        if state.config.settings.telemetry.endpoint or any(map(os.environ.get, OTEL_ENDPOINTS)):
            from wolo.conversation.telemetry import open_telemetry  # most users have none

            self.telemetry = open_telemetry(state, os.environ, self.notices)
        extensions = env.hooks.extensions
        spans = self.telemetry.spans.on_event if self.telemetry else None
        self.watchers: tuple[Callable[..., None], ...] = tuple(filter(None, (spans, extensions.watch if extensions else None)))
        """They get all events, those of a subagent with the id of its `task` call."""
        events.watch = partial(_watch, self.watchers) if self.watchers else None
        if extensions is not None:
            self.notices.extend(extensions.notices)
            extensions.notify = lambda text: events.pass_on(Noticed(text=text, level="warning"))
        self.approvals = PendingApprovals(events.emit, env.judge, state.site.places, state.workspace.root)
        self.questions = PendingQuestions(events.emit, env.secrets)
        self.hooks = AgentHooks(self.run_hook, events.emit_tracked, env.secrets)


def _assemble_conversation(env: _Environment, custom: FoundTools | None) -> Conversation:
    state = env.state
    tools: tuple[ExternalTool, ...] = custom.tools if custom else ()
    more = env.hooks.extensions.tools([each.name for each in tools]) if env.hooks.extensions else ()
    requests = _Requests(env, (*tools, *more))
    outlets = _Outlets(env, requests)
    parent = Parent(
        state=state,
        access=requests.access,
        asker=requests.asker,
        prefix=requests.prefix,
        judge=env.judge,
        hooks=outlets.hooks,
        run_hook=outlets.run_hook,
        account=requests.account,
        emit=outlets.events.emit,
        ask_user=outlets.approvals.ask if state.options.asks_approvals else None,
        ask_questions=outlets.questions.ask if state.options.asks_questions else None,
        reviewer=_prepare_reviewer(env, requests),
        nested=None if state.choice.provider.name == "local" else requests.reader.read_nested,
        follow=outlets.telemetry.follow if outlets.telemetry else None,
        watch=partial(_watch, (*outlets.watchers, *filter(None, (state.options.on_task_event,)))),
    )
    subagents = Subagents(parent, env.agents)
    services = _make_services(env, parent, subagents)
    env.hooks.ask_agent = partial(_ask_agent_for_hook, parent, services)
    parts = ConversationParts(
        agent=_assemble_agent(env, requests, outlets, parent, subagents, services),
        services=services,
        events=outlets.events,
        recorder=outlets.recorder,
        approvals=outlets.approvals,
        questions=outlets.questions,
        permissions=PermissionCheck(env.judge, state.config, state.workspace, env.shell, env.agents.offers),
        session=SessionAccess(state.sink, outlets.recorder, state.site.places.data, state.site.cwd),
        files=tool_environment.ConversationFiles(services, env.judge),
        sandbox=env.sandbox,
        user_files=env.user_files,
        servers=env.found_servers.servers,
        hooks=env.hooks.sets,
        extensions=env.hooks.extensions,
        subagents=subagents,
        instructions=requests.reader,
        local_context=state.local_context,
        telemetry=outlets.telemetry,
        limit_wait=requests.access.limit_wait,
    )
    conversation = Conversation(
        _info(state, requests.prefix, (*env.notices, *outlets.notices, *(custom.notices if custom else ()))),
        parts,
        Handover(state, parts, env.hooks, env.tracking, follow=open_conversation),
        state.sink.history,
        attended=state.options.attended,
        options=request_prefix.options_of(state.config, state.workspace, requests.prompts, env.secrets),
        side_question_usage=state.sink.side_question_usage,
    )
    return _complete(state, outlets, conversation)


def _complete(state: StartupState, outlets: _Outlets, conversation: Conversation) -> Conversation:
    """What needs the whole conversation: telemetry of its requests, and the goal."""
    if outlets.telemetry is not None:
        outlets.telemetry.follow(conversation.agent.services)
    goal = state.options.goal
    if state.sink.goal is not None:
        from wolo.conversation.goals import restore_goal  # most sessions have no goal

        goal = restore_goal(state.sink.goal)
    if goal:
        conversation.hold_to(goal)
    return conversation


def _make_services(env: _Environment, parent: Parent, subagents: Subagents) -> ToolServices:
    """What the tools of the main agent share."""
    state, config, judge = env.state, env.state.config, env.judge
    return ToolServices(
        workspace=state.workspace,
        ledger=FileLedger(state.site.places.state / "file-locks"),
        save_output=partial(tool_environment.save_redacted, state.sink, env.secrets),
        shell=env.shell,
        secrets=env.secrets,
        shell_timeout_s=config.settings.shell.timeout_s,
        variables=env.variables,
        session_env=env.hooks.variables,
        may_fetch=judge.may_fetch,
        web_search=_find_search(state, parent),
        is_readable=judge.readable,
        all_readable=judge.all_readable,
        ask_user=parent.ask_questions and partial(_ask_and_notify, parent.hooks, parent.ask_questions),
        agents=env.agents.offers,
        delegate=subagents.delegate,
        find_task=subagents.find_task,
        find_skill=env.user_files.load_skill,
        recall=env.history.recall,
        propose_note=partial(_propose_note, state),
        mode=ModeSwitch(judge.mode.name, judge.mode_ceiling),
        sandbox=env.sandbox.sandbox,
        network=cache(partial(tool_environment.load_network, config)),
        has_domains=bool(config.settings.sandbox.allowed_domains),
        tracker=env.tracking.tracker,
        edit_checks=partial(_edit_checks, env, parent.emit) if config.settings.lsp.enabled else None,
        editor=state.options.editor,
        record_change=env.tracking.note,
    )


def _find_search(state: StartupState, parent: Parent) -> SearchService | ProviderSearch | None:
    choice = state.web_search
    if not isinstance(choice, ModelChoice):
        return choice
    from wolo.conversation.resources.web_search import search_with_model  # few providers search
    from wolo.tools.web import search_backends

    ask = partial(search_with_model, parent.access, choice, parent.account)
    return search_backends.ProviderSearch(label=f"{choice.provider.label} web search", url=choice.base_url, ask=ask)


def _assemble_agent(
    env: _Environment, requests: _Requests, outlets: _Outlets, parent: Parent, subagents: Subagents, services: ToolServices
) -> AgentLoop:
    state, settings, prefix, servers = env.state, env.state.config.settings, requests.prefix, env.found_servers.servers
    verify = None
    if settings.verify.command:
        from wolo.conversation.project_checks import make_verify  # most users have no check

        verify = make_verify(settings.verify, services, env.judge.confine)
    prompts = partial(request_prefix.read_prompts, state.flags, state.agent, state.style)
    system = request_prefix.SystemPrompt(prefix, requests.reader, prompts, env.user_files, env.secrets.hide)
    emit = outlets.events.emit_tracked
    nested = parent.nested and NestedGiven(parent.nested, env.compactor, env.history, env.secrets.hide, emit, outlets.hooks)
    calls = ToolCalls(
        prefix.toolbox,
        services,
        env.judge,
        emit=emit,
        ask_user=parent.ask_user,
        hooks=outlets.hooks,
        reviewer=parent.reviewer(env.judge, services, emit) if parent.reviewer else None,
        add_instructions=nested.add_to if nested else None,
    )
    return AgentLoop(
        AgentServices(
            asker=requests.asker,
            emit=emit,
            hooks=outlets.hooks,
            calls=calls,
            prefix=PromptPrefix(
                prefix.system,
                prefix.toolbox,
                env.compactor,
                services.secrets,
                late_tools=None if servers.is_empty else servers,
                reread=system.reread,
                changed_instructions=system.changes,
            ),
            compactor=env.compactor,
            history=env.history,
            shell=services.shell,
            mode=services.mode,
            account=requests.account,
            limits=settings.limits,
            budget=None if settings.limits == Limits() else BudgetNotices(),
            session_id=state.sink.session_id,
            verify=verify,
            finish=partial(_finish_check, env, services, requests),
            open_small=partial(make_asker, requests.access, state.small) if state.small else None,
            tasks=subagents,
        )
    )


def _prepare_reviewer(env: _Environment, requests: _Requests) -> MakeReviewer | None:
    state = env.state
    if state.config.settings.approvals.reviewer == "user":
        return None
    from wolo.agent.reviewer import Reviewer  # most users decide themselves

    return partial(
        Reviewer,
        open_model=partial(make_asker, requests.access, state.small or state.choice),
        account=requests.account,
        recall=env.history.recall,
        session_id=state.sink.session_id,
    )


def _finish_check(env: _Environment, services: ToolServices, requests: _Requests) -> FinishCheck:
    """Models of `local`, and those that a driver leads, are too small for another request about their work."""
    from wolo.conversation.project_checks import open_finish_check  # not needed before the first change

    settings, choice = env.state.config.settings, requests.asker.choice
    return open_finish_check(
        services,
        env.judge,
        verify=settings.verify.command,
        asks=settings.finish.check and choice.provider.name != "local" and choice.drive not in DRIVEN,
        shows=settings.finish.check,
        attended=env.state.options.asks_approvals,
        offers_shell="shell" in requests.prefix.toolbox.names,
    )


def _can_look_up(state: StartupState) -> bool:
    settings = state.config.settings.lsp
    if not (settings.enabled and settings.tool):
        return False
    from wolo.conversation.resources.edit_checks import find_installed  # most users have not turned it on

    return any(find_installed(state.config, state.workspace, state.site.places, Notices()))


def _edit_checks(env: _Environment, emit: Emit) -> EditChecks:
    from wolo.conversation.resources import edit_checks

    return edit_checks.LanguageServerChecks(env.state.config, env.sandbox, env.shell, env.variables, emit, env.secrets.hide)


def _propose_note(state: StartupState, note: str, everywhere: bool) -> str:
    from wolo.conversation.resources.learned_notes import LearnedNotes  # not needed before the first note

    return LearnedNotes(state.site.places, state.workspace.root).propose(note, state.sink.session_id, everywhere=everywhere)


async def _ask_for_hook(state: StartupState, requests: _Requests, prompt: str, model: str) -> str:
    """Raises WoloError."""
    from wolo.conversation.resources.hook_model import ask_for_hook  # few hooks ask a model

    access, asker, account = requests.access, requests.asker, requests.account
    return await ask_for_hook(access, state.config, asker, state.small, account, prompt, model)


def _watch(watchers: Sequence[Callable[..., None]], event: Event, *task: str) -> None:
    for watch in watchers:
        watch(event, *task)


async def _ask_agent_for_hook(parent: Parent, services: ToolServices, prompt: str, model: str) -> str:
    """Raises WoloError."""
    from wolo.conversation.subagents.hook_agent import ask_agent  # few hooks ask an agent

    return await ask_agent(parent, services, prompt, model)


def _hook_facts(state: StartupState, judge: Judge) -> dict[str, str]:
    """Part of the payload of every hook event."""
    payload = {"session_id": state.sink.session_id, "cwd": str(state.site.cwd), "permission_mode": judge.mode.name}
    return {**payload, "agent_type": state.agent.name} if state.agent else payload


async def _ask_and_notify(hooks: AgentHooks, ask: AskQuestions, call_id: str, questions: Sequence[Question]) -> Replies | None:
    return await hooks.notify_while("question", "A question waits for you", ask(call_id, questions))


def _info(state: StartupState, prefix: request_prefix.RequestPrefix, notices: tuple[str, ...]) -> ConversationInfo:
    return ConversationInfo(
        session_id=state.sink.session_id,
        model=state.choice.label,
        cwd=state.site.cwd,
        root=state.workspace.root,
        mode=state.sandbox_plan.mode.name,
        sandbox=state.sandbox_plan.backend,
        tool_names=tuple(spec.name for spec in prefix.toolbox.specs(compacted=state.sink.compaction is not None)),
        ui=state.config.settings.ui,
        saves_session=isinstance(state.sink, SavedSession),
        started_in=state.sink.started_in,
        notices=(*state.notices, *prefix.notices, *notices),
        mentions="no_mentions" not in state.flags,
    )
