"""The safeguards of the recovery room: errors, Retry-After, policy and retry."""

from __future__ import annotations

from typing import Final

from tests.safeguards.kinds import Safeguard

ERRORS: Final = "labkit/recovery/errors.py"
RETRY_AFTER: Final = "labkit/recovery/retry_after.py"
POLICY: Final = "labkit/recovery/policy.py"
DELTAS: Final = "labkit/recovery/deltas.py"
RETRY: Final = "labkit/recovery/retry.py"


def _room(name: str, file: str, old: str, new: str, *red: str) -> Safeguard:
    """A safeguard whose tests stand below `tests/`, as "recovery/test_x.py::test_y"."""
    ids = tuple(f"tests/{test}" for test in red)
    return Safeguard(name=name, file=file, old=old, new=new, red=ids)


_ERRORS: Final = (
    _room(
        "a quota is told from a rate limit by its code",
        ERRORS,
        'if said == "quota" or status is None:',
        "if status is None:",
        "recovery/test_errors.py::test_a_quota_code_beats_every_status",
        "recovery/test_retry.py::test_quota_and_rate_limit_are_told_apart_by_the_code_alone",
    ),
    _room(
        "a timeout may have had its effect",
        ERRORS,
        '"timeout": False,',
        '"timeout": True,',
        "recovery/test_errors.py::test_only_what_was_refused_or_never_sent_is_definite",
    ),
    _room(
        "an overloaded gateway says nothing about the server behind it",
        ERRORS,
        '"overloaded": False,',
        '"overloaded": True,',
        "recovery/test_errors.py::test_only_what_was_refused_or_never_sent_is_definite",
    ),
    _room(
        "a refusal inside a stream is not definite",
        ERRORS,
        "refused = kind is not None or (status is not None and status >= 400)",
        "refused = True",
        "recovery/test_errors.py::test_a_code_without_a_status_says_the_kind_but_is_never_definite",
    ),
    _room(
        "499 says that a client left, not that nothing happened",
        ERRORS,
        '499: "disconnect",',
        '499: "bad_request",',
        "recovery/test_errors.py"
        "::test_a_status_says_the_kind_and_whether_the_request_surely_did_nothing",
    ),
    _room(
        "an error without status and code is permanent",
        ERRORS,
        '_CODES.get(code or "", "unknown")',
        '_CODES.get(code or "", "server")',
        "recovery/test_errors.py"
        "::test_a_status_says_the_kind_and_whether_the_request_surely_did_nothing",
    ),
    _room(
        "the message of an error is not read for its kind",
        ERRORS,
        "self.kind = classify(status, code) if kind is None else kind",
        "self.kind = classify(status, code or message) if kind is None else kind",
        "recovery/test_errors.py::test_the_message_changes_neither_kind_nor_flag",
    ),
    _room(
        "the message of an error is not read for the decision",
        RETRY,
        "if error.kind not in policy.retry_on:",
        'if error.kind not in policy.retry_on and "timeout" not in str(error):',
        "recovery/test_decide.py::test_the_decision_is_the_same_whatever_the_message_says",
        "scenarios/test_retries.py"
        "::test_a_scenario_of_the_retry_boundary_shows_what_it_claims[retry.misleading]",
    ),
)

_RETRY_AFTER: Final = (
    _room(
        "a date in the past is no negative wait",
        RETRY_AFTER,
        "max(0.0, date - now)",
        "date - now",
        "cases/test_retry_after.py::test_case_37_a_retry_after_of_any_form_gives_a_listed_wait",
    ),
    _room(
        "only plain digits are a number",
        RETRY_AFTER,
        'r"[0-9]+(\\.[0-9]+)?"',
        'r"\\d+(\\.\\d+)?"',
        "cases/test_retry_after.py::test_case_37_a_retry_after_of_any_form_gives_a_listed_wait",
    ),
    _room(
        "a millisecond header that says nothing usable is passed over",
        RETRY_AFTER,
        "if _NUMBER.fullmatch(milliseconds):",
        "if milliseconds:",
        "cases/test_retry_after.py"
        "::test_case_38_a_usable_value_picks_the_header_and_not_its_presence",
    ),
    _room(
        "a date without a zone is UTC",
        RETRY_AFTER,
        "if parsed.tzinfo is None:",
        "if False:",
        "cases/test_retry_after.py::test_case_37_a_retry_after_of_any_form_gives_a_listed_wait",
        "recovery/test_retry_after.py"
        "::test_the_three_date_forms_of_the_standard_are_the_same_instant",
    ),
    _room(
        "a header that is junk raises nothing",
        RETRY_AFTER,
        "except (ValueError, TypeError, IndexError, OverflowError):",
        "except TypeError:",
        "cases/test_retry_after.py::test_case_37_a_retry_after_of_any_form_gives_a_listed_wait",
        "recovery/test_retry_after.py::test_no_header_raises_or_gives_less_than_nothing",
    ),
)

_POLICY: Final = tuple(
    _room(
        f"a policy is refused: {name}",
        POLICY,
        old,
        new,
        "recovery/test_policy.py"
        "::test_what_contradicts_itself_is_refused_and_names_the_field" + case,
    )
    for name, old, new, case in (
        ("numbers that are none", " or amounts or ", " or ", "[first_wait--0.1]"),
        ("a retry after the deadline", 'if "deadline" in kinds:', "if False:", "[retry_on-value3]"),
        ("no attempt at all", "(p.attempts >= 1,", "(True,", "[attempts-0]"),
        ("a backoff that shrinks", "(p.factor >= 1,", "(True,", "[factor-0.5]"),
        ("more jitter than wait", "(0 <= p.jitter <= 1,", "(True,", "[jitter-1.1]"),
        ("a stall that the deadline hides", "(p.stall <= p.total,", "(True,", "[stall-301]"),
    )
)

_DECISION: Final = (
    _room(
        "the retry guard",
        RETRY,
        'if visible and not (error.kind == "stall" and segments):',
        "if False:",
        "recovery/test_decide.py::test_what_is_done_hangs_on_the_kind_and_on_what_was_seen",
        "cases/test_retry_gate.py"
        "::test_case_22_a_reset_after_text_ends_the_answer_with_the_text_kept",
        "recovery/test_oracle.py::test_every_short_script_is_played_as_the_rules_say",
    ),
    _room(
        "a stall is an exception only where there are segments",
        RETRY,
        '(error.kind == "stall" and segments)',
        '(error.kind == "stall")',
        "cases/test_retry_gate.py"
        "::test_case_26_where_there_are_no_segments_the_text_stays_and_the_end_is_told",
    ),
    _room(
        "only a stall is an exception",
        RETRY,
        '(error.kind == "stall" and segments)',
        "segments",
        "recovery/test_retry.py::test_an_ordinary_error_after_text_opens_no_segment",
    ),
    _room(
        "only what the caller chose is tried again",
        RETRY,
        "if error.kind not in policy.retry_on:",
        "if False:",
        "recovery/test_decide.py::test_only_what_the_caller_chose_is_tried_again",
    ),
    _room(
        "attempts are bounded, the first included",
        RETRY,
        "if attempt >= policy.attempts:",
        "if attempt > policy.attempts:",
        "recovery/test_decide.py::test_the_first_attempt_counts_as_one",
        "recovery/test_retry.py"
        "::test_stalls_share_the_attempts_and_leave_no_empty_segment_at_the_end",
    ),
    _room(
        "above its cap a Retry-After ends the run",
        RETRY,
        "if asked is not None and asked > policy.retry_after_cap:",
        "if False:",
        "recovery/test_decide.py"
        "::test_above_the_cap_it_is_given_up_and_never_tried_earlier_than_asked",
    ),
    _room(
        "Retry-After beats the backoff",
        RETRY,
        "random=random) if asked is None else asked",
        "random=random)",
        "cases/test_retry_after.py::test_case_39_each_refusal_is_asked_for_its_own_wait",
    ),
    _room(
        "a wait that reaches the deadline is not slept",
        RETRY,
        "if wait >= remaining:",
        "if wait > remaining:",
        "recovery/test_decide.py::test_a_wait_that_reaches_the_deadline_is_not_slept",
    ),
    _room(
        "the backoff has a cap",
        RETRY,
        "min(policy.first_wait * growth, policy.max_wait)",
        "policy.first_wait * growth",
        "recovery/test_decide.py::test_the_backoff_doubles_and_stops_at_its_cap",
    ),
    _room(
        "a huge number of attempts does not overflow",
        RETRY,
        "except OverflowError:",
        "except ZeroDivisionError:",
        "recovery/test_decide.py"
        "::test_a_backoff_stays_inside_its_bounds_however_many_attempts_there_were",
    ),
    _room(
        "jitter only takes off",
        RETRY,
        "(1 - policy.jitter * random.random())",
        "(1 + policy.jitter * random.random())",
        "recovery/test_decide.py"
        "::test_a_backoff_stays_inside_its_bounds_however_many_attempts_there_were",
    ),
    _room(
        "jitter comes from the seed",
        RETRY,
        "(1 - policy.jitter * random.random())",
        "(1 - policy.jitter * Random().random())",
        "recovery/test_decide.py"
        "::test_jitter_spreads_the_waits_and_the_same_seed_gives_the_same_ones",
    ),
    _room(
        "after visible text a retry opens a new segment",
        RETRY,
        "action = NEW_SEGMENT if visible else RETRY",
        "action = RETRY",
        "cases/test_retry_gate.py::test_case_26_a_stall_after_text_opens_a_new_segment",
    ),
)

_STREAM: Final = (
    _room(
        "the flag that text was shown",
        RETRY,
        "visible = True  # breakpoint: has streamed",
        "visible = False  # breakpoint: has streamed",
        "recovery/test_retry.py::test_after_visible_text_an_error_is_not_tried_again",
        "cases/test_retry_gate.py"
        "::test_case_22_a_reset_after_text_ends_the_answer_with_the_text_kept",
    ),
    _room(
        "a plain retry opens no segment",
        RETRY,
        "if decision.action == NEW_SEGMENT:",
        "if True:",
        "recovery/test_retry.py::test_a_stall_before_text_is_tried_again_in_the_same_segment",
    ),
    _room(
        "the wait is slept",
        RETRY,
        "await asyncio.sleep(due - clock())",
        "await asyncio.sleep(0)",
        "cases/test_retry_after.py::test_case_39_each_refusal_is_asked_for_its_own_wait",
        "scenarios/test_clients.py::test_the_careful_clients_have_no_findings",
    ),
    _room(
        "the wait counts from the failure",
        RETRY,
        "due = failed + decision.wait",
        "due = clock() + decision.wait",
        "recovery/test_retry.py::test_a_slow_reader_at_the_boundary_does_not_make_the_wait_longer",
    ),
    _room(
        "the last error says what ran out",
        RETRY,
        'error.add_note(f"gave up after {tried}: {decision.reason}")',
        "pass",
        "recovery/test_retry.py::test_the_last_error_leaves_as_it_is_with_a_note_of_what_ran_out",
    ),
    _room(
        "a cancel is no failure",
        RETRY,
        "except ProviderError as error:",
        "except (ProviderError, asyncio.CancelledError) as gone:\n"
        '            error = ProviderError(str(gone), kind=getattr(gone, "kind", "disconnect"))',
        "recovery/test_cancel.py::test_a_cancel_of_the_client_leaves_wherever_it_strikes",
    ),
    _room(
        "an error that is no provider's leaves at once",
        RETRY,
        "except ProviderError as error:",
        "except Exception as gone:\n"
        '            error = ProviderError(str(gone), kind=getattr(gone, "kind", "disconnect"))',
        "recovery/test_retry.py"
        "::test_an_error_that_is_no_provider_error_leaves_at_once_and_as_it_is",
    ),
    _room(
        "an answer that is left is closed at once",
        RETRY,
        "async with aclosing(answer):",
        "async with asyncio.Lock():",
        "recovery/test_retry.py"
        "::test_a_reader_may_leave_after_any_piece_and_the_stream_is_closed_by_then",
    ),
    _room(
        "a stream that is left is closed at once",
        RETRY,
        "async with aclosing(stream):",
        "async with asyncio.Lock():",
        "recovery/test_retry.py::test_a_whole_answer_that_is_left_closes_its_stream",
    ),
    _room(
        "a piece without news is no progress",
        RETRY,
        "if delta.progress:",
        "if True:",
        "recovery/test_retry.py::test_a_piece_without_news_does_not_put_off_the_stall",
    ),
    _room(
        "a role and a running count are no news",
        DELTAS,
        'if self.kind in ("role", "usage"):',
        "if False:",
        "recovery/test_deltas.py::test_only_text_is_visible_and_only_news_is_progress",
        "recovery/test_retry.py::test_a_piece_without_news_does_not_put_off_the_stall[role]",
    ),
    _room(
        "only text is visible",
        DELTAS,
        'return self.kind == "text" and self.text != ""',
        'return self.text != ""',
        "recovery/test_retry.py::test_what_no_reader_has_seen_does_not_stop_a_retry",
    ),
    _room(
        "the reader's own time is no stall",
        RETRY,
        "patience += clock() - handed",
        "patience += 0.0",
        "recovery/test_retry.py::test_the_readers_own_time_is_no_stall",
    ),
    _room(
        "after the finish reason the wait is short",
        RETRY,
        "(AFTER_FINISH if finished else stall)",
        "stall",
        "recovery/test_retry.py"
        "::test_a_stream_that_hangs_after_its_finish_reason_is_left_after_two_seconds",
    ),
    _room(
        "a finish reason that is said again and again ends too",
        RETRY,
        "if finished:\n                    continue",
        "if False:\n                    continue",
        "recovery/test_retry.py"
        "::test_a_stream_that_hangs_after_its_finish_reason_is_left_after_two_seconds",
    ),
    _room(
        "a failure after the finish reason spoils nothing",
        RETRY,
        "except ProviderError:\n        if not finished:\n            raise",
        "except ProviderError:\n        raise",
        "recovery/test_retry.py::test_nothing_that_comes_after_the_finish_reason_spoils_the_answer",
    ),
    _room(
        "an end without a finish reason is no answer",
        RETRY,
        'raise ProviderError("the stream ended without a finish reason", kind="cut_off")',
        "return",
        "recovery/test_retry.py::test_a_clean_end_without_a_finish_reason_is_an_error",
    ),
    _room(
        "the deadline ends a stream that goes on and on",
        RETRY,
        "limit = min(patience, deadline)",
        "limit = patience",
        "recovery/test_retry.py::test_the_deadline_ends_a_stream_that_goes_on_and_on",
    ),
    _room(
        "after the deadline nothing is asked for",
        RETRY,
        "if limit > asyncio.get_running_loop().time():",
        "if True:",
        "recovery/test_retry.py"
        "::test_a_reader_who_takes_longer_than_the_deadline_is_asked_for_no_more_requests",
    ),
    _room(
        "a timeout of the provider's own is no stall",
        RETRY,
        "if not scope.expired():",
        "if False:",
        "recovery/test_retry.py"
        "::test_an_error_that_is_no_provider_error_leaves_at_once_and_as_it_is",
    ),
)

_CANCEL: Final = (
    _room(
        "a cancel leaves even where the provider makes an error of it",
        RETRY,
        "if task is not None and task.cancelling():",
        "if False:",
        "recovery/test_cancel.py"
        "::test_a_cancel_leaves_even_where_the_provider_makes_an_error_of_it",
    ),
)

SAFEGUARDS: Final = (*_CANCEL, *_ERRORS, *_RETRY_AFTER, *_POLICY, *_DECISION, *_STREAM)
