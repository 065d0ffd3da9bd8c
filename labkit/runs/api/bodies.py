"""What is sent to the service, and what it says of runs and memories.

Rules: a text is a text, and no number or half a character; a field that is not known is refused.
"""

from typing import Annotated, Any, Final

from fastapi import Path, Query
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from ..discussion.asking import asked
from ..record import AgentRun

# Something besides blanks and what has no width, and no NUL.
_TEXT: Final = r"^[^\x00]*[^\s\x00\u200b-\u200f\u2060\ufeff][^\x00]*$"
_NAME: Final = r"^[A-Za-z0-9_.:/-]+$"

Text = Annotated[str, Field(min_length=1, max_length=1_000, pattern=_TEXT)]
Name = Annotated[str, Field(min_length=1, max_length=100, pattern=_NAME)]
Key = Annotated[str, Path(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9_.-]+$")]

Before = Annotated[str, Query(max_length=100, pattern=r"^[A-Za-z0-9_.-]*$")]


def _whole(value: Any) -> Any:
    """3.0 is an integer in JSON; whatever else is none stays what it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


class _Given(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class SignIn(_Given):
    """A token, which is sent once."""

    token: str = Field(min_length=1, max_length=200)


class SignedIn(BaseModel):
    """Who it is."""

    user: str


class NewRun(_Given):
    """A discussion. With an `id` of your own it can be sent again after a lost answer."""

    question: Text
    rounds: Annotated[int, BeforeValidator(_whole)] = Field(3, ge=1, le=8)
    model: Name | None = None
    id: Name | None = None


class Answer(_Given):
    """To the question `ask`, which may be left out where one waits; to an approval its `digest`."""

    answer: Text
    ask: Name | None = None
    digest: Name | None = None


class Retry(_Given):
    """With another model, where one is named."""

    model: Name | None = None


class Correction(_Given):
    """What a memory should say."""

    text: str = Field(min_length=1, max_length=200, pattern=_TEXT)


class Created(BaseModel):
    """A run that is accepted."""

    id: str
    status: str


class RunView(BaseModel):
    """A run as its owner sees it. Times in seconds; `seq`: the number of the newest event."""

    id: str
    status: str
    question: str
    rounds: int
    model: str
    seq: int
    created: float
    updated: float
    result: Any
    end_reason: str | None
    error_code: str | None
    error_message: str | None
    asks: list[dict[str, Any]]


class MemoryView(BaseModel):
    """One fact, and the run that it comes from."""

    key: str
    text: str
    run_id: str
    at: float


class ModelsView(BaseModel):
    """The models that may be named."""

    default: str
    names: list[str]


def told(run: AgentRun) -> dict[str, Any]:
    """A run as `RunView` has it."""
    names = set(RunView.model_fields) - {"id", "question", "rounds", "asks"}
    same = {name: getattr(run, name) for name in names}
    return {"id": run.run_id, **run.given, **same, "asks": asked(run)}
