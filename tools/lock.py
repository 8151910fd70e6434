"""Resolves requirements/*.txt from pyproject.toml: every version pinned, with its hashes.

The files name no index, so they install from whichever index the user's pip knows.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "requirements"
OPTIONS = (
    "--quiet",
    "--universal",
    "--python-version=3.11",
    "--generate-hashes",
    "--no-header",
    "--no-annotate",
    "--no-emit-index-url",
    "--no-emit-find-links",
)
PROJECT = "pyproject.toml"
LOCKS = {
    # What a container needs to run, and what it needs to build the wheel.
    "runtime": (PROJECT, "--extra=cli"),
    "build": ("--group=build",),
    # Everything to develop, test and demo, with the runtime at the versions locked above.
    "dev": (PROJECT, "--all-extras", "--group=dev", "--constraint=requirements/runtime.txt"),
    # The oldest versions that pyproject.toml admits; `make matrix` runs the tests on them.
    "floor": (PROJECT, "--extra=cli", "--resolution=lowest-direct"),
}
PINNED = re.compile(r"^\S+==", re.MULTILINE)
UNWANTED = re.compile(r"://|^\s*--(?!hash=)| @ |^-e", re.MULTILINE)


def resolve(name: str, selection: tuple[str, ...], extra: list[str]) -> Path:
    """Writes one lock file; versions already in it stay unless told otherwise."""
    target = FOLDER / f"{name}.txt"
    command = [sys.executable, "-m", "uv", "pip", "compile", *OPTIONS, *selection, *extra]
    subprocess.run([*command, f"--output-file={target}"], cwd=ROOT, check=True)
    return target


def main() -> int:
    """Writes all locks; fails if one would name an address."""
    for name, selection in LOCKS.items():
        target = resolve(name, selection, sys.argv[1:])
        text = target.read_text()
        if found := UNWANTED.search(text):
            print(f"{target.name} names an address or option: {found.group()!r}", file=sys.stderr)
            return 1
        print(f"requirements/{target.name}: {len(PINNED.findall(text))} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
