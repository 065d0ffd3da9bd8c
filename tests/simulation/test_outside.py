"""The loop's own methods that reach outside, each refused by name."""

import asyncio
import threading
from typing import Any

import pytest

from labkit.simulation import Observer, Refused, simulate
from labkit.simulation.loop import VirtualLoop
from labkit.simulation.outside import Outside

from .kit import scenario

OUTSIDE = (
    "create_connection create_datagram_endpoint create_server create_unix_server sock_connect "
    "sock_recv sock_sendall sock_accept getaddrinfo start_tls subprocess_exec subprocess_shell "
    "connect_read_pipe add_reader remove_writer add_signal_handler run_forever stop set_debug "
    "set_default_executor set_exception_handler set_task_factory shutdown_asyncgens"
).split()


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_method_that_reaches_outside_is_refused_by_name(name: str) -> None:
    with pytest.raises(Refused, match=f"the loop's {name} was refused: .* use a fake"):
        getattr(VirtualLoop(), name)(None)


def test_every_method_of_a_loop_is_either_there_or_refused() -> None:
    names = [name for name in vars(asyncio.AbstractEventLoop) if not name.startswith("_")]
    own = {name for kind in (VirtualLoop, Outside) for name in vars(kind)}  # the refused too
    assert len(names) > 50
    assert set(names) - own == set()


@pytest.mark.parametrize(
    ("ask", "what"),
    [
        (lambda: asyncio.open_connection("127.0.0.1", 9), "the loop's create_connection"),
        (lambda: asyncio.start_server(print, "127.0.0.1", 0), "the loop's create_server"),
        (lambda: asyncio.create_subprocess_exec("true"), "the loop's subprocess_exec"),
        (lambda: asyncio.to_thread(print), "a thread for 'print'"),
    ],
)
def test_asyncios_own_helpers_are_refused(ask: Any, what: str) -> None:
    async def client(provider: Any, policy: Any, observe: Observer) -> None:
        await ask()

    run = simulate(scenario(client))
    assert isinstance(run.error, Refused)
    assert what in str(run.error)


def test_executor_calls_run_on_the_spot_where_the_scenario_allows_it() -> None:
    async def client(provider: Any, policy: Any, observe: Observer) -> Any:
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(divmod, 1, 0)
        return await asyncio.to_thread(sum, [1, 2])

    run = simulate(scenario(client, sdk=True))
    assert run.result == 3
    assert [e["function"] for e in run.trace if e.kind == "executor"] == ["divmod", "sum"]


def test_a_call_from_another_thread_is_refused_there() -> None:
    loop = VirtualLoop()
    caught: list[Exception] = []

    def call() -> None:
        try:
            loop.call_soon_threadsafe(print)
        except Refused as error:
            caught.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert "another thread" in str(caught[0])
