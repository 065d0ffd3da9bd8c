"""Ways of calling a service that each get one thing wrong, to be seen before the right one."""

import asyncio
from contextlib import suppress

from labkit.recovery import outcomes
from labkit.recovery.budget import Budget
from labkit.recovery.errors import ProviderError
from labkit.recovery.execution import Executor
from labkit.recovery.idempotency import Operation
from labkit.recovery.outcomes import Outcome
from labkit.recovery.service import Request, Service
from labkit.services.effects import EffectService


class TriesAgain(Executor):
    """Tries again after every error, each time as a new request."""

    most = 3
    silence_is_success = False

    async def execute(
        self, operation: Operation, service: Service, budget: Budget, *, tenant: str
    ) -> Outcome:
        """Try until there is an answer."""
        for number in range(1, self.most + 1):
            self.observe("attempt", digest=operation.digest, number=number)
            key = f"{operation.sent}?{self.random.random()}"
            request = Request(key, operation.payload, 0, number)
            try:
                async with asyncio.timeout(self.policy.limit):
                    result = await service.perform(request)
                return Outcome(status=outcomes.SUCCEEDED, result=result)
            except ProviderError:
                pass
            except TimeoutError:
                if self.silence_is_success:
                    return Outcome(status=outcomes.SUCCEEDED, result="sent")
            if number < self.most:
                await asyncio.sleep(self.policy.retry.first_wait)
        return Outcome(status=outcomes.FAILED, how="no answer")


class GivesUp(TriesAgain):
    """Takes the first error for the end, and tells it as a failure."""

    most = 1


class Hopes(TriesAgain):
    """Takes silence for success."""

    silence_is_success = True


class ReadsNextAnswer(EffectService):
    """Takes the next answer on the line for its own, also the second copy of an earlier one."""

    async def perform(self, request: Request) -> str:
        """Send, and read."""
        if not self.unread:
            return await super().perform(request)
        with suppress(ProviderError):
            await super().perform(request)
        return self.unread.pop(0)
