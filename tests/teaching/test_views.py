"""What a notebook stores and shows for a run and for a place."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from html.parser import HTMLParser
from typing import Any

import pytest

import labkit
from labkit.simulation import Fault, Run
from labkit.teaching.views import run_text, view_text
from tests.simulation.kit import two_workers

EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>"


def saying(*texts: str, **changes: Any) -> Run:
    """A run whose provider says these texts."""
    attempt = [*({"say": text} for text in texts), {"finish": "stop"}]
    script = labkit.script({"name": "own", "about": "own", "attempts": [attempt]})
    return labkit.simulate(labkit.find("retry.guarded").but(script=script, **changes))


def test_a_run_is_told_in_5_to_15_lines_with_outcome_page_and_finding() -> None:
    for name in labkit.names():
        if not name.startswith("sdk."):
            assert 5 <= len(run_text(labkit.simulate(name)).splitlines()) <= 15
    text = run_text(labkit.simulate("retry.naive"))
    assert "'The refund was sent The refund was sent on Monday.'" in text
    assert re.search(r"duplicate_text at event \d+: do not retry after visible", text)


def test_a_run_of_workers_is_told_by_its_claims_and_requests_to_models_and_has_no_page() -> None:
    text = run_text(labkit.simulate("durable.killed"))
    assert "claims    2, by worker-1, worker-2\nrequests  11 to models\neffects   none\n" in text
    text = run_text(labkit.simulate("leases.killed"))
    assert "claims    2, by worker-1, worker-2\neffects   " in text
    assert ("requests" in text, "page" in text) == (False, False)


def test_the_note_of_what_ran_out_is_told() -> None:
    assert "gave up after attempt 4 of 4: attempts" in run_text(labkit.simulate("retry.down"))


def test_a_fault_that_did_not_strike_is_said() -> None:
    text = run_text(labkit.simulate("retry.stall", faults=[Fault("cancel", 99)]))
    assert "cancel of client at point 99, while waiting: did not strike" in text
    text = run_text(labkit.simulate("retry.stall", faults=[Fault("cancel", 1)]))
    assert "cancel of client at point 1, while waiting: struck" in text
    text = run_text(labkit.simulate("retry.stall", faults=[Fault("disconnect", 1)]))
    assert "faults    disconnect at point 1: struck" in text


def test_a_fault_on_a_task_that_is_not_there_names_those_that_are() -> None:
    text = run_text(labkit.simulate("turn.stop", faults=Fault("cancel", 0, "nobody")))
    assert "did not strike, there is no task 'nobody'; there is: client, turn" in text
    text = run_text(labkit.simulate("retry.stall", faults=Fault("cancel", 99)))
    assert "did not strike, never reached" in text


def test_a_kill_is_told_as_one_and_where_there_is_no_process_to_kill() -> None:
    asked = labkit.find("retry.stall").but(client=two_workers)
    faults = [Fault("kill", 0, "worker-1"), Fault("freeze", 0, "client", "waking")]
    text = run_text(labkit.simulate(asked, faults=faults))
    assert "faults    kill of worker-1 at point 0, while waiting: struck" in text
    at = "freeze of client at point 0, as it wakes"
    assert f"{at}: did not strike, never reached in a process" in text


def test_a_timeout_and_a_crash_are_told_as_what_they_are() -> None:
    faults = [Fault("timeout", 1, phase="waking"), Fault("crash", 99)]
    text = run_text(labkit.simulate("retry.stall", faults=faults))
    assert "outcome   TimeoutError the caller's deadline passed, at" in text
    assert "timeout at point 1 of client, as it wakes: struck" in text
    assert "crash at point 99: did not strike" in text
    crashed = run_text(labkit.simulate("retry.stall", faults=Fault("crash", 3)))
    assert "outcome   Crashed after event 3, and nothing later counts, at" in crashed


def test_a_task_inside_that_ended_otherwise_is_told() -> None:
    for name, ended in {"error": "error", "stop": "cancelled"}.items():
        text = run_text(labkit.simulate(f"interruption.{name}"))
        assert f"\n          turn: {ended}\n" in text
    assert "turn:" not in run_text(labkit.simulate("interruption.rate_limit"))


def test_a_place_shows_line_locals_what_changed_and_the_caller() -> None:
    run = labkit.simulate("retry.guarded")
    at_guard = view_text(run.to("retry guard"))
    assert at_guard.startswith("'retry guard': decide in labkit/recovery/retry.py, task client")
    assert '-> if visible and not (error.kind == "stall" and segments)' in at_guard
    assert "visible = True" in at_guard
    assert "caller's segment = 1" in at_guard
    assert "random" not in at_guard.split("locals before the line")[1]
    assert "segment 1, open: 'The refund was sent '" in at_guard
    assert "visible = False  -> changed to True" in view_text(run.to("has streamed"))


def test_text_forms_hold_no_line_and_no_place_number() -> None:
    run = labkit.simulate("retry.guarded")
    view = run.to("retry guard")
    for number in (view.place.line, view.index, len(run.recorded)):
        assert not re.search(rf"\b{number}\b", view_text(view) + run_text(run))


def test_what_would_act_on_a_screen_is_shown_as_an_escape() -> None:
    text = run_text(saying("a\x1b[31mb\u202e\nc \u05e9\u05dc \u4f60 \U0001f469\u200d\U0001f4bb"))
    assert r"a\x1b[31mb\u202e\nc" in text
    assert "\u05e9\u05dc \u4f60 \U0001f469\u200d\U0001f4bb" in text
    assert not re.search("[\x1b\u202e]", text)


def test_a_long_text_is_cut_and_its_length_given() -> None:
    text = run_text(saying("x" * 5000))
    assert len(text) < 1200
    assert "5,000 characters" in text


def test_a_wait_is_told_only_where_there_was_one() -> None:
    assert "requests  1\n" in run_text(labkit.simulate("retry.misleading"))
    text = run_text(labkit.simulate("retry.rising"))
    assert "requests  5; the client asked to wait 18 s in all" in text


def test_many_findings_are_cut_and_counted() -> None:
    run = labkit.simulate("retry.hammer")
    run.findings *= 3  # type: ignore[misc]
    assert "and 8 more" in run_text(run)


def test_in_a_kernel_runs_are_told_and_places_have_a_widget_that_is_not_loaded_before() -> None:
    program = """
        import sys
        from IPython.core.interactiveshell import InteractiveShell
        shell = InteractiveShell.instance()
        import labkit
        run = labkit.simulate("retry.guarded")
        assert "ipywidgets" not in sys.modules and "matplotlib" not in sys.modules
        told, _ = shell.display_formatter.format(run)
        assert set(told) == {"text/plain"}
        assert "ipywidgets" not in sys.modules
        place, _ = shell.display_formatter.format(run.to("retry guard"))
        assert set(place) == {"text/plain", "application/vnd.jupyter.widget-view+json"}
        print(told["text/plain"])
        print(place["text/plain"])
    """
    line = [sys.executable, "-W", "error::UserWarning", "-c", textwrap.dedent(program)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    run = labkit.simulate("retry.guarded")
    assert done.stdout == f"{run_text(run)}\n{view_text(run.to('retry guard'))}\n"


@pytest.mark.parametrize("evil", [EVIL, "$x^2$", "</pre><b>", "&lt;"])
def test_text_from_a_script_is_never_markup(evil: str) -> None:
    from html import unescape

    from labkit.teaching.panel import Panel
    from labkit.teaching.stepper import stepper

    run = saying(evil, name=f"own {evil}", claim=evil)
    boxes = [Panel(run).widget, stepper(run, at=-1).widget]
    markup = "".join(part.value for box in boxes for part in markups(box))
    assert evil in unescape(markup)
    assert "<script" not in markup
    assert [set(picture) for picture in pictures(markup)] == [{"style", "alt", "src"}]
    assert "<b>" not in markup


def pictures(markup: str) -> list[dict[str, str | None]]:
    """The attributes of each picture in `markup`, as a browser reads them."""
    found: list[dict[str, str | None]] = []

    class Pictures(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            if tag == "img":
                found.append(dict(attrs))

    Pictures().feed(markup)
    return found


def markups(widget: Any) -> list[Any]:
    """All HTML widgets in `widget`."""
    if type(widget).__name__ == "HTML":
        return [widget]
    return [found for child in getattr(widget, "children", ()) for found in markups(child)]
