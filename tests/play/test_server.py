"""The server: who is answered, what is bounded, and that nothing of a request reaches the page as markup."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import socket
import time
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

import cepheid
from cepheid.cli.settings import PORT
from cepheid.engine.input.files.formats import FORMATS
from cepheid.play import api, command, limits
from cepheid.play.evaluator import Evaluator, Process
from cepheid.play.links import read_link, write_link

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

server = pytest.importorskip("cepheid.play.server", reason="starlette or uvicorn, of the extra `play`, is not installed")

TOKEN = "a-token-of-a-test"
ADDRESS = f"http://{server.HOST}:{PORT}"


class Here:
    """An evaluator without a process."""

    async def ask(self, question: str, request: dict) -> dict:
        return api.answer(question, request)

    async def warm(self) -> None:
        """Nothing to start."""

    async def close(self) -> None:
        """Nothing to end."""


@dataclass
class Response:
    status: int
    headers: dict[str, str]
    text: str

    def json(self) -> dict:
        return json.loads(self.text)


class Client:
    """Speaks ASGI to the application: one request after the other, without a socket."""

    def __init__(self) -> None:
        self.app = server.application(TOKEN, port=PORT, start={"query": "SELECT * WHERE A"}, evaluator=Here())

    def send(self, method: str, path: str, *, query: str = "", body: Iterable[bytes] = (), **headers: str | bytes) -> Response:
        """headers: with underscores for hyphens; HOST is that of this machine unless given."""
        given = {"host": f"{server.HOST}:{PORT}", **{name.lower().replace("_", "-"): value for name, value in headers.items()}}
        encoded = [(name.encode(), value if isinstance(value, bytes) else value.encode("latin-1")) for name, value in given.items()]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "root_path": "",
        }
        scope |= {
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": encoded,
            "server": (server.HOST, PORT),
        }
        pieces, sent, ended = iter(body), [], []

        async def receive() -> dict:
            if ended:
                return {"type": "http.disconnect"}
            piece = next(pieces, None)
            ended.extend([] if piece is not None else [True])
            return {"type": "http.request", "body": piece or b"", "more_body": piece is not None}

        async def send(message: dict) -> None:
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))
        head = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return Response(
            sent[0]["status"],
            {name.lower(): value for name, value in head.items()},
            b"".join(each.get("body", b"") for each in sent[1:]).decode(),
        )

    def page(self, token: str | None = TOKEN, **headers: str) -> Response:
        return self.send("GET", "/", query="" if token is None else urlencode({"token": token}), **headers)

    def ask(
        self,
        question: str,
        request: object = None,
        *,
        body: Iterable[bytes] | None = None,
        token: str | bytes | None = TOKEN,
        **headers: str,
    ) -> Response:
        secret = {} if token is None else {server.TOKEN_HEADER: token}
        return self.send(
            "POST", f"/api/{question}", body=[json.dumps(request or {}).encode()] if body is None else body, **secret, **headers
        )


@pytest.fixture
def client() -> Client:
    return Client()


def test_page_and_its_files_are_served(client: Client) -> None:
    page = client.page()
    assert page.status == 200
    loaded = re.findall(r'(?:src|href)="(assets/[^"]+)"', page.text)
    assert {"assets/app.js", "assets/app.css", "assets/views.css"} <= set(loaded)
    assert './views.js"' in client.send("GET", "/assets/app.js").text
    for name in [*loaded, "assets/views.js"]:
        assert client.send("GET", f"/{name}").status == 200
    assert client.send("GET", "/assets/../server.py").status == 404
    assert client.send("GET", "/assets/index.html").status == 404


def test_page_loads_nothing_from_elsewhere_and_has_no_script_or_style_in_it() -> None:
    for path in sorted(server.ASSETS.iterdir()):
        text = path.read_text(encoding="utf-8")
        # Names of namespaces are no addresses that are loaded.
        assert re.findall(r"https?://(?!www\.w3\.org/)", text) == []
    page = (server.ASSETS / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<script(?![^>]*src=)|<style|\sstyle=|\son\w+=", page) == []
    for path in server.ASSETS.glob("*.js"):
        assert re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", path.read_text(encoding="utf-8")) == []


def test_the_page_opens_all_files_of_events() -> None:
    page = (server.ASSETS / "index.html").read_text(encoding="utf-8")
    assert re.search(r'accept="([^"]+)"', page)[1].split(",") == list(FORMATS)


def test_labels_of_the_page_name_everything_that_can_be_reached() -> None:
    page = (server.ASSETS / "index.html").read_text(encoding="utf-8")
    for element in re.findall(r"<(?:input|select|textarea)[^>]*>", page):
        name = re.search(r'id="([^"]+)"', element)[1]
        assert "aria-label" in element or re.search(rf'<label[^>]*>(?:(?!</label>).)*id="{name}"', page, re.DOTALL), element


def test_every_response_has_the_policy(client: Client) -> None:
    responses = [
        client.page(None),
        client.page(),
        client.send("GET", "/nothing"),
        client.ask("start"),
        client.send("GET", "/assets/app.js"),
    ]
    for response in responses:
        for name, value in server.HEADERS.items():
            assert response.headers[name.lower()] == value
        assert "access-control-allow-origin" not in response.headers
    assert "unsafe" not in server.HEADERS["Content-Security-Policy"]


@pytest.mark.parametrize("token", [None, "", "a-token-of-a-tes", TOKEN + "x", "\N{LATIN SMALL LETTER E WITH ACUTE}"])
def test_without_the_token_nothing_is_answered(client: Client, token: str | None) -> None:
    assert client.page(token).status == 403
    for question in ("start", *api.QUESTIONS):
        response = client.ask(question, token=None if token is None else token.encode())
        assert response.status == 403
        assert TOKEN not in response.text


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "127.0.0.1", "127.0.0.1:80", "[::1]:8765", ""])
def test_other_hosts_are_not_answered(client: Client, host: str) -> None:
    assert client.ask("start", Host=host).status == 403
    assert client.page(Host=host).status == 403


def test_localhost_is_this_machine(client: Client) -> None:
    assert client.ask("start", Host=f"localhost:{PORT}").status == 200


def test_start_has_what_the_page_begins_with(client: Client) -> None:
    found = client.ask("start").json()
    assert found["start"] == {"query": "SELECT * WHERE A"}
    assert found["version"] == cepheid.__version__
    assert len(found["examples"]) >= 10
    assert found["limits"]["MAX_EVENTS"] == limits.MAX_EVENTS
    assert TOKEN not in json.dumps(found)


def test_questions_are_answered(client: Client) -> None:
    request = {"query": "SELECT * WHERE A AS a ; B AS b", "source": {"format": "line", "text": "A1 B2"}}
    assert client.ask("run", request).json()["count"] == "1"


@pytest.mark.parametrize(("body", "status"), [(b"", 400), (b"[]", 400), (b"{", 400), (b"\xff", 400), (b"[" * 100_000, 400)])
def test_bodies_that_are_no_requests(client: Client, body: bytes, status: int) -> None:
    response = client.ask("check", body=[body])
    assert response.status == status
    assert response.json()["error"]["fact"]


def test_unknown_questions_and_methods(client: Client) -> None:
    assert client.ask("shell").status == 404
    assert client.send("GET", "/api/run").status == 405


def test_long_bodies_are_refused_while_they_are_read(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_BODY_BYTES", 1000)
    taken = []

    def pieces() -> object:
        for _ in range(50):
            taken.append(1)
            yield b" " * 100

    response = client.ask("check", body=pieces())
    assert response.status == 413
    assert "MAX_BODY_BYTES" in response.json()["error"]["fact"]
    assert len(taken) == 11


def test_drawings_hold_no_markup_of_the_query() -> None:
    query = "SELECT * WHERE `<script>alert(1)</script>` AS `<img src=x onerror=y>` FILTER ANY.v = '</text><script>'"
    found = api.answer(
        "automaton",
        {"query": query.replace("ANY.v", "`<img src=x onerror=y>`.v"), "source": {"format": "csv", "text": "type,ts,v\nA,1,x\n"}},
    )
    assert "<script" not in found["svg"]
    assert "<img" not in found["svg"]
    assert "&lt;" in found["svg"]


# ---------------------------------------------------------------------------------------------------------------- the process


def asking(work: object) -> object:
    return asyncio.run(work())


HEAVY = {
    # Every subset of the A events, each compared: nothing is shared, and HAVING lists them all.
    "query": "SELECT count(a) AS n WHERE A AS a+ ; B AS b HAVING n > 1000",
    "source": {
        "format": "line",
        "text": " ".join(f"A{time}" for time in range(60)) + " " + " ".join(f"B{time}" for time in range(70, 400)),
    },
}


@pytest.mark.slow
def test_what_takes_too_long_is_ended_and_the_next_question_is_answered() -> None:
    async def work() -> None:
        process = Process(seconds=2)
        started = time.monotonic()
        try:
            found = await process.ask("run", HEAVY)
        except cepheid.LimitError as error:
            assert "MAX_SECONDS" in error.fact or "MAX_MEMORY" in error.fact  # noqa: PT017 - or the answer below
        else:
            assert found["error"]["kind"] == "LimitError", "a limit of the engine may come first"
        assert time.monotonic() - started < 60
        answer = await process.ask("run", {"query": "SELECT * WHERE A", "source": {"format": "line", "text": "A1"}})
        assert answer["count"] == "1"
        await process.close()

    asking(work)


@pytest.mark.slow
def test_a_process_that_hangs_or_dies_is_replaced() -> None:
    async def work() -> None:
        evaluator = Evaluator(seconds=20)
        await evaluator.warm()
        ask_one = {"query": "SELECT * WHERE A"}
        assert (await evaluator.ask("check", ask_one))["error"] is None
        child = evaluator._quick._child
        child.kill()
        await child.wait()
        assert (await evaluator.ask("check", ask_one))["error"] is None
        assert evaluator._quick._child is not child
        # Ended in the middle of an answer.
        evaluator._quick.seconds = 0.0
        with pytest.raises(cepheid.LimitError, match="MAX_SECONDS"):
            await evaluator.ask("check", ask_one)
        evaluator._quick.seconds = 20.0
        found = await asyncio.gather(*(evaluator.ask("check", {"query": f"SELECT * WHERE A{number}"}) for number in range(5)))
        assert [each["error"] for each in found] == [None] * 5
        await evaluator.close()

    asking(work)


# ------------------------------------------------------------------------------------------------------------ command and links


def test_links_hold_what_the_page_has() -> None:
    held = {"query": "SELECT * WHERE A -- \N{GRINNING FACE}", "args": {"n": "1"}, "source": {"format": "line", "text": "A1"}, "ended": True}
    link = write_link(held)
    assert read_link(link) == held
    assert command.beginning(link, None, expression=False, parameters=["n=2"]) == held | {"args": {"n": "2"}}


@pytest.mark.parametrize(
    "packed",
    ["", "x", "!!!!", "AAAA", "eyJ9", write_link({"query": 5}).partition("#w=")[2], write_link({"source": []}).partition("#w=")[2]],
)
def test_links_that_cannot_be_read(packed: str) -> None:
    with pytest.raises(cepheid.InputError, match="link"):
        read_link(f"http://127.0.0.1:8765/#w={packed}")


def test_links_do_not_grow_past_their_limit() -> None:
    with pytest.raises(cepheid.LimitError, match="MAX_LINK"):
        write_link({"query": " " * (limits.MAX_LINK + 1)})
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    bomb = base64.urlsafe_b64encode(packer.compress(b" " * (limits.MAX_LINK * 50)) + packer.flush()).decode()
    with pytest.raises(cepheid.LimitError, match="MAX_LINK"):
        read_link(f"#w={bomb}")


def test_command_reads_queries_and_events(tmp_path: Path) -> None:
    query, events = tmp_path / "q.ceql", tmp_path / "e.csv"
    query.write_text("SELECT * WHRE A", encoding="utf-8")
    events.write_text("type,ts\nA,1\n", encoding="utf-8")
    found = command.beginning(str(query), str(events), expression=False, parameters=[":low=3"])
    assert found == {
        "query": "SELECT * WHRE A",
        "args": {"low": "3"},
        "source": {"format": "csv", "text": "type,ts\nA,1\n"},
        "notes": [],
    }
    assert command.beginning(None, None, expression=False, parameters=[]) is None
    assert command.beginning("SELECT * WHERE A", None, expression=True, parameters=[]) == {"query": "SELECT * WHERE A"}
    for wrong in ([str(tmp_path / "no.ceql"), None], [None, str(tmp_path / "no.csv")], [None, str(tmp_path)]):
        with pytest.raises(cepheid.InputError):
            command.beginning(*wrong, expression=False, parameters=[])
    with pytest.raises(cepheid.InputError, match="--param"):
        command.beginning(None, None, expression=False, parameters=["low"])


def test_command_refuses_long_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_BODY_BYTES", 5)
    events = tmp_path / "e.csv"
    events.write_text("type,ts\nA,1\n", encoding="utf-8")
    with pytest.raises(cepheid.LimitError, match="MAX_BODY_BYTES"):
        command.beginning(None, str(events), expression=False, parameters=[])


def test_port_that_is_taken_is_said() -> None:
    with socket.socket() as taken:
        taken.bind((server.HOST, 0))
        taken.listen()
        with pytest.raises(cepheid.InputError, match=r"cannot be had"):
            server.serve(None, port=taken.getsockname()[1], browser=False, say=print)


def test_missing_extra_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "NEEDED", ("a_package_that_is_not_there",))
    with pytest.raises(cepheid.SetupError) as error:
        command.open_page(None, None, named={}, expression=False, parameters=[], port=0, browser=False)
    assert 'pip install "cepheid[play]"' in str(error.value)
