"""Defines the options of `wolo` in one table, and parses the command line.

Typer cannot parse it (options anywhere, words joined to one prompt, `-r` with or without a value), so this parser runs first.
Typer prints the help from the same table and runs the subcommands; a prompt never loads it.
"""

from itertools import pairwise
from typing import Literal, NamedTuple

from wolo.errors import UsageError

Kind = Literal["flag", "value", "many", "maybe", "joined"]
"""`many` may be repeated; `maybe` has no value at the end of the line and before another option; `joined` has one only behind
`=`."""

Values = dict[str, str | bool | list[str]]


class Option(NamedTuple):
    name: str
    spellings: tuple[str, ...]
    kind: Kind
    help: str
    metavar: str = ""
    also: tuple[str, ...] = ()
    """Spellings of other agents: accepted, not documented."""
    means: str = ""
    """For a flag that is short for a value: `--yolo` means `--mode yolo`."""
    target: str = ""
    """The option that `means` sets."""


OPTIONS: tuple[Option, ...] = (
    Option("print", ("-p", "--print"), "flag", "Headless: print only the answer."),
    Option("interactive", ("-i", "--interactive"), "flag", "Run the prompt, then stay in the interactive session."),
    Option("bg", ("--bg",), "flag", "Run the prompt in the background; print the id of its session."),
    Option("continue", ("-c", "--continue"), "flag", "Continue the latest session of this directory."),
    Option("resume", ("-r", "--resume"), "maybe", "Continue a session: id, prefix, name or title words.", "ID"),
    Option("session", ("-s", "--session"), "value", "Continue the session of this name; create it if missing.", "NAME"),
    Option("fork", ("--fork",), "flag", "With -c, -r or -s: continue in a copy.", also=("--fork-session",)),
    Option("model", ("-m", "--model"), "value", "Model, with an optional thinking level.", "PROVIDER/MODEL[:LEVEL]"),
    Option("base_url", ("--base-url",), "value", "API base URL.", "URL"),
    Option("api_key", ("--api-key",), "value", "API key for --base-url.", "KEY"),
    Option("account", ("--account",), "value", "Use the key saved under this name (`wolo auth login --name`).", "NAME"),
    Option("api", ("--api",), "value", "API format of --base-url (default: openai-chat).", "FORMAT"),
    Option("drive", ("--drive",), "value", "Driving mode: native, written, constrained or simple.", "MODE"),
    Option(
        "thinking",
        ("--thinking",),
        "value",
        "Thinking: off, minimal, low, medium, high, xhigh or max.",
        "LEVEL",
        also=("--effort",),
    ),
    Option("mode", ("--mode",), "value", "Permission mode: plan, ask, edit, auto or yolo.", "MODE", also=("--permission-mode",)),
    Option(
        "yolo",
        ("--yolo", "-W", "--wild", "--dangerously-skip-permissions"),
        "flag",
        "Same as --mode yolo.",
        means="yolo",
        target="mode",
    ),
    Option("allow", ("--allow",), "many", "Allow matching calls in this run.", "RULE"),
    Option("deny", ("--deny",), "many", "Deny matching calls in this run.", "RULE"),
    Option("safe_mode", ("--safe-mode",), "flag", "Start without project files, hooks, servers and other extensions."),
    Option("add_dir", ("--add-dir", "-P"), "many", "Add a directory to the workspace.", "DIR"),
    Option("cd", ("-C", "--cd"), "value", "Work in this directory.", "DIR", also=("--workdir", "--cwd")),
    Option("worktree", ("--worktree",), "maybe", "Work in a worktree of this repository, on the branch wolo/NAME.", "[NAME]"),
    Option("from", ("--from",), "value", "With --worktree: begin at this branch, tag or commit.", "REF"),
    Option("sandbox", ("--sandbox",), "value", "Sandbox: auto, required or off.", "BACKEND"),
    Option("max_turns", ("--max-turns", "-n"), "value", "Stop after N answers.", "N", also=("--max-steps",)),
    Option("max_cost", ("--max-cost",), "value", "Stop when this much is spent.", "USD", also=("--max-budget-usd",)),
    Option("max_tokens", ("--max-tokens",), "value", "Stop after N tokens, prompt and completion.", "N"),
    Option("max_seconds", ("--max-seconds",), "value", "Stop after N seconds.", "N"),
    Option("output_format", ("--output-format",), "value", "text, json or stream-json; the last two are headless.", "FORMAT"),
    Option("json", ("--json",), "flag", "Same as --output-format json.", means="json", target="output_format"),
    Option("partial", ("--include-partial-messages",), "flag", "With stream-json: also print deltas."),
    Option("json_schema", ("--json-schema",), "value", "The answer is JSON that fits this schema (headless).", "FILE|JSON"),
    Option("input_format", ("--input-format",), "value", "text, or stream-json: prompts as JSON lines on stdin.", "FORMAT"),
    Option("output_last_message", ("-o", "--output-last-message"), "value", "Also write the final answer to this file.", "FILE"),
    Option("agent", ("--agent",), "value", "Work as this agent: the name of an agent file.", "NAME"),
    Option("system_prompt", ("--system-prompt",), "value", "Replace the system prompt.", "TEXT|@FILE"),
    Option("append_system_prompt", ("--append-system-prompt",), "value", "Extend the system prompt.", "TEXT|@FILE"),
    Option("name", ("--name",), "value", 'The display name instead of "Wolo".', "NAME"),
    Option("file", ("-f", "--file"), "many", "Attach a text, image or audio file.", "PATH"),
    Option("no_mentions", ("--no-mentions",), "flag", "The whole prompt is text: no @path, no @agent, no slash command."),
    Option(
        "ignore_unsupported", ("--ignore-unsupported",), "flag", "Send the prompt without attachments the model does not take."
    ),
    Option("tools", ("--tools",), "value", "Offer only these tools.", "LIST", also=("--allowed-tools",)),
    Option("disallow_tools", ("--disallow-tools",), "value", "Do not offer these tools.", "LIST", also=("--disallowed-tools",)),
    Option("set", ("--set",), "many", "Override one setting.", "KEY=VALUE"),
    Option(
        "fallback_model", ("--fallback-model",), "value", "Models to ask when the first one cannot be reached.", "MODEL[,MODEL]"
    ),
    Option(
        "wait_for_reset",
        ("--wait-for-reset",),
        "joined",
        "Wait until a limit of the provider ends, at most so long.",
        "[=SECONDS]",
    ),
    Option("mcp_config", ("--mcp-config",), "many", "Also use these MCP servers.", "FILE|JSON"),
    Option("strict_mcp_config", ("--strict-mcp-config",), "flag", "Use no MCP servers but those of --mcp-config."),
    Option("verify", ("--verify",), "value", "Run this before and after the work; new failures go back to the model.", "COMMAND"),
    Option("goal", ("--goal",), "value", "Work until this holds; a model judges, or --until.", "CONDITION"),
    Option("until", ("--until",), "value", "With --goal: exit status 0 of this means that it holds.", "COMMAND"),
    Option("budget", ("--budget",), "value", "With --goal: stop at 2usd, 30min or 20turns.", "AMOUNT"),
    Option("trust", ("--trust",), "flag", "Trust this folder's project files, for this run."),
    Option("plain", ("--plain",), "flag", "For screen readers: lines in turns, no colours, nothing moves."),
    Option("no_session", ("--no-session",), "flag", "Do not save the session."),
    Option("debug_wire", ("--debug-wire",), "value", "Write requests and responses to files there, without keys.", "DIR"),
    Option("version", ("-V", "--version"), "flag", "Print the version."),
    Option("help", ("-h", "--help"), "flag", "Print this help."),
    Option("verbose", ("-v", "--verbose"), "flag", "Print more on stderr."),
)

SUBCOMMANDS: dict[str, tuple[str, ...]] = {
    "sessions": (
        *("list", "search", "show", "tree", "watch", "wire", "lint", "cache"),
        *("export", "import", "verify", "fork", "rename", "delete", "clean"),
    ),
    "models": ("list", "show", "probe", "pull"),
    "permissions": ("list", "test", "explain", "remove"),
    "config": ("show", "get", "set", "edit", "path", "schema"),
    "auth": ("login", "logout", "status"),
    "login": (),
    "logout": (),
    "completion": ("bash", "zsh", "fish"),
    "replay": (),
    "stats": (),
    "trust": ("status", "forget"),
    "mcp": (
        *("list", "get", "add", "add-json", "import", "remove", "enable", "disable"),
        *("test", "login", "logout", "allow", "serve"),
    ),
    "tools": ("list", "test", "allow"),
    "extensions": ("list", "new", "test", "allow", "key"),
    "hooks": ("list", "test", "allow"),
    "skills": ("list", "show", "add", "remove"),
    "plugin": ("add", "list", "show", "update", "remove", "enable", "disable", "allow", "settings", "search", "marketplace"),
    "import-config": (),
    "batch": (
        *("run", "add", "status", "resume", "cancel", "retry", "work", "show", "apply", "export", "make", "verify", "compare"),
    ),
    "race": (),
    "eval": (),
    "worktree": ("list", "merge", "patch", "remove"),
    "acp": (),
    "app-server": (),
    "serve": (),
    "attach": (),
    "ps": (),
    "logs": (),
    "stop": (),
    "doctor": (),
    "audit": ("export", "verify"),
    "purge": (),
    "undo": (),
    "redo": (),
    "update": (),
}
"""Each subcommand with the words that may follow it."""
SUBCOMMANDS["help"] = tuple(SUBCOMMANDS)

TAKES_ONE = frozenset({"replay", "attach", "race"})
"""Subcommands that take one argument of any kind."""
OWN_OPTIONS = frozenset({("mcp", "add"), ("mcp", "add-json"), ("mcp", "serve")})
"""Subcommands whose options may be spelled like ours: `-p 8080` of a server's command."""
TAKES_NAME = frozenset({"login", "logout", "logs", "stop", "purge", "eval"})
"""Subcommands that take one argument without blanks."""

_BY_SPELLING = {spelling: option for option in OPTIONS for spelling in (*option.spellings, *option.also)}


class CommandLine(NamedTuple):
    values: Values
    words: tuple[str, ...]
    subcommand: tuple[str, ...] = ()
    """Arguments for Typer; when set, the other fields are ignored."""


def parse(argv: list[str]) -> CommandLine:
    """Raises UsageError for an unknown option or a missing value."""
    if tuple(argv[:2]) in OWN_OPTIONS or (argv[:1] == ["logs"] and "-f" in argv[1:] and len(argv) < 4):
        return CommandLine({}, (), tuple(argv))
    words: list[str] = []
    tokens: list[str] = []
    values: Values = {}
    unknown, is_strange = "", False
    rest = list(argv)
    while rest:
        token = rest.pop(0)
        if token == "--" and len(words) > 1 and _names_subcommand(words, values):
            tokens += [token, *rest]
            break
        if token == "--":
            if len(words) > 1:
                _refuse_almost_command(words, values)
            return CommandLine(values, (*words, *rest)) if not unknown else _refuse(unknown)
        if not _is_option(token):
            # What stands behind an option that is not ours may be its value: `wolo stats --by model`.
            if not is_strange or token in SUBCOMMANDS.get("".join(words), ()):
                words.append(token)
            tokens.append(token)
            is_strange = False
            continue
        taken = _take(token, rest, values)
        is_strange = taken is None
        if taken is None:
            unknown = unknown or token
            taken = [token]
        tokens += taken
    if _names_subcommand(words, values):
        # Moves options in front of the subcommand behind its name
        names = words[:2]
        rest = list(tokens)
        for name in names:
            rest.remove(name)
        return CommandLine(values, (), (*names, *rest))
    if unknown:
        return _refuse(unknown)
    _refuse_almost_command(words, values)
    return CommandLine(values, tuple(words))


def _refuse_almost_command(words: list[str], values: Values) -> None:
    if len(words) in (1, 2, 3) and "print" not in values and "interactive" not in values and " " not in words[0]:
        from wolo.cli.near_misses import refuse_almost_command

        refuse_almost_command(words, SUBCOMMANDS)


def asks_for_json(argv: list[str]) -> bool:
    """Guesses from the arguments of an invalid command line."""
    said = argv[: argv.index("--")] if "--" in argv else argv
    formats = [token.partition("=")[2] for token in said if token.startswith("--output-format=")]
    formats += [value for token, value in pairwise(said) if token == "--output-format"]
    return "--json" in said or bool({"json", "stream-json"}.intersection(formats))


def _is_option(token: str) -> bool:
    """A word with blanks is part of a prompt, unless it is a known option with `=`."""
    if len(token) < 2 or not token.startswith("-"):
        return False
    return not any(blank in token for blank in " \n\t") or token.split("=", 1)[0] in _BY_SPELLING


def _take(token: str, rest: list[str], values: Values) -> list[str] | None:
    """Parses one option and its value; returns the consumed words, or None for an unknown option."""
    spelling, equals, value = token.partition("=")
    if (option := _BY_SPELLING.get(spelling)) is None:
        # Parses combined short options such as `-pc` and `-mzai/glm-5.2`
        if token.startswith("--") or len(token) < 3:
            return None
        taken: list[str] = []
        letters = token[1:]
        scratch: Values = dict(values)
        while letters:
            if (option := _BY_SPELLING.get(f"-{letters[0]}")) is None:
                return None
            letters = letters[1:]
            if option.kind == "flag":
                _store(option, "", scratch)
            elif letters:
                _store(option, letters, scratch)
                letters = ""
            else:
                taken = _take(option.spellings[0], rest, scratch) or []
        values.update(scratch)
        return [token, *taken[1:]]
    if option.kind == "flag":
        if equals:
            raise UsageError(f"{spelling} takes no value.")
        _store(option, "", values)
        return [token]
    if equals:
        _store(option, value, values)
        return [token]
    is_bare = not rest or _is_option(rest[0]) or rest[0] == "--" or (option.name == "worktree" and " " in rest[0])
    if option.kind == "joined" or (option.kind == "maybe" and is_bare):
        values[option.name] = ""
        return [token]
    if not rest:
        raise UsageError(f"{spelling} needs a value.", hint=f"{spelling} {option.metavar}")
    taken = [token]
    while len(taken) == 1 or (option.name == "mcp_config" and rest and _names_servers(rest[0])):
        _store(option, rest[0], values)
        taken.append(rest.pop(0))
    return taken


def _names_servers(word: str) -> bool:
    """`--mcp-config a.json b.json`, as users of Claude Code write it."""
    return word.startswith("{") or (word.endswith(".json") and " " not in word)


def _store(option: Option, value: str, values: Values) -> None:
    if option.kind == "many":
        held = values.setdefault(option.name, [])
        assert isinstance(held, list)
        held.append(value)
    elif option.means:
        values[option.target] = option.means
    else:
        values[option.name] = True if option.kind == "flag" else value


def _names_subcommand(words: list[str], values: Values) -> bool:
    if not words or words[0] not in SUBCOMMANDS or "print" in values or "interactive" in values:
        return False
    takes_it = (words[0] in TAKES_ONE and len(words) == 2) or (words[0] == "undo" and _names_undone(words[1:]))
    takes_it = takes_it or (words[0] == "attach" and "?token=" in "".join(words[1:2]))  # a prompt would show it to a model
    takes_it = takes_it or (words[0] in TAKES_NAME and len(words) == 2 and len(words[1].split()) == 1)
    return len(words) == 1 or takes_it or words[1] in SUBCOMMANDS[words[0]]


def _names_undone(words: list[str]) -> bool:
    """Recognises a count and paths: `wolo undo 2 src/app.py`; `wolo undo the last edit` is a prompt."""
    paths = words[1:] if words and words[0].isdecimal() else words
    return all("/" in word or "." in word.strip(".") for word in paths)


def _refuse(token: str) -> CommandLine:
    import difflib

    spelling = token.partition("=")[0]
    harmless = [each for each, option in _BY_SPELLING.items() if option.means != "yolo"]
    near = difflib.get_close_matches(spelling, harmless, n=1, cutoff=0.75)
    hint = f"Did you mean {near[0]}? " if near else ""
    raise UsageError(f"Unknown option {spelling}.", hint=f"{hint}`wolo --help` lists them; words after -- are the prompt.")
