"""What holds in a discussion: its checkpoints, its approvals, its memories, its models, its end."""

from __future__ import annotations

from typing import Final

from .kinds import Row, of_rows

_TESTS: Final = "tests/runs/discussion/test_"
_APPROVAL: Final = f"{_TESTS}approval.py::test_"
_CHECKPOINTS: Final = f"{_TESTS}checkpoints.py::test_"
_DISCUSSING: Final = f"{_TESTS}discussing.py::test_"
_MEMORY: Final = f"{_TESTS}memory.py::test_"
_MODELS: Final = f"{_TESTS}models.py::test_"
_NODES: Final = f"{_TESTS}nodes.py::test_"
_BEGUN: Final = (
    f"{_NODES}a_call_that_was_begun_in_time_is_brought_to_its_end_when_that_time_is_over"
)
_OPENING: Final = f"{_TESTS}opening.py::test_"
_REPORT: Final = f"{_TESTS}report.py::test_"
_SPEAKING: Final = f"{_TESTS}speaking.py::test_"
_TALK: Final = f"{_TESTS}talk.py::test_"

# name, file in labkit/runs/discussion, old, new, and the tests that must go red
_LIST: Final[tuple[Row, ...]] = (
    (
        "a yes is bound to the exact arguments",
        "approval.py",
        'if word.get("digest") != digest_of(call):',
        "if False:",
        (
            f"{_APPROVAL}a_yes_to_something_else_is_none[None]",
            "tests/cases/test_discussion.py::"
            "test_case_68_a_yes_to_one_call_is_no_yes_to_the_same_tool_with_other_arguments",
        ),
    ),
    (
        "a yes is over at its very second",
        "approval.py",
        'if now >= call["until"]:',
        'if now > call["until"]:',
        f"{_APPROVAL}a_yes_counts_before_its_end_and_not_at_that_second",
    ),
    (
        "whatever is no clear yes is a no",
        "approval.py",
        'if word.get("answer") != APPROVE:',
        'if word.get("answer") == REJECT:',
        f"{_APPROVAL}whatever_is_no_clear_yes_is_a_no[None]",
    ),
    (
        "a word of no form is a no",
        "approval.py",
        "word = word if isinstance(word, Mapping) else {}",
        "assert isinstance(word, Mapping)",
        f"{_APPROVAL}whatever_is_no_clear_yes_is_a_no[None]",
    ),
    (
        "the tool is a part of what is approved",
        "approval.py",
        'json.dumps([call["tool"], call["arguments"]], sort_keys=True)',
        'json.dumps(call["arguments"], sort_keys=True)',
        f"{_APPROVAL}another_tool_with_these_arguments_is_not_approved",
    ),
    (
        "the order of arguments is no part of it",
        "approval.py",
        'call["arguments"]], sort_keys=True)',
        'call["arguments"]])',
        f"{_APPROVAL}the_order_of_the_names_makes_no_other_arguments",
    ),
    (
        "only a run that waits is asked for anything",
        "asking.py",
        "run.checkpoint if run.status == AWAITING and isinstance(run.checkpoint, dict) else {}",
        "run.checkpoint if isinstance(run.checkpoint, dict) else {}",
        f"{_TESTS}asking.py::"
        "test_only_a_run_that_waits_for_a_person_waits_for_anything_in_the_order_of_asking",
    ),
    (
        "each claim writes into a thread of its own",
        "checkpoints.py",
        'return f"{run_id}/{fence}"',
        "return run_id",
        f"{_CHECKPOINTS}a_call_that_was_answered_is_not_asked_for_again_by_the_next_worker",
    ),
    (
        "the newest checkpoint is one's own last one",
        "checkpoints.py",
        'return await at(self._saver, {"thread": self._thread, "id": self._newest})',
        "return await self._saver.aget_tuple(_config(self._thread))",
        f"{_CHECKPOINTS}a_worker_whose_clock_is_an_hour_behind_goes_on_from_its_own_newest",
    ),
    (
        "what a worker has done of a step that does not wait is never read",
        "checkpoints.py",
        'done = before.pending_writes if "asks" in self._from else None',
        "done = before.pending_writes",
        f"{_CHECKPOINTS}"
        "what_was_done_of_a_step_is_copied_only_where_the_row_says_that_it_waits[False]",
    ),
    (
        "what is done of a step that waits is taken over",
        "checkpoints.py",
        'done = before.pending_writes if "asks" in self._from else None',
        "done = None",
        (
            f"{_CHECKPOINTS}a_call_that_was_answered_is_not_asked_for_again_by_the_next_worker",
            f"{_CHECKPOINTS}"
            "what_was_done_of_a_step_is_copied_only_where_the_row_says_that_it_waits[True]",
        ),
    ),
    (
        "a checkpoint that is gone is not taken for a beginning",
        "checkpoints.py",
        "        if before is None:\n            raise LookupError(",
        "        if before is None:\n            return\n            raise LookupError(",
        f"{_CHECKPOINTS}a_checkpoint_that_is_not_there_any_more_is_told_and_not_begun_anew",
    ),
    (
        "without a lease no checkpoint is put",
        "checkpoints.py",
        "if lost := await self._renewal.lost_by_now():",
        "if lost := False:",
        f"{_CHECKPOINTS}without_a_lease_nothing_is_put",
    ),
    (
        "a database that is gone has one name",
        "checkpoints.py",
        "DOWN: Final = (sqlite3.OperationalError, psycopg.OperationalError, OSError)",
        "DOWN: Final = (sqlite3.OperationalError, psycopg.OperationalError)",
        f"{_CHECKPOINTS}a_database_that_is_gone_has_one_name_and_tells_no_more_than_one_line"
        "[ConnectionResetError]",
    ),
    (
        "a database that is gone is asked again",
        "discussing.py",
        "        except StoreDown:\n            await asyncio.sleep(AGAIN)",
        "        except StoreDown:\n            raise",
        f"{_TESTS}limits.py::test_wherever_the_database_blinks_after_a_take_over_the_same_claim_"
        "goes_on[aget_tuple-1]",
    ),
    (
        "each step of the graph is one of the run",
        "discussing.py",
        ', interrupt_after="*", durability="sync"',
        ', durability="sync"',
        f"{_DISCUSSING}each_step_is_told_once_and_in_order",
    ),
    (
        "one of several calls is told when it is done",
        "discussing.py",
        "            if told:  # one of several is done, the others wait",
        "            if False:  # one of several is done, the others wait",
        f"{_DISCUSSING}of_calls_that_wait_beside_each_other_each_is_told_when_it_is_done[order0]",
    ),
    (
        "what is told of a step is new in whatever order",
        "discussing.py",
        "        if each in turns:\n            turns.remove(each)",
        "        if each in turns:\n            turns.pop(0)",
        f"{_DISCUSSING}of_calls_that_wait_beside_each_other_each_is_told_when_it_is_done[order1]",
    ),
    (
        "an answer goes to what was asked",
        "discussing.py",
        'if each.value["id"] == word.get("ask")]',
        "if word]",
        f"{_DISCUSSING}of_calls_that_wait_beside_each_other_each_is_told_when_it_is_done[order1]",
    ),
    (
        "what a database refuses is taken from a question",
        "talk.py",
        '.decode().replace("\\0", "?")',
        ".decode()",
        f"{_OPENING}any_text_is_discussed_and_remembered['a\\\\x00b'-postgresql]",
    ),
    (
        "no text poses as a turn",
        "talk.py",
        'return "\\n  ".join(text.splitlines())',
        'return "\\n".join(text.splitlines())',
        f"{_TALK}no_text_poses_as_a_turn_of_somebody_else[person-lf]",
    ),
    (
        "no line end of another kind begins a turn",
        "talk.py",
        'return "\\n  ".join(text.splitlines())',
        'return "\\n  ".join(text.split("\\n"))',
        f"{_TALK}no_text_poses_as_a_turn_of_somebody_else[person-u2028]",
    ),
    (
        "only the newest critique ends a discussion",
        "talk.py",
        '    if last is None or last["role"] != CRITIC:\n        return ""',
        '    if last is None:\n        return ""',
        f"{_TALK}a_proposer_that_approves_itself_ends_nothing",
    ),
    (
        "a proposer has so many turns",
        "nodes.py",
        'told.get("target") == PROPOSER and proposals < talk["rounds"]',
        'told.get("target") == PROPOSER',
        f"{_NODES}a_coordinator_that_always_wants_the_same_ends_by_the_rounds[1-proposer]",
    ),
    (
        "a critic speaks after a proposal alone",
        "nodes.py",
        'critic = last is not None and last["role"] == PROPOSER and not again',
        'critic = last is not None and not again and (told.get("target") == CRITIC or last["role"] '
        "== PROPOSER)",
        f"{_NODES}a_coordinator_that_always_wants_the_same_ends_by_the_rounds[3-critic]",
    ),
    (
        "a person is asked so many questions",
        "nodes.py",
        "and question and len(spoken(talk, PERSON)) < QUESTIONS:",
        "and question:",
        f"{_NODES}a_coordinator_that_asks_for_ever_asks_so_many_questions",
    ),
    (
        "a call that may not run asks nobody",
        "nodes.py",
        "        if isinstance(permitted, str):\n            return _result(",
        "        if isinstance(permitted, str):\n            interrupt(approval_of(call))\n"
        "            return _result(",
        f"{_NODES}a_call_that_may_not_run_is_told_to_the_models_and_no_person_is_asked"
        "[{'name': 'format_disk', 'args': {}, 'id'-no such tool]",
    ),
    (
        "an effect waits for a person",
        "nodes.py",
        "        if permitted.tool.service is not None:\n            word",
        "        if permitted.tool.service is None:\n            word",
        f"{_NODES}an_effect_waits_for_a_yes_and_a_no_lets_it_be",
    ),
    (
        "a no lets an effect be",
        "nodes.py",
        "why = refusal(call, word, now=await self._clock())",
        'why = ""',
        f"{_NODES}an_effect_waits_for_a_yes_and_a_no_lets_it_be",
    ),
    (
        "a call that was begun in time is brought to its end",
        "nodes.py",
        "if why == OVER and await self._begun(permitted):",
        "if False:",
        (f"{_BEGUN}[60.0-0.0-0]", f"{_BEGUN}[0.2-60.0-1]"),
    ),
    (
        "the same call again is no second effect",
        "nodes.py",
        "named = tool.resource(arguments) or json.dumps(arguments, sort_keys=True)",
        "named = str(id(arguments))",
        f"{_NODES}the_same_call_twice_in_a_run_has_one_effect_and_another_one_its_own",
    ),
    (
        "calls with other arguments have effects of their own",
        "nodes.py",
        "named = tool.resource(arguments) or json.dumps(arguments, sort_keys=True)",
        "named = tool.name",
        f"{_NODES}the_same_call_twice_in_a_run_has_one_effect_and_another_one_its_own",
    ),
    (
        "a memory that cannot be made fails no run",
        "nodes.py",
        "except Exception:  # whatever the library of a model raises",
        "except ArithmeticError:  # whatever the library of a model raises",
        f"{_NODES}a_memory_that_cannot_be_made_leaves_the_run_as_it_is[error0]",
    ),
    (
        "without memories no model is asked for them",
        "nodes.py",
        '        if self._memories is None:\n            return {"remembered": 0}\n        try:\n'
        "            message = await self._speaker(KEEPER, talk)",
        "        try:\n            message = await self._speaker(KEEPER, talk)\n"
        '            if self._memories is None:\n                return {"remembered": 0}',
        f"{_NODES}without_memories_no_model_is_asked_for_them_and_none_are_loaded",
    ),
    (
        "a fact counts once its run is completed",
        "opening.py",
        "    if run.status == COMPLETED:\n        return str(",
        "    if run.checkpoint:\n        return str(",
        f"{_MEMORY}a_fact_of_a_run_that_is_cancelled_after_it_was_kept_never_counts",
    ),
    (
        "what a step has done is not paid again while the store is gone",
        "checkpoints.py",
        "            except StoreDown:\n                await asyncio.sleep(AGAIN)\n",
        "            except StoreDown:\n                raise\n",
        (
            f"{_CHECKPOINTS}what_a_step_has_done_is_kept_by_a_store_that_comes_back_and_is_not_"
            "done_again[aput]",
            f"{_DISCUSSING}a_database_that_is_gone_in_the_middle_costs_no_step_and_tells_none_twice"
            "[1.02-False]",
        ),
    ),
    (
        "a cancel leaves no checkpoint half written",
        "whole_writes.py",
        'return await to_the_end(self._whole(super().aput(*given, **more)), name="checkpoint")',
        "return await super().aput(*given, **more)",
        f"{_TESTS}whole_writes.py::test_a_cancel_leaves_after_the_write_that_is_under_way[aput]",
    ),
    (
        "a cancel leaves nothing of a step half written",
        "whole_writes.py",
        'await to_the_end(self._whole(super().aput_writes(*given, **more)), name="checkpoint")',
        "await super().aput_writes(*given, **more)",
        f"{_TESTS}whole_writes.py::"
        "test_a_cancel_leaves_after_the_write_that_is_under_way[aput_writes]",
    ),
    (
        "a write that fails lets go of the database",
        "whole_writes.py",
        "await self.conn.rollback()",
        "pass",
        f"{_TESTS}whole_writes.py::test_a_write_that_fails_holds_up_no_other[aput]",
    ),
    (
        "discussions on SQLite have that saver",
        "opening.py",
        "saver = WholeWrites(first)",
        "saver = WholeWrites.__base__(first)",
        f"{_TESTS}opening.py::test_on_sqlite_no_cancel_leaves_a_write_half_done",
    ),
    (
        "a store that says nothing is gone",
        "checkpoints.py",
        "async with asyncio.timeout(within):",
        "async with asyncio.timeout(None):",
        f"{_CHECKPOINTS}a_store_that_says_nothing_is_gone",
    ),
    (
        "a memory that is deleted stays so, whatever correction was under way",
        "memory.py",
        "if await self._gone(owner, key):  # meanwhile",
        "if False:  # meanwhile",
        f"{_MEMORY}a_memory_that_is_deleted_while_it_is_corrected_is_gone",
    ),
    (
        "a memory that is deleted is not listed, whoever writes it again",
        "memory.py",
        " and item.key not in gone:",
        ":",
        f"{_MEMORY}a_memory_that_is_deleted_stays_so_when_its_corrector_dies",
    ),
    (
        "what was kept by other claims goes with a memory",
        "memory.py",
        'if each.value["run"] == item.value["run"] and thread != item.value["thread"]:',
        "if False:",
        f"{_MEMORY}what_other_claims_have_kept_goes_with_a_memory",
    ),
    (
        "what will never count is deleted",
        "memory.py",
        "elif last[run_id] is not None:",
        "elif False:",
        f"{_MEMORY}what_will_never_count_does_not_stay_in_the_store",
    ),
    (
        "what may still count is not deleted",
        "memory.py",
        "elif last[run_id] is not None:",
        "else:",
        f"{_MEMORY}a_fact_is_seen_at_no_moment_before_its_run_is_completed",
    ),
    (
        "a proposal has few calls",
        "nodes.py",
        "message.tool_calls[:CALLS]",
        "message.tool_calls",
        f"{_NODES}a_proposal_has_at_most_eight_calls_and_says_what_is_left_out",
    ),
    (
        "what a zombie keeps counts never",
        "memory.py",
        'if item.value["thread"] == last[run_id] and item.key not in gone:',
        "if last[run_id]:",
        f"{_MEMORY}what_a_zombie_keeps_after_the_end_counts_never_not_in_the_place_of_a_correction",
    ),
    (
        "a zombie keeps nothing in the place of another's fact",
        "memory.py",
        'about["thread"] = thread = thread_of(run.run_id, run.fence)',
        'about["thread"] = thread = run.checkpoint["thread"] = thread_of(run.run_id, 1)',
        f"{_MEMORY}what_a_zombie_keeps_after_the_end_counts_never_not_in_the_place_of_a_correction",
    ),
    (
        "facts are few",
        "memory.py",
        "return list(islice(facts, MOST_FACTS))",
        "return list(facts)",
        f"{_MEMORY}facts_are_at_most_three_short_texts[['a', 'b', 'c', 'd']-['a', 'b', 'c']]",
    ),
    (
        "facts are short",
        "memory.py",
        "return storable(text).strip()[:LONGEST]",
        "return storable(text).strip()",
        f"{_MEMORY}memories_are_corrected_and_deleted_by_their_owner_alone",
    ),
    (
        "half an answer has no facts",
        "memory.py",
        'if finish not in ("stop", "end_turn") or not isinstance(parsed, dict):',
        "if not isinstance(parsed, dict):",
        f"{_MEMORY}an_answer_that_does_not_end_by_stop_has_no_facts[length]",
    ),
    (
        "a namespace is compared label by label",
        "memory.py",
        "found += [item for item in page if tuple(item.namespace[: len(space)]) == space]",
        "found += page",
        f"{_MEMORY}a_store_that_finds_too_much_is_not_trusted",
    ),
    (
        "a label has no dot",
        "memory.py",
        'isinstance(each, str) and each and "." not in each for each in space',
        "isinstance(each, str) and each for each in space",
        f"{_MEMORY}what_is_no_namespace_is_refused[space3]",
    ),
    (
        "a namespace is read to its end",
        "memory.py",
        "        if len(page) < PAGE:\n",
        "        if True:\n",
        f"{_MEMORY}a_namespace_is_read_to_its_end_however_much_is_in_it",
    ),
    (
        "any name of a user makes a namespace",
        "memory.py",
        'each.encode("utf-8", "surrogatepass").hex()',
        "each",
        f"{_MEMORY}any_name_of_a_user_has_memories_of_its_own['a.b']",
    ),
    (
        "a real model needs the flag",
        "models.py",
        'real = self._real and re.fullmatch(r"[\\w.-]+:[\\w./:-]+", name)',
        'real = re.fullmatch(r"[\\w.-]+:[\\w./:-]+", name)',
        f"{_MODELS}an_unknown_model_is_refused_and_so_is_a_real_one_without_the_flag[openai:gpt-5]",
    ),
    (
        "calls of real models have a cap",
        "models.py",
        "        if self._left <= 0:",
        "        if self._left < -9:",
        f"{_MODELS}calls_of_real_models_are_counted_over_all_of_them_and_demo_calls_are_free",
    ),
    (
        "one layer tries again",
        "models.py",
        "init_chat_model(name, max_retries=0)",
        "init_chat_model(name)",
        f"{_MODELS}a_real_one_is_loaded_once_by_its_name_and_tries_nothing_again_by_itself",
    ),
    (
        "each try is paid for",
        "speaking.py",
        "            self._pay()\n",
        "            if number == 1:\n                self._pay()\n",
        f"{_SPEAKING}a_refusal_that_passes_is_tried_again_and_each_try_is_paid_for",
    ),
    (
        "an answer is whole or an error",
        "speaking.py",
        "if finish_of(answers[-1]) not in WHOLE:",
        "if False:",
        f"{_SPEAKING}an_answer_that_was_cut_is_an_error_and_not_asked_for_again[length]",
    ),
    (
        "an answer that nobody calls whole is asked for again",
        "speaking.py",
        "if finish := finish_of(answers[-1]):",
        'if finish := finish_of(answers[-1]) or "stop":',
        f"{_SPEAKING}an_answer_that_nobody_calls_whole_is_asked_for_again",
    ),
    (
        "only the proposer has tools",
        "speaking.py",
        "with_tools = role == PROPOSER and self._tools",
        "with_tools = self._tools",
        f"{_SPEAKING}only_the_proposer_is_offered_tools",
    ),
    (
        "a text in a report has no marks",
        "report.py",
        "[\\\\`*\\[\\]<>|~&]|",
        "[\\\\`*\\[\\]|~&]|",
        f"{_REPORT}no_text_changes_the_form_of_a_report['<script>alert(1)</script>']",
    ),
    (
        "a text in a report begins no block",
        "report.py",
        "|^[-+#=]",
        "",
        f"{_REPORT}no_text_changes_the_form_of_a_report['# Report of run 7']",
    ),
    (
        "a text in a report begins no list",
        "report.py",
        'return _NUMBER.sub(r"\\1\\\\\\2", line)',
        "return line",
        f"{_REPORT}no_text_changes_the_form_of_a_report['1. one']",
    ),
    (
        "whoever makes the tables is waited for",
        "opening.py",
        '.fetchone())["mine"]:',
        ".fetchone()):",
        f"{_OPENING}whoever_makes_the_tables_is_waited_for[postgresql]",
    ),
    (
        "tables that another has just made are looked at again",
        "opening.py",
        'if error.sqlite_errorname.startswith("SQLITE_BUSY"):',
        "if True:",
        f"{_OPENING}tables_that_another_process_has_just_made_are_looked_at_again[sqlite]",
    ),
    (
        "the task of a store ends with the block",
        "opening.py",
        "    if store._task is not None:\n        await stop(store._task)",
        "    pass",
        f"{_OPENING}after_the_block_no_thread_no_task_and_no_connection_is_left[sqlite]",
    ),
    (
        "arguments of a tool are looked at",
        "toolbox.py",
        "if set(arguments) != set(names):",
        "if False:",
        f"{_TESTS}toolbox.py::test_wrong_arguments_are_refused_with_the_reason[{{}}]",
    ),
    (
        "a report tells why a run had failed",
        "report.py",
        '"ask", "answer", "error_code", "error_message")',
        '"ask", "answer")',
        f"{_TESTS}report.py::test_a_failure_that_was_mended_stays_in_the_report_with_its_retry",
    ),
    (
        "a report tells of a retry",
        "report.py",
        'if last == "run_failed" else',
        "if False else",
        f"{_TESTS}report.py::test_a_failure_that_was_mended_stays_in_the_report_with_its_retry",
    ),
)

SAFEGUARDS: Final = of_rows(_LIST, under="labkit/runs/discussion/")
