"""Scripts are read whole, and what is wrong with one is said with its file, its line and a cure."""

from pathlib import Path
from typing import Any

import pytest

from labkit.providers.script import ScriptError, load_script, script
from labkit.recovery.deltas import Delta
from labkit.scenarios.scripts import SCRIPTS

GOOD = '{\n "name": "x",\n "attempts": [\n  [\n   %s\n  ]\n ]\n}'


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "mine.json"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def refused(folder: Path, text: str | bytes) -> str:
    with pytest.raises(ScriptError) as caught:
        load_script(write(folder, text))
    return str(caught.value)


VERBS: list[tuple[str, dict[str, Any], Any]] = [
    ("say", {"say": "Hel"}, Delta("text", "Hel")),
    ("think", {"think": "hm"}, Delta("thinking", "hm")),
    ("role", {"role": "assistant"}, Delta("role", "assistant")),
    ("finish", {"finish": "stop"}, Delta("finish", reason="stop")),
    ("usage", {"usage": {"in": 5, "out": 1}}, Delta("usage", tokens_in=5, tokens_out=1)),
    (
        "call",
        {"call": {"index": 2, "id": "c", "name": "f", "arguments": "{"}},
        Delta("tool_call", "{", 2, "c", "f"),
    ),
    ("end", {"end": True}, None),
    ("drop", {"drop": True}, None),
    ("stall", {"stall": True}, None),
]


@pytest.mark.parametrize(("do", "value", "delta"), VERBS, ids=[do for do, _, _ in VERBS])
def test_every_verb_becomes_a_step(do: str, value: dict[str, Any], delta: Delta | None) -> None:
    made = script({"name": "x", "attempts": [[{"wait": 0.5, **value}]]})
    (step,) = made.attempt(1)
    assert (step.do, step.wait, step.delta) == (do, 0.5, delta)


def test_a_refusal_carries_status_code_message_and_headers() -> None:
    told = {"status": 429, "code": "slow", "message": "no", "headers": {"Retry-After": "2"}}
    (step,) = script({"name": "x", "attempts": [[{"http_error": told}]]}).attempt(1)
    error = step.failure()
    assert (error.status, error.code, str(error)) == (429, "slow", "no")
    assert error.headers == {"retry-after": "2"}


def test_an_error_in_the_stream_may_be_an_object_or_a_text() -> None:
    told = script({"name": "x", "attempts": [[{"error": {"code": "c"}}], [{"error": "words"}]]})
    assert [steps[0].plain for steps in told.attempts] == [False, True]
    assert str(told.attempts[1][0].failure()) == "words"
    assert "None" not in str(told.attempts[0][0].failure())


def test_a_wait_alone_is_a_step_and_steps_may_repeat_forever() -> None:
    steps = script({"name": "x", "attempts": [[{"wait": 3}, {"forever": [{"say": "a"}]}]]})
    assert [step.do for step in steps.attempt(1)] == ["wait", "forever"]
    assert steps.attempt(1)[1].steps[0].do == "say"


def test_a_request_after_the_last_attempt_plays_the_last_again() -> None:
    made = script({"name": "x", "attempts": [[{"say": "a"}], [{"say": "b"}]]})
    assert made.attempt(9) == made.attempt(2) != made.attempt(1)


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.json")), ids=lambda path: path.stem)
def test_every_script_file_loads_and_bears_the_name_of_its_file(path: Path) -> None:
    assert load_script(path).name == path.stem
    assert load_script(path).about


def test_a_byte_order_mark_is_no_obstacle(tmp_path: Path) -> None:
    text = (GOOD % '{"say": "退款"}').encode("utf-8-sig")
    assert load_script(write(tmp_path, text)).name == "x"


WRONG = [
    ('{"say": "a", "think": "b"}', "one verb"),
    ('{"shout": "a"}', "one verb"),
    ("{}", "one verb"),
    ('{"say": 5}', "'say' must be a text"),
    ('{"say": null}', "'say' must be a text"),
    ('{"say": "\\ud800"}', "surrogate"),
    ('{"finish": ""}', "cannot be empty"),
    ('{"wait": -1}', "from 0 to 86400"),
    ('{"wait": 1e9}', "from 0 to 86400"),
    ('{"wait": 1e999}', "from 0 to 86400"),
    ('{"wait": NaN}', "from 0 to 86400"),
    ('{"wait": true}', "from 0 to 86400"),
    ('{"wait": "1"}', "from 0 to 86400"),
    ('{"call": []}', "'call' must be an object"),
    ('{"call": {"index": -1}}', "must be a count"),
    ('{"call": {"index": 1.5}}', "must be a count"),
    ('{"call": {"nmae": "x"}}', "unknown field 'nmae'"),
    ('{"usage": {"in": "5"}}', "must be a count"),
    ('{"http_error": {}}', "'status' must be from 400 to 599"),
    ('{"http_error": {"status": 200}}', "'status' must be from 400 to 599"),
    ('{"http_error": {"status": true}}', "'status' must be a count"),
    ('{"http_error": {"status": 429, "headers": []}}', "'headers' must be an object"),
    ('{"http_error": {"status": 429, "headers": {"a": 5}}}', "a name and a text"),
    ('{"http_error": {"status": 429, "headers": {"a": "b\\r\\nc: d"}}}', "one line"),
    ('{"http_error": {"status": 429, "headers": {"a b": "c"}}}', "of ASCII"),
    ('{"error": 5}', "'error' must be an object"),
    ('{"stall": false}', "must be true"),
    ('{"drop": true}, {"say": "a"}', "nothing can follow 'drop'"),
    ('{"say": "a"}, {"http_error": {"status": 429}}', "comes before anything is sent"),
    ('{"forever": []}', "a list of steps"),
    ('{"forever": [{"drop": true}]}', "cannot stand in 'forever'"),
    ('{"forever": [{"forever": [{"say": "a"}]}]}', "cannot stand in 'forever'"),
    ('{"say": "a", "say": "b"}', "a name stands twice: ['say', 'say']"),
]


@pytest.mark.parametrize(("step", "says"), WRONG, ids=[step[:50] for step, _ in WRONG])
def test_a_wrong_step_is_named_with_file_and_line(tmp_path: Path, step: str, says: str) -> None:
    told = refused(tmp_path, GOOD % step)
    assert says in told
    assert told.startswith("mine.json, line 5: ")
    assert len(told) < 300


def test_braces_and_quotes_inside_a_text_do_not_move_the_line(tmp_path: Path) -> None:
    told = refused(tmp_path, GOOD % '{"say": "} \\" {"},\n   {"say": "{\\\\"},\n   {"wait": -1}')
    assert told.startswith("mine.json, line 7: ")


def test_the_line_is_that_of_the_step_and_not_of_the_file(tmp_path: Path) -> None:
    told = refused(tmp_path, GOOD % '{"say": "a"},\n   {"say": "b"},\n   {"wait": -1}')
    assert told.startswith("mine.json, line 7: ")


WHOLE: list[tuple[str | bytes, str]] = [
    ("", "line 1: not usable JSON"),
    ('{"name": "x",\n "attempts": [}', "line 2: not usable JSON"),
    ("5", "a script is an object"),
    ("[]", "a script is an object"),
    ('{"attempts": [[{"end": true}]]}', "line 1: 'name' is missing or empty"),
    ('{"name": "x"}', "line 1: 'attempts' is missing or empty"),
    ('{"name": "x", "attempts": []}', "line 1: 'attempts' is missing or empty"),
    ('{"name": "x", "attempts": [[{"end": true}], []]}', "line 1: attempt 2 must be a list of"),
    ('{"name": "x", "attempts": [["say"]]}', "line 1: attempt 1: a step is an object, not 'say'"),
    ('{"name": %s}' % ("9" * 5000), "Exceeds the limit"),
    ('{"name": "x", "attempts": "ab"}', "line 1: 'attempts' must be a list"),
    ('{"name": "x", "titel": "y"}', "unknown field 'titel'; there is: name, about, attempts"),
    ('{"name": "x",\n "about": "\xff"}'.encode("latin-1"), "line 2: not UTF-8 text"),
    ("[" * 100_000, "recursion depth"),
    ('{"a":' * 100_000, "recursion depth"),
]


@pytest.mark.parametrize(("text", "says"), WHOLE, ids=[says for _, says in WHOLE])
def test_a_wrong_file_is_named_with_the_cure(tmp_path: Path, text: str | bytes, says: str) -> None:
    told = refused(tmp_path, text)
    assert told.startswith("mine.json, ")
    assert says in told


def test_a_folder_and_a_missing_file_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match=r"Is a directory|Permission denied"):
        load_script(tmp_path)
    with pytest.raises(ScriptError, match=r"gone\.json, No such file"):
        load_script(tmp_path / "gone.json")
    with pytest.raises(ScriptError):
        load_script("a\0b")


def test_plain_data_is_checked_too() -> None:
    wrong: list[Any] = [None, 5, [], {"name": "x", "attempts": [[{"wait": -1}]]}, {1: 2}]
    for value in wrong:
        with pytest.raises(ScriptError):
            script(value)


def test_a_script_prints_as_its_steps_with_waits_attempt_by_attempt() -> None:
    told = {"status": 429, "code": "slow", "headers": {"Retry-After": "2"}}
    made = script(
        {
            "name": "x",
            "about": "a refusal",
            "attempts": [
                [{"http_error": told}],
                [{"wait": 0.5, "say": "a"}, {"usage": {"in": 5, "out": 1}}, {"finish": "stop"}],
            ],
        }
    )
    assert str(made).splitlines() == [
        "x: a refusal",
        "attempt 1",
        "  after 0 s  http_error  '429'  'slow'  Retry-After: 2",
        "attempt 2",
        "  after 0.5 s  say  'a'",
        "  after 0 s  usage  '5 in, 1 out'",
        "  after 0 s  finish  'stop'",
    ]
