"""The safeguards of the run store: conditional moves, fences, numbers, its clock, its news."""

from __future__ import annotations

from typing import Final

from .kinds import Row, of_rows

STORE: Final = "labkit/runs/store.py"
FRONT: Final = "labkit/runs/front.py"
DATABASE: Final = "labkit/runs/database.py"
RECORD: Final = "labkit/runs/record.py"
CONDITIONS: Final = "labkit/runs/conditions.py"
NEWS: Final = "labkit/runs/news.py"
TABLES: Final = "labkit/runs/tables.py"
OPENING: Final = "labkit/stores/opening.py"
FLOOR: Final = "labkit/scenarios/floor.py"

_STORE: Final = "tests/runs/test_store.py::test_"
_DATABASE: Final = "tests/runs/test_database.py::test_"
_NEWS: Final = "tests/runs/test_news.py::test_"
_FOLLOWED: Final = "tests/runs/test_following.py::test_"
_OPENING: Final = "tests/stores/test_opening.py::test_"
_NEVER: Final = f"{_DATABASE}what_can_never_be_kept_is_no_trouble_of_the_database"
_HOLDS: Final = f"{_STORE}who_does_not_hold_a_run_any_more_changes_nothing"
_AGAIN: Final = f"{_STORE}a_write_that_is_asked_for_again_after_a_lost_answer_is_written_once"
_ORACLE: Final = f"{_STORE}the_store_decides_as_the_plain_functions_of_leases_do"
_OTHER: Final = f"{_STORE}another_write_with_the_same_held_is_refused_and_says_which_one_to_use"
_MINUS: Final = "after is -1, and must be a whole"
_END: Final = f"{_STORE}a_lease_ends_at_its_very_time_for_claims_renewals_and_writes"
_TABLE: Final = f"{_STORE}each_move_is_possible_exactly_where_the_table_says_so"
_OWNER: Final = f"{_STORE}a_wrong_owner_and_an_unknown_id_get_the_same_answer"
_NUMBER: Final = f"{_STORE}a_number_is_not_seen_before_its_event_and_the_next_writer_waits_for_it"
_MANY: Final = f"{_STORE}of_many_who_claim_a_run_at_once_one_gets_it_and_nobody_fails"
_OFF: Final = f"{_STORE}a_worker_whose_clock_is_an_hour_off_claims_nothing_early"
_CASE_51: Final = "tests/cases/test_leases.py::test_case_51_every_move_of_a_worker_names_its_claim"
_NOT_JSON: Final = f"{_DATABASE}what_is_no_json_is_refused_by_name_and_nothing_is_lost"
_HEARD: Final = f"{_NEWS}a_listener_whose_connection_ends_hears_again[postgresql]"

# name, file, old, new, and the tests that must go red
_LIST: Final[tuple[Row, ...]] = (
    # --- claims
    (
        "a run is claimed only where it is free",
        STORE,
        "change.where((RUNS.c.run_id == chosen) & free)",
        "change.where(RUNS.c.run_id == chosen)",
        (f"{_MANY}[sqlite]", f"{_MANY}[postgresql]", _ORACLE),
    ),
    (
        "a run that is worked on is free only when its lease is over",
        STORE,
        'RUNS.c.status.in_(MOVES["expire"].sources) & ends',
        'RUNS.c.status.in_(MOVES["expire"].sources)',
        (f"{_END}[9.999-worker-1]", f"{_OFF}[1-sqlite]", _ORACLE),
    ),
    (
        "a run whose lease is over is taken over",
        STORE,
        'RUNS.c.status.in_(MOVES["expire"].sources) & ends',
        "sa.false()",
        (
            f"{_STORE}a_run_whose_lease_is_over_is_taken_over_with_a_higher_fence_by_anybody[sqlite]",
            f"{_TABLE}[running-sqlite]",
            _CASE_51,
        ),
    ),
    (
        "a clock that is set back makes no lease of the dead last",
        STORE,
        "(RUNS.c.until <= self._now) | set_back",
        "RUNS.c.until <= self._now",
        (f"{_STORE}a_clock_that_is_set_back_makes_no_lease_of_the_dead_last[sqlite]",),
    ),
    (
        "a small step back of the clock takes no lease from the living",
        STORE,
        "self._now + 2 * RUNS.c.length",
        "self._now + RUNS.c.length",
        (f"{_STORE}a_small_step_back_of_the_clock_takes_no_lease_from_the_living[0.001-False]",),
    ),
    (
        "a second claim that is longer is no clock that was set back",
        STORE,
        '{"until": self._now + length, "length": length}',
        '{"until": self._now + length}',
        (f"{_STORE}what_is_claimed_again_lasts_its_whole_length_from_then",),
    ),
    (
        "a renewal that is longer is no clock that was set back",
        STORE,
        ".values(until=self._now + length, length=length)",
        ".values(until=self._now + length)",
        (f"{_STORE}what_is_claimed_again_lasts_its_whole_length_from_then",),
    ),
    (
        "a lease of a run ends at its very time",
        STORE,
        "(RUNS.c.until <= self._now) | set_back",
        "(RUNS.c.until < self._now) | set_back",
        (f"{_END}[10.0-worker-2]", _ORACLE),
    ),
    (
        "a worker's second claim of its run is the same one",
        STORE,
        "return None if run_id is None else self._again(connection, worker, length, run_id)",
        "return None",
        (
            f"{_STORE}a_workers_second_claim_of_its_run_keeps_the_fence"
            "_and_tells_no_second_start[sqlite]",
            _ORACLE,
        ),
    ),
    (
        "only the holder claims once more",
        STORE,
        "(RUNS.c.worker == worker) & (RUNS.c.until > self._now)",
        "(RUNS.c.until > self._now)",
        (f"{_MANY}[sqlite]", f"{_TABLE}[running-sqlite]", _ORACLE),
    ),
    (
        "a run's fence rises with each new claim",
        STORE,
        "fence=RUNS.c.fence + 1",
        "fence=1",
        (f"{_HOLDS}[_older_claim-sqlite]", _CASE_51, _ORACLE),
    ),
    (
        "the oldest run is claimed first",
        "labkit/runs/conditions.py",
        ".order_by(by, RUNS.c.run_id)",
        ".order_by(RUNS.c.run_id)",
        (f"{_STORE}the_oldest_run_is_claimed_first_and_only_of_the_jobs_that_are_named[sqlite]",),
    ),
    (
        "a dead worker's run does not wait behind all others",
        STORE,
        "sa.func.coalesce(late, new)",
        "sa.func.coalesce(new, late)",
        (
            f"{_STORE}runs_whose_lease_is_over_come_before_those_that_wait"
            "_the_longest_over_first[sqlite]",
        ),
    ),
    (
        "a worker gets no run of a job that it does not do",
        STORE,
        "known = sa.true() if jobs is None else RUNS.c.job.in_(jobs)",
        "known = sa.true()",
        (
            f"{_STORE}a_named_run_is_claimed_only_if_its_job_is_among_those_named[sqlite]",
            f"{_STORE}the_oldest_run_is_claimed_first_and_only_of_the_jobs_that_are_named[sqlite]",
        ),
    ),
    (
        "claims do not queue up behind one another",
        "labkit/runs/conditions.py",
        "with_for_update(skip_locked=True)",
        "with_for_update()",
        (f"{_STORE}a_claim_does_not_wait_for_a_run_that_another_is_just_claiming[postgresql]",),
    ),
    (
        "the length of a lease is looked at before anything is written",
        STORE,
        "if not (is_amount(length) and length > 0):",
        "if not length:",
        (f"{_STORE}a_length_that_is_none_is_refused_before_anything_is_written[sqlite]",),
    ),
    (
        "a lease has some length",
        STORE,
        "if not (is_amount(length) and length > 0):",
        "if not is_amount(length):",
        (f"{_STORE}a_length_that_is_none_is_refused_before_anything_is_written[sqlite]",),
    ),
    (
        "a worker has a name",
        RECORD,
        "if not (isinstance(worker, str) and worker):",
        "if not isinstance(worker, str):",
        (f"{_STORE}a_worker_without_a_name_is_refused_before_anything_is_written[sqlite]",),
    ),
    # --- writes of a worker
    (
        "a worker's write names its fence",
        STORE,
        "(RUNS.c.worker == lease.owner) & (RUNS.c.fence == lease.fence)",
        "(RUNS.c.worker == lease.owner)",
        (f"{_HOLDS}[_older_claim-sqlite]", f"{_HOLDS}[_older_claim-postgresql]", _ORACLE),
    ),
    (
        "a worker's write names the worker, and nobody is no match",
        STORE,
        "(RUNS.c.worker == lease.owner) & (RUNS.c.fence == lease.fence)",
        "(RUNS.c.fence == lease.fence)",
        (f"{_HOLDS}[_another-sqlite]", f"{_HOLDS}[_nobodys-sqlite]"),
    ),
    (
        "a worker writes only while its run is worked on",
        STORE,
        "return is_run(held) & running & newest",
        "return is_run(held) & newest",
        (f"{_HOLDS}[_ended-sqlite]",),
    ),
    (
        "a worker writes only while its lease lasts",
        STORE,
        "& newest & (RUNS.c.until > self._now)",
        "& newest",
        (f"{_HOLDS}[_over-sqlite]", f"{_HOLDS}[_over-postgresql]", _CASE_51, _ORACLE),
    ),
    (
        "a worker's write names the events that it knows",
        STORE,
        "mine & (RUNS.c.seq == held.run.seq), {",
        "mine, {",
        (f"{_STORE}a_worker_that_has_missed_an_event_writes_nothing[sqlite]",),
    ),
    (
        "a write whose answer was lost is known again",
        STORE,
        "if row is None or connection.execute(done).first() is None:",
        "if True:",
        tuple(
            f"{_AGAIN}[{move}-sqlite]" for move in ("step", "ask", "finish", "fail", "hand back")
        ),
    ),
    (
        "another's write is not taken for one's own",
        STORE,
        "RUNS.c.fence == held.lease.fence, *(",
        "*(",
        (f"{_STORE}what_another_has_handed_back_since_is_not_taken_for_ones_own[sqlite]",),
    ),
    (
        "another write with the same held is not taken for the one that is there: its event",
        STORE,
        "EVENTS.c.type == event, EVENTS.c.data == data)",
        "EVENTS.c.type == event)",
        (f"{_OTHER}[what is told-sqlite]", f"{_OTHER}[what is told-postgresql]"),
    ),
    (
        "another write with the same held is not taken for the one that is there: its checkpoint",
        STORE,
        "*(RUNS.c[name] == kept[name] for name in kept)]",
        'RUNS.c.seq == kept.get("seq", RUNS.c.seq), RUNS.c.status == kept["status"]]',
        (f"{_OTHER}[the checkpoint-sqlite]", f"{_OTHER}[the checkpoint-postgresql]"),
    ),
    (
        "who comes after the end of its own lease is told so",
        CONDITIONS,
        "elif (own, row.status, row.worker) == (True, RUNNING, held.lease.owner):",
        "elif False:",
        (f"{_STORE}who_comes_after_the_end_of_its_own_lease_is_told_so[step-sqlite]",),
    ),
    (
        "who writes to a run that was cancelled is told so",
        CONDITIONS,
        "own and row.status != CANCELLED and row.seq",
        "own and row.seq",
        (f"{_STORE}who_writes_to_a_run_that_was_cancelled_is_told_so[sqlite]",),
    ),
    # --- at the door
    (
        "what is none of what is wanted is refused at the door",
        RECORD,
        "if not isinstance(value, kind) or (kind is int and not is_amount(value)):",
        "if kind is int and not is_amount(value):",
        (f"{_STORE}what_a_step_tells_is_a_dict[sqlite]",),
    ),
    (
        "a number of events is a whole one from 0",
        RECORD,
        " or (kind is int and not is_amount(value)):",
        ":",
        (f"{_STORE}what_is_none_of_what_is_wanted_is_refused_at_the_door[sqlite-{_MINUS}]",),
    ),
    (
        "an id can stand in an address",
        RECORD,
        "if not _is_plain(run_id):",
        "if False:",
        (f"{_STORE}an_id_that_no_address_can_hold_is_refused",),
    ),
    (
        "a store that is closed says so, also by another way to it",
        DATABASE,
        "if self._closed.is_set():",
        "if False:",
        (f"{_STORE}a_store_that_is_closed_says_so_whatever_it_is_asked[sqlite]",),
    ),
    (
        "a reader's look is a time",
        "labkit/runs/following.py",
        "if not (is_amount(look) and look > 0):",
        "if not is_amount(look):",
        (f"{_FOLLOWED}a_look_that_is_no_time_is_refused_at_once[0]",),
    ),
    (
        "a run that is handed back is held by nobody",
        STORE,
        'return await self._write(held, "hand back", {}, worker=None, until=None)',
        'return await self._write(held, "hand back", {})',
        (f"{_STORE}a_run_that_nobody_works_on_any_more_is_held_by_nobody[hand back-sqlite]",),
    ),
    # --- moves of the owner
    (
        "a move is made only where the table allows it",
        FRONT,
        "& RUNS.c.status.in_(sources)  # breakpoint: legal move",
        "",
        tuple(f"{_TABLE}[{state}-sqlite]" for state in ("completed", "cancelled", "running")),
    ),
    (
        "what is completed stays so",
        "labkit/recovery/run_states.py",
        '"retry": Move((FAILED,), QUEUED, OWNER)',
        '"retry": Move((FAILED, COMPLETED), QUEUED, OWNER)',
        (
            "tests/recovery/test_run_states.py::test_the_table_has_these_ways_and_no_others",
            f"{_STORE}a_final_state_is_final_for_everybody[completed-sqlite]",
        ),
    ),
    (
        "a run is its owner's",
        "labkit/runs/conditions.py",
        "return (RUNS.c.run_id == run_id) & theirs",
        "return RUNS.c.run_id == run_id",
        (f"{_OWNER}[sqlite]",),
    ),
    (
        "the events of a run are its owner's",
        FRONT,
        "(EVENTS.c.run_id == run_id) & sa.exists().where(owned(run_id, owner))",
        "(EVENTS.c.run_id == run_id)",
        (f"{_OWNER}[sqlite]",),
    ),
    (
        "a run id that is taken is told as that",
        FRONT,
        ".values(new).on_conflict_do_nothing()",
        ".values(new)",
        (f"{_STORE}a_run_id_is_given_once[sqlite]", f"{_STORE}a_run_id_is_given_once[postgresql]"),
    ),
    # --- numbers and time
    (
        "what waits for a person is not left to be done",
        FRONT,
        "RUNS.c.status.in_((QUEUED, RUNNING))",
        "RUNS.c.status.not_in(('completed', 'failed', 'cancelled'))",
        (
            f"{_STORE}those_that_wait_and_those_that_are_being_done"
            "_are_left_whoevers_they_are[sqlite]",
        ),
    ),
    (
        "the number of an event is given under the lock",
        FRONT,
        "seq = RUNS.c.seq + int(bool(event))",
        "seq = (await self.get(run_id, owner)).seq + int(bool(event))",
        (f"{_NUMBER}[sqlite]", f"{_NUMBER}[postgresql]"),
    ),
    (
        "the time of a run is the database's",
        DATABASE,
        "self._now = clock_of(engine) if now is None else now",
        "self._now = sa.bindparam('now', type_=sa.Double, callable_=lambda: "
        "__import__('time').time()) if now is None else now",
        (f"{_OFF}[1-sqlite]", f"{_OFF}[-1-postgresql]"),
    ),
    # --- the database
    (
        "a transaction of the run store is a writer from its beginning",
        "labkit/runs/opening.py",
        '"BEGIN IMMEDIATE"',
        '"BEGIN"',
        (
            f"{_DATABASE}a_transaction_is_a_writer_from_its_beginning"
            "_and_so_never_fails_in_its_middle",
        ),
    ),
    (
        "who reads runs is no writer",
        DATABASE,
        'alone = connection.execution_options(isolation_level="AUTOCOMMIT")',
        "alone = connection",
        (f"{_DATABASE}who_reads_holds_up_no_writer",),
    ),
    (
        "what is no JSON has an error of its own",
        DATABASE,
        "if isinstance(error, StatementError) and not isinstance(error, DBAPIError):",
        "if False:",
        (f"{_NOT_JSON}[set-sqlite]",),
    ),
    (
        "what no reader of JSON can read is not kept",
        "labkit/stores/tables.py",
        "json.dumps(value, allow_nan=False)",
        "json.dumps(value)",
        (f"{_NOT_JSON}[nan-sqlite]", f"{_NOT_JSON}[inf-postgresql]"),
    ),
    (
        "runs of another version are left alone",
        TABLES,
        "if found != SCHEMA:",
        "if False:",
        (
            f"{_DATABASE}runs_of_another_version_are_refused_and_nothing_is_changed[2-sqlite]",
            f"{_DATABASE}a_database_of_another_version_gets_no_tables_of_this_one[postgresql]",
        ),
    ),
    (
        "another program's runs are left alone",
        TABLES,
        "if not sa.inspect(connection).has_table(RUNS.name):",
        "if True:",
        (f"{_DATABASE}runs_without_a_version_are_another_programs[sqlite]",),
    ),
    # --- news
    (
        "a change since the look is not waited for",
        NEWS,
        "if self._newest[topic] == seen:",
        "if True:",
        (f"{_NEWS}a_change_since_the_look_is_not_waited_for",),
    ),
    (
        "other processes are told of a change",
        NEWS,
        "connection.exec_driver_sql(f\"NOTIFY {CHANNEL}, '{told}'\")",
        "pass",
        (
            f"{_NEWS}a_change_by_another_process_wakes_who_waits[postgresql]",
            f"{_NEWS}each_move_is_told_to_other_processes[postgresql]",
        ),
    ),
    (
        "who waits in this process is woken by a change",
        DATABASE,
        "self.news.wake(*topics(answer.run if isinstance(answer, Held) else answer))",
        "pass",
        (
            f"{_NEWS}a_change_in_this_process_wakes_who_waits",
            f"{_NEWS}a_write_whose_caller_was_cancelled_is_news_all_the_same",
        ),
    ),
    (
        "what finds nothing wakes nobody, who would look again for ever",
        DATABASE,
        "if answer is not None:",
        "if True:",
        (f"{_NEWS}what_changes_nothing_wakes_nobody",),
    ),
    (
        "a listener that was cut off tells that it may have missed something",
        NEWS,
        "self.wake()  # whatever came while nobody listened",
        "pass",
        (_HEARD,),
    ),
    (
        "a listener that was cut off listens again",
        NEWS,
        "with suppress(SQLAlchemyError, OSError):",
        "with suppress():",
        (_HEARD,),
    ),
    (
        "who waits on a closed loop keeps nobody from being woken",
        NEWS,
        "with suppress(RuntimeError):",
        "with suppress():",
        (f"{_NEWS}who_waits_on_a_loop_that_is_closed_does_no_harm",),
    ),
    (
        "a loop that sleeps is woken by another thread",
        NEWS,
        "loop.call_soon_threadsafe(event.set)",
        "event.set()",
        (f"{_NEWS}a_change_that_another_thread_tells_wakes_a_loop_that_sleeps",),
    ),
    (
        "a listener that cannot connect pauses",
        NEWS,
        "self._closed.wait(PAUSE)",
        "pass",
        (f"{_NEWS}a_listener_that_cannot_listen_pauses_before_it_tries_again",),
    ),
    (
        "a connection that has ended goes back to no pool",
        NEWS,
        "                alone.invalidate()\n",
        "",
        (f"{_NEWS}a_connection_that_listened_in_vain_goes_back_to_no_pool[postgresql]",),
    ),
    (
        "nobody is woken for what is not about him",
        NEWS,
        "if changed and topic not in changed:",
        "if False:",
        (
            f"{_NEWS}a_change_wakes_only_those_whom_it_is_about",
            f"{_FOLLOWED}a_reader_is_not_woken_by_other_runs",
        ),
    ),
    (
        "other processes are told what a change is about",
        NEWS,
        "self.wake(*_told(note.payload))",
        "self.wake()",
        (
            f"{_NEWS}a_change_by_another_process_wakes_only_those_whom_it_is_about[postgresql]",
            f"{_NEWS}a_step_makes_no_worker_look_for_something_to_do[postgresql]",
        ),
    ),
    (
        "a step is no run to claim",
        NEWS,
        "if run.status == QUEUED else (about(run.run_id),)",
        "",
        (f"{_NEWS}a_change_wakes_only_those_whom_it_is_about",),
    ),
    (
        "a run that waits is something to do",
        NEWS,
        "return (about(run.run_id), TO_DO) if run.status == QUEUED else (about(run.run_id),)",
        "return (about(run.run_id),)",
        (
            f"{_NEWS}a_change_in_this_process_wakes_who_waits",
            f"{_NEWS}a_change_by_another_process_wakes_who_waits[postgresql]",
        ),
    ),
    (
        "what no store has told ends no listener",
        NEWS,
        "found = [int(word) for word in words] if plain else []",
        "found = [int(word) for word in words]",
        (f"{_NEWS}what_no_store_has_told_wakes_everybody_and_ends_no_listener[mark-postgresql]",),
    ),
    (
        "a topic that there is not wakes everybody",
        NEWS,
        "return found if all(topic < TOPICS for topic in found) else []",
        "return found",
        (f"{_NEWS}what_no_store_has_told_wakes_everybody_and_ends_no_listener[4096-postgresql]",),
    ),
    # --- threads, and what can never be kept
    (
        "a store has threads of its own",
        DATABASE,
        "(call or partial(_in_thread, pool) for pool in self._pools)",
        "(call or asyncio.to_thread for pool in self._pools)",
        (
            f"{_DATABASE}no_work_of_the_program_and_no_crowd_of_calls_holds_up_a_renewal",
            f"{_DATABASE}the_threads_of_a_store_end_with_it_and_a_simulation_starts_none",
        ),
    ),
    (
        "a renewal waits behind no other call",
        DATABASE,
        "self._commit(work), self._call_now)",
        "self._commit(work), self._call)",
        (f"{_DATABASE}no_work_of_the_program_and_no_crowd_of_calls_holds_up_a_renewal",),
    ),
    (
        "the threads of a store end with it",
        DATABASE,
        "            pool.shutdown(cancel_futures=True)\n",
        "            pass\n",
        (f"{_DATABASE}the_threads_of_a_store_end_with_it_and_a_simulation_starts_none",),
    ),
    (
        "what can never be kept is not asked for for ever",
        DATABASE,
        "            if _never(error):",
        "            if False:",
        (
            f"{_NEVER}[too long for an index-postgresql]",
            f"{_NEVER}[too great a number-postgresql]",
            f"{_NEVER}[nothing where something must be-sqlite]",
            f"{_NEVER}[no value of a column-sqlite]",
        ),
    ),
    (
        "a limit of the database is no trouble of it",
        DATABASE,
        '"22", "54", ',
        '"22", ',
        (f"{_NEVER}[too long for an index-postgresql]",),
    ),
    (
        "a table that is missing is the database's trouble",
        DATABASE,
        "ProgrammingError) and not code",
        "ProgrammingError)",
        (f"{_DATABASE}no_error_quotes_what_was_given_and_no_log_does[postgresql]",),
    ),
    # --- connections
    (
        "a call to a server that has gone silent ends",
        OPENING,
        "if not ready and monotonic() > end:",
        "if False:",
        (f"{_OPENING}a_call_to_a_server_that_has_gone_silent_ends",),
    ),
    (
        "the network notices a host that is gone",
        OPENING,
        "connect_args=ends, ",
        "",
        (f"{_OPENING}the_network_is_asked_to_notice_a_host_that_is_gone",),
    ),
    (
        "what a URL says of its connection is done",
        OPENING,
        " if name not in url.query",
        "",
        (f"{_OPENING}the_network_is_asked_to_notice_a_host_that_is_gone",),
    ),
    (
        "what was written to SQLite is on the disk",
        OPENING,
        "PRAGMA synchronous = FULL",
        "PRAGMA synchronous = NORMAL",
        (f"{_OPENING}what_was_written_to_sqlite_is_on_the_disk[open_key_store]",),
    ),
    # --- the lessons on leases
    (
        "a renewal that is told late gives nobody a run",
        "labkit/scenarios/lease_judges.py",
        '(event.kind == "renewed" and run in holders)',
        'event.kind == "renewed"',
        (
            "tests/scenarios/test_lease_judges.py::test_nothing_is_found_where_nothing_is_wrong"
            "[a renewal is told after it was handed back]",
        ),
    ),
    (
        "a line that was cut carries again",
        FLOOR,
        "if begins <= self._clock() < ends:",
        "if begins <= self._clock():",
        (
            "tests/scenarios/test_lease_floor.py"
            "::test_a_line_that_is_cut_carries_nothing_for_that_time_and_then_again[4.0-done]",
        ),
    ),
    (
        "the warehouse goes on when whoever asked is gone",
        FLOOR,
        "return await asyncio.shield(work)",
        "return await work",
        (
            "tests/scenarios/test_lease_floor.py"
            "::test_what_the_warehouse_has_begun_is_done_also_when_whoever_asked_is_gone",
        ),
    ),
)

SAFEGUARDS: Final = of_rows(_LIST)
