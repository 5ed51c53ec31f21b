"""Finding what was said, in all sessions."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as run_with
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.sessions.samples import said
from wolo.errors import UsageError
from wolo.messages.message import Message, Producer, Usage
from wolo.messages.parts import TextPart, ToolPart
from wolo.sessions.entries import CompactionEntry, MessageEntry, ResultsEntry
from wolo.sessions.index import Index
from wolo.sessions.search import index_update
from wolo.sessions.search.passage_search import BEGIN, END, Hit, moment, parse, plain, search
from wolo.sessions.store import Store

NOW = time.time()
Find = Callable[..., list[Hit]]


@pytest.fixture
def find(store: Store) -> Find:
    def ask(words: str, cwd: Path | None = None, limit: int = 20) -> list[Hit]:
        query = parse(words, time.time())
        return index_update.ask(store, lambda index: search(index, store.list(), query, cwd=cwd, limit=limit))

    return ask


def kept(store: Store, *texts: str, cwd: Path | str = "/", model: str = "") -> str:
    session = store.create(cwd, model=model)
    for words in texts:
        store.append(session.id, [said(words)])
    return session.id


def called(store: Store, session: str, tool: str, output: str, **arguments: str) -> ToolPart:
    """A call as a turn leaves it: first with its answer, then with its result."""
    call = ToolPart(tool=tool, input=dict(arguments))
    answer = Message(role="assistant", parts=(call,), usage=Usage(), producer=Producer("zai", "openai-chat", "glm-5.2"))
    store.append(session, [MessageEntry(message=answer)])
    done = replace(call, status="completed", outcome="ok", output=output)
    store.append(session, [ResultsEntry(message_id=answer.id, parts=(done,))])
    return call


@pytest.mark.parametrize(
    "words",
    [
        "flaky",
        "FLAKY test",
        '"flaky test"',
        "flak*",
        '"test in load_con*"',
        "load_config",
        "config",
        "parseHttpRequest",
        "http",
        "HttpRequest",
        "parseHttp*",
        "日本",
        "本語の",
        "テスト",
        "한국",
        "Größe",
        "große",
        "flaky -missing",
        "missing OR flaky test",
        "src/x.py",
        "don't",
    ],
)
def test_words_phrases_beginnings_and_pieces_are_found(store: Store, find: Find, words: str) -> None:
    here = kept(store, "The flaky test in load_config of src/x.py: parseHttpRequest, 日本語のテスト, 한국어, Größe große; don't")
    kept(store, "Nothing of the kind")
    assert [hit.session.id for hit in find(words)] == [here]


@pytest.mark.parametrize("words", ["lak", '"test flaky"', "flaky -test", "missing", "語日", "onfig", "flaky missing"])
def test_other_words_are_not(store: Store, find: Find, words: str) -> None:
    kept(store, "The flaky test in load_config, 日本語")
    assert find(words) == []


def test_call_is_found_by_any_of_its_texts(store: Store, find: Find) -> None:
    session = kept(store, "go")
    called(store, session, "shell", "3 passed", command="pytest -x tests/test_login.py")
    called(store, session, "read", "import os", path="/home/me/src/x.py")
    for words in (
        "pytest passed",
        "tool:shell",
        "tool:SHELL passed",
        "path:tests/test_login.py",
        "path:test_login.py",
        "path:tests",
    ):
        assert [(hit.tool, hit.seq) for hit in find(words)] == [("shell", 3)], words
    for words in ("path:src/x.py", "path:./src/x.py", "path:/home/me/src/x.py", "path:src/*.py import", "tool:read role:tool"):
        assert [(hit.tool, hit.seq) for hit in find(words)] == [("read", 5)], words
    for words in ("tool:read passed", "path:rc/x.py", "path:login.py", "tool:grep", "role:user import", "path:src/[x].py"):
        assert find(words) == [], words
    assert len(find("tool:shell tool:read")) == 2


def test_call_without_kept_end_is_found_too(store: Store, find: Find) -> None:
    session = kept(store, "go")
    answer = Message(role="assistant", parts=(ToolPart(tool="shell", input={"command": "rm -rf build"}),))
    store.append(session, [MessageEntry(message=answer)])
    assert [hit.seq for hit in find("tool:shell build")] == [2]


def test_result_replaces_its_call_despite_intermediate_search(store: Store, find: Find) -> None:
    session = kept(store, "go")
    call = ToolPart(tool="shell", input={"command": "make"})
    answer = Message(role="assistant", parts=(call,))
    store.append(session, [MessageEntry(message=answer)])
    assert len(find("make")) == 1
    store.append(session, [ResultsEntry(message_id=answer.id, parts=(replace(call, status="completed", output="built"),))])
    assert [(hit.seq, plain(hit.snippet)) for hit in find("make")] == [(3, "make built")]


def test_sessions_narrow_by_model_directory_role_and_time(store: Store, find: Find, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "sub").mkdir(parents=True)
    glm = kept(store, "fix it", cwd=project, model="zai/glm-5.2")
    called(store, glm, "shell", "fix", command="true")
    gpt = kept(store, "fix it", cwd=project / "sub", model="openai/gpt")
    assert {hit.session.id for hit in find("fix")} == {glm, gpt}
    assert {hit.session.id for hit in find("fix model:GLM")} == {glm}
    assert {hit.session.id for hit in find(f"fix cwd:{project}")} == {glm, gpt}
    assert {hit.session.id for hit in find(f"fix cwd:{project}/sub")} == {gpt}
    assert {hit.session.id for hit in find("fix cwd:proj")} == {glm, gpt}
    assert {hit.session.id for hit in find("fix", project)} == {glm}
    assert [hit.role for hit in find("fix role:tool")] == ["tool"]
    assert len(find("fix since:1h")) == 3
    assert find("fix since:2999-01-01") == []
    assert find("fix until:2020-01-01") == []


def test_a_summary_is_found_as_one(store: Store, find: Find) -> None:
    session = kept(store, "go")
    summary = Message(role="compaction_summary", parts=(TextPart(text="The goal is a calculator"),))
    store.append(session, [CompactionEntry(summary=summary, left_out=("msg_1",))])
    assert [hit.seq for hit in find("role:summary calculator")] == [2]


def test_snippet_is_one_clean_line_around_match(store: Store, find: Find) -> None:
    kept(store, "x " * 500 + "\x1b[31mneedle\x1b[0m \x07\u202eand\nmore" + " y" * 500)
    (hit,) = find("needle")
    assert f"{BEGIN}needle{END} and more" in hit.snippet
    assert plain(hit.snippet).isprintable()
    assert len(plain(hit.snippet)) < 300
    kept(store, "a" * 5_000 + " camelHump " + "z" * 20_000)
    assert "camelHump" in plain(find("hump")[0].snippet)


def test_one_session_does_not_crowd_out_others(store: Store, find: Find) -> None:
    old = kept(store, "the word")
    loud = kept(store, *["the word again"] * 30)
    assert {hit.session.id for hit in find("word", limit=10)} == {old, loud}
    assert len(find("word", limit=10)) == 10
    assert len(find("word", limit=100)) == 31


def test_the_newest_comes_first(store: Store, find: Find) -> None:
    ids = [kept(store, f"word {number}") for number in range(5)]
    assert [hit.session.id for hit in find("word")] == ids[::-1]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ('"open', "not closed"),
        ("tool:", "needs a value"),
        ("since:yesterday", "cannot parse the time"),
        ("since:99999-01-01", "cannot parse the time"),
        ("role:dog", "role dog"),
        ("tol:shell", "no filter tol:"),
        ("", "no word"),
        ("-> ( *", "no word"),
        ("-only", "only negated words"),
        ("word -tool:shell", "negated with"),
    ],
)
def test_senseless_query_is_reported_in_a_sentence(words: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence) as raised:
        parse(words, NOW)
    assert raised.value.hint


@pytest.mark.parametrize(
    "words", ["TypeError: x", "std::vector", "https://example.org/x", "a:b", "C:\\x", "AND", "NEAR(a b)", "a^2"]
)
def test_text_that_looks_like_syntax_is_searched_for(store: Store, find: Find, words: str) -> None:
    session = kept(store, f"before {words} after")
    assert [hit.session.id for hit in find(words)] == [session]


@run_with(deadline=None, max_examples=150)
@given(st.text(alphabet=st.one_of(st.characters(), st.sampled_from('":*-() \x00\ud800日tool:since:7d')), max_size=40))
def test_any_query_is_answered_or_refused_in_words(words: str) -> None:
    import tempfile

    try:
        query = parse(words, NOW)
    except UsageError:
        return
    with tempfile.TemporaryDirectory() as folder, Index.open(Path(folder)) as index:
        assert search(index, [], query) == []


@given(st.integers(0, 99_999), st.sampled_from("hdw"))
def test_an_age_is_so_long_ago(count: int, unit: str) -> None:
    assert moment("since:", f"{count}{unit}", NOW) == NOW - count * {"h": 3600, "d": 86400, "w": 604800}[unit]
