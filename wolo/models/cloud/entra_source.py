"""Finds tokens of Microsoft Entra: a client secret, a workload identity, or a managed identity."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

from wolo.errors import ConfigError, Unavailable
from wolo.models.address import is_loopback
from wolo.models.cloud import credentials, google_source, token_requests

AUTHORITY: Final = "https://login.microsoftonline.com"
SCOPE: Final = "https://cognitiveservices.azure.com/.default"
SCOPE_ENDING: Final = "/.default"
METADATA_HOST: Final = "http://169.254.169.254"
COMMAND: Final = "!az account get-access-token --resource https://cognitiveservices.azure.com --query accessToken -o tsv"
HINT: Final = f'Set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, or api_key = "{COMMAND}".'


class EntraSource:
    """Tokens by the AZURE_ variables, else those of the machine."""

    def __init__(self, environ: Mapping[str, str], scope: str = "") -> None:
        """`scope` empty: that of Azure OpenAI."""
        self._scope = scope or SCOPE
        self._environ = {name: value.strip() for name, value in environ.items()}
        names = ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE", "AZURE_AUTHORITY_HOST", "IDENTITY_ENDPOINT")
        secret = hashlib.sha256(self._environ.get("AZURE_CLIENT_SECRET", "").encode()).hexdigest()
        metadata = self._environ.get("AZURE_POD_IDENTITY_AUTHORITY_HOST", "-")
        self.shared_name = " ".join(("entra", self._scope, *(self._environ.get(name, "-") for name in names), metadata, secret))

    async def fetch(self) -> credentials.Credentials:
        environ = self._environ
        client, tenant = environ.get("AZURE_CLIENT_ID", ""), environ.get("AZURE_TENANT_ID", "")
        secret, file = environ.get("AZURE_CLIENT_SECRET", ""), environ.get("AZURE_FEDERATED_TOKEN_FILE", "")
        if not secret and not file:
            named = environ.get("IDENTITY_ENDPOINT") or environ.get("AZURE_POD_IDENTITY_AUTHORITY_HOST")
            query = {"resource": self._scope.removesuffix(SCOPE_ENDING), **({"client_id": client} if client else {})}
            if endpoint := environ.get("IDENTITY_ENDPOINT"):
                query["api-version"] = "2019-08-01"
                headers = {"x-identity-header": environ.get("IDENTITY_HEADER", "")}
                url = f"{endpoint}?{urlencode(query)}"
            else:
                query["api-version"] = "2018-02-01"
                headers = {"metadata": "true"}
                host = (named or METADATA_HOST).rstrip("/")
                url = f"{host}/metadata/identity/oauth2/token?{urlencode(query)}"
            request = token_requests.TokenRequest(what="The managed identity", url=url, headers=headers, is_metadata=True)
            try:
                return google_source.token_in(request, await token_requests.fetch_document(request, environ))
            except (Unavailable, ConfigError):
                if named:
                    raise
                raise ConfigError("No credentials of Microsoft Entra were found.", hint=HINT) from None
        if not client or not tenant:
            raise ConfigError(f"{'AZURE_TENANT_ID' if client else 'AZURE_CLIENT_ID'} is not set.", hint=HINT)
        form = {"client_id": client, "grant_type": "client_credentials", "scope": self._scope}
        if secret:
            form["client_secret"] = secret
        else:
            form["client_assertion_type"] = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
            form["client_assertion"] = await token_requests.read_token("AZURE_FEDERATED_TOKEN_FILE", file)
        host = (environ.get("AZURE_AUTHORITY_HOST") or AUTHORITY).rstrip("/")
        host = host if "://" in host else f"https://{host}"
        parts = urlsplit(host)
        if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
            raise ConfigError("AZURE_AUTHORITY_HOST is no https address.")
        request = token_requests.TokenRequest(
            what="The token endpoint of Microsoft Entra",
            url=f"{host}/{quote(tenant, safe='')}/oauth2/v2.0/token",
            method="POST",
            form=form,
            hint="Check AZURE_TENANT_ID, AZURE_CLIENT_ID and the secret or token of the client.",
        )
        return google_source.token_in(request, await token_requests.fetch_document(request, environ))
