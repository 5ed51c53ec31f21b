"""wolo on Bedrock, Vertex AI and Azure: signatures, tokens, frames, and what goes wrong with them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import replies, replies_gemini
from tests.fakes.cloud_server import CloudAnswer, CloudServer
from tests.fakes.command import Completed, run_wolo
from tests.fakes.provider_server import Asked, ProviderServer
from tests.fakes.replies_anthropic import call, error, text
from tests.fakes.replies_bedrock import ACCESS_KEY, SECRET_KEY, exception, framed, refusal, signed
from wolo.places import find_places

MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
KEYS = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY, "AWS_REGION": "us-east-1"}


@pytest.fixture
def cloud() -> Iterator[CloudServer]:
    with CloudServer() as server:
        yield server


def configure(name: str, auth: str, base_url: str, *more: str) -> None:
    folder = find_places().config
    folder.mkdir(parents=True, exist_ok=True)
    lines = (f"[providers.{name}]", f'base_url = "{base_url}"', f'auth = "{auth}"', *more)
    (folder / "config.toml").write_text("\n".join((*lines, "", "[retry]", "tries = 1", "")), "utf-8")


def ask_bedrock(provider: ProviderServer, env: dict[str, str] | None = None, *args: str) -> Completed:
    configure("bedrock", "aws", provider.origin)
    return run_wolo("-p", "-m", f"bedrock/{MODEL}", *args, "hi", env=KEYS if env is None else env)


def ask_vertex(provider: ProviderServer, env: dict[str, str], model: str = "claude-sonnet-4-5@20250929") -> Completed:
    configure("vertex", "google", provider.origin + "/v1/projects/{project}/locations/{region}/publishers")
    return run_wolo("-p", "-m", f"vertex/{model}", "hi", env={"GOOGLE_CLOUD_PROJECT": "acme", **env})


def bearer(token: str, reply: replies.Reply) -> Any:
    def answer(asked: Asked) -> replies.Reply:
        return (
            reply if asked.headers.get("authorization") == f"Bearer {token}" else error(401, "authentication_error", "bad token")
        )

    return answer


def token(value: str, lasts_s: int = 3600) -> CloudAnswer:
    return CloudAnswer(
        {"access_token": value, "expires_in": lasts_s, "token_type": "Bearer"}, headers={"metadata-flavor": "Google"}
    )


def service_account(cloud: CloudServer, **changes: str) -> str:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    Path("public.pem").write_bytes(public)
    row = {"type": "service_account", "project_id": "acme", "private_key_id": "k1", "private_key": pem, "client_email": "w@acme"}
    Path("sa.json").write_text(json.dumps({**row, "token_uri": f"{cloud.url}/token", **changes}))
    return str(Path("sa.json").absolute())


# Bedrock


def test_bedrock_answer_with_call_and_thinking(provider: ProviderServer) -> None:
    Path("a").write_text("this is a\n")
    provider.script(signed(framed(call("read", {"path": "a"}))), signed(framed(text("Read.", thinking="Hm.", signature="s"))))
    done = ask_bedrock(provider, KEYS, "--thinking", "low")
    assert (done.stdout, done.exit_code) == ("Read.\n", 0), done.stderr
    first, second = provider.requests
    assert first.path == "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke-with-response-stream"
    assert first.json["anthropic_version"] == "bedrock-2023-05-31"
    assert first.json["thinking"]["type"] == "enabled"
    assert not {"model", "stream"} & set(first.json)
    assert first.headers["accept"] == "application/vnd.amazon.eventstream"
    assert first.json["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert "this is a" in second.messages[-1]["content"][0]["content"]


def test_key_of_bedrock_is_sent_unsigned(provider: ProviderServer) -> None:
    provider.script(bearer("bedrock-key-0123456789", framed(text("Hi."))))
    env = {"AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"}
    configure("bedrock", "aws", provider.origin, 'api_key = "bedrock-key-0123456789"')
    assert run_wolo("-p", "-m", f"bedrock/{MODEL}", "hi", env=env).stdout == "Hi.\n"


def test_missing_region_is_one_sentence() -> None:
    done = run_wolo("-p", "-m", f"bedrock/{MODEL}", "hi", env={})
    assert done.exit_code == 2
    assert "Amazon Bedrock needs a region." in done.stderr
    assert "AWS_REGION" in done.stderr


def test_region_cannot_change_the_host() -> None:
    done = run_wolo("-p", "-m", f"bedrock/{MODEL}", "hi", env={**KEYS, "AWS_REGION": "evil.example.com/#"})
    assert (done.exit_code, "is no region" in done.stderr) == (2, True)


def test_missing_credentials_are_one_sentence(provider: ProviderServer) -> None:
    done = ask_bedrock(provider, {"AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"})
    assert (done.exit_code, provider.requests) == (2, [])
    assert "No credentials of AWS were found." in done.stderr


def test_wrong_clock_is_named(provider: ProviderServer) -> None:
    date = {"date": format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True)}
    provider.script(refusal(403, "InvalidSignatureException", "Signature expired: 1 is now earlier than 2", date))
    done = ask_bedrock(provider)
    assert done.exit_code == 2
    assert "60 minutes ahead of the server's" in done.stderr


def test_expired_token_is_refreshed_once(provider: ProviderServer, cloud: CloudServer) -> None:
    numbers = iter(range(1, 9))

    def keys(asked: object) -> CloudAnswer:
        ends_at = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
        return CloudAnswer(
            {"AccessKeyId": ACCESS_KEY, "SecretAccessKey": SECRET_KEY, "Token": f"t{next(numbers)}", "Expiration": ends_at}
        )

    cloud.answers["GET /keys"] = keys
    env = {"AWS_REGION": "us-east-1", "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{cloud.url}/keys"}
    provider.script(signed(framed(text("One.")), token="t2"), signed(framed(text("One.")), token="t2"))
    assert ask_bedrock(provider, env).stdout == "One.\n"
    assert len(cloud.asked) == 2
    # The next process uses what the first one fetched.
    provider.script(signed(framed(text("Two.")), token="t2"))
    assert ask_bedrock(provider, env).stdout == "Two.\n"
    assert len(cloud.asked) == 2
    provider.script(signed(framed(text("")), token="other"), signed(framed(text("")), token="other"))
    done = ask_bedrock(provider, env)
    assert (done.exit_code, len(cloud.asked)) == (1, 3)
    assert "expired" in done.stderr


def test_instance_role_is_used(provider: ProviderServer, cloud: CloudServer) -> None:
    ends_at = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    row = {"AccessKeyId": ACCESS_KEY, "SecretAccessKey": SECRET_KEY, "Token": "t", "Expiration": ends_at}
    folder = "/latest/meta-data/iam/security-credentials/"
    cloud.answers = {
        "PUT /latest/api/token": CloudAnswer("session"),
        f"GET {folder}": CloudAnswer("role"),
        f"GET {folder}role": CloudAnswer(row),
    }
    provider.script(signed(framed(text("Hi.")), token="t"))
    done = ask_bedrock(provider, {"AWS_REGION": "us-east-1", "AWS_EC2_METADATA_SERVICE_ENDPOINT": cloud.url})
    assert done.stdout == "Hi.\n", done.stderr
    assert [asked.headers.get("x-aws-ec2-metadata-token") for asked in cloud.asked] == [None, "session", "session"]


def test_profile_and_sso_login_are_used(provider: ProviderServer, cloud: CloudServer, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path.home() / ".aws"
    (folder / "sso/cache").mkdir(parents=True)
    (folder / "config").write_text(
        "[profile work]\nregion = us-east-1\nsso_session = acme\nsso_account_id = 1\nsso_role_name = dev\n"
        "[sso-session acme]\nsso_region = us-east-1\nsso_start_url = https://acme.example\n"
    )
    login = folder / "sso/cache/1b0f37ba6da8eb0f4d52b70a9c5e2ba2b7d3c3ff.json"
    import hashlib

    login = login.with_name(hashlib.sha1(b"acme").hexdigest() + ".json")
    ends_at = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    login.write_text(json.dumps({"accessToken": "sso-token", "expiresAt": ends_at, "region": "us-east-1"}))
    row = {"accessKeyId": ACCESS_KEY, "secretAccessKey": SECRET_KEY, "sessionToken": "t", "expiration": 4_000_000_000_000}
    cloud.answers["GET /federation/credentials"] = CloudAnswer({"roleCredentials": row})
    provider.script(signed(framed(text("Hi.")), token="t"))
    env = {"AWS_PROFILE": "work", "AWS_ENDPOINT_URL_SSO": cloud.url}
    done = ask_bedrock(provider, env)
    assert done.stdout == "Hi.\n", done.stderr
    assert cloud.asked[0].headers["x-amz-sso_bearer_token"] == "sso-token"
    login.write_text(json.dumps({"accessToken": "sso-token", "expiresAt": "2026-01-01T00:00:00Z"}))
    (folder / "config").touch()
    (folder / "config").write_text((folder / "config").read_text() + "\n")
    done = ask_bedrock(provider, env)
    assert (done.exit_code, "aws sso login --profile work" in done.stderr) == (2, True)


@pytest.mark.parametrize("kind", ["redirects", "lies", "hangs"])
def test_bad_metadata_server_is_one_sentence(provider: ProviderServer, cloud: CloudServer, kind: str) -> None:
    answer = {
        "redirects": CloudAnswer("", 302, {"location": "http://evil.example.com/"}),
        "lies": CloudAnswer("<html>Log in to our network</html>"),
        "hangs": CloudAnswer(hangs=True),
    }[kind]
    cloud.answers["GET /keys"] = answer
    done = ask_bedrock(provider, {"AWS_REGION": "us-east-1", "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{cloud.url}/keys"})
    assert done.exit_code == (75 if kind == "hangs" else 2), done.stderr
    expected = {"redirects": "redirects are not followed", "lies": "something else than credentials", "hangs": "within 2 s"}[kind]
    assert expected in done.stderr
    assert provider.requests == []


def test_kind_of_error_may_be_in_its_header(provider: ProviderServer, cloud: CloudServer) -> None:
    ends_at = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    keys = {"AccessKeyId": ACCESS_KEY, "SecretAccessKey": SECRET_KEY, "Token": "t", "Expiration": ends_at}
    numbers = iter("ab")
    cloud.answers["GET /keys"] = lambda _: CloudAnswer({**keys, "Token": next(numbers)})
    refused = replies.error(403, {"message": "No."}, {"x-amzn-errortype": "ExpiredTokenException:http://x/"})
    provider.script(refused, signed(framed(text("Hi.")), token="b"))
    env = {"AWS_REGION": "us-east-1", "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{cloud.url}/keys"}
    assert ask_bedrock(provider, env).stdout == "Hi.\n"


def test_session_token_in_an_error_is_hidden(provider: ProviderServer) -> None:
    secret = "session-token-0123456789abcdef0123456789"
    provider.script(
        refusal(403, "InvalidSignatureException", f"The Canonical String should have been x-amz-security-token:{secret}")
    )
    provider.script(
        refusal(403, "InvalidSignatureException", f"The Canonical String should have been x-amz-security-token:{secret}")
    )
    done = ask_bedrock(provider, {**KEYS, "AWS_SESSION_TOKEN": secret})
    assert done.exit_code == 1
    assert "Canonical String" in done.stderr
    assert secret not in done.stderr + done.stdout


def test_doctor_asks_with_credentials_of_the_cloud(provider: ProviderServer) -> None:
    configure("bedrock", "aws", provider.origin)
    env = {**KEYS, "WOLO_MODEL": f"bedrock/{MODEL}"}
    provider.script(signed(framed(text("Hi."))))
    assert run_wolo("doctor", "--online", "--json", env=env).json["answer"]["works"]
    missing = {"AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true", "WOLO_MODEL": f"bedrock/{MODEL}"}
    answer = run_wolo("doctor", "--online", "--json", env=missing).json["answer"]
    assert answer == {"model": f"bedrock/{MODEL}", "works": False, "message": "No credentials of AWS were found."}


def test_probe_asks_with_credentials_of_the_cloud(provider: ProviderServer) -> None:
    configure("bedrock", "aws", provider.origin)
    provider.linted, provider.otherwise = False, signed(framed(text("OK")))
    done = run_wolo("models", "probe", "-m", f"bedrock/{MODEL}", env=KEYS)
    assert (done.exit_code, "yes  answers" in done.stdout) == (0, True)


def test_errors_within_the_stream_are_classified(provider: ProviderServer) -> None:
    provider.script(signed(framed(replies.Reply(), exception("throttlingException", "Too many requests, slow down"))))
    done = ask_bedrock(provider)
    assert done.exit_code == 75
    assert "Too many requests" in done.stderr


def test_damaged_frame_is_a_transport_error(provider: ProviderServer) -> None:
    reply = framed(text("Hello."))
    body = bytearray(reply.body)
    body[200] ^= 1
    provider.script(signed(replies.Reply(headers=reply.headers, pieces=(bytes(body),))))
    done = ask_bedrock(provider)
    assert done.exit_code == 75
    assert "The event stream of Bedrock is damaged: a wrong checksum" in done.stderr


def test_other_address_gets_no_credentials(provider: ProviderServer) -> None:
    find_places().config.mkdir(parents=True, exist_ok=True)
    (find_places().config / "config.toml").write_text(f'[providers.bedrock]\nbase_url = "{provider.origin}"\n')
    done = run_wolo("-p", "-m", f"bedrock/{MODEL}", "hi", env=KEYS)
    assert (done.exit_code, 'providers.bedrock.auth = "aws"' in done.stderr) == (2, True)
    provider.script(bearer("", text("no")))
    run_wolo("-p", "-m", f"bedrock/{MODEL}", "--base-url", provider.origin, "hi", env=KEYS)
    assert "authorization" not in provider.requests[0].headers


def test_managed_addresses_hold_for_clouds(tmp_path: Path) -> None:
    folder = tmp_path / "managed"
    folder.mkdir()
    (folder / "managed.toml").write_text(
        '[managed]\nbase_urls.allow = ["https://bedrock-runtime.eu-central-1.amazonaws.com/*"]\n'
    )
    done = run_wolo("-p", "-m", f"bedrock/{MODEL}", "hi", env={**KEYS, "WOLO_MANAGED_DIR": str(folder)})
    assert done.exit_code == 2
    assert "https://bedrock-runtime.us-east-1.amazonaws.com is not allowed" in done.stderr


# Vertex AI


def test_service_account_signs_for_claude(provider: ProviderServer, cloud: CloudServer) -> None:
    import jwt

    env = {"GOOGLE_APPLICATION_CREDENTIALS": service_account(cloud), "GOOGLE_CLOUD_LOCATION": "europe-west1"}
    cloud.answers["POST /token"] = token("vertex-token")
    provider.script(bearer("vertex-token", text("Hi.")))
    done = ask_vertex(provider, env)
    assert done.stdout == "Hi.\n", done.stderr
    (asked,) = provider.requests
    path = "/v1/projects/acme/locations/europe-west1/publishers/anthropic/models/claude-sonnet-4-5%4020250929:streamRawPredict"
    assert asked.path == path
    assert (asked.json["anthropic_version"], asked.json["stream"]) == ("vertex-2023-10-16", True)
    assertion = cloud.asked[0].form["assertion"]
    claims = jwt.decode(assertion, Path("public.pem").read_bytes(), ["RS256"], audience=f"{cloud.url}/token")
    assert (claims["iss"], claims["scope"]) == ("w@acme", "https://www.googleapis.com/auth/cloud-platform")


def test_user_login_asks_gemini(provider: ProviderServer, cloud: CloudServer) -> None:
    folder = Path("gcloud").absolute()
    folder.mkdir()
    row = {
        "type": "authorized_user",
        "client_id": "i",
        "client_secret": "s",
        "refresh_token": "r",
        "token_uri": f"{cloud.url}/token",
    }
    (folder / "application_default_credentials.json").write_text(json.dumps(row))
    cloud.answers["POST /token"] = token("user-token")
    provider.script(bearer("user-token", replies_gemini.text("Hi.")))
    done = ask_vertex(provider, {"CLOUDSDK_CONFIG": str(folder)}, "gemini-3.8-flash")
    assert done.stdout == "Hi.\n", done.stderr
    path = "/v1/projects/acme/locations/global/publishers/google/models/gemini-3.8-flash:streamGenerateContent?alt=sse"
    assert provider.requests[0].path == path
    assert cloud.asked[0].form == {"grant_type": "refresh_token", "client_id": "i", "client_secret": "s", "refresh_token": "r"}


def test_refused_token_is_refreshed_once(provider: ProviderServer, cloud: CloudServer) -> None:
    numbers = iter(range(1, 9))
    cloud.answers["GET /computeMetadata/v1/instance/service-accounts/default/token"] = lambda _: token(f"t{next(numbers)}")
    env = {"GCE_METADATA_HOST": cloud.host, "CLOUDSDK_CONFIG": "/nonexistent"}
    provider.script(bearer("t2", text("Hi.")), bearer("t2", text("Hi.")))
    assert ask_vertex(provider, env).stdout == "Hi.\n"
    provider.script(bearer("t9", text("")), bearer("t9", text("")))
    assert ask_vertex(provider, env).exit_code == 1
    assert len(cloud.asked) == 3


def test_token_that_ends_soon_is_refreshed_before(provider: ProviderServer, cloud: CloudServer) -> None:
    path = "GET /computeMetadata/v1/instance/service-accounts/default/token"
    env = {"GCE_METADATA_HOST": cloud.host, "CLOUDSDK_CONFIG": "/nonexistent"}
    cloud.answers[path] = token("t1", lasts_s=200)
    provider.script(bearer("t1", text("One.")), bearer("t2", text("Two.")))
    assert ask_vertex(provider, env).stdout == "One.\n"
    cloud.answers[path] = token("t2")
    assert ask_vertex(provider, env).stdout == "Two.\n"


def test_metadata_server_of_others_is_not_believed(provider: ProviderServer, cloud: CloudServer) -> None:
    found = CloudAnswer({"access_token": "t", "expires_in": 3600})
    cloud.answers["GET /computeMetadata/v1/instance/service-accounts/default/token"] = found
    done = ask_vertex(provider, {"GCE_METADATA_HOST": cloud.host, "CLOUDSDK_CONFIG": "/nonexistent"})
    assert (done.exit_code, provider.requests) == (2, [])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"token_uri": "http://evil.example.com/"}, "no https address"),
        ({"private_key": "no key"}, "cannot be used"),
        ({"type": "external_account"}, "type `external_account`"),
    ],
)
def test_hostile_credentials_file_is_refused(
    provider: ProviderServer, cloud: CloudServer, changes: dict[str, str], sentence: str
) -> None:
    done = ask_vertex(provider, {"GOOGLE_APPLICATION_CREDENTIALS": service_account(cloud, **changes)})
    assert (done.exit_code, cloud.asked, provider.requests) == (2, [], [])
    assert sentence in done.stderr


def test_revoked_login_and_wrong_clock_are_named(provider: ProviderServer, cloud: CloudServer) -> None:
    date = {"date": format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)}
    words = {"error": "invalid_grant", "error_description": "Invalid JWT: Token must be short-lived."}
    cloud.answers["POST /token"] = CloudAnswer(words, 400, date)
    done = ask_vertex(provider, {"GOOGLE_APPLICATION_CREDENTIALS": service_account(cloud)})
    assert done.exit_code == 2
    assert "Invalid JWT: Token must be short-lived." in done.stderr
    assert "60 minutes behind the server's" in done.stderr


def test_calls_thinking_and_marks_on_vertex(provider: ProviderServer, cloud: CloudServer) -> None:
    Path("a").write_text("this is a\n")
    env = {"GOOGLE_APPLICATION_CREDENTIALS": service_account(cloud)}
    cloud.answers["POST /token"] = token("t")
    thought = text("Read.", thinking="Hm.", signature="s")
    provider.script(bearer("t", call("read", {"path": "a"})), bearer("t", thought))
    configure("vertex", "google", provider.origin + "/v1/projects/{project}/locations/{region}/publishers")
    done = run_wolo("-p", "-m", "vertex/claude-sonnet-4-5:low", "read a", env=env)
    assert done.stdout == "Read.\n", done.stderr
    first, second = provider.requests
    assert first.json["thinking"]["type"] == "enabled"
    assert first.json["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert "this is a" in second.messages[-1]["content"][0]["content"]
    assert len(cloud.asked) == 1


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "gemini-3.8-flash"])
@pytest.mark.parametrize(("status", "kind", "exit_code"), [(429, "RESOURCE_EXHAUSTED", 75), (404, "NOT_FOUND", 1)])
def test_errors_of_vertex_are_classified(
    provider: ProviderServer, cloud: CloudServer, model: str, status: int, kind: str, exit_code: int
) -> None:
    cloud.answers["POST /token"] = token("t")
    body = json.dumps([{"error": {"code": status, "message": "Publisher Model is not served.", "status": kind}}])
    provider.script(bearer("t", replies.error(status, body)))
    done = ask_vertex(provider, {"GOOGLE_APPLICATION_CREDENTIALS": service_account(cloud)}, model)
    assert (done.exit_code, "Publisher Model is not served." in done.stderr) == (exit_code, True), done.stderr


def test_gemini_calls_run_on_vertex(provider: ProviderServer, cloud: CloudServer) -> None:
    Path("a").write_text("this is a\n")
    cloud.answers["POST /token"] = token("t")
    provider.script(
        bearer("t", replies_gemini.calls(replies_gemini.called("read", {"path": "a"}, "c2ln"))),
        bearer("t", replies_gemini.text("Read.")),
    )
    done = ask_vertex(provider, {"GOOGLE_APPLICATION_CREDENTIALS": service_account(cloud)}, "gemini-3.8-flash")
    assert done.stdout == "Read.\n", done.stderr
    asked = provider.requests[1].json["contents"]
    assert "this is a" in json.dumps(asked)
    called = [part[kind] for each in asked for part in each["parts"] for kind in part if kind.startswith("function")]
    assert len(called) == 2
    assert not any("id" in each for each in called)  # this server assigned none, and would refuse one


# Azure


def ask_azure(provider: ProviderServer, env: dict[str, str], *more: str) -> Completed:
    configure("azure-openai", "entra", provider.base_url, *more)
    return run_wolo("-p", "-m", "azure/my-gpt", "hi", env={"AZURE_OPENAI_API_KEY": "unused-key-0123456789", **env})


def test_client_secret_buys_a_token(provider: ProviderServer, cloud: CloudServer) -> None:
    cloud.answers["POST /t1/oauth2/v2.0/token"] = token("entra-token")
    env = {"AZURE_TENANT_ID": "t1", "AZURE_CLIENT_ID": "c1", "AZURE_CLIENT_SECRET": "s1", "AZURE_AUTHORITY_HOST": cloud.url}
    provider.script(bearer("entra-token", replies.text("Hi.")))
    assert ask_azure(provider, env).stdout == "Hi.\n"
    assert cloud.asked[0].form == {
        "client_id": "c1",
        "client_secret": "s1",
        "grant_type": "client_credentials",
        "scope": "https://cognitiveservices.azure.com/.default",
    }
    assert "api-key" not in provider.requests[0].headers


def test_workload_identity_shows_its_file(provider: ProviderServer, cloud: CloudServer) -> None:
    Path("federated").write_text("assertion\n")
    cloud.answers["POST /t1/oauth2/v2.0/token"] = token("entra-token")
    env = {"AZURE_TENANT_ID": "t1", "AZURE_CLIENT_ID": "c1", "AZURE_AUTHORITY_HOST": cloud.url}
    provider.script(bearer("entra-token", replies.text("Hi.")))
    assert ask_azure(provider, {**env, "AZURE_FEDERATED_TOKEN_FILE": str(Path("federated").absolute())}).stdout == "Hi.\n"
    assert cloud.asked[0].form["client_assertion"] == "assertion"


def test_managed_identity_is_asked(provider: ProviderServer, cloud: CloudServer) -> None:
    cloud.answers["GET /identity"] = CloudAnswer({"access_token": "mi-token", "expires_on": "4000000000"})
    provider.script(bearer("mi-token", replies.text("Hi.")))
    assert ask_azure(provider, {"IDENTITY_ENDPOINT": f"{cloud.url}/identity", "IDENTITY_HEADER": "h"}).stdout == "Hi.\n"
    assert cloud.asked[0].headers["x-identity-header"] == "h"


def test_command_prints_tokens_again_after_refusal(provider: ProviderServer) -> None:
    Path("n").write_text("")
    script = Path("token.sh").absolute()
    script.write_text(f"#!/bin/sh\necho x >> {Path('n').absolute()}\necho t$(wc -l < {Path('n').absolute()})\n")
    script.chmod(0o755)
    provider.script(bearer("t2", replies.text("Hi.")), bearer("t2", replies.text("Hi.")))
    done = ask_azure(provider, {}, f'api_key = "!{script}"')
    assert done.stdout == "Hi.\n", done.stderr


def test_foundry_takes_entra_tokens(provider: ProviderServer, cloud: CloudServer) -> None:
    cloud.answers["GET /identity"] = CloudAnswer({"access_token": "mi-token", "expires_on": "4000000000"})
    configure("azure-foundry", "entra", provider.origin)
    provider.script(bearer("mi-token", text("Hi.")))
    done = run_wolo("-p", "-m", "azure-foundry/claude-opus-4-5", "hi", env={"IDENTITY_ENDPOINT": f"{cloud.url}/identity"})
    assert done.stdout == "Hi.\n", done.stderr
    assert provider.requests[0].path == "/anthropic/v1/messages"
    assert "resource=https%3A%2F%2Fai.azure.com&" in cloud.asked[0].path


def test_scope_of_a_token_may_be_set(provider: ProviderServer, cloud: CloudServer) -> None:
    cloud.answers["GET /identity"] = CloudAnswer({"access_token": "mi-token", "expires_on": "4000000000"})
    provider.script(bearer("mi-token", replies.text("Hi.")))
    env = {"IDENTITY_ENDPOINT": f"{cloud.url}/identity"}
    assert ask_azure(provider, env, 'token_scope = "https://cognitiveservices.azure.us/.default"').stdout == "Hi.\n"
    assert "resource=https%3A%2F%2Fcognitiveservices.azure.us&" in cloud.asked[0].path
