"""Small asyncio programs; each writes a log, and `tick` is a short wait in seconds.

Waits that must not be mistaken for one another differ by far, so that the logs are the same on a
real loop under load.
"""

# ruff: noqa: RUF006 - tasks that nobody holds are part of the programs

import asyncio
import contextvars
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

Log = Callable[[object], None]
Program = Callable[[Log, float], Awaitable[None]]

_var: contextvars.ContextVar[str] = contextvars.ContextVar("_var", default="unset")
LONG = 10_000


async def call_soon_in_order(log: Log, tick: float) -> None:
    loop = asyncio.get_running_loop()
    for number in range(5):
        loop.call_soon(log, number)
    asyncio.create_task(_say(log, "task"))
    loop.call_soon(log, "last")
    await asyncio.sleep(0)
    log("client")
    await asyncio.sleep(0)


async def timers_by_time(log: Log, tick: float) -> None:
    loop = asyncio.get_running_loop()
    for number in (5, 1, 9, 3):
        loop.call_later(number * tick, log, number)
    handle = loop.call_later(2 * tick, log, "never")
    handle.cancel()
    log(handle.cancelled())
    log(handle.when() > 0)
    await asyncio.sleep(12 * tick)


async def negative_and_zero_waits(log: Log, tick: float) -> None:
    asyncio.create_task(_say(log, "task"))
    await asyncio.sleep(-5)
    log("after -5")
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_later(-1, log, "late already")
    await asyncio.sleep(tick)


async def timeout_that_strikes(log: Log, tick: float) -> None:
    try:
        async with asyncio.timeout(tick) as scope:
            await asyncio.sleep(LONG)
    except TimeoutError as error:
        log(f"{error!r} {scope.expired()}")


async def timeout_that_does_not(log: Log, tick: float) -> None:
    async with asyncio.timeout(LONG) as scope:
        log(await asyncio.sleep(tick, "slept"))
        scope.reschedule(None)
        log(scope.when())
    log(scope.expired())


async def nested_timeouts(log: Log, tick: float) -> None:
    try:
        async with asyncio.timeout(LONG):
            try:
                async with asyncio.timeout(tick):
                    await asyncio.sleep(LONG)
            except TimeoutError:
                log("inner")
            await asyncio.sleep(tick)
            log("outer goes on")
    except TimeoutError:
        log("outer")


async def timeout_turns_a_cancel_into_an_error_only_where_it_is_its_own(
    log: Log, tick: float
) -> None:
    async def work() -> None:
        async with asyncio.timeout(LONG):
            await asyncio.sleep(LONG)

    task = asyncio.create_task(work())
    await asyncio.sleep(tick)
    task.cancel("by hand")
    try:
        await task
    except asyncio.CancelledError:
        log("cancelled")
    log(task.cancelled())


async def wait_for_three_ends(log: Log, tick: float) -> None:
    log(await asyncio.wait_for(asyncio.sleep(tick, "result"), LONG))
    try:
        await asyncio.wait_for(asyncio.sleep(LONG), tick)
    except TimeoutError:
        log("timeout")
    task = asyncio.create_task(asyncio.wait_for(_tidy(log, LONG), LONG))
    await asyncio.sleep(tick)
    task.cancel()
    await asyncio.wait([task])
    log(task.cancelled())


async def queue_with_two_workers(log: Log, tick: float) -> None:
    queue: asyncio.Queue[int] = asyncio.Queue(maxsize=2)

    async def worker(name: str) -> None:
        while True:
            log(f"{name} {await queue.get()}")
            queue.task_done()

    workers = [asyncio.create_task(worker(name)) for name in "ab"]
    for number in range(6):
        await queue.put(number)
    await queue.join()
    for task in workers:
        task.cancel()
    log(await asyncio.gather(*workers, return_exceptions=True))
    log(queue.empty())


async def priority_queue(log: Log, tick: float) -> None:
    queue: asyncio.PriorityQueue[int] = asyncio.PriorityQueue()
    for number in (3, 1, 2):
        queue.put_nowait(number)
    log([await queue.get() for _ in range(3)])


async def lock_is_fair(log: Log, tick: float) -> None:
    lock = asyncio.Lock()

    async def hold(name: str) -> None:
        async with lock:
            log(f"{name} in")
            await asyncio.sleep(tick)
            log(f"{name} out")

    await asyncio.gather(*map(hold, "abc"))


async def semaphore_and_event(log: Log, tick: float) -> None:
    semaphore, event = asyncio.Semaphore(2), asyncio.Event()

    async def enter(name: str) -> None:
        async with semaphore:
            log(f"{name} in")
            await event.wait()
        log(f"{name} out")

    tasks = [asyncio.create_task(enter(name)) for name in "abcd"]
    await asyncio.sleep(tick)
    log("open")
    event.set()
    await asyncio.wait(tasks)


async def condition(log: Log, tick: float) -> None:
    ready, there = [], asyncio.Condition()

    async def wait(name: str) -> None:
        async with there:
            await there.wait_for(lambda: bool(ready))
            log(name)

    tasks = [asyncio.create_task(wait(name)) for name in "ab"]
    await asyncio.sleep(tick)
    async with there:
        there.notify_all()
    await asyncio.sleep(tick)
    async with there:
        ready.append(1)
        there.notify_all()
    await asyncio.gather(*tasks)


async def barrier(log: Log, tick: float) -> None:
    meet = asyncio.Barrier(3)

    async def come(name: str) -> None:
        log(f"{name} comes")
        await meet.wait()
        log(f"{name} goes")

    await asyncio.gather(*map(come, "abc"))


async def gather_with_an_error(log: Log, tick: float) -> None:
    try:
        await asyncio.gather(_say(log, "first"), _fail("second"), _tidy(log, 3 * tick))
    except ValueError as error:
        log(repr(error))
    log(await asyncio.gather(_fail("x"), asyncio.sleep(0, "y"), return_exceptions=True))
    await asyncio.sleep(20 * tick)


async def task_group_cancels_the_others(log: Log, tick: float) -> None:
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_tidy(log, LONG))
            await asyncio.sleep(tick)
            group.create_task(_fail("broke"))
    except* ValueError as errors:
        log([repr(error) for error in errors.exceptions])


async def task_group_in_order(log: Log, tick: float) -> None:
    async with asyncio.TaskGroup() as group:
        made = [group.create_task(asyncio.sleep(n * tick, n), name=f"t{n}") for n in (3, 1, 2)]
    log([(task.get_name(), task.result()) for task in made])


async def wait_for_the_first(log: Log, tick: float) -> None:
    tasks = [asyncio.create_task(asyncio.sleep(n, n)) for n in (LONG, tick, LONG)]
    done, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    log((len(done), len(rest), done == {tasks[1]}))
    for task in rest:
        task.cancel()
    done, rest = await asyncio.wait(tasks, timeout=LONG)
    log((len(done), len(rest), [task.cancelled() for task in tasks]))
    log(len((await asyncio.wait([asyncio.create_task(_tidy(log, LONG))], timeout=tick))[1]))


async def cancel_cleans_up_and_leaves(log: Log, tick: float) -> None:
    task = asyncio.create_task(_tidy(log, LONG))
    await asyncio.sleep(0)
    log(task.cancel("why"))
    try:
        await task
    except asyncio.CancelledError as error:
        log(error.args)
    log((task.cancelled(), task.cancel()))


async def cancel_before_the_start(log: Log, tick: float) -> None:
    task = asyncio.create_task(_tidy(log, LONG))
    task.cancel()
    await asyncio.wait([task])
    log(task.cancelled())


async def cancel_that_is_swallowed(log: Log, tick: float) -> None:
    async def deaf() -> str:
        try:
            await asyncio.sleep(LONG)
        except asyncio.CancelledError:
            log(asyncio.current_task().cancelling())  # type: ignore[union-attr]
            asyncio.current_task().uncancel()  # type: ignore[union-attr]
        await asyncio.sleep(tick)
        return "went on"

    task = asyncio.create_task(deaf())
    await asyncio.sleep(tick)
    task.cancel()
    log(await task)
    log(task.cancelled())


async def shield(log: Log, tick: float) -> None:
    inner = asyncio.create_task(_tidy(log, 20 * tick))
    outer = asyncio.create_task(_shielded(inner))
    await asyncio.sleep(tick)
    outer.cancel()
    await asyncio.wait([outer])
    log((outer.cancelled(), inner.done()))
    await inner
    log(inner.result())


async def cancel_from_a_timer(log: Log, tick: float) -> None:
    task = asyncio.create_task(_tidy(log, LONG))
    asyncio.get_running_loop().call_later(tick, task.cancel)
    await asyncio.wait([task])
    log(task.cancelled())


async def async_generator_is_closed(log: Log, tick: float) -> None:
    async with aclosing(_numbers(log, tick)) as numbers:
        async for number in numbers:
            log(number)
            if number == 1:
                break
    log("closed")
    log([number async for number in _numbers(log, tick) if number])


async def dropped_generator_is_closed_soon(log: Log, tick: float) -> None:
    async for _ in _numbers(log, tick):
        break
    log("dropped")
    await asyncio.sleep(5 * tick)
    log("later")


async def generator_takes_what_is_sent(log: Log, tick: float) -> None:
    async def echo() -> Any:
        got = yield "ready"
        while True:
            await asyncio.sleep(tick)
            try:
                got = yield got
            except ValueError:
                got = yield "thrown"

    talk = echo()
    log(await anext(talk))
    log(await talk.asend("one"))
    log(await talk.athrow(ValueError("two")))
    await talk.aclose()
    log(await anext(talk, "the end"))


async def context_of_a_task_is_its_own(log: Log, tick: float) -> None:
    async def work(value: str) -> None:
        _var.set(value)
        await asyncio.sleep(tick)
        log(_var.get())

    await asyncio.gather(work("a"), work("b"))
    log(_var.get())
    _var.set("main")
    asyncio.get_running_loop().call_soon(lambda: log(_var.get()))
    await asyncio.sleep(tick)
    log(_var.get())


async def empty_context_is_kept(log: Log, tick: float) -> None:
    async def work() -> None:
        log(_var.get())
        _var.set("inside")
        await asyncio.sleep(tick)
        await asyncio.sleep(0)
        log(_var.get())

    _var.set("outside")
    empty = contextvars.Context()
    await asyncio.create_task(work(), context=empty)
    log(empty[_var])
    log(_var.get())


async def callback_that_fails(log: Log, tick: float) -> None:
    def fail() -> None:
        raise ValueError("in a callback")

    asyncio.get_running_loop().call_soon(fail)
    asyncio.get_running_loop().call_soon(log, "next")
    await asyncio.sleep(tick)
    log("goes on")


async def future_and_its_callbacks(log: Log, tick: float) -> None:
    future = asyncio.get_running_loop().create_future()
    future.add_done_callback(lambda done: log(f"callback {done.result()}"))
    asyncio.get_running_loop().call_later(tick, future.set_result, "set")
    log(await future)
    future = asyncio.get_running_loop().create_future()
    future.set_exception(KeyError("bad"))
    try:
        await future
    except KeyError as error:
        log(repr(error))


async def turns_alternate(log: Log, tick: float) -> None:
    async def count(name: str) -> None:
        for number in range(3):
            log(f"{name}{number}")
            await asyncio.sleep(0)

    await asyncio.gather(count("a"), count("b"))


async def run_within_a_loop_is_an_error(log: Log, tick: float) -> None:
    work = asyncio.sleep(0)
    for run in (asyncio.run, asyncio.Runner().run):
        try:
            run(work)
        except RuntimeError as error:
            log(error)
    work.close()
    log(asyncio.get_running_loop().is_running())
    log(asyncio.get_running_loop().is_closed())
    log(asyncio.get_running_loop().get_debug())


async def future_of_another_loop(log: Log, tick: float) -> None:
    other = asyncio.new_event_loop()
    try:
        await other.create_future()
    except RuntimeError as error:
        log("attached to a different loop" in str(error))
    finally:
        other.close()


async def threadsafe_call_from_its_own_thread(log: Log, tick: float) -> None:
    asyncio.get_running_loop().call_soon_threadsafe(log, "called")
    await asyncio.sleep(tick)


async def streams_of_completion(log: Log, tick: float) -> None:
    waits = [asyncio.sleep(number * tick, number) for number in (30, 1, 15)]
    log([await first for first in asyncio.as_completed(waits)])


async def _say(log: Log, text: str) -> None:
    log(text)


async def _fail(text: str) -> None:
    raise ValueError(text)


async def _tidy(log: Log, seconds: float) -> str:
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        log("tidied")
        raise
    finally:
        log("left")
    return "slept"


async def _shielded(inner: "asyncio.Task[str]") -> str:
    return await asyncio.shield(inner)


async def _numbers(log: Log, tick: float) -> AsyncIterator[int]:
    try:
        for number in range(4):
            await asyncio.sleep(tick)
            yield number
    finally:
        await asyncio.sleep(0)
        log("generator left")


PROGRAMS: dict[str, Program] = {
    name: program
    for name, program in list(globals().items())
    if asyncio.iscoroutinefunction(program) and not name.startswith("_")
}
