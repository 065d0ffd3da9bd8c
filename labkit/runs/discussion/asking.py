"""What a run waits for: questions and approvals, each with an id, since two may wait at a time.

asked(run)               # [{"id": "ask-1", "kind": "approval", "tool": "send_mail", ...}]
"""

from typing import Any

from labkit.recovery.run_states import AWAITING

from ..record import AgentRun


def asked(run: AgentRun) -> list[dict[str, Any]]:
    """What a person has to say, in the order of asking; [] for a run that waits for nobody."""
    known = run.checkpoint if run.status == AWAITING and isinstance(run.checkpoint, dict) else {}
    return list(known.get("asks", []))
