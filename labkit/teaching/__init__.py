"""What a learner touches: predictions, exercises, progress, the stepper, the chart and the panel.

A module may carry the name of the function in it (`panel`, `stepper`), and once it is imported
Python would put the module in the function's place. So every public name lives in `labkit` alone,
and `PUBLIC` says in which module of this room it stands. The libraries are loaded with the module.

    labkit.predict("interruptions")     # labkit.teaching.predictions.predict
"""

from typing import Final

PUBLIC: Final = {
    "chain": ["chain"],
    "diagnosis": ["diagnose"],
    "exercises": ["check", "exercise", "hint", "solution"],
    "frames": ["frame"],
    "lab_area": ["copy_script"],
    "panel": ["panel"],
    "predictions": ["predict"],
    "progress": ["progress"],
    "reading": ["reading", "source"],
    "stepper": ["stepper"],
    "timeline": ["timeline"],
    "token": ["from_token"],
    "views": ["show"],
}
