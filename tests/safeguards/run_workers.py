"""The safeguards of real workers: one effect a step, what is open asked again, signals, lines."""

from __future__ import annotations

from typing import Final

from .kinds import Row, of_rows

JOBS: Final = "labkit/runs/jobs.py"
WORKER: Final = "labkit/commands/worker.py"
RUNNING: Final = "labkit/commands/running.py"
LEDGER: Final = "labkit/services/ledger.py"
ERRORS: Final = "labkit/stores/errors.py"

_JOBS: Final = "tests/runs/test_jobs.py::test_"
_COMMAND: Final = "tests/commands/test_worker.py::test_"
_SIGNALS: Final = "tests/commands/test_worker.py::TestSignals::test_"
_DISCUSSED: Final = "tests/runs/discussion/test_nodes.py::test_"
_LEDGER: Final = "tests/services/test_ledger.py::test_"
_THREE: Final = f"{_JOBS}an_order_is_three_steps_each_with_one_effect_after_its_pause"
_DIES: Final = (
    f"{_JOBS}wherever_a_worker_dies_each_effect_is_had_once_and_no_step_is_done_again[2.0-wanted2]"
)
_HELD: Final = (
    f"{_JOBS}a_key_that_a_dead_worker_still_holds_is_waited_for_and_does_not_fail_the_run"
)
_OPEN: Final = f"{_JOBS}what_may_still_be_done_is_asked_about_until_the_service_knows"
_PERSON: Final = f"{_JOBS}what_no_program_can_settle_ends_the_run_and_says_what_a_person_has_to_do"
_ERROR: Final = (
    f"{_JOBS}what_was_surely_not_done_ends_the_run_with_the_services_own_error[error2-RATE_LIMITED]"
)
_GONE: Final = f"{_JOBS}a_store_of_keys_that_is_gone_for_a_while_is_asked_until_it_is_back"
_STAYS: Final = f"{_JOBS}one_that_stays_away_ends_the_run_by_name_when_the_steps_time_is_over"
_WEEKS: Final = f"{_JOBS}an_effect_whose_step_was_not_kept_is_known_after_weeks_without_a_worker"
_DOES: Final = f"{_COMMAND}it_does_what_waits_says_each_step_and_ends_when_nothing_is_left"
_BAD: Final = f"{_COMMAND}a_number_that_is_no_good_is_named_in_one_line"
_CLOSED: Final = f"{_COMMAND}what_cannot_be_opened_is_one_line_without_a_password_and_exit_2"
_WAITS: Final = f"{_COMMAND}who_waits_until_all_is_idle_waits_for_what_others_do"
_OTHERS: Final = f"{_COMMAND}runs_that_only_others_can_do_are_named_and_not_waited_for"
_UNREAD: Final = (
    f"{_COMMAND}a_worker_whose_lines_nobody_reads_any_more_does_its_runs_and_ends_in_order"
)
_TOLD: Final = f"{_COMMAND}a_clock_that_was_set_is_told_and_the_other_words_of_a_key_are_not"
_SET: Final = f"{_JOBS}a_clock_that_is_set_ends_no_run_and_repeats_no_effect[2.0-60.0]"
_JUMPS: Final = f"{_JOBS}a_clock_that_jumps_at_every_look_ends_the_run_by_name_in_the_end"
_QUERY: Final = "password in the query"
_CASE: Final = "another password in the query"

# name, file, old, new, and the tests that must go red
_LIST: Final[tuple[Row, ...]] = (
    (
        "a step's key is of its run",
        JOBS,
        "if thing else run.run_id,",
        "if thing else run.job,",
        f"{_JOBS}two_orders_of_the_same_thing_are_two",
    ),
    (
        "a call that was never begun is not begun late",
        JOBS,
        "return seen.record is not None and seen.record.state != FAILED",
        "return True",
        f"{_DISCUSSED}a_yes_that_comes_when_its_time_is_over_lets_nothing_run",
    ),
    (
        "a call that failed is not begun again late",
        JOBS,
        " and seen.record.state != FAILED",
        "",
        f"{_DISCUSSED}a_call_that_failed_is_not_done_again_when_its_time_is_over",
    ),
    ("a step's key is of the step", JOBS, "name=step,", "name=run.job,", _THREE),
    ("a job begins at its checkpoint", JOBS, "range(run.checkpoint or 0,", "range(0,", _DIES),
    (
        "what is not done is never passed over",
        JOBS,
        "if outcome.status in DONE:",
        "if outcome.status:",
        (_PERSON, _ERROR),
    ),
    (
        "a dead worker's key is waited for",
        JOBS,
        "not in (UNKNOWN, DEDUPLICATED)",
        "not in (UNKNOWN,)",
        _HELD,
    ),
    (
        "a dead worker's key is waited for as long as its lease may last",
        JOBS,
        "min(PATIENCE + lease, MOST)",
        "min(PATIENCE, MOST)",
        _HELD,
    ),
    (
        "what is open is asked again",
        JOBS,
        "not in (UNKNOWN, DEDUPLICATED)",
        "not in (DEDUPLICATED,)",
        _OPEN,
    ),
    (
        "a store that is gone fails no run",
        JOBS,
        "except StoreDown:",
        "except ZeroDivisionError:",
        _GONE,
    ),
    (
        "a store that stays away is told by name",
        JOBS,
        "if not budget.remaining:\n                    raise",
        "if not budget:\n                    raise",
        _STAYS,
    ),
    (
        "the error of the service leaves as it is",
        JOBS,
        "if outcome.error is not None and outcome.status not in OPEN:",
        "if outcome.error is None:",
        _ERROR,
    ),
    (
        "what may have been done is no plain failure",
        JOBS,
        "if outcome.error is not None and outcome.status not in OPEN:",
        "if outcome.error is not None:",
        f"{_JOBS}a_tries_own_error_that_may_have_had_its_effect_asks_for_a_person",
    ),
    (
        "a result is kept for longer than a run may lie",
        JOBS,
        "lease=lease, ttl=KEPT)",
        "lease=lease)",
        _WEEKS,
    ),
    (
        "a result outlives a clock that is set forward",
        JOBS,
        "KEPT: Final = MOST",
        "KEPT: Final = 90 * 86_400.0",
        f"{_JOBS}what_a_dead_worker_did_is_known_after_the_clock_was_set_forward[17280000.0]",
    ),
    (
        "a clock that was set ends no run",
        JOBS,
        "                    self._executor.trust_clock()\n",
        "",
        _SET,
    ),
    (
        "a jump of the clock is open",
        JOBS,
        "jumps + 1 if isinstance(outcome.error, ClockJumped) else 0",
        "0",
        _SET,
    ),
    (
        "a jump of the clock is told",
        JOBS,
        'self._executor.observe("clock_jumped", told=outcome.how)',
        "pass",
        _JUMPS,
    ),
    (
        "a clock that never stands is not trusted for ever",
        JOBS,
        "if 0 < jumps <= JUMPS:",
        "if 0 < jumps <= 10 * JUMPS:",
        _JUMPS,
    ),
    # --- the command
    (
        "SIGTERM hands back",
        RUNNING,
        "for number in (signal.SIGINT, signal.SIGTERM)}",
        "for number in (signal.SIGINT,)}",
        f"{_SIGNALS}a_signal_hands_the_run_back_and_ends_it[15]",
    ),
    (
        "Ctrl-C hands back",
        RUNNING,
        "for number in (signal.SIGINT, signal.SIGTERM)}",
        "for number in (signal.SIGTERM,)}",
        f"{_SIGNALS}a_signal_hands_the_run_back_and_ends_it[2]",
    ),
    (
        "a second signal leaves at once",
        RUNNING,
        "if next(asked) > 1:",
        "if next(asked) > 9:",
        f"{_SIGNALS}a_second_signal_leaves_at_once_whatever_hangs",
    ),
    (
        "the signals are given back",
        RUNNING,
        "signal.signal(number, handler)",
        "signal.getsignal(number)",
        _DOES,
    ),
    (
        "the signals are given back also where it cannot begin",
        RUNNING,
        "    try:\n        yield\n    finally:\n        for number, handler in before.items():\n"
        "            signal.signal(number, handler)\n",
        "    yield\n    for number, handler in before.items():\n"
        "        signal.signal(number, handler)\n",
        f"{_COMMAND}who_cannot_begin_gives_the_signals_back",
    ),
    (
        "who waits until all is idle asks whether it is",
        WORKER,
        "not await manager.store.left(tuple(manager.jobs)) and ",
        "",
        _WAITS,
    ),
    (
        "what only others can do is not waited for",
        WORKER,
        "left(tuple(manager.jobs))",
        "left()",
        _OTHERS,
    ),
    (
        "what is left to others is said",
        WORKER,
        "if others := await manager.store.left():",
        "if (others := 0) and await manager.store.left():",
        _OTHERS,
    ),
    (
        "lines that nobody reads end no run and no worker",
        WORKER,
        "with suppress(OSError):",
        "with suppress(ZeroDivisionError):",
        (f"{_UNREAD}[0]", f"{_UNREAD}[2]"),
    ),
    (
        "a worker tells of a clock that was set",
        WORKER,
        "lease=asked.lease, observe=_say_of_a_key",
        "lease=asked.lease",
        _TOLD,
    ),
    (
        "a worker tells no other words of a key",
        WORKER,
        'if kind == "clock_jumped":',
        "if True:",
        _TOLD,
    ),
    (
        "the store of keys is closed too",
        WORKER,
        "closing(open_key_store(url)) as keys:",
        "suppress(keys := open_key_store(url)):",
        f"{_COMMAND}both_stores_are_closed_at_the_end",
    ),
    (
        "Ctrl-C during the imports is no traceback",
        "labkit/commands/environment.py",
        "except KeyboardInterrupt:",
        "except ZeroDivisionError:",
        "tests/commands/test_environment.py::"
        "test_ctrl_c_while_a_command_is_imported_is_no_traceback",
    ),
    (
        "a secret in a URL's query is not shown",
        ERRORS,
        "(?i)pass|pwd|secret|token|key",
        "(?i)pwd|secret|token|key",
        (f"{_CLOSED}[{_QUERY}]", f"{_CLOSED}[{_CASE}]"),
    ),
    (
        "a secret in a URL's query is not shown, however it is written",
        ERRORS,
        "(?i)pass|",
        "pass|",
        f"{_CLOSED}[{_CASE}]",
    ),
    (
        "what others do is not idle",
        "labkit/runs/front.py",
        "RUNS.c.status.in_((QUEUED, RUNNING))",
        "RUNS.c.status.in_((QUEUED,))",
        _WAITS,
    ),
    (
        "what is wrong is one line",
        WORKER,
        "except (RecoveryError, StoreError) as error:",
        "except ZeroDivisionError as error:",
        (
            f"{_CLOSED}[line0-/no/such/folder/runs.db cannot be]",
            f"{_BAD}[line0-lease is 0.0, and must be above 0]",
        ),
    ),
    (
        "a pause is a number of seconds",
        WORKER,
        "if not is_amount(asked.pause):",
        "if False:",
        f"{_BAD}[line4---pause nan is no number of seconds]",
    ),
    (
        "a worker says no secret",
        WORKER,
        "scrub(str(value))",
        "str(value)",
        f"{_COMMAND}what_it_says_is_one_line_without_keys",
    ),
    (
        "whatever a worker says is one line",
        WORKER,
        "{' '.join(scrub(str(value)).split())}",
        "{scrub(str(value))}",
        f"{_COMMAND}what_it_says_is_one_line_without_keys",
    ),
    (
        "who is silent in a transaction holds its locks for a while only",
        "labkit/stores/opening.py",
        'event.listen(engine, "connect", _not_silent)',
        'event.listen(engine, "connect", lambda *_: None)',
        "tests/runs/test_workers.py::test_who_is_silent_in_the_middle_of_a_write_holds_its_run_no"
        "_longer_than_is_said[postgresql]",
    ),
    # --- the ledger and its service
    (
        "an older claim has no effect",
        LEDGER,
        "if (request.fence, request.attempt) <= (fence, attempt):",
        "if False:",
        (
            f"{_LEDGER}what_comes_late_with_an_older_claim_is_refused_and_surely_not_done",
            f"{_LEDGER}its_not_done_holds_for_every_try_so_far_and_for_no_later_one",
        ),
    ),
    (
        "a look-up closes the door",
        LEDGER,
        "_close(connection, request)\n            receipt",
        "receipt",
        f"{_LEDGER}its_not_done_holds_for_every_try_so_far_and_for_no_later_one",
    ),
    (
        "a ledger hides no try that arrives twice",
        LEDGER,
        "_close(connection, request._replace(attempt=max(0, request.attempt - 1)))",
        "_close(connection, request)",
        f"{_LEDGER}a_try_that_arrives_twice_is_entered_twice_since_the_ledger_hides_nothing",
    ),
    (
        "who looks into the ledger and then writes is alone",
        LEDGER,
        '"BEGIN IMMEDIATE"',
        '"BEGIN"',
        f"{_LEDGER}two_never_look_at_once_before_they_write",
    ),
    (
        "an order is done under the longest lease that a policy allows",
        JOBS,
        "min(PATIENCE + lease, MOST)",
        "PATIENCE + lease",
        f"{_JOBS}an_order_is_done_under_the_longest_lease_that_a_policy_allows",
    ),
    (
        "a ledger is a file",
        LEDGER,
        'or str(file) in ("", ":memory:")',
        "or False",
        f"{_LEDGER}what_is_no_file_that_processes_could_share_is_refused[:memory:]",
    ),
    (
        "a ledger and a store are two files",
        RUNNING,
        "if _file_of(store) == Path(ledger).resolve():",
        "if store == ledger:",
        f"{_COMMAND}a_ledger_in_the_file_of_the_store_is_refused[link.db]",
    ),
    (
        "the ledger of a service is a file of its own, too",
        "labkit/commands/serve.py",
        "must_be_apart(asked.store, asked.ledger)",
        "pass",
        "tests/commands/test_serve.py::test_what_is_no_good_is_one_line_without_a_secret_and_exit_2"
        "[line8-is the file of --store: name another one]",
    ),
    (
        "a worker asks for orders where it is told to",
        WORKER,
        "for number in range(1, orders + 1):",
        "for number in range(1, orders):",
        f"{_COMMAND}it_asks_first_for_so_many_orders",
    ),
    (
        "a ledger that cannot be opened is named",
        LEDGER,
        "except sqlite3.Error as error:",
        "except ZeroDivisionError as error:",
        f"{_LEDGER}a_file_that_cannot_be_opened_is_named",
    ),
)

SAFEGUARDS: Final = of_rows(_LIST)
