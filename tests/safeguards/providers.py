"""The safeguards of the providers: scripts are checked, and every world plays them alike."""

from tests.safeguards.kinds import Safeguard

_SCRIPT = "tests/providers/test_script.py"
_PLAYER = "tests/providers/test_player.py"
_WIRE = "tests/providers/test_wire.py"
_SDK = "tests/providers/test_sdk.py"
_SERVER = "tests/providers/test_server.py"
_WORLDS = "tests/providers/test_worlds.py"
_PROCESS = "tests/providers/test_process.py"

SAFEGUARDS = (
    Safeguard(
        name="a script file's errors name the line",
        file="labkit/providers/script.py",
        old='f"line {value.line}: {message}" if isinstance(value, _Located) else message',
        new="message",
        red=(f"{_SCRIPT}::test_the_line_is_that_of_the_step_and_not_of_the_file",),
    ),
    Safeguard(
        name="a name that stands twice in a script is refused",
        file="labkit/providers/script.py",
        old="if len(made) < len(pairs):",
        new="if len(made) > len(pairs):",
        red=(f"{_SCRIPT}::test_a_wrong_step_is_named_with_file_and_line",),
    ),
    Safeguard(
        name="a header of a script cannot break the response apart",
        file="labkit/providers/script.py",
        old=r"[\t\x20-\x7e]*",
        new=r"(?s:.)*",
        red=(f"{_SCRIPT}::test_a_wrong_step_is_named_with_file_and_line",),
    ),
    Safeguard(
        name="the provider gives the loop a turn at every step",
        file="labkit/providers/fake.py",
        old="await asyncio.sleep(step.wait / self.speed)",
        new="await asyncio.sleep(step.wait / self.speed) if step.wait else None",
        red=(f"{_PLAYER}::test_another_task_has_its_turn_between_any_two_steps",),
    ),
    Safeguard(
        name="a client that heard the end is not said to have left",
        file="labkit/providers/fake.py",
        old="over = played.ends",
        new="over = False",
        red=(f"{_PLAYER}::test_a_client_that_hears_the_end_has_not_left",),
    ),
    Safeguard(
        name="[DONE] comes only after a finish reason",
        file="labkit/providers/wire.py",
        old="    if finished:\n        yield DONE",
        new="    yield DONE",
        red=(f"{_WIRE}::test_done_comes_last_and_only_after_a_finish_reason",),
    ),
    Safeguard(
        name="an in-band error that the client lets pass is an error",
        file="labkit/providers/chat.py",
        old='if chunk.get("error") is not None:',
        new='if chunk.get("error"):',
        red=(f"{_SDK}::test_an_error_that_the_client_lets_pass_is_an_error_all_the_same",),
    ),
    Safeguard(
        name="a quota inside a stream is known by its type",
        file="labkit/providers/chat.py",
        old='for name in ("code", "type") if told.get(name)',
        new='for name in ("code",) if told.get(name)',
        red=(f"{_SDK}::test_case_25_a_quota_is_known_by_its_type_also_inside_a_stream",),
    ),
    Safeguard(
        name="an error inside a stream is never definite",
        file="labkit/providers/chat.py",
        old="    error.definite = False\n",
        new="",
        red=(f"{_SDK}::test_an_error_in_the_stream_is_read_by_code_and_type_alone",),
    ),
    Safeguard(
        name="a connection that never was is told from one that broke",
        file="labkit/providers/sdk.py",
        old="isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)",
        new="isinstance(cause, httpx2.HTTPError)",
        red=(f"{_SDK}::test_a_failing_network_is_told_by_the_type_of_its_error",),
    ),
    Safeguard(
        name="the in-process transport enforces the read timeout in virtual time",
        file="labkit/providers/sdk.py",
        old="async with asyncio.timeout(patience):",
        new="async with asyncio.timeout(None):",
        red=(
            f"{_SDK}::test_the_clients_read_timeout_passes_in_virtual_time",
            f"{_SDK}::test_a_stall_of_five_hours_does_not_succeed",
        ),
    ),
    Safeguard(
        name="the SDK runs without asking this machine for a process",
        file="labkit/scenarios/sdk.py",
        old="platform.platform()  # the client asks",
        new="...  # the client asks",
        red=(f"{_SDK}::test_the_first_run_of_a_process_is_like_every_other",),
    ),
    Safeguard(
        name="a drop resets the connection",
        file="labkit/providers/server.py",
        old="            transport.abort()\n            return\n",
        new="",
        red=(
            f"{_SERVER}::test_a_drop_resets_the_connection_inside_the_body",
            f"{_WORLDS}::test_the_sdk_on_a_real_socket_sees_and_causes_what_the_fake_does",
        ),
    ),
    Safeguard(
        name="a client that leaves is noticed",
        file="labkit/providers/server.py",
        old="        leaving.add_done_callback(lambda _: playing.cancel())\n",
        new="",
        red=(
            f"{_SERVER}::test_a_client_that_goes_before_the_answer_begins_is_noted",
            f"{_SERVER}::test_a_stall_keeps_the_stream_open_until_the_client_goes_and_that_is_noted",
        ),
    ),
    Safeguard(
        name="only a request for a stream plays an attempt",
        file="labkit/providers/server.py",
        old='asked.get("stream") is True',
        new='bool(asked.get("stream"))',
        red=(f"{_SERVER}::test_a_bad_request_gets_a_clear_error_and_plays_no_attempt",),
    ),
    Safeguard(
        name="no provider outlives a parent that is killed",
        file="labkit/providers/process.py",
        old="        threading.Thread(target=watch, daemon=True).start()\n",
        new="        pass\n",
        red=(f"{_SERVER}::test_nothing_outlives_a_parent_that_is_killed",),
    ),
    Safeguard(
        name="a forked child that holds the pipe keeps no provider alive",
        file="labkit/providers/process.py",
        old="for watch in (_watch_the_pipe, partial(_watch_the_parent, os.getppid())):",
        new="for watch in (_watch_the_pipe,):",
        red=(f"{_SERVER}::test_a_forked_child_that_holds_the_pipe_keeps_no_provider_alive",),
    ),
    Safeguard(
        name="the provider's process has a session of its own",
        file="labkit/providers/process.py",
        old="start_new_session=True",
        new="start_new_session=False",
        red=(f"{_PROCESS}::test_an_interrupt_of_the_kernels_group_does_not_reach_the_provider",),
    ),
    Safeguard(
        name="the provider of this machine is asked past every proxy",
        file="labkit/providers/process.py",
        old="build_opener(ProxyHandler({}))",
        new="build_opener()",
        red=(f"{_PROCESS}::test_events_are_asked_for_past_every_proxy",),
    ),
    Safeguard(
        name="the golden captures are what their program makes",
        file="data/golden/make.py",
        old='TOOL: Final = "look_up"',
        new='TOOL: Final = "look_down"',
        red=("tests/providers/test_data.py::test_the_golden_captures_are_made_anew_to_the_byte",),
    ),
)
