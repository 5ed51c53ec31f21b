"""Reads permission rules from settings files and checks them against their examples."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import get_args

import msgspec

from wolo.config import dotted_keys, files
from wolo.errors import ConfigError
from wolo.guard import precedence, rule_patterns
from wolo.guard.rules import Decision, Rule, RuleWithExamples, parse_rule
from wolo.guard.shell.parser import ParsedLine, PlainCommand
from wolo.guard.shell.words import plain_words
from wolo.places import Notices, find_home

EVERYWHERE = "*"
"""Table of saved rules that apply to every workspace."""
DECISIONS: tuple[Decision, ...] = get_args(Decision)


def decision_of(name: str) -> Decision:
    return next(each for each in DECISIONS if each == name)


def read_rules(
    written: Iterable[str | RuleWithExamples], decision: Decision, source: str, place: dotted_keys.SettingsPlace, root: Path
) -> list[Rule]:
    """`source` is stored in the rules. Raises ConfigError with file and line."""
    rules = []
    for each in written:
        text = _text(each)
        parse_rule(text, decision, place.at_words(text))
        rule = parse_rule(text, decision, source)
        if isinstance(each, RuleWithExamples):
            _check_examples(each, rule, place, root)
        rules.append(rule)
    return rules


def read_saved_rules(path: Path, root: Path, notices: Notices) -> list[Rule]:
    """Reads answers of "always": one table per workspace, and `*` for all."""
    text, data = files.read_toml(path, notices)
    place = dotted_keys.SettingsPlace(str(path), text)
    saved: list[Rule] = []
    for workspace, table in data.items():
        if not isinstance(table, dict) or not set(table) <= set(DECISIONS):
            raise ConfigError(f'{place.at((workspace,))}: "{workspace}" must be a table with allow, ask or deny.')
        if workspace not in (EVERYWHERE, str(root)):
            continue
        for name, rules in table.items():
            try:
                written = msgspec.convert(rules, tuple[str | RuleWithExamples, ...])
            except msgspec.ValidationError as error:
                raise ConfigError(f"{place.at((workspace, name))}: {name} must be a list of rules.") from error
            for each in written:
                saved += read_rules([each], decision_of(name), place.at_words(_text(each)), place, root)
    return saved


def _text(written: str | RuleWithExamples) -> str:
    return written if isinstance(written, str) else written.rule


def _check_examples(written: RuleWithExamples, rule: Rule, place: dotted_keys.SettingsPlace, root: Path) -> None:
    """Raises ConfigError for the first example that the rule does not match as stated."""
    ignores_case = sys.platform in ("darwin", "win32")
    base = rule_patterns.PathBase(os.path.realpath(root), os.path.realpath(find_home()), fold_case=ignores_case)
    book = precedence.Rulebook([rule], base)
    for example in (*written.match, *written.no_match):
        matches = book.find(rule.decision, rule.tool, _rule_input(rule, example, base)) is not None
        if matches != (example in written.match):
            why = f"the rule {'matches' if matches else 'does not match'} its example `{example}`"
            raise ConfigError(f"{place.at_words(example)}: {why}.", hint=f"The rule is {rule}.")


def _rule_input(rule: Rule, example: str, base: rule_patterns.PathBase) -> precedence.RuleInput:
    """An example may start with the rule's tool."""
    text = example.removeprefix(f"{rule.tool}:")
    match rule.tool:
        case "read" | "write":
            given = Path(base.root, f"{base.home}{text[1:]}" if text[:2] == "~/" else text)
            return precedence.Paths(*(Path(each(given)).as_posix() for each in (os.path.realpath, os.path.normpath)))
        case "shell":
            words = plain_words(text)
            return PlainCommand(words, (base.root,)) if words else ParsedLine(text, Path(base.root), None, is_reviewable=True)
        case "fetch":
            return rule_patterns.read_host(text if "://" in text else f"https://{text}")
        case "mcp" | "tool" | "task":
            return precedence.Target(text)
