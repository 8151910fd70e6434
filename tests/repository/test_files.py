"""What the repository's files must and must not contain."""

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import governance

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))

# Paths of one machine, and addresses of package indexes. Written so that none matches itself.
UNWANTED = re.compile(
    r"/work[/](main|shared)|[.][.]/shared|/opt[/](wheels|pypi)|/root[/]|/home[/]\w|/Users[/]\w"
    r"|[A-Za-z]:\\Users|pythonhosted[.]org|pypi[.]org/simple|file:[/]{3}"
    r"|(?<!emit)-(index-url|find-links)"
)


def hidden(path: Path) -> bool:
    """Tells if a path leads into an environment or a cache."""
    return any(part != ".ci" and part.startswith((".", "__")) for part in path.parts[:-1])


def tracked() -> Iterator[Path]:
    """Files of the repository, those not yet added among them."""
    if (ROOT / ".git").exists():
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:  # an unpacked sdist
        paths = [path for path in ROOT.rglob("*") if not hidden(path.relative_to(ROOT))]
    yield from (path for path in paths if path.is_file())


def test_no_machine_paths_and_no_index_addresses() -> None:
    found: list[str] = []
    for path in tracked():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # not a text file
        for number, line in enumerate(text.splitlines(), start=1):
            if hit := UNWANTED.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {hit.group()}")
    assert not found, "\n".join(["", *found])


def test_readme_is_short_and_names_the_release_stage() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    stages = {"3 - Alpha": "Pre-release", "4 - Beta": "Public Preview"}
    [status] = [c for c in PROJECT["classifiers"] if c.startswith("Development Status")]
    expected = stages[status.removeprefix("Development Status :: ")]
    assert re.search(rf"^> Release stage: \**{expected}", text, re.MULTILINE)


def test_one_version_everywhere() -> None:
    version = PROJECT["version"]
    assert version == governance.__version__
    assert PROJECT["name"] == governance.DISTRIBUTION
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text()
    assert f"temporal-governance:{version}" in (ROOT / "docker-compose.yml").read_text()


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.stem)
def test_lock_has_versions_and_hashes_only(lock: Path) -> None:
    logical = lock.read_text().replace("\\\n", " ").splitlines()
    entry = re.compile(r"[a-z0-9._-]+==\S+( ; [^#]*?)?(\s+--hash=sha256:[0-9a-f]{64})+")
    odd = [line for line in logical if not entry.fullmatch(line.strip())]
    assert not odd
    assert "://" not in lock.read_text()


def test_the_locks_cover_the_dependencies() -> None:
    assert {lock.stem for lock in LOCKS} == {"build", "dev", "floor", "runtime"}
    extras = PROJECT["optional-dependencies"]
    names = {
        "runtime": PROJECT["dependencies"] + extras["cli"],
        "floor": PROJECT["dependencies"] + extras["cli"],
        "dev": PROJECT["dependencies"] + extras["cli"] + extras["testing"],
    }
    for lock, requirements in names.items():
        text = (ROOT / "requirements" / f"{lock}.txt").read_text()
        for requirement in requirements:
            [name] = re.findall(r"^[\w-]+", requirement)
            assert re.search(rf"^{name}==", text, re.MULTILINE), f"{name} is not in {lock}.txt"
