"""Who comes in, and what every answer has."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from labkit.runs.api.access import Access, users_of
from labkit.runs.api.door import COOKIE, MOST_BYTES, Door
from tests.runs.api.kit import ANN, ASKED, BOB, TOKENS, USERS, Desk, code

SIGNED = {"cookie": f"{COOKIE}={Access(users_of(USERS)).cookie(TOKENS[ANN])}"}
ROUTES = [
    ("GET", "/runs"),
    ("POST", "/runs"),
    ("GET", "/runs/x"),
    ("GET", "/runs/x/events"),
    ("GET", "/runs/x/report"),
    ("POST", "/runs/x/input"),
    ("POST", "/runs/x/retry"),
    ("POST", "/runs/x/cancel"),
    ("GET", "/memories"),
    ("PUT", "/memories/x"),
    ("DELETE", "/memories/x"),
    ("GET", "/models"),
    ("GET", "/user"),
    ("POST", "/sign-out"),
    ("GET", "/nothing"),
    ("GET", "/openapi.json"),
    ("GET", "/page"),
    ("OPTIONS", "/"),
]


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_nothing_is_for_those_who_are_not_known(method: str, path: str, desk: Desk) -> None:
    answered = desk.nobody.request(method, path)
    assert code(answered) == (401, "Unauthorized")
    assert answered.headers["www-authenticate"] == "Bearer"
    bad = {"authorization": "Bearer the-token-of-nobody"}
    assert desk.nobody.request(method, path, headers=bad).status_code == 401


@pytest.mark.parametrize("path", ["/", "/page/page.html"])
def test_the_page_and_its_files_are_for_everybody(path: str, desk: Desk) -> None:
    assert desk.nobody.get(path, headers={"sec-fetch-site": "cross-site"}).status_code == 200
    assert desk.nobody.head(path).status_code == 200


def test_nothing_but_the_page_is_reached_by_way_of_its_files(desk: Desk) -> None:
    for path in ("/page/../runs", "/page/%2e%2e/runs", "/page/../app.py", "/page//etc/hosts"):
        assert desk.nobody.get(path).status_code in (401, 404)


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Basic {}", "{}", "Bearer x{}", "Bearer {} {}"]
)
def test_a_token_counts_in_its_form_only(header: str, desk: Desk) -> None:
    given = {"authorization": header.format(TOKENS[ANN], TOKENS[ANN])}
    assert desk.nobody.get("/runs", headers=given).status_code == 401


def test_a_token_in_the_address_is_worth_nothing(desk: Desk) -> None:
    assert desk.nobody.get(f"/runs?token={TOKENS[ANN]}").status_code == 401


def test_signing_in_gives_a_cookie_that_scripts_cannot_read_and_other_sites_cannot_send(
    desk: Desk,
) -> None:
    signed = desk.nobody.post("/sign-in", json={"token": TOKENS[ANN]})
    assert (signed.status_code, signed.json()) == (200, {"user": "ann"})
    cookie = signed.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict"} <= set(cookie.split("; "))
    assert TOKENS[ANN] not in cookie
    assert "path" not in cookie.lower()  # then a browser takes the folder that it asked
    assert desk.nobody.get("/runs").status_code == 200
    desk.nobody.post("/sign-out")
    assert desk.nobody.get("/runs").status_code == 401


def test_users_of_one_name_are_told_apart_by_their_tenants(desk: Desk) -> None:
    assert desk.nobody.post("/sign-in", json={"token": TOKENS[BOB]}).json() == {"user": "acme/bob"}
    assert desk.nobody.get("/user").json() == {"user": "acme/bob"}
    assert desk.ann.get("/user").json() == {"user": "ann"}


def test_blanks_around_a_token_are_none_of_it(desk: Desk) -> None:
    assert desk.nobody.post("/sign-in", json={"token": f" {TOKENS[ANN]}\n"}).status_code == 200
    assert desk.nobody.get("/runs").status_code == 200


def test_a_wrong_token_signs_nobody_in(desk: Desk) -> None:
    refused = desk.nobody.post("/sign-in", json={"token": "the-token-of-nobody"})
    assert code(refused) == (401, "Unauthorized")
    assert "set-cookie" not in refused.headers
    assert "nobody" not in refused.text


@pytest.mark.parametrize("site", ["cross-site", "same-site", "?"])
def test_a_cookie_counts_for_the_services_own_page_only(site: str, desk: Desk) -> None:
    assert desk.nobody.get("/runs", headers=SIGNED).status_code == 200
    assert desk.nobody.get("/runs", headers={**SIGNED, "sec-fetch-site": "none"}).is_success
    foreign = {**SIGNED, "sec-fetch-site": site}
    assert code(desk.nobody.post("/runs", json=ASKED, headers=foreign)) == (403, "Forbidden")
    other = {"sec-fetch-site": site}
    assert desk.nobody.post("/sign-in", json={"token": "x"}, headers=other).status_code == 403
    assert desk.ann.get("/runs", headers=other).status_code == 200  # a token always counts


def test_it_makes_no_difference_under_which_address_a_proxy_shows_the_page(desk: Desk) -> None:
    proxied = {
        **SIGNED,
        "host": "127.0.0.1:8000",
        "origin": "https://hub.example",
        "sec-fetch-site": "same-origin",
    }
    assert desk.nobody.post("/runs", json=ASKED, headers=proxied).status_code == 201


# --- how much, and of what kind


def test_a_body_of_64_kib_is_read_and_a_larger_one_is_refused(desk: Desk) -> None:
    large = {"content": b"[" + b" " * (MOST_BYTES - 2) + b"]"}
    kind = {"content-type": "application/json"}
    assert desk.ann.post("/runs", **large, headers=kind).status_code == 422
    large["content"] += b" "
    assert code(desk.ann.post("/runs", **large, headers=kind)) == (413, "TooLarge")


def test_a_body_that_is_sent_in_pieces_has_the_same_limit(desk: Desk) -> None:
    sent = []

    def pieces() -> Iterator[bytes]:
        for _ in range(MOST_BYTES // 1024 + 1):
            sent.append(1024)
            yield b" " * 1024

    kind = {"content-type": "application/json"}
    assert desk.ann.post("/runs", content=pieces(), headers=kind).status_code == 413


def test_what_is_too_large_is_refused_also_where_nobody_reads_it(desk: Desk) -> None:
    large = b"[" + b" " * 70_000 + b"]"
    kind = {"content-type": "application/json"}
    assert desk.ann.post("/runs/x/cancel", content=large, headers=kind).status_code == 413


def test_who_sends_too_much_while_it_reads_a_stream_is_gone_and_that_is_no_bug() -> None:
    told: list[Any] = []
    sent: list[Any] = []

    async def streams(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while (await receive())["type"] != "http.disconnect":
            pass

    async def receive() -> Any:
        return {"type": "http.request", "body": b" " * 1024, "more_body": True}

    async def send(message: Any) -> None:
        sent.append(message["type"])

    door = Door(
        streams, Access(users_of(f"ann:{TOKENS[ANN]}")), lambda *kind, **more: told.append(kind)
    )
    headers = [
        (b"authorization", f"Bearer {TOKENS[ANN]}".encode()),
        (b"transfer-encoding", b"chunked"),
    ]
    scope = {"type": "http", "method": "GET", "path": "/runs/x/events", "headers": headers}
    asyncio.run(door({**scope, "query_string": b""}, receive, send))
    assert (sent, told) == (["http.response.start"], [])


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "json"])
def test_what_is_sent_must_be_json_and_say_so(kind: str, desk: Desk) -> None:
    body = b'{"question": "Which?"}'
    answered = desk.ann.post("/runs", content=body, headers={"content-type": kind})
    assert code(answered) == (415, "NoJSON")
    kind = "Application/JSON; charset=utf-8"
    assert desk.ann.post("/runs", content=body, headers={"content-type": kind}).is_success


# --- what every answer has


@pytest.mark.parametrize("path", ["/", "/page/page.html", "/runs", "/nothing", "/runs/x"])
def test_every_answer_keeps_a_browser_from_harm(path: str, desk: Desk) -> None:
    headers = desk.ann.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "no-referrer"
    policy = headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "base-uri 'none'" in policy
    assert "unsafe" not in policy


def test_a_bug_is_told_by_its_name_alone(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    async def breaks(*given: Any, **more: Any) -> None:
        raise ZeroDivisionError("password=hunter2")

    monkeypatch.setattr(desk.store, "runs", breaks)
    answered = desk.ann.get("/runs")
    assert code(answered) == (500, "Failed")
    assert "hunter2" not in answered.text
    assert answered.headers["cache-control"] == "no-store"
    assert desk.failed == [{"error": "ZeroDivisionError"}]


def test_a_manager_that_breaks_is_told_and_the_service_goes_on(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def breaks() -> None:
        raise ZeroDivisionError("password=hunter2")

    monkeypatch.setattr(desk.manager, "serve", breaks)
    with desk.ann as client:
        assert client.get("/runs").status_code == 200
        assert desk.failed == [{"error": "ZeroDivisionError"}]
