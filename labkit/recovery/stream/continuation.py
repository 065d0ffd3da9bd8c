"""Going on from a draft: what is sent, and how what comes back is joined to it.

The draft is no fact. It is quoted to the model as something unfinished, and never stands among the
messages as if the assistant had said it. What comes back may repeat the draft's end: from
`min_overlap` characters on that is cut away, below it nothing is, since a short repeat does less
harm than a lost digit.

    merge_overlap("First open the ", "open the door.")      # 'First open the door.'
    merge_overlap("The price is 10", "0 yen")               # 'The price is 100 yen'
"""

from dataclasses import dataclass
from typing import Final

from .record import Executed, Refused, StreamRun

WINDOW: Final = 80  # characters
MIN_OVERLAP: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuationContext:
    """What a continuation is built from; all of it stands in the record."""

    question: str
    system_version: str
    model: str
    tools: tuple[str, ...]
    confirmed: tuple[Executed, ...]
    refused: tuple[Refused, ...]
    draft: str
    last_sequence: int


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a request: `role` is user or tool."""

    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request to a model; `system_version` names the system prompt that the service adds."""

    messages: tuple[Message, ...]
    system_version: str = ""
    model: str = ""
    tools: tuple[str, ...] = ()


def continuation_context(run: StreamRun) -> ContinuationContext:
    """The facts for a continuation of `run`."""
    return ContinuationContext(
        question=run.request.question,
        system_version=run.request.system_version,
        model=run.request.model,
        tools=run.request.tools,
        confirmed=run.executed,
        refused=run.refused,
        draft=run.text,
        last_sequence=run.next_sequence - 1,
    )


def first_request(run: StreamRun) -> Request:
    """The question as it was asked, with what tools have confirmed since."""
    return _request(continuation_context(run))


def continuation_request(context: ContinuationContext) -> Request:
    """The same with one more message: go on after this draft."""
    return _request(context, Message("user", _GO_ON.format(draft=context.draft)))


_GO_ON: Final = (
    "Your answer was cut off. Between the marks is what arrived of it: a draft, not a fact. Write "
    "only what is missing after its last character. Repeat nothing, and call no tool whose result "
    "is given above. If you cannot go on, say so.\n<draft>\n{draft}\n</draft>"
)


def _request(context: ContinuationContext, *more: Message) -> Request:
    facts = [Message("tool", f"{done.name}: {done.result}") for done in context.confirmed]
    facts += [Message("tool", f"{no.name}: not run: {no.reason}") for no in context.refused]
    return Request(
        messages=(Message("user", context.question), *facts, *more),
        system_version=context.system_version,
        model=context.model,
        tools=context.tools,
    )


def overlap(
    prefix: str, suffix: str, *, window: int = WINDOW, min_overlap: int = MIN_OVERLAP
) -> int:
    """How many characters at the beginning of `suffix` repeat the end of `prefix`."""
    if min_overlap < 1:
        raise ValueError(f"min_overlap is {min_overlap}, and must be at least 1")
    longest = min(len(prefix), len(suffix), window)
    for size in range(longest, min_overlap - 1, -1):  # breakpoint: overlap minimum
        if prefix.endswith(suffix[:size]):
            return size
    return 0


def merge_overlap(
    prefix: str, suffix: str, *, window: int = WINDOW, min_overlap: int = MIN_OVERLAP
) -> str:
    """`prefix` and `suffix` joined, with what the second repeats of the first's end cut away.

    Only equal characters count: another wording, or other punctuation, is left alone.
    """
    return prefix + suffix[overlap(prefix, suffix, window=window, min_overlap=min_overlap) :]


class Joint:
    """Joins a continuation that arrives in pieces to the draft before it.

    The beginning is held back for as long as it might still repeat the draft's end; `push` and
    `end` give what may be shown.
    """

    def __init__(self, draft: str, *, window: int = WINDOW, min_overlap: int = MIN_OVERLAP) -> None:
        self._draft = draft
        self._window = window
        self._min_overlap = min_overlap
        self._held: str | None = ""  # None once the joint is made

    def push(self, text: str) -> str:
        """The text that may be shown now that `text` has come."""
        if self._held is None:
            return text
        self._held += text
        return "" if self._may_grow(self._held) else self._made()

    def end(self) -> str:
        """What was still held back: nothing more comes."""
        return "" if self._held is None else self._made()

    def _may_grow(self, held: str) -> bool:
        least = max(len(held) + 1, self._min_overlap)
        tails = range(least, min(len(self._draft), self._window) + 1)
        return any(self._draft[-size:].startswith(held) for size in tails)

    def _made(self) -> str:
        held, self._held = self._held or "", None
        at = overlap(self._draft, held, window=self._window, min_overlap=self._min_overlap)
        return held[at:]
