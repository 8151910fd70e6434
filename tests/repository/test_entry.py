"""The `governance` command says in one line what is wrong with the installation."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAIN = "from temporal_integration._entry import main; sys.exit(main())"


def run(code: str, *path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", f"import sys; {code}", "--help"],
        cwd=path[0],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, path))},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "source",
    [
        "raise SystemExit('foreign code was run')\n",
        "DISTRIBUTION = 'governance'\n",
        "DISTRIBUTION: str = compute()\n",
        "print 'not even Python 3'\n",
    ],
)
def test_another_package_named_governance(tmp_path: Path, source: str) -> None:
    foreign = tmp_path / "governance" / "__init__.py"
    foreign.parent.mkdir()
    foreign.write_text(source)
    done = run(MAIN, tmp_path, ROOT)
    assert done.returncode == 2
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert str(foreign) in line
    assert "pip uninstall governance" in line


def test_a_folder_named_governance(tmp_path: Path) -> None:
    (tmp_path / "governance").mkdir()
    (tmp_path / "temporal_integration").symlink_to(ROOT / "temporal_integration")
    # Nothing but the integration is left, and a folder that is no package.
    ours = "pathlib.Path(entry, 'governance', '__init__.py').is_file()"
    hide = f"import pathlib; sys.path[:] = [entry for entry in sys.path if not {ours}]"
    done = run(f"{hide}; {MAIN}", tmp_path)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert str(tmp_path / "governance") in line


def test_without_the_cli_extra() -> None:
    done = run(f"sys.modules['typer'] = None; {MAIN}", ROOT)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert "needs typer" in line
    assert "pip install 'temporal-governance[cli]'" in line


def test_help() -> None:
    done = run(MAIN, ROOT)
    assert done.returncode == 0, done.stderr
    assert "Usage" in done.stdout
