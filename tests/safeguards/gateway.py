"""The safeguards of the shell tool, the gateway with its parts, and its shutdown."""

from __future__ import annotations

from typing import Final

from tests.safeguards.kinds import Safeguard

SHELL: Final = "labkit/services/shell.py"
TREE: Final = "labkit/services/process_tree.py"
SHUTDOWN: Final = "labkit/recovery/shutdown.py"
GATEWAY: Final = "labkit/services/gateway.py"
CHANNELS: Final = "labkit/services/channels.py"
TRANSPORT: Final = "labkit/services/transport.py"
TURNS: Final = "labkit/services/turns.py"

_SHELL: Final = "tests/services/test_shell.py::"
_SHUTDOWN: Final = "tests/recovery/test_shutdown.py::"
_GATEWAY: Final = "tests/services/test_gateway.py::"
_CHANNELS: Final = "tests/services/test_channels.py::"
_TRANSPORT: Final = "tests/services/test_transport.py::"
_TURNS: Final = "tests/services/test_turns.py::"
_COMMAND: Final = "tests/commands/test_gateway.py::"

# name, file, old, new, and the tests that must go red
_LIST: Final[tuple[tuple[str, str, str, str, tuple[str, ...]], ...]] = (
    (
        "a program is in a session of its own",
        SHELL,
        "                start_new_session=True,\n",
        "",
        (f"{_SHELL}test_a_program_is_in_a_session_of_its_own",),
    ),
    (
        "a program does not see our keys",
        TREE,
        "return {MARK: mark, **{",
        "return {MARK: mark, **os.environ, **{",
        (f"{_SHELL}test_a_program_runs_in_its_folder_without_input_and_without_our_keys",),
    ),
    (
        "a daemon is found by its mark",
        TREE,
        ".get(MARK) == mark:",
        '.get(MARK) == "":',
        (
            f"{_SHELL}test_a_cancel_ends_all_that_was_started_wherever_it_went"
            "[os.setsid(); os.fork() and os._exit(0)]",
        ),
    ),
    (
        "who has left session and environment is found by its parent",
        TREE,
        'if p.info["ppid"] in ours}',
        'if p.info["ppid"] in ()}',
        (f"{_SHELL}test_a_cancel_ends_all_that_was_started_wherever_it_went[leave4]",),
    ),
    (
        "who has lost parent and environment is found by its session",
        TREE,
        "return os.getsid(process.pid) == session",
        "return False",
        (f"{_SHELL}test_a_pipe_that_another_holds_open_is_not_waited_for[leave3]",),
    ),
    (
        "what was adopted is reaped",
        TREE,
        "                os.waitpid(number, os.WNOHANG)\n",
        "                pass\n",
        (f"{_SHELL}test_what_had_its_parent_still_is_reaped_too[pass]",),
    ),
    (
        "output takes a bounded room",
        SHELL,
        "[-self._half :]",
        "",
        (f"{_SHELL}test_of_too_much_output_the_first_and_the_last_half_stay[9]",),
    ),
    (
        "a pipe that another holds open is not waited for",
        SHELL,
        "            await asyncio.wait([program.closed], timeout=grace)\n",
        "            await asyncio.wait([program.closed], timeout=6)\n",
        (f"{_SHELL}test_a_pipe_that_another_holds_open_is_not_waited_for[pass]",),
    ),
    (
        "a cancel in the middle of a start loses no process",
        SHELL,
        'await to_the_end(program.start(argv, folder), name="start")',
        "await program.start(argv, folder)",
        (f"{_SHELL}test_a_cancel_while_it_starts_loses_nothing_that_it_has_started_already",),
    ),
    (
        "a program is ended whatever happens",
        SHELL,
        '        await to_the_end(program.end(grace), name="end")  # breakpoint',
        "        pass  # breakpoint",
        (f"{_SHELL}test_case_65_a_cancel_ends_the_loop_in_the_background_and_leaves",),
    ),
    (
        "the tool runs nothing but its own programs",
        SHELL,
        'if arguments.get("program") in tuple(programs):',
        "if True:",
        (f"{_SHELL}test_the_tool_runs_its_own_programs_by_name_and_nothing_else",),
    ),
    (
        "the tool is not given up before its program is ended",
        SHELL,
        "limit=limit + 2 * REAPING)",
        "limit=limit)",
        (f"{_SHELL}test_the_tool_ends_a_program_before_anybody_gives_the_tool_up",),
    ),
    (
        "a step of the shutdown has its limit",
        SHUTDOWN,
        "timeout=step.limit,",
        "timeout=None,",
        (
            f"{_SHUTDOWN}test_a_step_that_hangs_is_abandoned_at_its_limit_and_the_next_one_runs",
            f"{_GATEWAY}test_a_part_that_hangs_is_abandoned_by_name_and_the_sessions_are_flushed"
            "[stop tcp-stop channel tcp-13]",
        ),
    ),
    (
        "a hurry waits for the sessions",
        SHUTDOWN,
        "[task] if step.always else [task, hurry]",
        "[task, hurry]",
        (
            f"{_SHUTDOWN}"
            "test_in_a_hurry_every_step_begins_and_only_those_that_must_are_waited_for[0]",
        ),
    ),
    (
        "a hurry waits for nothing else",
        SHUTDOWN,
        "[task] if step.always else [task, hurry]",
        "[task]",
        (
            f"{_SHUTDOWN}"
            "test_in_a_hurry_every_step_begins_and_only_those_that_must_are_waited_for[1.0]",
            f"{_COMMAND}test_a_second_signal_skips_what_hangs_and_flushes_all_the_same",
        ),
    ),
    (
        "what is abandoned is asked to leave",
        SHUTDOWN,
        "        task.cancel()\n",
        "",
        (f"{_SHUTDOWN}test_a_step_that_hangs_is_abandoned_at_its_limit_and_the_next_one_runs",),
    ),
    (
        "the sessions come last",
        GATEWAY,
        "            *channels,\n            *transports,\n"
        '            Step("flush sessions", self._flush, limits.sessions, always=True),\n',
        '            Step("flush sessions", self._flush, limits.sessions, always=True),\n'
        "            *channels,\n            *transports,\n",
        (f"{_GATEWAY}test_it_ends_in_the_order_of_the_table",),
    ),
    (
        "the turns end while the channels are open",
        GATEWAY,
        '            Step("stop turns", self.dispatcher.close, limits.turns),\n'
        "            *channels,\n",
        "            *channels,\n"
        '            Step("stop turns", self.dispatcher.close, limits.turns),\n',
        (f"{_GATEWAY}test_a_shutdown_cancels_the_turns_before_the_channels_stop",),
    ),
    (
        "a cancel of the gateway is a stop",
        GATEWAY,
        "                self.stop()\n",
        "                pass\n",
        (f"{_GATEWAY}test_a_cancel_is_a_stop_and_leaves_when_all_has_ended[cancels0-12.0]",),
    ),
    (
        "a cancel of the gateway leaves",
        GATEWAY,
        "            raise cancelled\n",
        "            pass\n",
        (f"{_GATEWAY}test_a_cancel_is_a_stop_and_leaves_when_all_has_ended[cancels0-12.0]",),
    ),
    (
        "a part that fails ends the gateway",
        GATEWAY,
        "                self._stopping.set_result(None)\n",
        "                pass\n",
        (f"{_GATEWAY}test_a_part_that_fails_ends_the_gateway_and_is_named",),
    ),
    (
        "a part that failed is no good end",
        GATEWAY,
        "                raise error\n",
        "                pass\n",
        (f"{_GATEWAY}test_a_part_that_fails_ends_the_gateway_and_is_named",),
    ),
    (
        "nothing runs before the transports are open",
        GATEWAY,
        "        if not self._stopping.done():\n            inbound",
        "        if True:\n            inbound",
        (
            f"{_GATEWAY}test_a_transport_that_cannot_be_opened_ends_the_gateway_before_anything_runs",
        ),
    ),
    (
        "nothing is read that no turn will see",
        CHANNELS,
        "                task.cancel()\n",
        "                pass\n",
        (f"{_CHANNELS}test_after_the_cancel_nothing_is_read_and_answers_still_go_out",),
    ),
    (
        "no line of an answer passes for another session's",
        CHANNELS,
        '*[f"{session}: {line}" for line in text.splitlines()]',
        'f"{session}: {text}"',
        (f"{_CHANNELS}test_each_line_of_an_answer_names_its_session",),
    ),
    (
        "a client who does not read costs a bounded room",
        CHANNELS,
        "get_write_buffer_size() > MOST_UNREAD:",
        "get_write_buffer_size() < 0:",
        (f"{_CHANNELS}test_a_client_who_does_not_read_holds_nobody_up_and_loses_the_connection",),
    ),
    (
        "a stop that is given up closes the connections",
        CHANNELS,
        "if writer.transport.get_write_buffer_size():  # else",
        "if False:  # else",
        (f"{_CHANNELS}test_a_stop_that_is_given_up_closes_the_connections_all_the_same",),
    ),
    (
        "an answer finds its call",
        TRANSPORT,
        'self._waiting.get(told["id"])',
        "next(iter(self._waiting.values()))",
        (f"{_TRANSPORT}test_answers_may_come_in_any_order",),
    ),
    (
        "a call to a server that is gone fails at once",
        TRANSPORT,
        "            self._gone = True\n",
        "",
        (
            f"{_TRANSPORT}test_a_call_to_a_server_that_goes_or_talks_nonsense_is_unknown"
            "[input(); print('7'); input()]",
        ),
    ),
    (
        "a tool server ends with all that it has started",
        TRANSPORT,
        "        end_tree(process.pid, mark)\n",
        "        process.kill()\n",
        (f"{_TRANSPORT}test_a_server_that_does_not_end_is_ended_with_all_that_it_has_started",),
    ),
    (
        "a message that is stopped while its session loads is kept",
        TURNS,
        "            await to_the_end(self.unanswered(message))\n",
        "",
        (f"{_TURNS}test_a_message_that_is_stopped_while_its_session_loads_is_kept",),
    ),
    (
        "an answer that is kept is told",
        TURNS,
        "            if mailbox.closed:  # the",
        "            if False:  # the",
        (f"{_TURNS}test_an_answer_that_a_stop_came_too_late_for_is_told",),
    ),
    (
        "an end is no user's stop",
        TURNS,
        "lambda: not gateway.stopping",
        "lambda: True",
        (f"{_COMMAND}test_a_signal_ends_it_in_order_and_keeps_what_happened[15]",),
    ),
    (
        "a session that the disk refused is no good end",
        "labkit/commands/gateway.py",
        "int(bool(files.failures) or any(",
        "int(any(",
        (f"{_COMMAND}test_a_session_that_cannot_be_flushed_is_named",),
    ),
)

SAFEGUARDS: Final = tuple(
    Safeguard(name=name, file=file, old=old, new=new, red=red)
    for name, file, old, new, red in _LIST
)
