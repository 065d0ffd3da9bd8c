"""Every public name of the room is reached through `labkit`, also once its module is loaded."""

from __future__ import annotations

import importlib

import pytest

import labkit
from labkit.teaching import PUBLIC


@pytest.mark.parametrize("module", PUBLIC)
def test_a_public_name_is_the_function_and_never_the_module_of_that_name(module: str) -> None:
    loaded = importlib.import_module(f"labkit.teaching.{module}")
    for name in PUBLIC[module]:
        assert getattr(labkit, name) is getattr(loaded, name)
        assert callable(getattr(labkit, name))
