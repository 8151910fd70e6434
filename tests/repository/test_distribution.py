"""Wheel and sdist hold what they should, and each works in an empty environment."""

import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("governance", "temporal_integration")


def call(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    call(sys.executable, "-m", "build", "--sdist", "--no-isolation", "-o", folder, ROOT, cwd=folder)
    [path] = folder.iterdir()
    return path


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    call(sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", folder, ROOT, cwd=folder)
    [path] = folder.iterdir()
    return path


def files_of_the_packages() -> set[str]:
    return {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_wheel_holds_both_packages_and_nothing_else(wheel: Path) -> None:
    expected = files_of_the_packages()
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        assert names == expected
        for name in sorted(names):
            assert archive.read(name) == (ROOT / name).read_bytes(), name
    assert {f"{package}/py.typed" for package in PACKAGES} <= names
    assert {"governance/sql/schema.sql", "governance/sql/grants.sql"} <= names
    assert any(name.startswith("governance/sql/migrations/0001_") for name in names)
    assert any(name.startswith("governance/sql/queries/") for name in names)


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        licences = [name for name in archive.namelist() if name.endswith("/licenses/LICENSE")]
        assert len(licences) == 1
        return message_from_bytes(archive.read(name))


def test_metadata(wheel: Path) -> None:
    fields = metadata(wheel)
    assert fields["Name"] == "temporal-governance"
    assert fields["License-Expression"] == "Apache-2.0"
    assert fields["Requires-Python"] == ">=3.11"
    classifiers = fields.get_all("Classifier") or []
    assert "Typing :: Typed" in classifiers
    assert not [name for name in classifiers if name.startswith("License ::")]
    assert set(fields.get_all("Provides-Extra") or []) == {"cli", "testing"}


def test_sdist_holds_what_it_takes_to_work_on(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert files_of_the_packages() <= names
    for folder in ("samples", "tests", "tools", "requirements", "docker"):
        assert any(name.startswith(f"{folder}/") for name in names), folder
    assert {"LICENSE", "Makefile", "README.md", "ARCHITECTURE.md", "CHANGELOG.md"} <= names
    assert not [name for name in names if name.startswith((".venv", ".git/", "dist/"))]


def empty_environment(folder: Path) -> Path:
    """An environment with the locked runtime in it; the product is still missing."""
    call(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    lock = ROOT / "requirements" / "runtime.txt"
    install(folder, "--no-deps", "--require-hashes", "-r", lock)
    return folder


def install(environment: Path, *arguments: str | Path) -> None:
    python = environment / "bin" / "python"
    command = ("pip", "--python", python, "install", "--quiet", "--disable-pip-version-check")
    call(sys.executable, "-m", *command, *arguments, cwd=environment)


def assert_works(environment: Path) -> None:
    python = environment / "bin" / "python"
    code = "import governance, temporal_integration as t; print(governance.__file__, t.__file__)"
    for file in call(python, "-I", "-c", code, cwd=environment).split():
        assert Path(file).is_relative_to(environment)
    assert "Usage" in call(environment / "bin" / "governance", "--help", cwd=environment)


@pytest.mark.slow
def test_wheel_works_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    environment = empty_environment(tmp_path / "environment")
    install(environment, "--no-deps", wheel)
    assert_works(environment)


@pytest.mark.slow
def test_sdist_works_in_an_empty_environment(sdist: Path, tmp_path: Path) -> None:
    environment = empty_environment(tmp_path / "environment")
    # The backend comes from this environment; the empty one has none.
    build = ("pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", tmp_path, sdist)
    call(sys.executable, "-m", *build, cwd=tmp_path)
    [built] = tmp_path.glob("*.whl")
    install(environment, "--no-deps", built)
    assert_works(environment)
