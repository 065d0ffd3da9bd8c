"""What `python -m labkit` runs: one module a command, each with `main(arguments) -> exit code`.

`environment`, `copies` and `system` serve them. All of it imports with the standard library
alone, since `lab` and `test` start before the environment exists.
"""
