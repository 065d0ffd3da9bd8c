"""What a request asks for, and for whom; what is no good is refused with the cure.

    owner_of(request)                            # Owner("5e88...", "http")
    text_of(await object_of(request), "question")

Every refusal is an `HTTPException`, with a status and a sentence.
"""

import hashlib
import json
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request

from labkit.recovery.stream import Owner
from labkit.recovery.stream.continuation import Message
from labkit.recovery.stream.continuation import Request as Model

COOKIE: Final = "labkit_owner"
MOST_BYTES: Final = 64 * 1024  # of a request's body


def owner_of(request: Request) -> Owner:
    """Whose request it is: the digest of a secret, which itself is kept nowhere; or 401, 403."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        secret = request.cookies.get(COOKIE, "")
        if request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            raise HTTPException(403, "a cookie counts for this service's own page only")
    if not 16 <= len(secret) <= 200:
        cure = "open / for a cookie, or send `Authorization: Bearer SECRET` of 16 to 200 characters"
        raise HTTPException(401, f"whose answers? {cure}")
    return Owner(hashlib.sha256(secret.encode()).hexdigest(), "http")


async def object_of(request: Request) -> dict[str, Any]:
    """The JSON object in the body; 413 as soon as there is too much of it, else 400."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_BYTES:
            raise HTTPException(413, f"a body has at most {MOST_BYTES:,} bytes")
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise HTTPException(400, "send a JSON object")
    return value


def text_of(value: Any, name: str) -> str:
    """The text of that name; 400 where there is none that could be kept."""
    found = value.get(name) if isinstance(value, dict) else None
    if not isinstance(found, str) or not found.strip() or not _whole(found):
        raise HTTPException(400, f"{name!r} must be a text that is not empty")
    return found


def _whole(text: str) -> bool:
    """Whether it has no half of a surrogate pair, which is no text and cannot be stored."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def model_request(asked: dict[str, Any]) -> Model:
    """What an OpenAI-compatible client asks for; 400 unless it is a stream of text."""
    messages = asked.get("messages")
    if asked.get("stream") is not True or not isinstance(messages, list) or not messages:
        raise HTTPException(400, 'send "messages" and "stream": true')
    told = [Message(text_of(one, "role"), text_of(one, "content")) for one in messages]
    return Model(messages=tuple(told), model=str(asked.get("model", "")))
