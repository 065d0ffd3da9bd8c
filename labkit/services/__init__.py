"""Services on real sockets: answers that outlive their readers, and the faults on the way out."""

from .answers import Answers, NotNow, TooMany, inline
from .cuts import Cut
from .process import serve

__all__ = ["Answers", "Cut", "NotNow", "TooMany", "inline", "serve"]
