"""Secrets are masked wherever a run is looked at."""

import asyncio
from dataclasses import dataclass
from time import process_time
from typing import Any, NamedTuple

import pytest

from labkit.simulation import Observer, simulate
from labkit.simulation.freeze import freeze, plain
from labkit.simulation.mask import MASK, hide, scrub, secret

from .kit import scenario

LEAK = "leak-4711"
NAMES = ("api_key", "apiKey", "API_KEY", "token", "access_token", "client_secret", "Authorization")
NAMES += ("password", "passwd", "x-api-key", "cookie", "key", "auth", "credentials", "jwt", "pwd")


class Header(NamedTuple):
    api_key: str


@dataclass(frozen=True)
class Setting:
    name: str
    value: str


@dataclass(frozen=True)
class Config:
    access_token: str
    retries: int = 0


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_says_secret_is_masked(name: str) -> None:
    assert secret(name)
    assert freeze(name, LEAK) == plain(name, LEAK) == MASK
    assert freeze(name, None) is None


@pytest.mark.parametrize("name", ["tokens", "keyboard", "monkey", "keys_seen", "secretary", "text"])
def test_a_name_that_only_sounds_like_one_is_not(name: str) -> None:
    assert not secret(name)
    assert freeze(name, LEAK) == LEAK


@pytest.mark.parametrize(
    "value",
    [
        {"headers": {"Authorization": LEAK}},
        [{"api_key": LEAK}],
        {"cookie": LEAK},
        {"api_key": ["x", LEAK]},
        {b"authorization": LEAK.encode()},
        [(b"x-api-key", LEAK.encode())],
        [("authorization", LEAK)],
        Config(LEAK),
        Header(LEAK),
        (("x-api-key", LEAK),),
        ("api_key", ":", LEAK),
        [["api_key", "=", LEAK]],
        {"name": "api_key", "value": LEAK},
        [{"key": "X-Api-Key", "value": LEAK}],
        Setting("token", LEAK),
        f'{{"name": "api_key", "value": "{LEAK}"}}',
        ["x", ("token", LEAK)],
        ValueError(f"bad api_key='{LEAK}'"),
        ValueError("refused: Bearer abcdef0123456789"),
        "Authorization: Bearer abcdef0123456789",
        "used sk-live-0123456789abcdef",
        "a" * 190 + " sk-live-0123456789abcdef",
    ],
    ids=str,
)
def test_secrets_are_masked_at_any_depth(value: Any) -> None:
    for shown in (repr(freeze("x", value)), repr(plain("x", value))):
        assert LEAK not in shown
        assert "0123456789" not in shown
        assert "sk-live" not in shown


def test_a_name_that_is_no_secret_hides_no_value() -> None:
    shown = repr(freeze("x", [{"name": "retries", "value": 3}, ("a", ":", "b"), Setting("n", "v")]))
    assert MASK not in shown


def test_prose_that_speaks_of_a_key_is_left_as_it_is() -> None:
    prose = "Your key: ask the token office; basic knowledge will do."
    assert hide(prose) == prose
    assert scrub("password: hunter2") == f"password: {MASK}"


class Refusal(Exception):
    pass


async def leaks(provider: Any, policy: Any, observe: Observer) -> str:
    api_key = LEAK
    headers = {"authorization": LEAK}
    observe("request", api_key=api_key, headers=headers, pairs=(("token", LEAK),))
    observe.effect("charge", secret=LEAK)
    await asyncio.sleep(1)
    inner(headers)
    raise Refusal(f"invalid api_key={LEAK}")


def inner(headers: dict[str, str]) -> int:
    token = LEAK
    token += "x"
    return len(headers)


def test_no_view_of_a_run_shows_a_secret() -> None:
    run = simulate(scenario(leaks))
    views = [run.at(index) for index in range(len(run.recorded))]
    shown = [run, run.trace, run.events, run.effects, run.places, run.recorded, run.ledger]
    for view in views:
        shown += [view, dict(view.locals), dict(view.caller), dict(view.changed), view.events]
    assert MASK in repr(shown)
    assert LEAK not in repr(shown)


def test_a_result_that_is_shown_is_masked() -> None:
    async def client(provider: Any, policy: Any, observe: Observer) -> dict[str, str]:
        return {"api_key": LEAK}

    assert LEAK not in repr(simulate(scenario(client)))


@pytest.mark.parametrize(
    "text",
    [
        f'{{"api_key": "{LEAK}"}}',
        f"OPENAI_API_KEY={LEAK}",
        f"x-api-key: {LEAK}",
        f"Authorization: Bearer {LEAK}",
        f"token={LEAK}",
        f"client_secret={LEAK}",
        f"https://host/?api_key={LEAK}&x=1",
        f"https://user:{LEAK}@host/",
    ],
)
def test_a_text_that_is_no_prose_is_masked_in_locals_and_trace(text: str) -> None:
    assert LEAK not in freeze("line", text)
    assert LEAK not in plain("message", text)


def test_prose_that_speaks_of_a_key_is_left_whole_on_the_page() -> None:
    assert plain("text", "The key: patience.") == "The key: patience."


@pytest.mark.parametrize(
    "credential",
    [
        "ghp_" + "a1" * 12,
        "AKIA" + "A1" * 8,
        "AIza" + "b2" * 12,
        "xoxb-" + "12345-abcde",
        "eyJ" + "hbGciOiJI." + "eyJzdWIiOiIx." + "c2ln",
    ],
    ids=["GitHub", "AWS", "Google", "Slack", "JWT"],
)
def test_the_shape_of_a_well_known_credential_is_masked_in_any_text(credential: str) -> None:
    assert credential not in plain("text", f"use {credential} now")


@pytest.mark.parametrize("piece", ["sk-", "eyJ-", "eyJaaaaaaaaa.", "://a:", "bearer ", 'token"  '])
def test_a_text_that_begins_like_a_credential_again_and_again_is_read_in_one_pass(
    piece: str,
) -> None:
    def cost(times: int) -> float:
        began = process_time()
        scrub(piece * times)
        return process_time() - began

    short = min(cost(4_000) for _ in range(3))
    assert min(cost(32_000) for _ in range(3)) < 32 * max(short, 1e-4)  # not eight times eight
