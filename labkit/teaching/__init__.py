"""What a learner touches: predictions, exercises, progress, the stepper, charts and the panel.

Every public name lives in `labkit` alone, since an imported module would take the place of a
function of its name (`panel`, `stepper`). `PUBLIC` says in which module each stands.

    labkit.predict("interruptions")     # labkit.teaching.predictions.predict
"""

from typing import Final

PUBLIC: Final = {
    "chain": ["chain"],
    "cursors": ["cursors", "injections"],
    "diagnosis": ["diagnose"],
    "exercises": ["check", "exercise", "hint", "solution"],
    "floor": ["floor"],
    "frames": ["frame"],
    "grid": ["grid"],
    "lab_area": ["copy_script"],
    "lanes": ["lanes"],
    "layers": ["layers"],
    "lease_lengths": ["lease_lengths"],
    "leases": ["leases"],
    "panel": ["panel"],
    "predictions": ["predict"],
    "progress": ["progress"],
    "queue": ["queue"],
    "reading": ["reading", "source"],
    "states": ["states"],
    "stepper": ["stepper"],
    "storm": ["storm"],
    "strip": ["strip"],
    "timeline": ["timeline"],
    "token": ["from_token"],
    "views": ["show"],
    "worlds": ["worlds"],
}
