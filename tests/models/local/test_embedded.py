"""The embedded model from outside: its process comes, serves, and goes; what is missing is said in a sentence."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.fakes.turns import PromptRunner, calls_of
from wolo.errors import ConfigError, ProviderError, Unavailable
from wolo.messages.message import user
from wolo.models.catalog import Catalog
from wolo.models.local import embedded
from wolo.models.local.embedded import DEFAULT, EmbeddedModel, EmbeddedProcess, ServerAddress, is_ready
from wolo.models.local.weights import MissingWeights
from wolo.models.protocol import ModelQuestion
from wolo.models.provider import ModelChoice
from wolo.places import Places, find_places


def local(name: str = DEFAULT) -> ModelChoice:
    return Catalog({}).find(f"local/{name}")


def engine_that(folder: Path, code: str) -> dict[str, str]:
    """An environment in which the engine is this code."""
    folder.mkdir(exist_ok=True)
    (folder / "xllamacpp.py").write_text(code)
    return {"PYTHONPATH": str(folder)}


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def gone(pid: int) -> None:
    async with asyncio.timeout(60):
        while is_alive(pid):
            await asyncio.sleep(0.01)


class Silent:
    """A listener for tests that do not look."""

    def __init__(self) -> None:
        self.notices: list[str] = []
        self.begun = asyncio.Event()

    async def on_request(self, attempt: int, context_tokens: int) -> None:
        pass

    async def on_deltas(self, deltas: object) -> None:
        self.begun.set()

    async def on_attempt_failed(self, error: ProviderError, attempt: int, tries: int, delay_s: float) -> None:
        pass

    async def on_replaced(self, error: ProviderError, model: str) -> None:
        pass

    async def on_notice(self, text: str, level: str = "warning") -> None:
        self.notices.append(text)


def question(text: str) -> ModelQuestion:
    return ModelQuestion(messages=(user(text),))


# What is missing


def test_catalogue_knows_embedded_models_and_price() -> None:
    for name in ("qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"):
        choice = local(name)
        assert choice.api_key == ""
        assert choice.model.context == 8192
        assert choice.model.price is not None
        assert choice.model.price.input == choice.model.price.output == 0.0
    assert Catalog({}).find("local").model.id == DEFAULT


def test_missing_engine_is_explained_with_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "ENGINE", "there_is_no_such_engine")
    assert not is_ready(find_places())
    with pytest.raises(ConfigError, match="engine of the embedded model is not installed") as caught:
        EmbeddedModel(local(), find_places())
    assert "pip install 'wolo-cli[local]'" in caught.value.hint


@pytest.mark.real_model
@pytest.mark.soak
def test_missing_weights_are_explained_with_source(real_places: Places) -> None:
    with pytest.raises(MissingWeights, match="not on this machine") as caught:
        EmbeddedModel(local("qwen2.5-coder-1.5b"), find_places())
    assert "wolo models pull local/qwen2.5-coder-1.5b" in caught.value.hint


@pytest.mark.real_model
@pytest.mark.soak
@pytest.mark.parametrize(
    ("name", "sentence"),
    [("qwen", "no embedded model qwen"), ("gone.gguf", "no model file"), ("text.gguf", "not a GGUF model file")],
)
def test_an_impossible_model_is_refused_before_anything_starts(real_places: Places, name: str, sentence: str) -> None:
    Path("text.gguf").write_text("this is text")
    with pytest.raises(ConfigError, match=sentence):
        EmbeddedModel(local(name), find_places())


async def test_missing_system_library_names_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "raise ImportError('libgomp.so.1: cannot open shared object file: No such file or directory')"
    monkeypatch.setenv("PYTHONPATH", engine_that(tmp_path / "engine", code)["PYTHONPATH"])
    process = EmbeddedProcess(tmp_path / "x.gguf", tmp_path / "log")
    with pytest.raises(ProviderError, match=r"system library libgomp\.so\.1") as caught:
        await process.ready()
    process.stop()
    assert "apt-get install libgomp1" in caught.value.hint
    assert not caught.value.retryable
    assert caught.value.exit_code == 2


async def test_dying_engine_is_reported_with_last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import os, sys\nsys.stderr.write('out of luck\\n')\nsys.stderr.flush()\nos.abort()"
    monkeypatch.setenv("PYTHONPATH", engine_that(tmp_path / "engine", code)["PYTHONPATH"])
    process = EmbeddedProcess(tmp_path / "x.gguf", tmp_path / "log")
    with pytest.raises(Unavailable, match=r"ended by signal 6.*out of luck"):
        await process.ready()
    process.stop()


async def test_module_of_the_work_folder_is_not_ours(tmp_path: Path) -> None:
    marker = tmp_path / "was_imported"
    for name in ("json", "threading", "xllamacpp", "wolo"):
        Path(f"{name}.py").write_text(f"open({str(marker)!r}, 'w')\n")
    process = EmbeddedProcess(tmp_path / "x.gguf", tmp_path / "log")
    with pytest.raises(ProviderError):
        await process.ready()
    process.stop()
    assert not marker.exists()


# The real engine


@pytest.fixture
async def model(real_places: Places) -> AsyncIterator[EmbeddedModel]:
    model = EmbeddedModel(local(), real_places)
    yield model
    await model.close()


@pytest.mark.real_model
@pytest.mark.soak
async def test_it_answers_and_its_process_ends_with_it(model: EmbeddedModel, tmp_path: Path) -> None:
    model.start()
    turn = await PromptRunner(model, tmp_path).ask("hi")
    assert turn.ended.cause == "done"
    assert turn.ended.answer
    pid = pid_of(model)
    assert is_alive(pid)
    await model.close()
    assert not is_alive(pid)


@pytest.mark.real_model
@pytest.mark.soak
async def test_killed_process_is_unavailable_and_restarts_next_time(
    model: EmbeddedModel,
) -> None:
    listener = Silent()
    asking = asyncio.create_task(model.ask(question("Tell me everything about Python, at length."), listener))
    async with asyncio.timeout(60):
        await listener.begun.wait()
        os.kill(pid_of(model), signal.SIGKILL)
        with pytest.raises(Unavailable, match="signal 9") as caught:
            await asking
        assert "memory" in caught.value.hint
        assert (await model.ask(question("hi"), Silent())).text


@pytest.mark.real_model
@pytest.mark.soak
async def test_closing_while_it_loads_leaves_nothing_behind(model: EmbeddedModel) -> None:
    asking = asyncio.create_task(model.ask(question("hi"), Silent()))
    while model.pid is None:
        await asyncio.sleep(0.01)
    pid = pid_of(model)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await model.close()
    assert not is_alive(pid)


@pytest.mark.real_model
@pytest.mark.soak
async def test_own_file_is_free_and_driven_by_size(weights: Path, tmp_path: Path) -> None:
    model = EmbeddedModel(local(str(weights)), Places(*(tmp_path / name for name in ("c", "d", "e", "f"))))
    try:
        assert model.choice.model.price is not None
        assert model.choice.model.context == 8192
        Path("work").mkdir()
        answer = await model.ask(question("hi"), Silent())
        assert answer.text
        assert answer.producer is not None
        assert answer.producer.format == "simple"
    finally:
        await model.close()


@pytest.mark.real_model
@pytest.mark.soak
async def test_native_mode_asks_the_model_as_usual(real_places: Places) -> None:
    model = EmbeddedModel(replace(local(), drive="native"), real_places)
    try:
        answer = await model.ask(ModelQuestion(messages=(user("Say hello."),), system="Be brief.", max_tokens=20), Silent())
        assert answer.text
        assert answer.producer is not None
        assert answer.producer.format == "openai-chat"
        assert answer.usage is not None
        assert answer.usage.cost is not None
        assert answer.usage.cost.total == 0.0
    finally:
        await model.close()


@pytest.mark.real_model
@pytest.mark.soak
async def test_a_damaged_model_file_is_a_sentence(tmp_path: Path, weights: Path) -> None:
    with weights.open("rb") as file:
        Path("damaged.gguf").write_bytes(file.read(100_000))
    model = EmbeddedModel(local("damaged.gguf"), find_places())
    with pytest.raises(ProviderError, match="cannot load the model"):
        await model.ask(question("hi"), Silent())
    await model.close()


@pytest.mark.real_model
@pytest.mark.soak
async def test_the_log_is_for_its_owner_alone(serving: ServerAddress, real_places: Places) -> None:
    assert (real_places.state / "embedded.log").stat().st_mode & 0o777 == 0o600


@pytest.mark.real_model
@pytest.mark.soak
async def test_nobody_else_on_this_machine_can_use_it(serving: ServerAddress) -> None:
    host, _, port = serving.url.removeprefix("http://").partition(":")
    assert host == "127.0.0.1"
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        body = json.dumps({"messages": [{"role": "user", "content": "hi"}]})
        connection.sendall(
            f"POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode()
        )
        assert b" 401 " in connection.recv(1000)


PARENT = """
import asyncio, sys, time
from pathlib import Path
from wolo.models.local.embedded import EmbeddedProcess
process = EmbeddedProcess(Path(sys.argv[1]), Path(sys.argv[2]))
print(process.pid, flush=True)
if sys.argv[3] == "ready":
    asyncio.run(process.ready())
print("here", flush=True)
time.sleep(600)
"""


@pytest.mark.real_model
@pytest.mark.soak
@pytest.mark.parametrize("when", ["loading", "ready"])
async def test_killed_parent_takes_the_model_along(weights: Path, tmp_path: Path, when: str) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(weights), str(tmp_path / "log"), when], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert parent.stdout.readline() == "here\n"
    assert is_alive(pid)
    parent.kill()
    parent.communicate()
    await gone(pid)


@pytest.mark.real_model
@pytest.mark.soak
async def test_ctrl_c_reaches_wolo_alone(model: EmbeddedModel) -> None:
    await model.ask(question("hi"), Silent())
    assert os.getpgid(pid_of(model)) != os.getpgid(0)
    assert os.getsid(pid_of(model)) != os.getsid(0)


def pid_of(model: EmbeddedModel) -> int:
    assert model.pid is not None
    return model.pid


@pytest.mark.real_model
@pytest.mark.soak
async def test_second_prompt_changes_the_file_of_first(model: EmbeddedModel, tmp_path: Path) -> None:
    runner = PromptRunner(model, tmp_path)
    await runner.ask("create a calculator")
    turn = await runner.ask("add a power function to it")
    assert turn.ended.answer.strip()
    for call in calls_of(turn):
        assert call.input["path"] == "calculator.py"
    for name in ("add", "subtract"):
        assert f"def {name}(" in Path("calculator.py").read_text()
