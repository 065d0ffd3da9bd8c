"""`python -m labkit` itself."""

from __future__ import annotations

import ast
import collections
import importlib
import pathlib
import sys

import pytest

from labkit import __main__ as entry

Version = collections.namedtuple("Version", "major minor micro releaselevel serial")


def test_without_arguments_the_commands_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.main([]) == 0
    printed = capsys.readouterr().out
    assert all(f"  {name}" in printed for name in entry.COMMANDS)


def test_an_unknown_command_lists_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.main(["lap"]) == 2
    assert "there is no command 'lap'; there are:" in (said := capsys.readouterr().err)
    assert "  lab " in said


@pytest.mark.parametrize("name", entry.COMMANDS)
def test_every_command_has_a_module_with_a_main(name: str) -> None:
    assert callable(importlib.import_module(f"labkit.commands.{name}").main)


@pytest.mark.parametrize("version", [(3, 8, 18), (3, 10, 13), (3, 14, 0)])
def test_a_wrong_python_is_named_in_one_line_with_its_cure(
    version: tuple[int, int, int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "version_info", Version(*version, "final", 0))
    assert entry.main(["lab"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert ".".join(map(str, version)) in said
    assert "make lab PYTHON=" in said


@pytest.mark.parametrize("name", ["__init__.py", "__main__.py"])
def test_what_an_old_python_reads_first_keeps_to_its_syntax(name: str, root: pathlib.Path) -> None:
    tree = ast.parse((root / "labkit" / name).read_text(), feature_version=(3, 8))
    nodes = list(ast.walk(tree))
    hinted = any(isinstance(node, ast.FunctionDef) and node.returns for node in nodes)
    late = any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in nodes)
    assert late or not hinted, "hints are evaluated: add `from __future__ import annotations`"
