"""URLs of model servers: validation, loopback detection and proxies."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from urllib.parse import SplitResult, unquote_to_bytes, urlencode, urlsplit

from wolo.errors import ConfigError

LOOPBACK_NAMES = frozenset({"localhost", "0.0.0.0", "::", "::1"})
DEFAULT_PORTS = {"http": 80, "https": 443}


def check_url(url: str, *, called: str = "the base URL") -> str:
    """Validate a base URL and strip the trailing slash. Raises ConfigError."""
    text = url.strip().rstrip("/")
    hint = "It looks like https://api.example.com/v1 or http://127.0.0.1:8080/v1."
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"{called} `{display_url(text)}` is not a URL: {error}.", hint=hint) from None
    if parts.scheme not in DEFAULT_PORTS:
        raise ConfigError(f"{called} `{display_url(text)}` must begin with http:// or https://.", hint=hint)
    if not host or port == 0 or any(letter.isspace() or not letter.isprintable() for letter in text):
        raise ConfigError(f"{called} `{display_url(text)}` is not a usable URL.", hint=hint)
    if parts.fragment:
        raise ConfigError(f"{called} `{display_url(text)}` must not contain #.", hint=hint)
    return text


def join_url(url: str, path: str, query: Mapping[str, str] | None = None) -> str:
    """Append a path to a URL; queries of both stay at the end.

    A path segment that ends the URL already, such as `/v1`, is not repeated.
    """
    parts = urlsplit(url)
    path, _, of_path = path.partition("?")
    first, slash, rest = path.removeprefix("/").partition("/")
    if slash and parts.path.rstrip("/").endswith(f"/{first}"):
        path = f"/{rest}"
    queries = (parts.query, of_path, urlencode(query or {}))
    return parts._replace(path=parts.path.rstrip("/") + path, query="&".join(filter(None, queries))).geturl()


def display_url(url: str) -> str:
    """The URL without credentials and query, which may hold a key."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url.split("?")[0].rpartition("@")[2]
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def basic_auth(url: str) -> str:
    """`Authorization` value for credentials in the URL; empty if there are none."""
    user_info, at, _ = urlsplit(url).netloc.rpartition("@")
    return f"Basic {b64encode(unquote_to_bytes(user_info)).decode()}" if at else ""


def origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or DEFAULT_PORTS.get(parts.scheme)


def host_of(url: str) -> str:
    """Host, with the port if the URL has one."""
    return urlsplit(url).netloc.rpartition("@")[2]


def is_loopback(host: str) -> bool:
    return host in LOOPBACK_NAMES or host.endswith(".localhost") or (host.startswith("127.") and host.replace(".", "").isdigit())


def is_near(url: str) -> bool:
    """Check for an address on this machine."""
    return is_loopback(urlsplit(url).hostname or "")


def proxy_for(url: str, environ: Mapping[str, str]) -> str:
    """Proxy from the environment for this URL; empty: direct. Loopback never uses one."""
    target = urlsplit(url)
    exempt = (environ.get("no_proxy") or environ.get("NO_PROXY") or "").replace(" ", ",").split(",")
    if is_loopback(target.hostname or "") or any(_matches(entry.strip().lower(), target) for entry in exempt):
        return ""
    for name in (f"{target.scheme}_proxy", "all_proxy"):
        for spelled in (name, name.upper()):
            if value := environ.get(spelled, "").strip():
                proxy = value if "://" in value else f"http://{value}"
                try:
                    parts = urlsplit(proxy)
                    usable = parts.scheme in ("http", "https", "socks5", "socks5h") and bool(parts.hostname) and parts.port != 0
                except ValueError:
                    usable = False
                if not usable:
                    raise ConfigError(
                        f"{spelled} is not the address of a proxy: {display_url(proxy)}.",
                        hint="It looks like http://proxy.example.com:3128.",
                    )
                return proxy
    return ""


def _matches(entry: str, target: SplitResult) -> bool:
    """`*`, a domain (with optional `.` or `*.`) and its subdomains, an address or a network, each with an optional port."""
    host = target.hostname or ""
    if entry in ("", "*"):
        return entry == "*"
    if "/" in entry:
        import ipaddress  # noqa: PLC0415  # only if NO_PROXY contains a network

        try:
            return ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    name, colon, port = entry.rpartition(":")
    if colon and port.isdigit() and ":" not in name.strip("[]").rpartition("]")[2]:
        if int(port) != (target.port or DEFAULT_PORTS[target.scheme]):
            return False
        entry = name
    entry = entry.strip("[]").removeprefix("*").removeprefix(".")
    return bool(entry) and (host == entry or host.endswith(f".{entry}"))
