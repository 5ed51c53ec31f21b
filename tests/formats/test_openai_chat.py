"""Requests of Chat Completions: valid by construction, append-only, equal bytes for equal histories."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.formats.histories import FOREIGN, OWN, PNG, TOOLS, histories, request
from wolo.errors import BadRequest
from wolo.formats.encoding.encoder import CONTINUE, NO_ANSWER
from wolo.formats.encoding.wire_forms import LEGAL_IDS
from wolo.formats.format import Request, ToolSpec
from wolo.formats.lint.chat import lint
from wolo.formats.openai_chat import ChatDialect, OpenAIChat, to_llm_messages
from wolo.formats.openai_chat.encode import ChatEncoder
from wolo.messages.message import Message, system, user
from wolo.messages.parts import FilePart, ImagePart, TextPart, ThinkingPart, ToolPart

GLM = ChatDialect(
    thinking_param_style="glm",
    tool_stream=True,
    sampling="glm",
    usage_option=False,
    response_format="json_object",
    image_style="bare",
)
OPENAI = ChatDialect(
    system_role="developer",
    max_tokens_field="max_completion_tokens",
    id_policy="openai",
    tool_result_name=False,
    reasoning_replay="never",
    files=True,
)
MISTRAL = ChatDialect(id_policy="mistral", assistant_between_tool_and_user=True, reasoning_replay="tool_turns")
DEEPSEEK = ChatDialect(thinking_param_style="deepseek", reasoning_replay="always_even_empty", images=False)
LLAMA = ChatDialect(thinking_param_style="template_kwargs", content_null_ok=False, system_role="user", schema_null_types=False)
DIALECTS = {"generic": ChatDialect(), "glm": GLM, "openai": OPENAI, "mistral": MISTRAL, "deepseek": DEEPSEEK, "llama": LLAMA}

BODY_KEYS = {
    *("model", "messages", "tools", "stream", "stream_options", "tool_choice", "parallel_tool_calls", "tool_stream", "thinking"),
    *("reasoning_effort", "enable_thinking", "thinking_budget", "chat_template_kwargs", "reasoning", "max_tokens"),
    *("max_completion_tokens", "temperature", "top_p", "do_sample", "stop", "response_format"),
}
MESSAGE_KEYS = {
    *("role", "content", "tool_calls", "tool_call_id", "name", "reasoning_content", "reasoning", "reasoning_details"),
}

dialects = st.sampled_from(list(DIALECTS.values()))


def body_of(dialect: ChatDialect, asked: Request) -> dict[str, Any]:
    body = msgspec.json.decode(OpenAIChat(dialect).encode(asked))
    assert isinstance(body, dict)
    return body


def answered(text: str = "", *calls: ToolPart, reasoning: str = "", field: str = "reasoning_content", **fields: Any) -> Message:
    thinking = [ThinkingPart(text=reasoning, field=field)] if reasoning else []
    texts = [TextPart(text=text)] if text else []
    return Message(
        role="assistant", parts=(*thinking, *texts, *calls), producer=fields.pop("producer", OWN), finished=True, **fields
    )


def done(tool: str = "read", output: str = "result", **fields: Any) -> ToolPart:
    return ToolPart(tool=tool, status="completed", outcome="ok", output=output, **fields)


# How it is used


def test_a_conversation_becomes_the_body_of_a_request() -> None:
    call = done(call_id="call_a", input={"path": "a"}, raw_input='{"path": "a"}', output="text of a")
    history = (user("Read a"), answered("I read it.", call, reasoning="\nhm"), user("Thanks"))
    assert body_of(ChatDialect(), request(history, tools=TOOLS[:1], max_tokens=100)) == {
        "model": "m-1",
        "messages": [
            {"role": "system", "content": "You are Wolo."},
            {"role": "user", "content": "Read a"},
            {
                "role": "assistant",
                "content": "I read it.",
                "reasoning_content": "\nhm",
                "tool_calls": [{"id": "call_a", "type": "function", "function": {"name": "read", "arguments": '{"path": "a"}'}}],
            },
            {"role": "tool", "tool_call_id": "call_a", "content": "text of a", "name": "read"},
            {"role": "user", "content": "Thanks"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "read",
                    "description": "Reads a file.",
                    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
                },
            }
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 100,
    }


def test_to_llm_messages_does_the_whole_way() -> None:
    call = ToolPart(
        id="tool_abc123", tool="read", input={"path": "config.json"}, status="failed", outcome="error", output="no such file"
    )
    note = Message(role="custom", parts=[TextPart(text="never sent")])
    history = [
        user("Look"),
        note,
        Message(role="assistant", parts=[TextPart(text="I look."), call], reasoning_content="Let me see"),
    ]
    sent = to_llm_messages(history, system="You are Wolo, an AI coding agent.", agent_display_name="CodeHelper")
    assert sent[0] == {"role": "system", "content": "You are CodeHelper, an AI coding agent."}
    assert sent[1] == {"role": "user", "content": "Look"}
    assert sent[2]["reasoning_content"] == "Let me see"
    assert sent[2]["tool_calls"][0]["id"] == "tool_abc123"
    assert json.loads(sent[2]["tool_calls"][0]["function"]["arguments"]) == {"path": "config.json"}
    assert sent[3] == {"role": "tool", "tool_call_id": "tool_abc123", "content": "no such file", "name": "read"}
    assert len(sent) == 4


def test_each_of_our_messages_becomes_what_it_is() -> None:
    written = {"path": "hello.py", "contents": "def hello():\n    print('Hello, World!')"}
    done_call = ToolPart(id="tool_001", tool="write", input=written, status="completed", output="File written")
    said = Message(role="assistant", parts=[TextPart(text="I write it."), done_call])
    (spoken, result) = to_llm_messages([said], system="")
    arguments = '{"path": "hello.py", "contents": "def hello():\\n    print(\'Hello, World!\')"}'
    function = {"name": "write", "arguments": arguments}
    assert spoken == {
        "role": "assistant",
        "content": "I write it.",
        "tool_calls": [{"id": "tool_001", "type": "function", "function": function}],
    }
    assert result == {"role": "tool", "tool_call_id": "tool_001", "content": "File written", "name": "write"}
    thought = Message(role="assistant", parts=[TextPart(text="It looks right.")], reasoning_content="Let me see")
    reasoned = {"role": "assistant", "content": "It looks right.", "reasoning_content": "Let me see"}
    assert to_llm_messages([thought], system="") == [reasoned]


def test_a_request_has_the_user_speak_first() -> None:
    sent = body_of(ChatDialect(), request((answered("Hello."), user("hi"))))["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "user"]


def test_conversation_keeps_its_own_system_message() -> None:
    history = [system("Speak as Wolo; Wolofs are people."), user("hi")]
    sent = to_llm_messages(history, system="another", agent_display_name=r"\1 Bob")
    assert sent[0] == {"role": "system", "content": r"Speak as \1 Bob; Wolofs are people."}


def test_the_default_arguments_inject_the_prompt() -> None:
    opening, said = to_llm_messages([user("hi")], agent_display_name="CodeHelper")
    assert opening["role"] == "system"
    assert opening["content"].startswith("You are CodeHelper, an AI coding agent")
    assert said == {"role": "user", "content": "hi"}
    assert to_llm_messages([user("hi")], system="") == [said]
    assert to_llm_messages([], system="") == []


def test_nothing_is_put_between_messages_of_one_speaker() -> None:
    history = [user("one"), user("two"), answered("three"), answered("four")]
    assert [each["role"] for each in to_llm_messages(history, system="")] == ["user", "user", "assistant", "assistant"]


def test_a_refused_name_of_results_is_left_out() -> None:
    called = answered("", ToolPart(tool="read", call_id="c1", status="completed", outcome="ok", output="x"))
    refusals = (
        {"message": "property 'name' is unsupported", "param": "messages.2.tool.name"},
        {"message": "'messages[2].name' is not allowed"},
        {"message": "messages.2.name: Extra inputs are not permitted"},
    )
    for error in refusals:
        refused = OpenAIChat(ChatDialect()).read_error(400, {}, json.dumps({"error": error}).encode())
        assert isinstance(refused, BadRequest)
        assert refused.field == "name"
    for about in ("tools[0].function.name is invalid", "messages[1].tool_calls[0].function.name is invalid"):
        assert OpenAIChat(ChatDialect()).read_error(400, {}, json.dumps({"error": {"message": about}}).encode()).field is None
    asked = replace(request((user("Read a"), called)), dropped_fields=frozenset({"name"}))
    sent = json.loads(OpenAIChat(ChatDialect()).encode(asked))
    assert "name" not in sent["messages"][-1]
    assert sent["messages"][-1]["role"] == "tool"


# Properties


@given(histories, dialects)
def test_a_request_carries_what_to_llm_messages_gives(history: tuple[Message, ...], dialect: ChatDialect) -> None:
    asked = request(history)
    encoder = ChatEncoder(dialect, asked.producer, for_server=True)
    laid = to_llm_messages(asked.messages, system=asked.system, encoder=encoder)
    assert body_of(dialect, asked)["messages"] == laid


@given(histories, dialects)
def test_every_history_becomes_universally_valid_request(history: tuple[Message, ...], dialect: ChatDialect) -> None:
    before = msgspec.json.encode([repr(message) for message in history])
    body = body_of(dialect, request(history))
    assert lint(body, strict_template=dialect.alternate_roles) == []
    assert body["messages"][-1]["role"] in ("user", "tool")
    assert set(body) <= BODY_KEYS
    for message in body["messages"]:
        assert set(message) <= MESSAGE_KEYS
        assert message["content"] != []
    assert msgspec.json.encode([repr(message) for message in history]) == before


@given(histories, dialects)
def test_equal_histories_give_equal_bytes_however_they_grew(history: tuple[Message, ...], dialect: ChatDialect) -> None:
    grown = OpenAIChat(dialect)
    for count in range(len(history) + 1):
        asked = request(history[:count])
        assert grown.encode(asked) == OpenAIChat(dialect).encode(asked)


@given(histories, histories, st.integers(0, 8), dialects)
def test_history_changed_midway_is_laid_out_anew(
    history: tuple[Message, ...], other: tuple[Message, ...], at: int, dialect: ChatDialect
) -> None:
    used = OpenAIChat(dialect)
    for changed in (history, history[:at] + other, history[:at], history):
        assert used.encode(request(changed)) == OpenAIChat(dialect).encode(request(changed))


@given(histories, dialects)
def test_request_begins_with_the_messages_before(history: tuple[Message, ...], dialect: ChatDialect) -> None:
    """Wherever a request is really sent: behind the system messages, and behind something the model has to answer."""
    opening = next((at for at, message in enumerate(history) if message.role != "system"), len(history))
    bodies = [body_of(dialect, request(history[:count])) for count in range(opening + 1, len(history) + 1)]
    sent = [body for body in bodies if body["messages"][-1] != {"role": "user", "content": CONTINUE}]
    for previous, body in itertools.pairwise(sent):
        assert lint(body, previous) == []


@given(histories, dialects)
def test_ids_are_legal_and_equal_on_both_sides(history: tuple[Message, ...], dialect: ChatDialect) -> None:
    messages = body_of(dialect, request(history))["messages"]
    called = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    answered_ids = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert called == answered_ids
    assert all(re.fullmatch(LEGAL_IDS[dialect.id_policy], wire) for wire in called)


@given(histories)
def test_every_call_has_a_key_and_ordered_result(history: tuple[Message, ...]) -> None:
    """Results directly behind their calls, images once and behind the whole batch."""
    messages = body_of(ChatDialect(), request(history))["messages"]
    for at, message in enumerate(messages):
        calls = message.get("tool_calls", ())
        results = messages[at + 1 : at + 1 + len(calls)]
        assert [result["tool_call_id"] for result in results] == [call["id"] for call in calls]


@given(histories)
def test_reasoning_and_blobs_go_to_their_producer_only(history: tuple[Message, ...]) -> None:
    foreign = tuple(msgspec.structs.replace(message, producer=FOREIGN) for message in history)
    for message in body_of(ChatDialect(), request(foreign))["messages"]:
        assert not {"reasoning_content", "reasoning", "reasoning_details"} & set(message)
        assert not any("extra_content" in call for call in message.get("tool_calls", ()))


# Single rules


def test_two_user_messages_get_an_answer_between_them() -> None:
    first, second = user("one"), user("two")
    before = body_of(ChatDialect(), request((first,)))
    after = body_of(ChatDialect(), request((first, second)))
    assert lint(after, before, strict_template=True) == []
    assert [message["content"] for message in after["messages"][1:]] == ["one", NO_ANSWER, "two"]


def test_tolerant_server_gets_both_user_messages_alone() -> None:
    after = body_of(ChatDialect(alternate_roles=False), request((user("one"), user("two"))))
    assert [message["role"] for message in after["messages"]] == ["system", "user", "user"]


def test_a_summary_is_what_the_user_says() -> None:
    summary = Message(role="compaction_summary", parts=[TextPart(text="So far: …")])
    assert body_of(ChatDialect(), request((summary,)))["messages"][1] == {"role": "user", "content": "So far: …"}


def test_result_images_follow_the_batch_in_user_message() -> None:
    image = ImagePart(media_type="image/png", data=PNG)
    history = (user("look"), answered("", done(output_parts=(image,)), done(), done(output_parts=(image,))))
    messages = body_of(ChatDialect(), request(history))["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool", "tool", "tool", "user"]
    kinds = [part["type"] for part in messages[-1]["content"]]
    assert kinds == ["text", "image_url", "image_url"]
    assert messages[-1]["content"][1]["image_url"]["url"].startswith("data:image/png;base64,iVBOR")
    assert lint({"messages": messages}) == []


@pytest.mark.parametrize(
    ("dialect", "image", "sent"),
    [
        (ChatDialect(), ImagePart(url="https://x/y.png"), "https://x/y.png"),
        (ChatDialect(), ImagePart(media_type="image/webp", data=PNG), "data:image/webp;base64,"),
        (ChatDialect(image_style="bare"), ImagePart(media_type="image/png", data=PNG), "iVBOR"),
        (ChatDialect(image_style="data"), ImagePart(url="data:image/png;base64,AA=="), "data:image/png;base64,AA=="),
    ],
)
def test_images_travel_in_the_style_of_the_server(dialect: ChatDialect, image: ImagePart, sent: str) -> None:
    message = Message(role="user", parts=[TextPart(text="what is this?"), image])
    (_, asked) = body_of(dialect, request((message,)))["messages"]
    assert asked["content"][0] == {"type": "text", "text": "what is this?"}
    assert asked["content"][1]["image_url"]["url"].startswith(sent)


@pytest.mark.parametrize(
    ("dialect", "part"),
    [
        (ChatDialect(images=False), ImagePart(media_type="image/png", data=PNG)),
        (ChatDialect(image_style="data"), ImagePart(url="https://x/y.png")),
        (ChatDialect(), FilePart(name="a.pdf", data=b"%PDF")),
    ],
)
def test_unaccepted_part_is_named_in_words(dialect: ChatDialect, part: ImagePart | FilePart) -> None:
    message = Message(role="user", parts=[TextPart(text="see"), part])
    asked = body_of(dialect, request((message,)))["messages"][1]
    assert asked["content"].startswith("see\n[")
    assert "not sent" in asked["content"]


def test_files_travel_where_they_are_taken() -> None:
    message = Message(role="user", parts=[FilePart(name="a.pdf", media_type="application/pdf", data=b"%PDF")])
    (part,) = body_of(OPENAI, request((message,)))["messages"][1]["content"]
    assert part == {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}}


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_text"])
def test_reasoning_returns_under_its_own_name(field: str) -> None:
    text = "\n1. **Ana\u2028 字 \t"
    assert (
        body_of(ChatDialect(), request((user("q"), answered("a", reasoning=text, field=field), user("r"))))["messages"][2][field]
        == text
    )


def test_reasoning_content_item_returns_as_one() -> None:
    history = (user("q"), answered("Hi", reasoning="hm", field="content"), user("r"))
    assert body_of(ChatDialect(), request(history))["messages"][2]["content"] == [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "Hi"},
    ]


def test_reasoning_from_think_tags_stays_behind() -> None:
    assert body_of(ChatDialect(), request((user("q"), answered("Hi", reasoning="hm", field="text"), user("r"))))["messages"][
        2
    ] == {
        "role": "assistant",
        "content": "Hi",
    }


@pytest.mark.parametrize(
    ("replay", "with_calls", "without"),
    [("never", None, None), ("tool_turns", "t", None), ("always", "t", "t"), ("always_even_empty", "t", "t")],
)
def test_the_replay_policy_says_which_messages_carry_reasoning(replay: Any, with_calls: str | None, without: str | None) -> None:
    history = (user("q"), answered("", done(), reasoning="t"), answered("a", reasoning="t"), user("r"))
    messages = body_of(ChatDialect(reasoning_replay=replay), request(history))["messages"]
    assistants = [message for message in messages if message["role"] == "assistant"]
    assert [message.get("reasoning_content") for message in assistants] == [with_calls, without]


def test_insisting_server_gets_empty_reasoning() -> None:
    history = (user("q"), answered("", done(), producer=FOREIGN, reasoning="secret"), user("r"))
    assert body_of(DEEPSEEK, request(history))["messages"][2]["reasoning_content"] == ""


def test_refused_reasoning_field_is_left_out() -> None:
    history = (user("q"), answered("a", reasoning="t"), user("r"))
    asked = request(history, dropped_fields=frozenset({"reasoning_content"}))
    for dialect in (ChatDialect(), DEEPSEEK):
        assert "reasoning_content" not in body_of(dialect, asked)["messages"][2]


@pytest.mark.parametrize(
    ("part", "sent"),
    [
        (done(input={"b": 1, "a": 2}, raw_input='{"b": 1,  "a": 2}'), '{"b": 1,  "a": 2}'),
        (done(input={"a": "x\ny"}, raw_input='{"a": "x\ny"}'), '{"a": "x\\ny"}'),
        (done(input={"a": 1}, raw_input='"{\\"a\\": 1}"'), '{"a": 1}'),
        (done(input={"a": 2}, raw_input='{"a": 1}'), '{"a": 2}'),
        (done(raw_input=""), "{}"),
        (ToolPart(tool="read", raw_input='{"a": ', status="failed", outcome="invalid", output="bad"), "{}"),
        (done(input={"a": "\ud83d"}), '{"a": "\ufffd"}'),
    ],
)
def test_arguments_keep_the_model_text_while_json(part: ToolPart, sent: str) -> None:
    (call,) = body_of(ChatDialect(), request((user("q"), answered("", part))))["messages"][2]["tool_calls"]
    assert call["function"]["arguments"] == sent


def test_reused_ids_become_different_and_stay_so() -> None:
    again = [answered("", done(call_id="run_shell_command:0")) for _ in range(3)]
    history = tuple(message for turn in again for message in (user("q"), turn))
    ids = [
        call["id"] for message in body_of(ChatDialect(), request(history))["messages"] for call in message.get("tool_calls", ())
    ]
    assert ids[0] == "run_shell_command:0"
    assert len(set(ids)) == 3


@pytest.mark.parametrize("dialect", [OPENAI, MISTRAL])
def test_ids_with_long_common_beginning_stay_distinct(dialect: ChatDialect) -> None:
    calls = [done(call_id=f"call_{'0' * 60}_{number}") for number in range(50)]
    messages = body_of(dialect, request((user("q"), answered("", *calls))))["messages"]
    assert len({call["id"] for call in messages[2]["tool_calls"]}) == 50


def test_illegal_names_are_rewritten_and_restored() -> None:
    chat = OpenAIChat(ChatDialect(reserved_tool_names=("python",)))
    tools = (
        TOOLS[1],
        ToolSpec(name="python", description="", parameters={}),
        ToolSpec(name="t" * 80, description="", parameters={}),
    )
    asked = request((user("q"),), tools=tools)
    for offered, tool in zip(msgspec.json.decode(chat.encode(asked))["tools"], tools, strict=True):
        name = offered["function"]["name"]
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name)
        assert name != tool.name
        call = {"index": 0, "id": "c", "function": {"name": name, "arguments": "{}"}}
        delta = chat.decoder(asked).feed(json.dumps({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}).encode())[0]
        assert getattr(delta, "tool", None) == tool.name


def test_repeated_tool_is_sent_once_and_none_keyless() -> None:
    assert len(body_of(ChatDialect(), request((user("q"),), tools=(TOOLS[0], TOOLS[0])))["tools"]) == 1
    body = body_of(GLM, request((user("q"),), tools=()))
    assert "tools" not in body
    assert "tool_stream" not in body


def test_server_decides_the_name_of_the_limit() -> None:
    asked = request((user("q"),), max_tokens=7)
    assert body_of(ChatDialect(), asked)["max_tokens"] == 7
    assert body_of(OPENAI, asked)["max_completion_tokens"] == 7
    for dialect in (ChatDialect(), OPENAI):
        assert len({"max_tokens", "max_completion_tokens"} & set(body_of(dialect, asked))) == 1
    refused = request((user("q"),), max_tokens=7, dropped_fields=frozenset({"max_tokens"}))
    assert body_of(ChatDialect(), refused)["max_completion_tokens"] == 7
    assert "max_tokens" not in body_of(ChatDialect(), request((user("q"),)))


@pytest.mark.parametrize("field", ["stream_options", "tool_stream", "thinking", "parallel_tool_calls", "temperature", "stop"])
def test_refused_optional_field_is_never_sent_again(field: str) -> None:
    dialect = msgspec.structs.replace(GLM, usage_option=True, parallel_flag=True)
    asked = request((user("q"),), temperature=0.5, stop=("x",))
    assert field in body_of(dialect, asked)
    left = body_of(dialect, msgspec.structs.replace(asked, dropped_fields=frozenset({field})))
    assert field not in left
    assert left["stream"] is True


@pytest.mark.parametrize(
    ("set_by_user", "sent"),
    [
        ({}, {}),
        ({"temperature": 0.5}, {"temperature": 0.5}),
        ({"temperature": 0.0}, {"temperature": 0.01, "do_sample": False}),
        ({"temperature": -1.0}, {"temperature": 0.01, "do_sample": False}),
        ({"temperature": 1.7}, {"temperature": 1.0}),
        ({"top_p": 0.0}, {"top_p": 0.01}),
        ({"top_p": 3.0}, {"top_p": 1.0}),
        ({"temperature": float("nan")}, {}),
    ],
)
def test_glm_samples_within_its_bounds(set_by_user: dict[str, float], sent: dict[str, float]) -> None:
    body = body_of(GLM, request((user("q"),), **set_by_user))
    assert {name: body[name] for name in ("temperature", "top_p", "do_sample") if name in body} == sent


def test_glm_gets_nothing_that_it_does_not_know() -> None:
    body = body_of(GLM, request((user("q"),), max_tokens=9, temperature=0.2, json_schema={"type": "object"}))
    assert not {"strict", "name", "max_completion_tokens", "parallel_tool_calls", "tool_choice", "stream_options"} & set(body)
    assert "strict" not in body["tools"][0]["function"]
    assert body["tool_stream"] is True
    assert body["response_format"] == {"type": "json_object"}
    assert body["messages"][0]["role"] == "system"


def test_every_turn_carries_its_reasoning_to_glm_unchanged() -> None:
    turns = [message for number in range(3) for message in (user("q"), answered("a", done(), reasoning=f"\n{number} "))]
    sent = body_of(GLM, request(tuple(turns)))["messages"]
    assert [message["reasoning_content"] for message in sent if message["role"] == "assistant"] == ["\n0 ", "\n1 ", "\n2 "]


def test_lone_surrogates_and_nul_never_reach_the_wire() -> None:
    body = OpenAIChat(ChatDialect()).encode(request((user("a\0b\ud83dc"), answered("", done(output="\udc80\0")))))
    sent = msgspec.json.decode(body)["messages"]
    assert sent[1]["content"] == "a\ufffdb\ufffdc"
    assert sent[3]["content"] == "\ufffd\ufffd"


def test_a_blank_system_prompt_is_no_message() -> None:
    assert body_of(ChatDialect(), request((user("q"),), system=" "))["messages"] == [{"role": "user", "content": "q"}]


def test_changed_prompt_producer_or_fields_restart_the_bytes() -> None:
    chat = OpenAIChat(ChatDialect())
    history = (user("q"), answered("a", reasoning="t"), user("r"))
    for asked in (
        request(history),
        request(history, system="Another."),
        request(history, producer=FOREIGN),
        request(history, dropped_fields=frozenset({"reasoning_content"})),
        request(history),
    ):
        assert chat.encode(asked) == OpenAIChat(ChatDialect()).encode(asked)


def test_an_unknown_flag_in_a_dialect_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="quirk"):
        msgspec.convert({"quirk": True}, ChatDialect)


def test_cache_marks_at_both_ends_change_nothing_else() -> None:
    marks, plain = OpenAIChat(ChatDialect(cache_marks=True)), OpenAIChat(ChatDialect())
    call = ToolPart(tool="read", input={}, call_id="c1", status="completed", output="x")
    history: tuple[Message, ...] = ()
    previous = None
    for message in (
        user("hi"),
        Message(role="assistant", parts=(TextPart(text="I read."), call), producer=OWN),
        user("and now?"),
    ):
        history = (*history, message)
        body = json.loads(marks.encode(request(history)))
        assert lint(body, previous) == []
        places = [at for at, each in enumerate(body["messages"]) if "cache_control" in json.dumps(each)]
        assert places == [0, {1: 1, 2: 2, 3: 4}[len(history)]]
        unmarked = [_unmarked(each) for each in body["messages"]]
        assert unmarked == json.loads(plain.encode(request(history)))["messages"]
        previous = body
    assert previous is not None
    previous["messages"][0]["content"][0]["text"] += "!"
    assert lint(json.loads(marks.encode(request(history))), previous) == ["messages[0] differs from the request before"]


def _unmarked(message: dict[str, Any]) -> dict[str, Any]:
    content = message["content"]
    return {**message, "content": content[0]["text"]} if isinstance(content, list) else message
