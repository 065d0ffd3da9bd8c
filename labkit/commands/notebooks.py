"""`python -m labkit notebooks [NAME ...]`: run the tracked notebooks again, in place.

What is stored is what a test can compare: no widget views, no times, nothing of this machine.
When nothing changed, the file stays the same to the byte. A notebook that fails is left as it was.

    >>> tidy({"cells": [], "metadata": {"widgets": {}, "language_info": {"name": "python"}}})
    {'cells': [], 'metadata': {'kernelspec': ..., 'language_info': {'name': 'python'}}}
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import tempfile
from typing import Any

from labkit.commands import copies, environment, sandbox

KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
MACHINE = ("execution", "collapsed", "scrolled", "jupyter", "ExecuteTime")
CELL_TIMEOUT = 120  # seconds

Json = dict[str, Any]


def main(arguments: list[str]) -> int:
    """Run all tracked notebooks, or those named; 1 when one of them failed."""
    code = environment.enter("notebooks", arguments)
    if code is not None:
        return code
    try:
        paths = [copies.find(name) for name in arguments] or copies.tracked()
    except copies.UnknownNotebook as error:
        print(f"labkit: {error}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="labkit-", ignore_cleanup_errors=True) as folder:
        os.environ.update(sandbox.variables(folder))
        return max([rerun(path) for path in paths], default=0)


def rerun(path: pathlib.Path) -> int:
    """Run one notebook and store it tidied; 1 when a cell failed that is not tagged as failing."""
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellControlSignal, CellExecutionError

    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT,
        record_timing=False,
        kernel_name=KERNELSPEC["name"],
        resources={"metadata": {"path": str(path.parent)}},
    )
    try:
        client.execute()
    except (CellExecutionError, CellControlSignal) as error:
        print(f"labkit: {path.name} failed and is left as it was\n{error}", file=sys.stderr)
        return 1
    before, after = path.read_text(encoding="utf-8"), text(tidy(notebook))
    if after != before:
        path.write_text(after, encoding="utf-8", newline="\n")
    print(f"labkit: {path.name} {'changed' if after != before else 'is the same'}", flush=True)
    return 0


def text(notebook: Json) -> str:
    """The file's text: keys in order, so that only a change makes a difference."""
    return json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def tidy(notebook: Json) -> Json:
    """The notebook as it is stored: multi-line text in lists, machine details left out."""
    import nbformat

    plain: Json = json.loads(nbformat.writes(nbformat.from_dict(notebook)))
    number = 0
    for cell in plain["cells"]:
        cell["metadata"] = {k: v for k, v in cell["metadata"].items() if k not in MACHINE}
        if cell["cell_type"] != "code":
            continue
        number += 1
        cell["execution_count"] = number
        cell["outputs"] = [tidy_output(output, number) for output in joined(cell["outputs"])]
    plain["metadata"] = {"kernelspec": KERNELSPEC, "language_info": {"name": "python"}}
    return plain


def tidy_output(output: Json, number: int) -> Json:
    """One output without its widget view, under the number of its cell."""
    found = dict(output)
    if "data" in found:
        found["data"] = {k: v for k, v in found["data"].items() if k != WIDGET_VIEW}
    if "execution_count" in found:
        found["execution_count"] = number
    if "traceback" in found:  # differs between versions, and holds paths
        found["traceback"] = [f"{found['ename']}: {found['evalue']}"]
    return found


def joined(outputs: list[Json]) -> list[Json]:
    """The outputs with neighbouring pieces of one stream made one: where they part is chance."""
    found: list[Json] = []
    for output in outputs:
        last = found[-1] if found else {}
        if output["output_type"] == "stream" and last.get("name") == output["name"]:
            text = "".join([*last["text"], *output["text"]])
            found[-1] = {**last, "text": text.splitlines(keepends=True)}
        else:
            found.append(output)
    return found
