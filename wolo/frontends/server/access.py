"""Guards every request: host, origin, token and size; and sets the headers of every response."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wolo.frontends.server.http_errors import HttpError

MAX_BODY_BYTES = 32 * 1024 * 1024
PUBLIC = "/page/"
"""Files without data: scripts and style sheets, which a browser loads without headers of ours."""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, POST, DELETE",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Last-Event-ID",
    "Access-Control-Max-Age": "600",
}
"""Answer to the question of a browser before a request of a permitted site, which carries no token."""
NO_TOKEN = "The token is missing or wrong."
OPEN_ADDRESS = "Open the address that `wolo serve` printed; programs send `Authorization: Bearer TOKEN`."


class Access:
    """Wraps the application: a page of another site cannot reach it, also with a name that resolves to this machine."""

    def __init__(self, app: ASGIApp, token: str, port: int, origins: Sequence[str] = ()) -> None:
        """`origins`: of other sites whose pages may use the API, with the token."""
        self._app, self._token = app, token
        self._hosts = frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]"))
        self._origins = frozenset(f"http://{host}" for host in self._hosts)
        self._others = frozenset(origin.lower() for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        # What lets the page of a permitted site read the response
        origin = Headers(scope=scope).get("origin", "")
        shared = {"Vary": "Origin"} if self._others else {}
        if origin.lower() in self._others:
            exposed = "Content-Disposition, Deprecation, Link"
            shared |= {"Access-Control-Allow-Origin": origin, "Access-Control-Expose-Headers": exposed}

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update({**HEADERS, **shared})
            await send(message)

        if (refusal := self._refusal(scope)) is not None:
            await refusal(scope, receive, send_guarded)
        else:
            await self._app(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        headers, path = Headers(scope=scope), scope["path"]
        if headers.getlist("host") and {host.lower() for host in headers.getlist("host")} <= self._hosts:
            origins = {origin.lower() for origin in headers.getlist("origin")}
            if len(origins) > 1 or not origins <= self._origins | self._others:
                hint = "The Origin must be this server, or in the setting server.cors."
                return error_response(HttpError(403, "Requests of other sites are refused.", hint))
            if scope["method"] == "OPTIONS" and origins & self._others and "access-control-request-method" in headers:
                return Response(status_code=204, headers=PREFLIGHT)
        else:
            return error_response(HttpError(403, "This server has another name.", "Use the address that `wolo serve` printed."))
        # the page itself takes the token from its address; everything else from the header
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer":
            query = scope["query_string"].decode("latin-1") if path == "/" else ""
            token = parse_qs(query).get("token", [""])[0]
        has_token = hmac.compare_digest(token.strip().encode("utf-8", "replace"), self._token.encode())
        if not path.startswith(PUBLIC) and not has_token:
            headers_back = {"WWW-Authenticate": "Bearer"}
            if "text/html" in headers.get("accept", ""):  # a person
                return PlainTextResponse(f"{NO_TOKEN} {OPEN_ADDRESS}", 401, headers=headers_back)
            return error_response(HttpError(401, NO_TOKEN, OPEN_ADDRESS), headers_back)
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > MAX_BODY_BYTES:
            return error_response(too_large())
        return None


def too_large() -> HttpError:
    return HttpError(413, f"The body is larger than {MAX_BODY_BYTES // 1024 // 1024} MB.", "Send fewer or smaller images.")


def error_response(error: HttpError, headers: dict[str, str] | None = None) -> JSONResponse:
    content = {"error": {"status": error.status, "message": error.message, "hint": error.hint}}
    return JSONResponse(content, error.status, headers=headers)
