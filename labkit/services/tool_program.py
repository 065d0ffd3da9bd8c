"""What a tool server runs: a line of JSON in, a line of JSON out, until its input ends.

It is started as a program and imports nothing of labkit.
"""

import json
import sys

TOOLS = {"look_up": "refund sent on Monday", "read_policy": "refunds take five days"}


def answer(line: str) -> str:
    """The answer to one request; the id says to which one."""
    asked = json.loads(line)
    none = f"no tool {asked['name']}; there is: {', '.join(TOOLS)}"
    return json.dumps({"id": asked["id"], "result": TOOLS.get(asked["name"], none)})


if __name__ == "__main__":
    for request in sys.stdin:
        print(answer(request), flush=True)
