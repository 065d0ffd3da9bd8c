"""The half of an asyncio loop that reaches outside: each method is refused by name."""

import asyncio
import threading
from collections.abc import Callable
from contextvars import Context
from functools import partial
from typing import Any, Final

from .errors import Refused
from .guard import refuse

_METHODS: Final = {
    "a network connection": "create_connection create_unix_connection create_datagram_endpoint "
    "sock_connect sock_recv sock_recv_into sock_recvfrom sock_recvfrom_into sock_sendall "
    "sock_sendto sock_sendfile sendfile start_tls connect_accepted_socket getaddrinfo getnameinfo",
    "a server": "create_server create_unix_server sock_accept",
    "a subprocess": "subprocess_exec subprocess_shell connect_read_pipe connect_write_pipe",
    "a file descriptor": "add_reader add_writer remove_reader remove_writer",
    "a signal handler": "add_signal_handler remove_signal_handler",
    "a hand on the loop": "run_forever stop shutdown_asyncgens shutdown_default_executor set_debug "
    "set_default_executor set_exception_handler default_exception_handler set_task_factory",
}

# Anything, to the type checker: it would ask here for all the methods of the table.
_Loop: Any = asyncio.AbstractEventLoop


class Outside(_Loop):  # type: ignore[misc]  # see above
    """A loop that belongs to one thread and has no world around it.

    `inline_executor`, when given, is told the function's name and lets executor calls run on the
    spot, as an unmodified SDK needs; without it they are refused.
    """

    def __init__(self, inline_executor: Callable[[str], object] | None = None) -> None:
        self._inline_executor = inline_executor
        self._thread = threading.get_ident()

    def call_soon_threadsafe(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Any:
        """As `call_soon`, from the loop's own thread only: another's timing is not repeatable."""
        if threading.get_ident() != self._thread:
            raise Refused("a call from another thread was refused: a simulation has one thread")
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Run `func` on the spot where the run allows it, else refuse."""
        name = _title(func)
        if self._inline_executor is None:
            refuse(f"a thread for {name!r}", "await an async function")
        self._inline_executor(name)
        future: asyncio.Future[Any] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def get_debug(self) -> bool:
        """Never: debug mode reads the wall clock."""
        return False

    def get_task_factory(self) -> None:
        """None: tasks are asyncio's own."""

    def get_exception_handler(self) -> None:
        """None: the loop keeps the errors that nobody awaited."""


def _title(function: Any) -> str:
    """The function's name; `asyncio.to_thread` wraps it as `partial(context.run, function)`."""
    while isinstance(function, partial):
        wrapped = function.args and getattr(function.func, "__name__", "") == "run"
        function = function.args[0] if wrapped else function.func
    return str(getattr(function, "__name__", "a function"))


def _refused(name: str, what: str) -> Callable[..., Any]:
    def method(self: Outside, *args: Any, **options: Any) -> Any:
        refuse(f"{what} ({name})", "use a fake, or a task")

    method.__name__ = name
    return method


for _what, _names in _METHODS.items():
    for _name in _names.split():
        setattr(Outside, _name, _refused(_name, _what))
