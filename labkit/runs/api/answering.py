"""What a person says to a run, as the run takes it: to one thing that it asks at this moment.

word_of(run, Answer(answer="5,000"))           # {"ask": "question-1", "answer": "5,000"}
word_of(run, Answer(ask="ask-2", answer="approve", digest="0f3a..."))
"""

from labkit.recovery.run_states import refused

from ..discussion.approval import APPROVAL, APPROVE, REJECT
from ..discussion.asking import asked
from ..record import AgentRun
from .bodies import Answer
from .refusals import NotAsked


def word_of(run: AgentRun, said: Answer) -> dict[str, str]:
    """The answer, with the id of its question. Raises `IllegalMove` or `NotAsked`."""
    asks = {ask["id"]: ask for ask in asked(run)}
    if not asks:
        raise refused(run.run_id, run.status, "answer")
    only = next(iter(asks)) if len(asks) == 1 else ""
    ask = asks.get(said.ask or only)
    if ask is None:
        raise NotAsked(f"say as `ask` what you answer: it asks {' and '.join(asks)}")
    word = {"ask": ask["id"], "answer": said.answer}
    if ask["kind"] != APPROVAL:
        return word
    if said.answer not in (APPROVE, REJECT):
        raise NotAsked(f"answer {ask['id']} with {APPROVE} or {REJECT}")
    if said.digest != ask["digest"]:  # breakpoint: what was seen
        raise NotAsked(f"{ask['id']} is not what was seen: read it again, and send its digest")
    return {**word, "digest": said.digest}
