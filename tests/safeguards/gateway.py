"""The safeguards of the shell tool, the gateway with its parts, and its shutdown."""

from __future__ import annotations

from typing import Final

from .kinds import Row, of_rows

SHELL: Final = "labkit/services/shell.py"
TREE: Final = "labkit/services/process_tree.py"
SHUTDOWN: Final = "labkit/recovery/shutdown.py"
GATEWAY: Final = "labkit/services/gateway.py"
CHANNELS: Final = "labkit/services/channels.py"
TRANSPORT: Final = "labkit/services/transport.py"
TURNS: Final = "labkit/services/turns.py"
COMMAND: Final = "labkit/commands/gateway.py"
TURN: Final = "labkit/recovery/turn.py"
MAILBOX: Final = "labkit/recovery/mailbox.py"
DISPATCH: Final = "labkit/recovery/dispatch.py"

_SHELL: Final = "tests/services/test_shell.py::"
_SHUTDOWN: Final = "tests/recovery/test_shutdown.py::"
_GATEWAY: Final = "tests/services/test_gateway.py::"
_CHANNELS: Final = "tests/services/test_channels.py::"
_TRANSPORT: Final = "tests/services/test_transport.py::"
_TURNS: Final = "tests/services/test_turns.py::"
_COMMAND: Final = "tests/commands/test_gateway.py::"
_TURN: Final = "tests/recovery/test_turn.py::"
_MAILBOX: Final = "tests/recovery/test_mailbox.py::"
_DISPATCH: Final = "tests/recovery/test_dispatch.py::"
_FAILS: Final = (
    f"{_DISPATCH}test_what_made_a_turn_fail_is_told_whole_and_all_who_wrote_in_it_get_a_short_line"
)
_WIDELY: Final = f"{_TURNS}test_each_answer_of_a_turn_goes_at_once_to_all_who_have_written_in_it"

# name, file, old, new, and the tests that must go red
_LIST: Final[tuple[Row, ...]] = (
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
        TURN,
        "    finally:\n        if text and",
        "    except LookupError:\n        raise\n    else:\n        if text and",
        (
            f"{_TURNS}test_an_answer_that_a_stop_came_too_late_for_is_told",
            f"{_TURN}test_every_text_of_the_model_that_is_kept_is_said_wherever_a_cancel_strikes",
        ),
    ),
    (
        "a text that could not be saved is not said",
        TURN,
        "if text and checkpoint.session.version > changed.version:",
        "if text:",
        (f"{_TURN}test_a_text_whose_write_was_refused_is_not_said",),
    ),
    (
        "what is empty is not said",
        TURN,
        "if text and checkpoint.",
        "if checkpoint.",
        (f"{_TURN}test_a_call_without_a_text_says_nothing",),
    ),
    (
        "an answer that another message follows is said",
        TURN,
        'await _say(text, add_step(checkpoint.session, step), "said", checkpoint, services)',
        'await checkpoint.save(add_step(checkpoint.session, step), "said")',
        (_WIDELY,),
    ),
    (
        "who has joined a turn is remembered",
        MAILBOX,
        "        self._joined[message.channel] = message\n",
        "",
        (
            f"{_MAILBOX}test_of_each_channel_the_newest_message_that_was_taken_is_remembered",
            _WIDELY,
        ),
    ),
    (
        "who has joined a turn is answered",
        TURNS,
        "in mailbox.writers(message):",
        "in [message]:",
        (_WIDELY,),
    ),
    (
        "who has joined a turn hears that it failed",
        DISPATCH,
        "in turn.mailbox.writers(message):",
        "in [message]:",
        (_FAILS,),
    ),
    (
        "what made a turn fail is told",
        DISPATCH,
        'self._tell("turn_failed", message, error=type(error).__name__, told=str(error))',
        "pass",
        (
            _FAILS,
            f"{_COMMAND}test_what_fails_is_told_whole_to_the_operator_and_shortly_to_the_user",
        ),
    ),
    (
        "a channel that fails ends no turn",
        DISPATCH,
        "            self._answer(message, text)\n        except Exception as error:",
        "            self._answer(message, text)\n        except LookupError as error:",
        (f"{_TURNS}test_a_channel_that_fails_ends_no_turn_and_is_told",),
    ),
    (
        "a command never reaches the model",
        TURNS,
        "if command := command_of(message.text):",
        "if command := '':",
        (
            f"{_TURNS}test_a_command_is_answered_in_one_line_and_never_reaches_the_model"
            "[/help-Commands: ]",
        ),
    ),
    (
        "a command that was not answered is not kept for the model",
        TURNS,
        "        if command_of(message.text):\n            return\n",
        "",
        (
            f"{_TURNS}test_a_command_is_answered_in_one_line_and_never_reaches_the_model"
            "[/help-Commands: ]",
        ),
    ),
    (
        "an answer goes to those only who wrote for its session",
        CHANNELS,
        "if session in sessions:",
        "if True:",
        (
            f"{_CHANNELS}"
            "test_an_answer_goes_to_every_connection_that_wrote_for_the_session_and_is_open",
        ),
    ),
    (
        "a line that is too long is told",
        CHANNELS,
        "        say(TOO_LONG)\n",
        "        pass\n",
        (
            f"{_CHANNELS}test_what_is_not_utf8_or_too_long_does_no_harm",
            f"{_CHANNELS}test_a_terminals_line_that_is_too_long_is_told",
        ),
    ),
    (
        "who is cut off can read why",
        CHANNELS,
        "                while await reader.read(LONGEST):\n                    pass\n",
        "                pass\n",
        (f"{_CHANNELS}test_a_client_who_goes_on_writing_reads_why_it_is_cut_off",),
    ),
    (
        "who never stops writing is cut off",
        CHANNELS,
        "asyncio.timeout(LINGER)",
        "asyncio.timeout(60)",
        (f"{_CHANNELS}test_a_client_who_never_stops_writing_is_cut_off_all_the_same",),
    ),
    (
        "clients are told that the gateway is closing",
        CHANNELS,
        "                _write(writer, CLOSING)\n",
        "",
        (f"{_CHANNELS}test_after_the_cancel_nothing_is_read_and_answers_still_go_out",),
    ),
    (
        "a program's bounds are numbers",
        SHELL,
        "if not numbers or not 0",
        "if not 0",
        (f"{_SHELL}test_a_bound_that_is_none_is_refused[wrong2]",),
    ),
    (
        "a program's folder is a path",
        SHELL,
        "not isinstance(folder, (str, os.PathLike)) or not",
        "not",
        (f"{_SHELL}test_a_folder_of_a_wrong_type_is_named[None]",),
    ),
    (
        "no key stands on the operator's console",
        COMMAND,
        'scrub(details["told"])',
        'details["told"]',
        (f"{_COMMAND}test_what_is_told_to_the_operator_is_one_line_without_keys",),
    ),
    (
        "a recovery makes no session",
        COMMAND,
        "if not path.exists():",
        "if False:",
        (f"{_COMMAND}test_a_session_that_is_not_there_is_not_made_by_its_recovery",),
    ),
    (
        "a folder that is none is refused before anything is written",
        COMMAND,
        "if not folder.strip() or (",
        "if False and (",
        (
            f"{_COMMAND}"
            "test_a_folder_that_is_a_file_or_has_no_name_is_refused_in_a_clear_line[file]",
        ),
    ),
    (
        "a limit that is no number is one line",
        COMMAND,
        "limit_from_environment()  # an",
        "pass  # an",
        (f"{_COMMAND}test_a_limit_that_is_no_number_is_named",),
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
        COMMAND,
        "int(bool(files.failures) or any(",
        "int(any(",
        (f"{_COMMAND}test_a_session_that_cannot_be_flushed_is_named",),
    ),
)

SAFEGUARDS: Final = of_rows(_LIST)
