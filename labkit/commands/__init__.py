"""What `python -m labkit` runs: one module a command, each with `main(arguments) -> exit code`.

`environment` is the way in: it runs a command inside the environment, which it makes first. So it
and `system` import with the standard library alone. `copies` and `sandbox` serve the commands.
"""
