"""What keeps a run repeatable, finite, honest and private."""

from .kinds import Safeguard

ROOM = "labkit/simulation/"
TESTS = "tests/simulation/"


def _made(name: str, file: str, old: str, new: str, *red: str) -> Safeguard:
    nodes = tuple(TESTS + node for node in red)
    return Safeguard(name=name, file=ROOM + file, old=old, new=new, red=nodes)


_SAME = "test_loop.py::test_a_program_does_what_it_does_on_the_standard_loop"
_FREEZE = "test_freeze.py::"
_JUDGE = "test_judge.py::"
_PROCESSES = "test_processes.py::"
_NO = _JUDGE + "test_a_naive_scenario_shows_its_finding_and_no_other"

_TIME = (
    _made(
        "equal deadlines keep their order",
        "loop.py",
        "heapq.heappush(self._timers, (when, self._serial, handle))",
        "heapq.heappush(self._timers, (when, -self._serial, handle))",
        "test_loop.py::test_equal_deadlines_fire_in_the_order_they_were_set",
    ),
    _made(
        "time is rounded",
        "loop.py",
        "when = round(when, DIGITS)",
        "when = when + 0.0",
        "test_loop.py::test_a_thousand_waits_of_a_tenth_are_exactly_a_hundred",
        "test_loop.py::test_deadlines_that_differ_by_rounding_are_equal",
    ),
    _made(
        "time jumps only when nothing is ready",
        "loop.py",
        "        if not self._ready:\n            self._advance()",
        "        if self._timers or not self._ready:\n            self._advance()",
        "test_loop.py::test_time_starts_at_zero_and_moves_only_when_nothing_is_ready",
    ),
    _made(
        "cancelled timers are dropped",
        "loop.py",
        "if len(self._timers) > self._prune_at:",
        "if False:",
        "test_loop.py::test_cancelled_timers_do_not_pile_up_or_move_time",
    ),
    _made(
        "a wait that is no number is refused",
        "loop.py",
        "if when != when:",
        "if False:",
        "test_loop.py::test_a_wait_that_is_no_number_is_an_error_and_an_endless_one_is_never",
    ),
    _made(
        "an empty context is a context",
        "tasks.py",
        "copy_context() if context is None else context",
        "context or copy_context()",
        _SAME + "[empty_context_is_kept]",
    ),
    _made(
        "a callback that fails stops nothing",
        "loop.py",
        "        except Exception as error:\n            self.call_exception_handler",
        "        except ZeroDivisionError as error:\n            self.call_exception_handler",
        _SAME + "[callback_that_fails]",
    ),
    _made(
        "a loop is driven once at a time",
        "loop.py",
        "        if self._running:\n            raise RuntimeError",
        "        if False:\n            raise RuntimeError",
        "test_loop.py::test_driving_a_loop_that_is_driven_is_a_clear_error",
    ),
    _made(
        "a dropped generator is closed soon",
        "loop.py",
        "self.call_soon(self._close_generator, generator)",
        "pass",
        _SAME + "[dropped_generator_is_closed_soon]",
        "test_generators.py::test_a_dropped_generator_is_closed_at_the_next_turn",
    ),
    _made(
        "open generators are closed at the end",
        "loop.py",
        "            if generator.ag_frame is not None and not generator.ag_running:\n",
        "            if False:\n",
        "test_generators.py::test_a_generator_that_is_open_at_the_end_is_closed_and_does_not_count",
    ),
    _made(
        "garbage waits until a run is over",
        "thread.py",
        "    gc.disable()  # when",
        "    pass  # when",
        "test_thread.py::test_the_collector_is_off_for_the_length_of_the_work",
        "test_generators.py::test_a_generator_in_a_cycle_is_not_collected_in_the_middle_of_a_run",
    ),
    _made(
        "names of tasks are unique",
        "tasks.py",
        "            if name != default:\n",
        "            if False:\n",
        "test_tasks.py::test_two_tasks_of_one_chosen_name_are_told_apart",
        "test_places.py::test_tasks_that_share_a_chosen_name_are_told_apart_all_the_same",
    ),
    _made(
        "left-over tasks are noted",
        "playing.py",
        'self._note("left_over", task=task.get_name(), function=where(task)[2])',
        "pass",
        "test_tasks.py::test_left_over_tasks_are_told_by_name_and_function",
        _NO + "[left_over_task-retry.forgotten]",
    ),
    _made(
        "errors that nobody awaited are noted",
        "playing.py",
        'self._note("unhandled", task=task.get_name(), **_facts(task.exception()))',
        "pass",
        "test_loop.py::test_errors_that_nobody_awaited_are_in_the_trace",
    ),
)

_ENDS = (
    _made(
        "a deadlock is found",
        "loop.py",
        "        if not timers:\n            waiting",
        "        if not timers and self._now > 1e9:\n            waiting",
        "test_loop.py::test_a_deadlock_names_every_waiting_task_and_its_line",
    ),
    _made(
        "a deadlock names the innermost line",
        "where.py",
        "        if awaitable is None:\n            return",
        "        return",
        "test_where.py::test_a_task_is_found_behind_two_generators_and_a_timeout",
        "test_loop.py::test_a_deadlock_names_every_waiting_task_and_its_line",
    ),
    _made(
        "turns without time are counted",
        "loop.py",
        "if self._spent_now > self._limit or self._spent > self._total:",
        "if self._spent > self._total:",
        "test_loop.py::test_the_bounds_can_be_moved",
    ),
    _made(
        "turns in all are counted",
        "loop.py",
        "if self._spent_now > self._limit or self._spent > self._total:",
        "if self._spent_now > self._limit:",
        "test_loop.py::test_the_bounds_can_be_moved",
    ),
    _made(
        "time that moves is no livelock",
        "loop.py",
        "            self._now = timers[0][0]\n            self._spent_now = 0",
        "            self._now = timers[0][0]",
        "test_loop.py::test_many_turns_with_time_moving_are_no_livelock",
    ),
    _made(
        "a livelock names the task that spins",
        "loop.py",
        "spinning = [task] if isinstance(task, asyncio.Task) else self.tasks.pending()",
        "spinning = self.tasks.pending()",
        "test_loop.py::test_a_livelock_names_the_task_that_spins_and_its_line",
    ),
    _made(
        "a halt comes from outside the code under study",
        "loop.py",
        "if self._spent_now > 2 * self._limit:",
        "if self._spent_now > self._limit:",
        "test_loop.py::"
        "test_past_a_limit_events_stop_counting_before_anything_is_raised_in_the_client",
    ),
    _made(
        "the interrupt flag is looked at",
        "loop.py",
        "                if self.halt is not None:\n                    raise self.halt\n",
        "",
        "test_loop.py::test_a_halt_that_is_set_from_outside_ends_the_run_at_the_next_turn",
    ),
    _made(
        "code that looks at no flag is thrown out",
        "thread.py",
        "raiser(ctypes.c_ulong(thread.ident), ctypes.py_object(KeyboardInterrupt))",
        "pass",
        "test_thread.py::test_work_that_looks_at_nothing_is_thrown_out",
    ),
    _made(
        "an interrupt is never the run's error",
        "playing.py",
        "        except KeyboardInterrupt:\n            raise\n",
        "",
        "test_thread.py::test_an_interrupt_is_never_the_runs_error",
    ),
    _made(
        "nothing counts after the end",
        "playing.py",
        "                self.world.trace.seal()\n",
        "",
        "test_simulate.py::test_nothing_counts_after_the_end",
        "test_generators.py::test_a_generator_that_is_open_at_the_end_is_closed_and_does_not_count",
    ),
    _made(
        "a sealed trace takes nothing",
        "trace.py",
        "self._spend = lambda: False",
        "pass",
        "test_trace.py::test_nothing_is_added_to_a_sealed_trace",
    ),
)

_DEAD = _PROCESSES + "test_of_a_killed_process_not_one_line_runs_and_the_other_goes_on"
_THAW = "test_what_was_due_in_the_frozen_time_runs_at_the_thaw_in_the_order_in_which_it_was_due"

_STANDING = (
    _made(
        "what stands still is kept",
        "processes.py",
        'if process is None or process.state == "running":',
        "if True:",
        _DEAD,
        _PROCESSES + _THAW,
    ),
    _made(
        "a killed process cleans up nothing",
        "processes.py",
        '            self.state = "killed"\n',
        "            for task in self._loop.processes.owners:\n                task.cancel()\n",
        _DEAD,
    ),
    _made(
        "timers of a process stand still too",
        "processes.py",
        'if process is None or process.state == "running":',
        'if process is None or process.state == "running" or handle._when:',
        _PROCESSES + _THAW,
        _PROCESSES + "test_whatever_a_process_starts_directly_or_not_dies_with_it[a_timer]",
    ),
    _made(
        "at the thaw the order is the one in which things were due",
        "processes.py",
        "extendleft(reversed(self._kept))",
        "extendleft(self._kept)",
        _PROCESSES + _THAW,
    ),
    _made(
        "what was due in the frozen time comes before what comes at the thaw",
        "processes.py",
        "extendleft(reversed(self._kept))",
        "extend(self._kept)",
        _PROCESSES + "test_a_timer_that_is_due_with_the_thaw_waits_behind_what_was_due_before",
    ),
    _made(
        "a shorter freeze does not end a longer one",
        "processes.py",
        "self._until = max(self._until, thaw.when())",
        "self._until = thaw.when()",
        _PROCESSES + "test_of_two_freezes_that_overlap_the_later_end_counts[9-1-9]",
    ),
    _made(
        "the thaw of a process is none of its own timers",
        "processes.py",
        "self._thaw, context=Context())",
        "self._thaw)",
        _PROCESSES + "test_a_process_that_freezes_itself_goes_on_to_its_next_suspension_and_thaws",
    ),
    _made(
        "a killed process never thaws",
        "processes.py",
        'if self.state == "frozen" and',
        "if",
        _PROCESSES + "test_one_that_is_killed_while_it_is_frozen_never_thaws",
    ),
    _made(
        "a killed process takes no more work",
        "processes.py",
        "        if not self.alive:\n            work.close()",
        "        if False:\n            work.close()",
        _PROCESSES + "test_a_killed_process_takes_no_more_work",
    ),
    _made(
        "a task belongs to whom its context says",
        "processes.py",
        "_PROCESS.get() if context is None else context.get(_PROCESS)",
        "_PROCESS.get()",
        _PROCESSES + "test_what_a_kill_left_is_no_finding_and_what_is_only_frozen_is",
    ),
    _made(
        "all processes go on as the loop closes",
        "loop.py",
        "        self.processes.any = False  # what",
        "        pass  # what",
        _PROCESSES + "test_when_the_loop_closes_their_tasks_end_in_the_usual_way",
    ),
    _made(
        "what a process kept is given back as the loop closes",
        "loop.py",
        "        self.processes.release()\n",
        "",
        _PROCESSES + "test_when_the_loop_closes_their_tasks_end_in_the_usual_way",
    ),
    _made(
        "a killed task is not left over",
        "loop.py",
        "if not (killed(t) or t.get_name().startswith(CLOSING))",
        "if not t.get_name().startswith(CLOSING)",
        _PROCESSES + "test_what_a_kill_left_is_no_finding_and_what_is_only_frozen_is",
    ),
    _made(
        "an error of a killed process is nobody's to see",
        "playing.py",
        " if not killed(task)]",
        "]",
        _PROCESSES + "test_what_a_kill_left_is_no_finding_and_what_is_only_frozen_is",
    ),
    _made(
        "a message tells who stands still",
        "where.py",
        " if still else ''",
        " if False else ''",
        _PROCESSES
        + "test_a_deadlock_tells_which_task_waits_for_nothing_since_its_process_was_killed",
        _PROCESSES + "test_to_wait_for_a_frozen_one_is_no_deadlock_and_a_livelock_tells_of_it",
    ),
    _made(
        "a process needs a virtual loop",
        "processes.py",
        'if not isinstance(getattr(loop, "processes", None), Processes):',
        "if loop is None:",
        _PROCESSES + "test_a_process_outside_a_simulation_is_refused",
    ),
    _made(
        "a freeze has an end",
        "processes.py",
        "or not 0 <= seconds < math.inf:",
        "or seconds < 0:",
        _PROCESSES + "test_a_freeze_needs_a_number_of_seconds[inf]",
        _PROCESSES + "test_a_freeze_needs_a_number_of_seconds[nan]",
    ),
)

_OUTSIDE = (
    _made(
        "the outside world is refused",
        "outside.py",
        "if event in _REFUSALS and _here.note is not None and",
        "if False and",
        "test_guard.py::test_the_outside_world_is_refused_with_a_cure",
    ),
    _made(
        "a refusal is noted",
        "outside.py",
        "    if _here.note is not None:\n        _here.note(what)\n",
        "",
        "test_guard.py::test_a_refusal_that_the_client_swallows_stands_in_the_trace",
    ),
    _made(
        "only the run's own thread is guarded",
        "outside.py",
        "class _Here(threading.local):",
        "class _Here:",
        "test_guard.py::test_other_threads_may_do_what_they_like_meanwhile",
    ),
    _made(
        "the guard ends with the run",
        "outside.py",
        "    finally:\n        _here.note = None",
        "    finally:\n        pass",
        "test_guard.py::test_other_threads_may_do_what_they_like_meanwhile",
    ),
    _made(
        "a simulation within a simulation is refused",
        "playing.py",
        "        refuse_inside()\n",
        "",
        "test_simulate.py::test_a_simulation_within_a_simulation_is_refused",
    ),
    _made(
        "a call from another thread is refused",
        "outside.py",
        "if threading.get_ident() != self._thread:",
        "if False:",
        "test_outside.py::test_a_call_from_another_thread_is_refused_there",
    ),
    _made(
        "threads are refused where no scenario allows them",
        "outside.py",
        "if self._inline_executor is None:",
        "if False:",
        "test_outside.py::test_asyncios_own_helpers_are_refused",
    ),
    _made(
        "the global random is put back",
        "playing.py",
        "        global_random.setstate(state)\n",
        "",
        "test_simulate.py::test_the_global_random_is_seeded_for_an_sdk_and_put_back",
    ),
)

_RECORDING = (
    _made(
        "a recording must be the same run",
        "run.py",
        "if trace != self.trace and digest(trace) != self.hash:",
        "if False:",
        "test_run.py::test_a_recording_that_differs_is_refused_and_names_the_event",
        "test_guard.py::test_a_wall_clock_that_decides_is_found_when_recording",
    ),
    _made(
        "the client's prints are seen once",
        "run.py",
        "with _one_recording, redirect_stdout(StringIO()):",
        "with _one_recording:",
        "test_run.py::test_what_the_client_prints_is_seen_once",
    ),
    _made(
        "a repeated line is dropped",
        "recorder.py",
        "        if known[1] == first:\n            return\n",
        "",
        "test_recorder.py::test_a_line_equal_to_the_frames_previous_one_is_dropped",
    ),
    _made(
        "a statement is one step",
        "recorder.py",
        "first = known[2](line, line)",
        "first = line",
        "test_recorder.py::test_a_statement_over_many_lines_is_one_place",
    ),
    _made(
        "frames begin anew",
        "recorder.py",
        "        self._known[id(frame)] = [self._count, 0, self.files[code.co_filename].get]\n",
        "        known = [self._count, 0, self.files[code.co_filename].get]\n"
        "        self._known.setdefault(id(frame), known)\n",
        "test_recorder.py::test_a_frame_that_takes_over_an_address_has_a_number_of_its_own",
    ),
    _made(
        "a caller must be watched itself",
        "recorder.py",
        "if caller is None or id(caller.f_code) not in self.codes:",
        "if caller is None or id(caller) not in self._known:",
        "test_recorder.py::test_a_caller_that_is_not_watched_is_no_caller",
    ),
    _made(
        "recording steps aside for a debugger",
        "recorder.py",
        "if sys.gettrace() is not None:",
        "if False:",
        "test_recorder.py::test_recording_steps_aside_for_a_tool_that_holds_the_tracing",
    ),
    _made(
        "locals have one order on every Python",
        "freeze.py",
        "(*given, *sorted(others))",
        "(*given, *sorted(others, reverse=True))",
        _FREEZE + "test_parameters_come_first_and_the_others_by_name",
    ),
    _made(
        "values are frozen when recorded",
        "freeze.py",
        "            if (kind := type(value)) in _PLAIN\n",
        "            if (kind := type(value)) in _PLAIN or kind is list\n",
        _FREEZE + "test_a_list_that_grows_later_keeps_its_old_length",
        "test_places.py::test_stepping_back_shows_the_list_as_short_as_it_was",
    ),
    _made(
        "only what cannot change is rendered once",
        "freeze.py",
        "        if _is_settled(value):\n",
        "        if True:\n",
        _FREEZE + "test_a_frozen_record_that_holds_a_list_is_rendered_anew",
        _FREEZE + "test_freezing_holds_no_generator_alive",
    ),
    _made(
        "what is known by its address is held",
        "freeze.py",
        "self._settled[id(value)] = (value, frozen)",
        "self._settled[id(value)] = (None, frozen)",
        _FREEZE + "test_a_value_at_the_address_of_another_is_not_taken_for_it",
    ),
    _made(
        "sets are shown in order",
        "freeze.py",
        'return _items("{", sorted(_render(item, depth) for item in value), "}")',
        'return _items("{", [_render(item, depth) for item in value], "}")',
        "test_trace.py::test_the_hash_is_the_same_in_processes_with_other_hash_seeds",
    ),
    _made(
        "views move in their own task",
        "places.py",
        "if place.task == self.place.task]",
        "]",
        "test_places.py::test_next_and_previous_stay_in_the_task_and_mirror_each_other",
    ),
    _made(
        "breakpoints are comments",
        "breakpoints.py",
        "if token.type == tokenize.COMMENT and (said := _COMMENT.match(token.string)):",
        "if said := _COMMENT.search(token.line):",
        "test_breakpoints.py::test_names_are_read_from_trailing_comments",
    ),
)

_PRIVATE = (
    _made(
        "secret names are masked in the trace and at any depth",
        "freeze.py",
        "    if secret(name) and value is not None:\n        return MASK\n",
        "",
        "test_mask.py::test_no_view_of_a_run_shows_a_secret",
    ),
    _made(
        "secret locals are masked",
        "freeze.py",
        "                values[name] = MASK",
        "                pass",
        "test_mask.py::test_no_view_of_a_run_shows_a_secret",
    ),
    _made(
        "secrets in records and mappings are masked",
        "freeze.py",
        "MASK if hidden else _render(value, depth)",
        "_render(value, depth)",
        "test_mask.py::test_secrets_are_masked_at_any_depth",
    ),
    _made(
        "a secret is masked by the name beside it",
        "freeze.py",
        'names = [key, *beside] if key == "value" else [key]',
        "names = [key]",
        "test_mask.py::test_secrets_are_masked_at_any_depth",
    ),
    _made(
        "a text is searched for credentials before it is cut",
        "freeze.py",
        "return _cut(scrub(text[: 2 * MOST_TEXT]))",
        "return scrub(_cut(text))",
        "test_mask.py::test_secrets_are_masked_at_any_depth",
    ),
    _made(
        "addresses are left out",
        "mask.py",
        '_ADDRESS.sub("", text) if "0x" in low else text',
        "text",
        _FREEZE + "test_addresses_are_left_out",
    ),
    _made(
        "the text of a run is masked",
        "run.py",
        'outcome = scrub(f"{type(self.error).__name__}: {self.error}")',
        'outcome = f"{type(self.error).__name__}: {self.error}"',
        "test_mask.py::test_no_view_of_a_run_shows_a_secret",
    ),
    _made(
        "a look at a value changes nothing",
        "freeze.py",
        "    except Exception:  # a look",
        "    except ZeroDivisionError:  # a look",
        _FREEZE + "test_anything_else_is_rendered",
    ),
)

_FAULTS = (
    _made(
        "a cancel strikes while the task waits",
        "faults.py",
        '            self._passes(task, passed, "waiting")\n',
        "",
        "test_faults.py::test_a_cancel_while_waiting_strikes_before_time_moves",
    ),
    _made(
        "a cancel strikes as the task wakes",
        "faults.py",
        '        self._passes(task, passed - 1, "waking")\n        if self',
        '        self.call_soon(self._passes, task, passed - 1, "waking")\n        if self',
        "test_faults.py::test_a_cancel_as_it_wakes_strikes_ahead_of_the_wake_up",
    ),
    _made(
        "a timer that cancels is no suspension",
        "faults.py",
        " or handle._callback == task.cancel",
        "",
        "test_faults.py::test_a_timer_that_cancels_a_task_is_no_suspension_of_it",
    ),
    _made(
        "a fault that did not strike is reported",
        "run.py",
        "if fault not in self.struck)",
        "if fault in self.struck)",
        "test_faults.py::test_a_fault_that_did_not_strike_is_reported",
    ),
    _made(
        "points are told by the readable line",
        "where.py",
        "return readable if readable[0] else found",
        "return found",
        "test_where.py::test_a_readable_file_is_preferred_to_what_lies_below_it",
    ),
)

_JUDGES = (
    _made(
        "duplicate text is found",
        "judge.py",
        "if before and _same(before, now) >= min(TELLING, len(before)):",
        "if False:",
        _NO + "[duplicate_text-retry.naive]",
    ),
    _made(
        "another answer is no duplicate",
        "judge.py",
        'elif _is(event, "page", "segment_end") or _is_end(event):',
        'elif _is(event, "page", "segment_end"):',
        _JUDGE + "test_text_that_is_no_repetition_is_none",
    ),
    _made(
        "a lost tail is found",
        "judge.py",
        "and not there and whole.startswith(shown):",
        "and False:",
        _NO + "[lost_tail-retry.late]",
    ),
    _made(
        "an accepted truncation is found",
        "judge.py",
        'if not own_choice and not {"finish", "http_error"}',
        'if own_choice and not {"finish", "http_error"}',
        _NO + "[truncation_accepted-retry.cut_off]",
    ),
    _made(
        "a reader who was told is no truncation",
        "judge.py",
        "if len(played) < 2 or told or not _succeeded(events):",
        "if len(played) < 2 or not _succeeded(events):",
        _JUDGE + "test_an_end_that_is_no_accepted_truncation_is_no_finding",
    ),
    _made(
        "an ignored Retry-After is found",
        "judge.py",
        "and event.time < allowed - 1e-9:",
        "and event.time < allowed - 1e9:",
        _NO + "[retry_after_ignored-retry.hammer]",
    ),
    _made(
        "a storm is found",
        "judge.py",
        "if len(after_failure) == STORM:",
        "if len(after_failure) == 10 * STORM:",
        _NO + "[retry_storm-retry.storm]",
    ),
    _made(
        "slow retries are no storm",
        "judge.py",
        "[e for e in after_failure if e.time > event.time - 1]",
        "after_failure",
        _JUDGE + "test_requests_that_are_slow_few_or_no_retries_are_no_storm",
    ),
    _made(
        "a swallowed cancel is found",
        "judge.py",
        'if event["task"] not in told or event["outcome"] not in ("result", "error"):',
        'if event["outcome"] != "nothing":',
        _NO + "[cancel_swallowed-retry.swallow]",
    ),
    _made(
        "a repeated beginning is found once",
        "judge.py",
        """yield Finding("duplicate_text", event.index, cure)
                before = \"\"""",
        """yield Finding("duplicate_text", event.index, cure)""",
        _JUDGE + "test_an_answer_that_begins_again_is_found_once_however_many_pieces_follow",
    ),
    _made(
        "a cancel that left is no finding",
        "judge.py",
        'if event["task"] not in told or event["outcome"] not in ("result", "error"):',
        'if event["task"] not in told:',
        _JUDGE + "test_a_cancel_that_left_or_met_another_task_is_no_finding",
    ),
    _made(
        "a left-over task is found",
        "judge.py",
        'if _is(event, "lab", "left_over"):',
        'if _is(event, "lab", "nothing"):',
        _NO + "[left_over_task-retry.forgotten]",
    ),
    _made(
        "what was called off did not succeed",
        "judge.py",
        "    if any(map(_is_cancel, events)):\n        return False\n",
        "",
        _JUDGE + "test_an_end_that_was_not_lost_is_no_finding",
        _JUDGE + "test_an_end_that_is_no_accepted_truncation_is_no_finding",
    ),
)

SAFEGUARDS = (*_TIME, *_ENDS, *_STANDING, *_OUTSIDE, *_RECORDING, *_PRIVATE, *_FAULTS, *_JUDGES)
