"""`python -m labkit COMMAND`: hands the arguments to one module of `labkit.commands`.

This file and `labkit/__init__.py` keep to old syntax, so that an old Python can read them
and say in one line what is wrong. Without arguments the commands are listed.
"""

import sys

COMMANDS = {
    "lab": "open JupyterLab on your own copies (--fresh NAME, --port N, --no-browser)",
    "test": "run unit tests, notebooks and browser tests (--slow for the long ones)",
    "doctor": "say what is missing here, each with its cure",
    "notebooks": "run the tracked notebooks again in place",
    "page": "serve a script's answers on a page: page SCRIPT --cut mid_frame@3",
    "gateway": "run turns for who writes lines over TCP or here: gateway SCRIPT --folder F",
    "worker": "do agent runs, as several workers on one store do: worker --store URL",
    "serve": "discussions as a service, with a page: serve --store URL --port N",
    "demo": "kill a service in the middle of a run, and see another go on: demo --lease 3",
    "provider": "serve a script as an OpenAI-compatible endpoint: provider SCRIPT --port N",
    "python": "run Python inside the environment: python FILE, python -m MODULE",
}
LISTING = "\n".join("  %-9s  %s" % pair for pair in COMMANDS.items())  # noqa: UP031


def main(arguments):
    # type: (list[str]) -> int
    """Run one command; the exit code is the command's own, 2 for one that cannot start."""
    if not (3, 11) <= sys.version_info[:2] <= (3, 13):
        found = ".".join(str(part) for part in sys.version_info[:3])
        sys.stderr.write(
            "labkit needs Python 3.11, 3.12 or 3.13, and this is %s: install one and name it, "  # noqa: UP031
            "as in `make lab PYTHON=python3.12` or `python3.12 -m labkit lab`\n" % found
        )
        return 2
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print("python -m labkit COMMAND\n\n" + LISTING)
        return 0
    if arguments[0] not in COMMANDS:
        sys.stderr.write("there is no command %r; there are:\n%s\n" % (arguments[0], LISTING))  # noqa: UP031
        return 2
    from labkit.commands.environment import run

    return run(arguments[0], arguments[1:])


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
