"""Reads the files that AWS tools share: profiles of `config` and `credentials`, and the cache of SSO logins."""

from __future__ import annotations

import configparser
import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from wolo.errors import ConfigError
from wolo.places import find_home


def profile_name(environ: Mapping[str, str]) -> str:
    return environ.get("AWS_PROFILE") or environ.get("AWS_DEFAULT_PROFILE") or "default"


def files_of(environ: Mapping[str, str]) -> tuple[Path, Path]:
    """`config` and `credentials`."""
    folder = find_home() / ".aws"
    named = environ.get("AWS_CONFIG_FILE"), environ.get("AWS_SHARED_CREDENTIALS_FILE")
    config, secrets = (Path(name).expanduser() if name else None for name in named)
    return config or folder / "config", secrets or folder / "credentials"


def read_profile(environ: Mapping[str, str]) -> dict[str, str]:
    """Values of the chosen profile; those of `credentials` come first. Raises ConfigError for one that is named and missing."""
    name = profile_name(environ)
    config, secrets = map(_read_ini, files_of(environ))
    sections = [config.get(f"profile {name}") or (config.get(name) if name == "default" else None), secrets.get(name)]
    if not any(section is not None for section in sections):
        if name != "default":
            raise ConfigError(f"There is no AWS profile `{name}`.", hint="AWS_PROFILE names it; `aws configure list-profiles`.")
        return {}
    profile: dict[str, str] = {}
    for section in sections:
        profile |= section or {}
    if session := config.get(f"sso-session {profile.get('sso_session', '')}"):
        profile = {**session, **profile}
    return profile


def read_sso_login(profile: Mapping[str, str], name: str) -> tuple[str, str]:
    """Token and region of a login with `aws sso login`. Raises ConfigError."""
    key = profile.get("sso_session") or profile.get("sso_start_url", "")
    path = find_home() / ".aws" / "sso" / "cache" / f"{hashlib.sha1(key.encode(), usedforsecurity=False).hexdigest()}.json"
    try:
        login: Any = json.loads(path.read_bytes())
        token, expires_at = str(login["accessToken"]), parse_time(str(login["expiresAt"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise ConfigError(f"The AWS profile `{name}` is not logged in.", hint=f"aws sso login --profile {name}") from None
    if expires_at <= datetime.now(UTC).timestamp():
        raise ConfigError(f"The login of the AWS profile `{name}` has expired.", hint=f"aws sso login --profile {name}")
    return token, str(login.get("region") or profile.get("sso_region") or "")


def parse_time(text: str) -> float:
    """Unix time of an ISO 8601 time; without an offset it is UTC. Raises ValueError."""
    moment = datetime.fromisoformat(text.replace("UTC", "Z"))
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _read_ini(path: Path) -> dict[str, dict[str, str]]:
    """Empty for a missing file. Raises ConfigError for a damaged one."""
    parser = configparser.RawConfigParser(default_section="")
    try:
        parser.read_string(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, configparser.Error) as error:
        why = getattr(error, "strerror", None) or "it is not a file of profiles"
        raise ConfigError(f"{path} cannot be read: {why}.") from None
    return {" ".join(section.split()): dict(parser[section]) for section in parser.sections()}
