"""The server of the page: it listens on this machine alone, and answers only who has the token of its address.

What protects it: it listens on 127.0.0.1; every request names that host, so no name that a foreign page resolves to this machine is answered; each
question has the token, which no other page knows, in a header that no other page may send; the content security policy lets the page load its own
files only, and run no script that stands in it; a body has at most `MAX_BODY_BYTES`, and an answer takes at most `MAX_SECONDS` (`evaluator`).
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hmac
import json
import secrets
import socket
import webbrowser
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.applications import Starlette
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse
from starlette.routing import Route

import cepheid
from cepheid.errors import CepheidError, InputError
from cepheid.play import api, limits
from cepheid.play.evaluator import Evaluator
from cepheid.play.examples import EXAMPLES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

HOST = "127.0.0.1"

ASSETS = Path(__file__).parent / "assets"

FILES = {
    "app.js": "text/javascript",
    "views.js": "text/javascript",
    "app.css": "text/css",
    "views.css": "text/css",
    "icon.svg": "image/svg+xml",
}
"""What the page loads."""

TOKEN_HEADER = "X-Cepheid-Token"  # noqa: S105 - the name of the header, not a secret

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""On every response."""

HINT = (
    "This is the workbench of Cepheid. Open it with the address that `cepheid play` printed: the token is part of it.\n"
    "To open a shared link, run: cepheid play 'LINK'\n"
)


class Guard:
    """Lets through what names this machine as its host and is not too long, and puts `HEADERS` on every response."""

    def __init__(self, app: ASGIApp, *, hosts: frozenset[str]) -> None:
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, as ASGI says."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *((name.encode(), value.encode()) for name, value in HEADERS.items())]
            await send(message)

        names = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        if len(names) != 1 or names[0].lower() not in self.hosts:
            await PlainTextResponse("this host is not served here\n", 403)(scope, receive, sent)
            return
        await self.app(scope, receive, sent)


def application(token: str, *, port: int, start: Mapping[str, Any] | None = None, evaluator: Evaluator | None = None) -> Starlette:
    """The application. token: what every question must bring. port: where it listens. start: the query and events that the page begins with."""
    answering = evaluator or Evaluator()

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        warming = asyncio.create_task(answering.warm())
        yield
        warming.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await warming
        await answering.close()

    def known(given: str | None) -> bool:
        return given is not None and hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())

    async def page(request: Request) -> Response:
        if not known(request.query_params.get("token")):
            return PlainTextResponse(HINT, 403)
        return FileResponse(ASSETS / "index.html", media_type="text/html")

    async def asset(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in FILES:
            return PlainTextResponse("there is no such file\n", 404)
        return FileResponse(ASSETS / name, media_type=FILES[name])

    async def question(request: Request) -> Response:
        if not known(request.headers.get(TOKEN_HEADER)):
            return refused("the token of this request is not that of the workbench: it may have been started again", 403)
        name = request.path_params["name"]
        if name != "start" and name not in api.QUESTIONS:
            return refused(f"there is no question `{name}`", 404)
        body = await body_of(request)
        if body is None:
            return refused(f"the request is longer than {limits.MAX_BODY_BYTES:,} bytes (MAX_BODY_BYTES)", 413)
        try:
            asked = json.loads(body)
        except (ValueError, RecursionError):
            return refused("the request is no JSON", 400)
        if not isinstance(asked, dict):
            return refused("the request is no JSON object", 400)
        if name == "start":
            return JSONResponse(beginning(start))
        try:
            return JSONResponse(await answering.ask(name, asked))
        except CepheidError as error:
            return JSONResponse({"error": api.described(error)})

    routes = [
        Route("/", page),
        Route("/assets/{name}", asset),
        Route("/api/{name}", question, methods=["POST"]),
    ]
    app = Starlette(routes=routes, lifespan=lifespan)
    app.add_middleware(Guard, hosts=frozenset({f"{HOST}:{port}", f"localhost:{port}"}))
    return app


def refused(fact: str, status: int) -> Response:
    """A response that the page shows as an error."""
    return JSONResponse({"error": {"kind": "refused", "fact": fact, "help": [], "span": None}}, status)


async def body_of(request: Request) -> bytes | None:
    """The body of a request; None past `MAX_BODY_BYTES`, of which no more is read."""
    parts, length = [], 0
    async for part in request.stream():
        length += len(part)
        if length > limits.MAX_BODY_BYTES:
            return None
        parts.append(part)
    return b"".join(parts)


def beginning(start: Mapping[str, Any] | None) -> dict[str, Any]:
    """What the page begins with: the query and events of the command, the examples, and what this version can do."""
    named = ("MAX_BODY_BYTES", "MAX_EVENTS", "MAX_SHOWN_EVENTS", "MAX_SHOWN_MATCHES", "MAX_LINK", "MAX_SECONDS", "MAX_STEPS")
    return {
        "version": cepheid.__version__,
        "start": dict(start) if start else None,
        "examples": [asdict(example) for example in EXAMPLES],
        "strategies": list(api.STRATEGIES),
        "limits": {name: getattr(limits, name) for name in named},
    }


# ------------------------------------------------------------------------------------------------------------------------- start


def started_with(path: Path) -> dict[str, Any]:
    """A file of events as the source of a request. Raises InputError for what cannot be read, LimitError for what is too long."""
    try:
        size = path.stat().st_size
        if size > limits.MAX_BODY_BYTES:
            raise cepheid.LimitError(
                f"{path} has {size:,} bytes; the workbench reads at most {limits.MAX_BODY_BYTES:,} (MAX_BODY_BYTES)",
                help="take a part of it; `cepheid run` has no such limit",
            )
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"the events in {path} cannot be read: {error.strerror or error}") from None
    answer = api.upload({"name": path.name, "data": base64.b64encode(data).decode()})
    return {"source": answer["source"], "notes": answer["notes"]}


def serve(start: Mapping[str, Any] | None, *, port: int, browser: bool, say: Callable[[str], None]) -> None:
    """Serve the page until Ctrl-C. port: 0 for any free one. browser: whether to open it. say: prints the address.

    Raises InputError if the port is taken.
    """
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
    except OSError as error:
        listening.close()
        raise InputError(
            f"port {port} of {HOST} cannot be had: {error.strerror or error}", help="choose another with --port, or --port 0"
        ) from None
    with listening:
        actual = listening.getsockname()[1]
        token = secrets.token_urlsafe(24)
        address = f"http://{HOST}:{actual}/?token={token}"
        say(address)
        if browser:
            webbrowser.open(address)
        app = application(token, port=actual, start=start)
        with contextlib.suppress(KeyboardInterrupt):  # the way to end it
            uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, server_header=False)).run(sockets=[listening])
