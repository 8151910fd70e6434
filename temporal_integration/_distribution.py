"""Tells our ``governance`` package from an unrelated one with the same import name.

PyPI has a distribution named ``governance`` whose package has that name too. Installed
into the same environment it overwrites files of ours; earlier on ``sys.path`` it hides
them. This module finds that out without running any of the other package's code.
"""

import ast
import importlib
import importlib.util
from importlib.abc import InspectLoader
from importlib.machinery import ModuleSpec
from typing import Final

DISTRIBUTION: Final = "temporal-governance"
"""Name of our distribution, as ``governance.DISTRIBUTION`` must say it."""

_PACKAGE: Final = "governance"


def governance_conflict() -> str | None:
    """Looks for another package named ``governance`` in the place of ours.

    Returns:
        None if the package that ``import governance`` finds is ours, else one sentence
        that names what was found instead and what to do. Nothing foreign is imported.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None:
        return (
            f"The package '{_PACKAGE}' is missing although {DISTRIBUTION} is installed: "
            f"run 'pip install --force-reinstall --no-deps {DISTRIBUTION}'."
        )
    if _marker(spec) == DISTRIBUTION:
        return None
    return (
        f"Another package named '{_PACKAGE}' is in the way: {_location(spec)} "
        f"does not belong to {DISTRIBUTION}. Uninstall it ('pip uninstall {_PACKAGE}', then "
        f"'pip install --force-reinstall --no-deps {DISTRIBUTION}') or install {DISTRIBUTION} "
        "in an environment of its own."
    )


def _location(spec: ModuleSpec) -> str:
    """The file, or for a folder without ``__init__.py`` that folder."""
    if spec.origin is not None:
        return spec.origin
    return ", ".join(spec.submodule_search_locations or ["<unknown>"])


def _marker(spec: ModuleSpec) -> object:
    """The value of ``DISTRIBUTION`` in the package, read from its source."""
    if not isinstance(spec.loader, InspectLoader):
        return None
    try:
        source = spec.loader.get_source(_PACKAGE)
    except ImportError:
        return None
    if source is None:  # installed as bytecode only, which has to be imported to be read
        return getattr(importlib.import_module(_PACKAGE), "DISTRIBUTION", None)
    try:
        return _assigned(ast.parse(source))
    except SyntaxError:
        return None


def _assigned(module: ast.Module) -> object:
    """The constant that a module assigns to ``DISTRIBUTION`` at its top level."""
    for node in module.body:
        match node:
            case (
                ast.AnnAssign(target=ast.Name("DISTRIBUTION"), value=ast.Constant(value))
                | ast.Assign(targets=[ast.Name("DISTRIBUTION")], value=ast.Constant(value))
            ):
                return value
            case _:
                pass
    return None
