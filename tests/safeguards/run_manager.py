"""The safeguards of the run manager: room, leases beside the work, ends that are kept."""

from __future__ import annotations

from typing import Final

from .kinds import Row, of_rows

MANAGER: Final = "labkit/runs/manager.py"
DRIVING: Final = "labkit/runs/driving.py"
CODES: Final = "labkit/runs/codes.py"
FOLLOWING: Final = "labkit/runs/following.py"
RENEWAL: Final = "labkit/recovery/renewal.py"

_MANAGED: Final = "tests/runs/test_manager.py::test_"
_DRIVEN: Final = "tests/runs/test_driving.py::test_"
_FOLLOWED: Final = "tests/runs/test_following.py::test_"
_CODED: Final = "tests/runs/test_codes.py::test_"
_RENEWED: Final = "tests/recovery/test_renewal.py::test_"
_CASE: Final = "tests/cases/test_leases.py::test_case_"

_HANDED_BACK: Final = f"{_MANAGED}shutdown_hands_every_run_back_and_another_worker_goes_on_at_once"
_AT_ANY_MOMENT: Final = f"{_MANAGED}a_shutdown_at_any_moment_of_a_claim_loses_nothing"
_MADE_ELSE: Final = (
    f"{_MANAGED}a_job_that_makes_something_else_of_a_shutdown_is_handed_back_all_the_same"
)
_CAPACITY: Final = (
    f"{_MANAGED}no_more_than_the_capacity_are_driven_at_a_time_the_oldest_first[1-8.0]"
)
_GONE: Final = f"{_MANAGED}a_store_that_is_gone_for_ten_seconds_costs_time_and_nothing_else"
_CUT_OFF: Final = (
    f"{_RENEWED}whoever_is_cut_off_for_good_stops_by_its_own_clock_before_the_lease_ends"
)
_ALONE: Final = f"{_CASE}55_whoever_is_cut_off_stops_before_anybody_else_begins"
_LATE: Final = (
    f"{_DRIVEN}a_late_write_is_refused_and_seen_and_the_job_is_closed_and_tells_nothing_more"
)
_FOREIGN: Final = f"{_FOLLOWED}a_cursor_that_this_run_never_gave_out_is_refused"

# name, file, old, new, and the tests that must go red
_LIST: Final[tuple[Row, ...]] = (
    (
        "a job that nobody does is refused at once",
        MANAGER,
        "if job not in tuple(self.jobs):",
        "if False:",
        f"{_MANAGED}an_unknown_job_is_refused_with_the_names_that_there_are",
    ),
    (
        "a run is claimed only where there is room for it",
        MANAGER,
        "if self.at_work >= self.policy.capacity:",
        "if False:",
        (_CAPACITY, f"{_CASE}50_b_a_run_that_waits_for_room_is_not_claimed[False]"),
    ),
    (
        "a worker claims the jobs that it knows",
        MANAGER,
        "jobs=tuple(self.jobs)",
        "jobs=None",
        f"{_MANAGED}a_run_of_a_job_that_a_worker_does_not_know_waits_for_one_that_does",
    ),
    (
        "room that has become free is used at once",
        MANAGER,
        "self.store.news.wake(TO_DO)  # there is room for another",
        "pass",
        _CAPACITY,
    ),
    (
        "a worker looks for the runs of the dead",
        MANAGER,
        "timeout=self.policy.watchdog",
        "timeout=1e6",
        (
            f"{_MANAGED}what_a_dead_worker_held_is_found_within_its_lease_and_a_look[0.5]",
            f"{_CASE}52_whoever_looks_finds_a_dead_workers_run_and_it_is_done_once[pruned_row]",
        ),
    ),
    (
        "a store that is gone ends no worker",
        MANAGER,
        "except StoreDown as error:",
        "except ZeroDivisionError as error:  # a store",
        (
            f"{_MANAGED}a_store_that_is_gone_for_a_while_ends_no_worker",
            f"{_GONE}[0.0-at the claim]",
        ),
    ),
    (
        "a lease counts from before its claim was asked for",
        MANAGER,
        "self._drive(held, began)",
        "self._drive(held, asyncio.get_running_loop().time())",
        f"{_MANAGED}a_claim_whose_answer_was_slow_counts_from_before_it_was_asked_for",
    ),
    (
        "a cancel ends the work here too",
        MANAGER,
        "if run_id in self._driven:",
        "if False:",
        (
            f"{_MANAGED}a_cancel_ends_the_job_here_and_the_run_stays_cancelled",
            f"{_MANAGED}a_cancel_makes_room_for_another_run",
        ),
    ),
    (
        "a claim that is under way is not forgotten at a cancel",
        MANAGER,
        'if not await to_the_end(self._claimed(), name="claim"):',
        "if not await self._claimed():",
        f"{_AT_ANY_MOMENT}[cancel-6]",
    ),
    (
        "a worker that ends hands its runs back",
        MANAGER,
        'await to_the_end(self.shutdown(), name="shut down")',
        "await asyncio.sleep(0)",
        f"{_AT_ANY_MOMENT}[cancel-20]",
    ),
    (
        "a shutdown ends the work",
        MANAGER,
        "            task.cancel()\n",
        "            pass\n",
        _HANDED_BACK,
    ),
    (
        "a shutdown is over when each run is handed back",
        MANAGER,
        "            await asyncio.wait(driven)\n",
        "            pass\n",
        _HANDED_BACK,
    ),
    (
        "a shutdown wakes a worker that waits",
        MANAGER,
        "self._closing = True\n        self.store.news.wake(TO_DO)",
        "self._closing = True",
        f"{_MANAGED}after_a_shutdown_nothing_is_claimed",
    ),
    (
        "a newer claim of the same run is not forgotten with the older one",
        MANAGER,
        "if self._driven.get(run_id) is task:",
        "if True:",
        f"{_MANAGED}a_worker_that_takes_its_own_lost_run_again_keeps_the_two_apart",
    ),
    (
        "a job that heeds no cancel is given up",
        MANAGER,
        "clean_up=self.policy.clean_up\n",
        "clean_up=None\n",
        (
            f"{_MANAGED}a_job_that_heeds_no_cancel_holds_nobody_up_longer_than_its_clean_up",
            f"{_MANAGED}a_job_that_heeds_no_cancel_does_not_hold_up_whoever_cancels_it",
        ),
    ),
    (
        "a policy's times are above 0",
        MANAGER,
        "above_0=above",
        "above_0=()",
        f"{_MANAGED}each_wrong_field_of_a_policy_is_named",
    ),
    (
        "a worker's name is its own",
        MANAGER,
        "{uuid.uuid4().hex[:8]}",
        "{0}",
        f"{_MANAGED}no_two_workers_have_one_name",
    ),
    # --- one run
    (
        "what is no job is told so",
        DRIVING,
        "if not isinstance(steps := job(work), AsyncGenerator):",
        "if not (steps := job(work)):",
        f"{_DRIVEN}what_is_no_job_fails_each_run_of_it[a coroutine function]",
    ),
    (
        "each step is kept",
        DRIVING,
        "await self._keep(step)  # breakpoint: step kept",
        "pass",
        (
            f"{_DRIVEN}a_whole_run_tells_its_events_and_nothing_else",
            f"{_MANAGED}finished_steps_are_not_done_again",
        ),
    ),
    (
        "a job ends where its run does",
        DRIVING,
        "if self.held.run.status != RUNNING or self._stopped():",
        "if self._stopped():",
        f"{_DRIVEN}what_a_job_does_after_done_is_not_done",
    ),
    (
        "a job that went on after a cancel is stopped at its next step",
        DRIVING,
        "if self.held.run.status != RUNNING or self._stopped():",
        "if self.held.run.status != RUNNING:",
        f"{_MADE_ELSE}[yields]",
    ),
    (
        "a job that returns at a cancel has not finished its run",
        DRIVING,
        "if self._stopped():  # whatever the job has made of that",
        "if False:",
        f"{_MADE_ELSE}[returns]",
    ),
    (
        "a job that ends without a word is done",
        DRIVING,
        "await self._keep(Done())  # a job that ends without a word",
        "pass",
        f"{_DRIVEN}a_job_that_ends_without_a_word_is_done[0]",
    ),
    (
        "a cancel that nobody asked for is a failure",
        DRIVING,
        "if self._stopped():  # and the job",
        "if self._stopped() or isinstance(error, asyncio.CancelledError):  # and the job",
        f"{_DRIVEN}a_cancel_that_nobody_asked_for_is_a_failure_and_no_end_without_one",
    ),
    (
        "a cancel hands the run back",
        DRIVING,
        "            await self._hand_back()\n",
        "",
        _HANDED_BACK,
    ),
    (
        "an error of a job becomes a state",
        DRIVING,
        "except BaseException as error:  # a job",
        "except ZeroDivisionError as error:  # a job",
        (
            f"{_DRIVEN}a_job_that_raises_before_its_first_step_fails",
            f"{_DRIVEN}an_error_of_a_provider_becomes_its_code[quota]",
        ),
    ),
    (
        "what is no step is told so",
        DRIVING,
        'raise TypeError(f"a job yields Step, Ask or Done, not {step!r:.60}")',
        "pass",
        f"{_DRIVEN}a_job_that_yields_nonsense_fails_and_is_told_what_a_job_yields[7]",
    ),
    (
        "whoever has lost a claim by its own clock writes nothing",
        DRIVING,
        "            if self._renewal.lost:\n                raise",
        "            if False:\n                raise",
        f"{_DRIVEN}whoever_has_lost_a_claim_by_its_own_clock_writes_nothing_more",
    ),
    (
        "a write waits for a store that is gone",
        DRIVING,
        "except StoreDown as error:",
        "except ZeroDivisionError as error:  # a store",
        (f"{_GONE}[1.02-at a step]", f"{_GONE}[3.05-at the end]"),
    ),
    (
        "a store that is gone is asked again after a pause",
        DRIVING,
        "await asyncio.sleep(min(self.held.lease.length / RUSH, AGAIN))",
        "await asyncio.sleep(0)",
        f"{_GONE}[3.05-at the end]",
    ),
    (
        "a write that is under way is written to its end",
        DRIVING,
        'await to_the_end(self._written(write), name="write")',
        "await self._written(write)",
        f"{_MANAGED}a_shutdown_during_a_write_waits_for_it_and_that_step_is_not_done_again",
    ),
    (
        "a late write is seen",
        DRIVING,
        'self._observe("late_write", told=str(lost))',
        "pass",
        (_LATE, f"{_DRIVEN}no_kind_of_late_write_changes_anything[last2]"),
    ),
    (
        "the texts of an event are cut",
        "labkit/runs/codes.py",
        "return value[:MOST] if isinstance(value, str) else value",
        "return value",
        f"{_DRIVEN}the_texts_of_an_event_and_a_question_are_cut",
    ),
    (
        "the text of a question is cut",
        DRIVING,
        "step.question[:MOST]",
        "step.question",
        f"{_DRIVEN}the_texts_of_an_event_and_a_question_are_cut",
    ),
    # --- the lease beside the work
    (
        "a lease is renewed when a third of it is over",
        RENEWAL,
        "SHARE: Final = 3",
        "SHARE: Final = 1.5",
        (
            f"{_RENEWED}a_lease_is_renewed_at_a_third_of_it_while_the_work_lasts",
            f"{_CASE}50_a_a_step_longer_than_its_lease_is_renewed_beside_the_work",
        ),
    ),
    (
        "whoever is cut off stops before its lease ends",
        RENEWAL,
        "LAST_TRY: Final = PATIENCE - 1 / RUSH",
        "LAST_TRY: Final = 2.0",
        (_CUT_OFF, f"{_ALONE}[False]"),
    ),
    (
        "a renewal that hangs is given up before the lease ends",
        RENEWAL,
        "asyncio.timeout_at(self._last + PATIENCE * self._length)",
        "asyncio.timeout_at(None)",
        (
            f"{_RENEWED}a_renewal_that_hangs_is_given_up_when_four_fifths_are_over",
            f"{_ALONE}[True]",
        ),
    ),
    (
        "a renewal that fails is tried again",
        RENEWAL,
        "except Exception as error:  # a store",
        "except ZeroDivisionError as error:  # a store",
        (
            f"{_RENEWED}a_renewal_that_fails_for_a_while_costs_nothing[4.5]",
            f"{_MANAGED}renewals_that_fail_for_a_while_cost_no_claim",
        ),
    ),
    (
        "a renewal is tried as long as the lease may last",
        RENEWAL,
        "if not self.lost and self._clock() >= self._last + LAST_TRY * self._length",
        "if not self.lost and self._clock() >= self._last + self._length / 2",
        (f"{_RENEWED}a_renewal_that_fails_for_a_while_costs_nothing[7.5]",),
    ),
    (
        "a renewal that fails has a pause before the next",
        RENEWAL,
        "max(due - self._clock(), self._length / RUSH)",
        "max(due - self._clock(), 0.001)",
        _CUT_OFF,
    ),
    (
        "a lease that another has ends the work",
        RENEWAL,
        "            self.lost = TAKEN  # breakpoint: claim lost\n",
        "            pass\n",
        (
            f"{_RENEWED}a_lease_that_another_has_ends_the_work_at_once",
            f"{_MANAGED}a_cancel_elsewhere_ends_the_job_at_its_next_write_or_renewal[100.0-3.4]",
        ),
    ),
    (
        "a renewal counts from before it was asked for",
        RENEWAL,
        "self._last = began",
        "self._last = self._clock()",
        f"{_RENEWED}a_lease_counts_from_before_its_renewal_was_asked_for",
    ),
    (
        "an answer that is no yes renews nothing",
        RENEWAL,
        "        elif answer:",
        "        else:",
        f"{_RENEWED}an_answer_that_says_neither_is_asked_for_again_soon",
    ),
    (
        "a holder that was not renewed asks before it sends anything",
        RENEWAL,
        "if ask or self._clock() >= self._last + PATIENCE * self._length:",
        "if ask:",
        f"{_RENEWED}a_store_that_is_gone_when_a_holder_must_ask_is_no_leave_to_go_on",
    ),
    (
        "a lease that is lost ends the work",
        RENEWAL,
        "return_when=asyncio.FIRST_COMPLETED",
        "return_when=asyncio.ALL_COMPLETED",
        (_CUT_OFF, f"{_ALONE}[False]"),
    ),
    (
        "what is being written is not cancelled",
        RENEWAL,
        "if not renewal.closing:",
        "if True:",
        f"{_RENEWED}what_is_being_written_when_the_lease_is_lost_is_written_to_its_end",
    ),
    (
        "a second cancel does not leave the work behind",
        RENEWAL,
        "await to_the_end(asyncio.wait((working, keeping), timeout=clean_up))",
        "await asyncio.wait((working, keeping), timeout=clean_up)",
        f"{_RENEWED}a_cancel_is_passed_on_and_leaves_after_the_works_end",
    ),
    # --- readers
    (
        "a change between the look and the wait is not missed",
        FOLLOWING,
        "await store.news.after(topic, news, timeout=self._look)",
        "await store.news.after(topic, store.news.seen(topic), timeout=self._look)",
        f"{_FOLLOWED}an_event_that_is_written_at_any_step_of_a_reader_is_seen_once[10]",
    ),
    (
        "a reader that hears nothing looks now and then",
        FOLLOWING,
        "timeout=self._look",
        "timeout=1e6",
        f"{_FOLLOWED}a_reader_that_hears_no_news_looks_now_and_then",
    ),
    (
        "a reader goes on behind one answer's events",
        FOLLOWING,
        "if events and last < run.seq:",
        "if False:",
        f"{_FOLLOWED}more_events_than_fit_into_one_answer_are_all_read",
    ),
    (
        "a reader whose events are gone waits",
        FOLLOWING,
        "if events and last < run.seq:",
        "if last < run.seq:",
        f"{_FOLLOWED}a_reader_whose_events_are_gone_waits_for_others_and_ends_with_the_run[3]",
    ),
    (
        "a reader asks for events only where there are some",
        FOLLOWING,
        " if last < run.seq else []",
        "",
        f"{_FOLLOWED}a_reader_asks_for_events_only_where_there_are_some",
    ),
    (
        "a reader is woken by its own run",
        FOLLOWING,
        "about(self._of[0])",
        "0",
        f"{_FOLLOWED}an_event_that_is_written_at_any_step_of_a_reader_is_seen_once[10]",
    ),
    (
        "the silence before a heartbeat begins at the last event",
        FOLLOWING,
        "last, quiet = event.seq, clock()",
        "last = event.seq",
        f"{_FOLLOWED}the_silence_before_a_heartbeat_begins_at_the_last_event",
    ),
    (
        "a stream ends with its run",
        FOLLOWING,
        "if run.status in ENDED:",
        "if False:",
        f"{_FOLLOWED}a_stream_ends_where_the_run_does_with_all_events_read[failed]",
    ),
    (
        "a question is no end of a stream",
        FOLLOWING,
        "if run.status in ENDED:",
        'if run.status in (*ENDED, "awaiting_input"):',
        f"{_FOLLOWED}a_stream_does_not_end_where_a_question_waits",
    ),
    (
        "a cursor ahead of the run is refused",
        FOLLOWING,
        "if last > run.seq:",
        "if False:",
        f"{_FOREIGN}[7]",
    ),
    (
        "a cursor has the digits that we write",
        FOLLOWING,
        "cursor.isascii() and ",
        "",
        f"{_FOREIGN}[\\u0663]",
    ),
    (
        "a cursor is a number",
        FOLLOWING,
        "cursor.isdigit() and ",
        "",
        f"{_FOREIGN}[+1]",
    ),
    (
        "a cursor is short",
        FOLLOWING,
        "len(cursor) < 10",
        "True",
        f"{_FOREIGN}[cursor10]",
    ),
    (
        "a heartbeat waits for its silence",
        FOLLOWING,
        "if idle is not None and clock() - quiet >= idle:",
        "if idle is not None:",
        f"{_FOLLOWED}a_heartbeat_comes_after_that_much_silence_whatever_others_do",
    ),
    (
        "a heartbeat begins a new silence",
        FOLLOWING,
        "yield None\n                quiet = clock()",
        "yield None",
        f"{_FOLLOWED}a_heartbeat_comes_after_that_much_silence_whatever_others_do",
    ),
    # --- codes
    (
        "a lost lease has its code",
        CODES,
        "if isinstance(error, LeaseLost):",
        "if False:",
        f"{_CODED}any_other_error_has_a_code_that_its_words_do_not_change[error0-LEASE_LOST]",
    ),
    (
        "a time that is over has its code",
        CODES,
        "if isinstance(error, TimeoutError):",
        "if False:",
        f"{_CODED}any_other_error_has_a_code_that_its_words_do_not_change[error1-TIMEOUT]",
    ),
    (
        "a used up quota is no rate limit",
        CODES,
        '"quota": "QUOTA_EXCEEDED"',
        '"quota": "RATE_LIMITED"',
        f"{_CODED}the_code_of_a_providers_error_is_that_of_its_kind[quota]",
    ),
    (
        "no secret stands in what is shown of an error",
        CODES,
        "return scrub(told)[:MOST]",
        "return told[:MOST]",
        f"{_DRIVEN}no_error_of_a_job_shows_a_secret_and_each_is_short",
    ),
    (
        "a secret is masked before a message is cut",
        CODES,
        "return scrub(told)[:MOST]",
        "return scrub(told[:MOST])",
        f"{_CODED}a_message_is_short_and_no_secret_is_cut_in_half",
    ),
    (
        "what is shown of an error is short",
        CODES,
        "return scrub(told)[:MOST]",
        "return scrub(told)",
        f"{_CODED}a_message_is_short_and_no_secret_is_cut_in_half",
    ),
    (
        "an error whose words fail ends its run all the same",
        CODES,
        "except Exception:",
        "except ZeroDivisionError:",
        (
            f"{_CODED}an_error_whose_words_fail_has_none",
            f"{_DRIVEN}an_error_without_words_fails_the_run_all_the_same",
        ),
    ),
)

SAFEGUARDS: Final = of_rows(_LIST)
