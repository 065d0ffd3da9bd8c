"""`python -m labkit notebooks [NAME ...]`: run the tracked notebooks again, in place.

What is stored is what a test can compare: no widget views, no times, nothing of this machine.
When nothing changed, the file stays the same to the byte. A notebook that fails is left as it was.
"""

import os
import pathlib
import sys
import tempfile

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellControlSignal, CellExecutionError

from labkit.commands import copies, sandbox

KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
CELL_TIMEOUT = 120  # seconds


def main(arguments: list[str]) -> int:
    """Run all tracked notebooks, or those named; 1 when one of them failed."""
    paths = [copies.find(name) for name in arguments] or copies.tracked()
    with tempfile.TemporaryDirectory(prefix="labkit-", ignore_cleanup_errors=True) as folder:
        os.environ.update(sandbox.variables(folder))
        return max([_by_itself(path, folder) for path in paths])


def _by_itself(path: pathlib.Path, folder: str) -> int:
    """Run a notebook that sees no answers of another one."""
    os.environ["LABKIT_HOME"] = str(pathlib.Path(folder, "answers", path.stem))
    return rerun(path)


def rerun(path: pathlib.Path) -> int:
    """Run one notebook and store it tidied; 1 when a cell failed that is not tagged as failing."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT,
        record_timing=False,
        coalesce_streams=True,  # where a stream's pieces part is chance
        kernel_name=KERNELSPEC["name"],
        resources={"metadata": {"path": str(path.parent)}},
    )
    try:
        client.execute()
    except (CellExecutionError, CellControlSignal) as error:
        print(f"labkit: {path.name} failed and is left as it was\n{error}", file=sys.stderr)
        return 1
    before, after = path.read_bytes(), tidy(notebook).encode()
    path.write_bytes(after)
    print(f"labkit: {path.name} {'changed' if after != before else 'is the same'}", flush=True)
    return 0


def tidy(notebook: nbformat.NotebookNode) -> str:
    """The file's text: machine details left out, keys in order, long text a line a string."""
    found = nbformat.from_dict({**notebook, "metadata": {"kernelspec": KERNELSPEC}})
    found.metadata.language_info = {"name": "python"}
    for cell in found.cells:
        cell.metadata = {name: value for name, value in cell.metadata.items() if name == "tags"}
        for output in cell.get("outputs", []):
            output.get("data", {}).pop(WIDGET_VIEW, None)
            if "traceback" in output:  # differs between versions, and holds paths
                output.traceback = [f"{output.ename}: {output.evalue}"]
    return f"{nbformat.writes(found)}\n"
