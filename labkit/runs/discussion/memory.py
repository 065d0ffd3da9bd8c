"""What is remembered of a user from one discussion to the next, on a store of LangGraph.

Rules: only stable facts, few and short; a fact counts once the run that it comes from is completed,
and only if the claim that has kept it is the one of the run's last step: what a zombie keeps late
counts never, and is deleted as soon as it is seen. It is seen, corrected and deleted by its owner;
a key that was deleted stays so, whatever correction was under way; a run that has used a fact keeps
it in its steps. Namespaces are compared label by label, whatever a store makes of dots, wildcards
and prefixes.

    memories = Memories(store, completed)
    await memories.keep(run, ["The budget is 5,000"], at=now)
    await memories.of(owner, most=5)       # the newest first
"""

from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from langgraph.store.base import BaseStore, Item

from labkit.recovery.run_states import RunError
from labkit.recovery.stream.record import Owner

from ..record import AgentRun
from .checkpoints import answering, thread_of
from .talk import storable

MOST_FACTS: Final = 3  # of a run
LONGEST: Final = 200  # characters of a fact
LOADED: Final = 5  # at the beginning of a discussion
LISTED: Final = 50
PAGE: Final = 200
FACTS: Final = "facts"
GONE: Final = "gone"  # the keys of those that were deleted
Completed = Callable[[str, Owner], Awaitable[str | None]]


class UnknownMemory(RunError, LookupError):
    """This user has no such memory: list them."""


class BadNamespace(RunError, ValueError):
    """A label of a namespace is a text that is not empty and has no dot."""


class Memory(NamedTuple):
    """One fact: its key, the run that it comes from, and when it was kept."""

    key: str
    text: str
    run_id: str
    at: float


class Memories:
    """The memories of all users.

    `completed(run_id, owner)`: the thread of the claim that has done the run's last step, "" where
    nothing of the run will ever count, or None where that is open.
    """

    def __init__(self, store: BaseStore, completed: Completed) -> None:
        self._store = store
        self._completed = completed

    async def of(self, owner: Owner, *, most: int = LISTED) -> list[Memory]:
        """Those that count, the newest first. Raises `StoreDown`."""
        found: list[Memory] = []
        last: dict[str, str | None] = {}
        kept = await below(self._store, space_of(owner))
        gone = {item.key for item in await below(self._store, space_of(owner, GONE))}
        for item in sorted(kept, key=lambda each: (-each.value["at"], each.key)):
            run_id = item.value["run"]
            if run_id not in last:
                last[run_id] = await self._completed(run_id, owner)
            if item.value["thread"] == last[run_id] and item.key not in gone:
                found.append(memory_of(item))  # breakpoint: memory counts
            elif last[run_id] is not None:  # it will never count
                await self._removed(owner, item.key)
            if len(found) == most:
                break
        return found

    async def keep(self, run: AgentRun, facts: Sequence[str], *, at: float) -> None:
        """Those of a run, in the place of what an earlier try of this claim has kept."""
        space, about = space_of(run.owner), {"run": run.run_id, "at": at}
        about["thread"] = thread = thread_of(run.run_id, run.fence)
        async with answering():
            for number in range(MOST_FACTS):
                key = f"{thread.replace('/', '-')}-{number + 1}"  # a part of a path
                if number < len(facts):
                    await self._store.aput(space, key, {"text": facts[number], **about})
                else:
                    await self._store.adelete(space, key)

    async def correct(self, owner: Owner, key: str, text: str) -> Memory:
        """Say it better. Raises `UnknownMemory`."""
        told = _fact(text)
        item = await self._item(owner, key)
        async with answering():
            await self._store.aput(space_of(owner), key, {**item.value, "text": told})
        if await self._gone(owner, key):  # meanwhile: what was put after that goes, too
            await self._removed(owner, key)
            raise _unknown(key)
        return memory_of(item)._replace(text=told)

    async def delete(self, owner: Owner, key: str) -> None:
        """Forget it, and what other claims of its run have kept. Raises `UnknownMemory`."""
        item = await self._item(owner, key)
        async with answering():  # first: a correction looks at this after its own write
            await self._store.aput(space_of(owner, GONE), key, {"at": item.value["at"]})
        await self._removed(owner, key)
        for each in await below(self._store, space_of(owner)):
            thread = each.value["thread"]
            if each.value["run"] == item.value["run"] and thread != item.value["thread"]:
                await self._removed(owner, each.key)

    async def _item(self, owner: Owner, key: str) -> Item:
        async with answering():
            item = await self._store.aget(space_of(owner), key)
        last = item and await self._completed(item.value["run"], owner)
        if item is None or item.value["thread"] != last or await self._gone(owner, key):
            raise _unknown(key)
        return item

    async def _gone(self, owner: Owner, key: str) -> bool:
        async with answering():
            return await self._store.aget(space_of(owner, GONE), key) is not None

    async def _removed(self, owner: Owner, key: str) -> None:
        async with answering():
            await self._store.adelete(space_of(owner), key)


def _unknown(key: str) -> UnknownMemory:
    return UnknownMemory(f"there is no memory {key[:60]!r} of this user")


def facts_in(finish: str, parsed: Any) -> list[str] | None:
    """The facts of a model's answer, or None for one that was cut: half a fact is none."""
    if finish not in ("stop", "end_turn") or not isinstance(parsed, dict):
        return None
    found = parsed.get("facts")
    if not isinstance(found, list):
        return None
    facts = (_fact(fact) for fact in found if isinstance(fact, str) and fact.strip())
    return list(islice(facts, MOST_FACTS))


def _fact(text: str) -> str:
    return storable(text).strip()[:LONGEST]


def memory_of(item: Item) -> Memory:
    """A stored item as its record."""
    value = item.value
    return Memory(item.key, value["text"], value["run"], value["at"])


async def below(store: BaseStore, space: tuple[str, ...]) -> list[Item]:
    """Everything in a namespace and in those below it. Raises `BadNamespace` and `StoreDown`."""
    if not space or not all(isinstance(each, str) and each and "." not in each for each in space):
        raise BadNamespace(f"{space!r:.80} is no namespace: labels are texts without a dot")
    found: list[Item] = []
    offset = 0
    while True:
        async with answering():
            page = await store.asearch(space, limit=PAGE, offset=offset)
        found += [item for item in page if tuple(item.namespace[: len(space)]) == space]
        offset += PAGE
        if len(page) < PAGE:
            return found


def space_of(owner: Owner, kind: str = FACTS) -> tuple[str, ...]:
    """In hexadecimal, since a tenant and a user may be any text; `kind` ends it."""
    labels = (each.encode("utf-8", "surrogatepass").hex() for each in (owner.tenant, owner.user))
    return ("memories", *labels, kind)
