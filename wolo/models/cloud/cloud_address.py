"""Addresses of clouds: the region and the project in a base URL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec.structs import replace

from wolo.errors import ConfigError
from wolo.models.provider import Provider

REGIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "aws": ("AWS_REGION", "AWS_DEFAULT_REGION"),
    "google": ("GOOGLE_CLOUD_LOCATION", "CLOUD_ML_REGION"),
}
PROJECTS: Final = ("GOOGLE_CLOUD_PROJECT", "ANTHROPIC_VERTEX_PROJECT_ID", "GCLOUD_PROJECT", "GCP_PROJECT")
GLOBAL: Final = "global"
JOINED: Final = ("us", "eu")
"""Groups of Google's regions with an address of their own."""
_REGION: Final = r"[a-z0-9][a-z0-9-]*"
_PROJECT: Final = r"[a-z0-9][a-z0-9.:-]*"
"""Others could change the host."""
_IN_HOST: Final = r"(?:^|\.)bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\."


def fill_address(provider: Provider, environ: Mapping[str, str]) -> Provider:
    """The provider with its region, and both in its base URL. Raises ConfigError for what is missing."""
    url = provider.base_url
    region = provider.region or _find_region(provider, environ)
    if not region and (provider.auth == "aws" or "{region}" in url):
        ways = f"Set AWS_REGION, or providers.{provider.name}.region, such as us-east-1."
        raise ConfigError(f"{provider.label} needs a region.", hint=ways)
    if region and not re.fullmatch(_REGION, region):
        raise ConfigError(f"`{region[:60]}` is no region of {provider.label}.", hint="It looks like us-east-1 or europe-west1.")
    values = {"region": region, "host": f"{region}-aiplatform.googleapis.com"}
    if region == GLOBAL:
        values["host"] = "aiplatform.googleapis.com"
    elif region in JOINED:
        values["host"] = f"aiplatform.{region}.rep.googleapis.com"
    if "{project}" in url:
        values["project"] = _find_project(provider, environ)
    for name, value in values.items():
        url = url.replace(f"{{{name}}}", value)
    return replace(provider, base_url=url, region=region)


def is_set_up(provider: Provider, environ: Mapping[str, str]) -> bool:
    """Check for signs of credentials, without reading or asking for them."""
    from wolo.places import find_home  # noqa: PLC0415  # for lists only

    if provider.auth == "entra":
        return any(environ.get(name) for name in ("AZURE_CLIENT_ID", "IDENTITY_ENDPOINT"))
    if provider.auth == "google":
        from wolo.models.cloud.google_source import credentials_file  # noqa: PLC0415

        return credentials_file(environ).exists()
    names = ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI")
    files = (find_home() / ".aws" / name for name in ("config", "credentials"))
    return any(environ.get(name) for name in names) or any(file.exists() for file in files)


def _find_region(provider: Provider, environ: Mapping[str, str]) -> str:
    """In the address, the variables, or the profile of AWS."""
    url = provider.base_url
    if provider.auth == "aws" and "{region}" not in url and (in_host := re.search(_IN_HOST, urlsplit(url).hostname or "")):
        return in_host[1]
    named = next((value for name in REGIONS.get(provider.auth, ()) if (value := environ.get(name, "").strip())), "")
    if named or provider.auth != "aws":
        return named or (GLOBAL if provider.auth == "google" else "")
    from wolo.models.cloud.aws_files import read_profile  # noqa: PLC0415  # Bedrock only

    return read_profile(environ).get("region", "")


def _find_project(provider: Provider, environ: Mapping[str, str]) -> str:
    project = provider.project or next((value for name in PROJECTS if (value := environ.get(name, "").strip())), "")
    if not project:
        from wolo.models.cloud.google_source import read_credentials_file  # noqa: PLC0415  # Vertex only

        document: Mapping[str, Any] = read_credentials_file(environ) or {}
        project = str(document.get("project_id") or document.get("quota_project_id") or "")
    if not project:
        ways = f"Set GOOGLE_CLOUD_PROJECT, or providers.{provider.name}.project."
        raise ConfigError(f"{provider.label} needs the name of a project.", hint=ways)
    if not re.fullmatch(_PROJECT, project):
        raise ConfigError(f"`{project[:60]}` is no name of a Google project.")
    return project
