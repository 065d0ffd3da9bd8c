"""Fake services with effects, which fail on cue: payment, ticket and mail.

Each request meets the next cue; after the last one all goes well. What a client cannot see is the
point: "lose_request" and "lose_answer" look the same to whoever waits. An effect is entered into
the ledger at the moment when it becomes real, whatever the client hears of it.

    service = EffectService("payment", observe, cues=("lose_answer",))
    await service.perform(request)          # never answers, and has charged
    await service.look_up(request)          # Known("done", "charge 1")

A payment keeps repeats apart by their key, and can be asked. A ticket desk opens a ticket for each
request; it can be asked, and requests can be called off. Mail goes out, and nobody can say whether.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from labkit.recovery.cancel import stop, to_the_end
from labkit.recovery.errors import ProviderError
from labkit.recovery.service import DONE, IN_FLIGHT, NOT_DONE, Known, Request
from labkit.simulation import Observer, Unknown

KINDS: Final = {"payment": "charge", "ticket": "open_ticket", "mail": "send_mail"}
LOOK_UP_CUES: Final = ("ok", "not yet", "down")
WORK: Final = 0.2  # seconds until the effect, and again until the answer
LATE: Final = 12.0  # seconds until an effect that is late
CUES: Final = {  # of a request: what its client hears, and whether it happens
    "ok": "it happens, and its answer comes",
    "refuse": "an error comes that says so, and nothing happens",
    "lose_request": "no answer comes, and nothing happens",
    "fail_before": "an error comes, and nothing happens",
    "lose_answer": "no answer comes, and it happens",
    "fail_after": "an error comes, and it happens",
    "late": f"it happens after {LATE:g} s, and its answer comes",
    "twice": "it happens once, and its answer comes twice",
}
MEMORY: Final = 86_400.0  # seconds for which a key is known
Key = tuple[str, str]  # of a tenant


class EffectService:
    """A service of a kind in `KINDS`, with its `cues` for requests and for look-ups.

    `remembers`: seconds for which it says that it knows a key; `forgets_after`: the truth.
    """

    def __init__(
        self,
        kind: str,
        observe: Observer,
        *,
        cues: Sequence[str] = (),
        look_ups: Sequence[str] = (),
        forgets_after: float = MEMORY,
        remembers: float = MEMORY,
    ) -> None:
        for given, known in ((cues, CUES), (look_ups, LOOK_UP_CUES), ((kind,), KINDS)):
            if wrong := [cue for cue in given if cue not in known]:
                raise Unknown("cue", wrong[0], known)
        self.kind = kind
        self.atomic = kind == "payment"
        self.cancels = kind == "ticket"
        self.remembers = remembers
        self.unread: list[str] = []  # second copies of answers, still on the line
        self._observe = observe
        self._cues, self._look_ups = list(cues), list(look_ups)
        self._forgets_after = forgets_after
        self._running: dict[Key, list[asyncio.Task[str]]] = {}
        self._done: dict[Key, tuple[str, float]] = {}  # result, and when it is forgotten
        self._count = 0

    async def perform(self, request: Request) -> str:
        """Do it as the next cue says; a client that stops waiting changes nothing here."""
        cue = self._cues.pop(0) if self._cues else "ok"
        self._note("request", cue=cue)
        if cue == "refuse":
            raise ProviderError("connection refused", kind="connect")
        if cue == "lose_request":
            await asyncio.Event().wait()
        running = self._running.setdefault(_key(request), [])
        if not (self.atomic and running and not running[-1].done()):
            work = asyncio.create_task(self._work(request, cue), name=f"{self.kind} works")
            running.append(work)
        result = await asyncio.shield(running[-1])
        if cue == "lose_answer":
            await asyncio.Event().wait()
        if cue == "twice":
            self.unread.append(result)
        self._note("answer", result=result)
        return result

    async def _work(self, request: Request, cue: str) -> str:
        known = self._known(_key(request)) if self.atomic else ""  # as it comes in
        await asyncio.sleep(LATE if cue == "late" else WORK)
        if cue == "fail_before":
            raise ProviderError("internal error", status=500)
        result = known or (self._known(_key(request)) if self.atomic else "")
        if not result:
            self._count += 1
            name = KINDS[self.kind]
            result = f"{name} {self._count}"
            self._observe.effect(name, **request.payload)
            until = asyncio.get_running_loop().time() + self._forgets_after
            self._done[_key(request)] = (result, until)
        await asyncio.sleep(WORK)
        if cue == "fail_after":
            raise ProviderError("internal error", status=500)
        return result

    async def look_up(self, request: Request) -> Known:
        """What became of it, as the next cue for look-ups says."""
        cue = self._look_ups.pop(0) if self._look_ups else "ok"
        await asyncio.sleep(WORK)
        if self.kind == "mail":
            self._note("look_up", answer="it cannot be asked")
            raise ProviderError("it cannot be asked", status=501)
        if cue == "down":
            self._note("look_up", answer="error")
            raise ProviderError("its look-up is down", status=503)
        known = self._state(_key(request))
        if cue == "not yet":
            known = Known(IN_FLIGHT)
        self._note("look_up", answer=known.state)
        return known

    async def call_off(self, request: Request) -> Known:
        """Call off what has not become real yet."""
        await asyncio.sleep(WORK)
        if not self._known(_key(request)):
            for work in self._running.pop(_key(request), []):
                await stop(work)
        known = self._state(_key(request))
        self._note("called_off", answer=known.state)
        return known

    def booked(self, tenant: str, key: str) -> bool:
        """What the books say, to whoever goes and looks: they forget nothing."""
        return (tenant, key) in self._done

    async def idle(self) -> None:
        """Wait until nothing is under way, whoever asked for it."""
        every = [work for works in self._running.values() for work in works]
        if every:
            await to_the_end(asyncio.wait(every))
            for work in every:
                work.cancelled() or work.exception()  # looked at: whoever asked may be gone

    def _state(self, key: Key) -> Known:
        if result := self._known(key):
            return Known(DONE, result)
        under_way = any(not work.done() for work in self._running.get(key, ()))
        return Known(IN_FLIGHT if under_way else NOT_DONE)

    def _known(self, key: Key) -> str:
        result, until = self._done.get(key, ("", 0.0))
        return result if asyncio.get_running_loop().time() < until else ""

    def _note(self, kind: str, **data: str) -> None:
        self._observe.of("service")(kind, service=self.kind, **data)


def _key(request: Request) -> Key:
    return request.tenant, request.key
