"""Runs every static check, all of them even when one fails, and says what failed."""

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CODE = ("governance", "temporal_integration", "samples", "tests", "tools", "docker")


def checks() -> dict[str, list[str]]:
    """Name of each check and its command."""
    scripts = Path(sys.executable).parent
    code = [name for name in CODE if any((ROOT / name).rglob("*.py"))]
    return {
        "format": [str(scripts / "ruff"), "format", "--check", *code],
        "lint": [str(scripts / "ruff"), "check", "--quiet", "--output-format=concise", *code],
        "mypy": [str(scripts / "mypy"), "--no-error-summary", *code],
        "basedpyright": [str(scripts / "basedpyright"), *code],
        "imports": [str(scripts / "lint-imports"), "--no-logo"],
        "size": [sys.executable, "-m", "tools.size_budget"],
    }


def run(name: str, command: list[str]) -> bool:
    """Runs one check; its output is shown only if it fails."""
    begin = time.monotonic()
    environment = os.environ | {"NO_COLOR": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    passed = done.returncode == 0
    took = time.monotonic() - begin
    print(f"{name:<13} {'ok' if passed else 'FAILED'}  {took:.1f} s", flush=True)
    if not passed:
        print(done.stdout + done.stderr, flush=True)
    return passed


def main() -> int:
    """Runs the checks named in the arguments, or all of them."""
    known = checks()
    wanted = sys.argv[1:] or list(known)
    if unknown := [name for name in wanted if name not in known]:
        print(f"no check named {', '.join(unknown)}; there are: {', '.join(known)}")
        return 2
    failed = [name for name in wanted if not run(name, known[name])]
    print(f"failed: {', '.join(failed)}" if failed else "all checks passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
