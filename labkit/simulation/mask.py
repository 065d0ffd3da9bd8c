"""Keeps credentials and addresses out of whatever is shown.

What stands under a name like `api_key` is masked by its name; inside a text, what looks like a
credential or stands behind such a name.
"""

import re
from functools import lru_cache
from typing import Final

MASK: Final = "***"

_SECRETS: Final = {"key", "apikey", "token", "authtoken", "secret", "secrets", "authorization"}
_WORDS: Final = _SECRETS | set(
    "auth bearer cookie credential credentials jwt passphrase passwd password pwd".split()
)
# Each look ahead is bounded: a text that only begins like a credential, again and again, is read
# in a time that grows with its length, and no faster.
_CREDENTIAL: Final = re.compile(
    r"(?i)\b((?:bearer|basic)\s+)(?=\S*[\d=])[\w.~+/=-]{8,}|\bsk-(?=[a-z0-9_-]{0,99}\d)[a-z0-9_-]{6,}"
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)|\bgh[pousr]_\w{20,}|\bAKIA[0-9A-Z]{12,}|\bAIza[\w-]{20,}"
    r"|\bxox[a-z]-[\w-]{10,}|\beyJ[\w-]{8,300}\.[\w-]{8,}\.[\w-]*"
)
_NAMED: Final = re.compile(
    r"(?i)((?:key|token|secret|password|passwd|authorization|cookie)['\"]?\s*(?:[:=]|,\s*['\"]value['\"]:)\s*(?:b(?=['\"]))?['\"]?"
    r"(?:(?:bearer|basic)\s+)?)[^\s'\",;)}\]&]+"
)
# What no text with a credential, or with a named secret, can be without: quick to look for.
_SIGNS: Final = ("bearer", "basic", "sk-", "://", "akia", "aiza", "xox", "eyj", "gh")
_NAMES: Final = ("key", "token", "secret", "passw", "authorization", "cookie")
_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+|0x[0-9a-fA-F]{6,}")


@lru_cache(maxsize=1_000)
def secret(name: str) -> bool:
    """Whether a value of this name must be masked."""
    words = re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    return not _WORDS.isdisjoint(words)


def hide(text: str) -> str:
    """`text` without credentials: for prose, which may well speak of a token or a key."""
    low = text.lower()
    for sign in _SIGNS:
        if sign in low:
            return _CREDENTIAL.sub(lambda found: (found[1] or "") + MASK, text)
    return text


def scrub(text: str) -> str:
    """`text` without credentials, named secrets and addresses: for what a value renders to."""
    low = text.lower()
    for name in _NAMES:
        if name in low:
            text = _NAMED.sub(rf"\1{MASK}", text)
            break
    return hide(_ADDRESS.sub("", text) if "0x" in low else text)
