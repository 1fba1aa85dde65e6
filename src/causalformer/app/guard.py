"""Who may talk to the app: this machine's browser, from the app's own page, with its token."""

import secrets
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; frame-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
REPORT_POLICY: Final = "sandbox allow-scripts allow-downloads; frame-ancestors 'self'"
_HEADERS: Final = {
    "content-security-policy": PAGE_POLICY,
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_CLOSED: Final = (
    "This page is closed without its token. Open the address that `causalformer app` printed in "
    "its terminal; it is a new one after every start."
)


class Guard:
    """Refuse other hosts (DNS rebinding), other origins, and requests without the token.

    The address that is opened first carries the token; a cookie that scripts cannot read carries
    it from then on.

    Parameters
    ----------
    app : ASGI application
        What is guarded.
    token : str
        The secret.
    port : int
        Where the app listens, on 127.0.0.1.
    """

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app = app
        self._token = token
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        self._cookie = f"causalformer-{port}"  # cookies do not tell ports apart

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or hand it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        token = request.query_params.get("token", "")
        by_address = scope["path"] == "/" and self._matches(token)
        refused = self._refusal(request, by_address)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    answer.setdefault(name, value)
                if by_address and refused is None:
                    answer.append(
                        "set-cookie",
                        f"{self._cookie}={self._token}; HttpOnly; SameSite=Strict; Path=/",
                    )
            await send(message)

        if refused is not None:
            await PlainTextResponse(refused, 403)(scope, receive, send_with_headers)
        else:
            await self._app(scope, receive, send_with_headers)

    def _refusal(self, request: Request, by_address: bool) -> str | None:
        if request.headers.get("host") not in self._hosts:
            return "This host name does not belong to the app."
        own = {f"http://{host}" for host in self._hosts}
        if request.method not in ("GET", "HEAD") and request.headers.get("origin") not in own:
            return "Changes are only accepted from the app's own page."
        if not by_address and not self._matches(request.cookies.get(self._cookie, "")):
            return _CLOSED
        return None

    def _matches(self, token: str) -> bool:
        return secrets.compare_digest(token.encode(), self._token.encode())
