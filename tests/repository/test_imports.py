"""Imports have no heavy side effects; workflow code reaches neither database nor keys."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {"psycopg", "psycopg_pool", "cryptography", "temporalio", "pydantic"}
STORE = {"psycopg", "psycopg_pool", "cryptography"}

# Imports the module and everything below it, then prints the top-level names that were loaded.
PROBE = """
import importlib, pkgutil, sys
module = importlib.import_module(sys.argv[1])
if sys.argv[2] == "deep":
    for found in pkgutil.walk_packages(getattr(module, "__path__", []), module.__name__ + "."):
        importlib.import_module(found.name)
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def loaded(module: str, depth: str) -> set[str]:
    """Top-level modules in a fresh interpreter after the import."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, module, depth],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_importing_governance_loads_nothing_heavy() -> None:
    names = loaded("governance", "alone")
    assert not names & HEAVY
    assert names <= {*sys.stdlib_module_names, "governance"} | loaded("sys", "alone")


@pytest.mark.parametrize("name", ["errors", "ids", "names", "canonical", "contracts", "rules"])
def test_what_workflow_code_imports_is_light(name: str) -> None:
    assert not loaded(f"governance.{name}", "deep") & (STORE | {"temporalio"})


@pytest.mark.parametrize("name", ["temporal_integration", "temporal_integration._inbound"])
def test_the_integration_loads_no_store(name: str) -> None:
    assert not loaded(name, "alone") & STORE


def test_the_command_starts_without_temporal() -> None:
    assert not loaded("temporal_integration._entry", "alone") & HEAVY
