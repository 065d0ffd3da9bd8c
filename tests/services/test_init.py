"""What the room hands on, and that naming it loads no server."""

import subprocess
import sys

import labkit.services

NAMES = ["Answers", "Cut", "NotNow", "TooMany", "inline", "serve"]


def test_the_room_hands_on_these_names_and_no_others() -> None:
    assert labkit.services.__all__ == NAMES
    assert all(hasattr(labkit.services, name) for name in NAMES)


def test_a_notebook_that_serves_loads_no_server_itself() -> None:
    heavy = ["starlette", "uvicorn", "sqlalchemy"]
    ask = f"import sys, labkit.services; print([n for n in {heavy} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
