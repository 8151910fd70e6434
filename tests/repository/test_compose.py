"""docker-compose.yml names what exists, waits for what it needs and watches what runs on."""

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]

ONCE = {"migrate", "logins", "contract", "activation"}
LONG_RUNNING = {"postgres", "temporal", "worker", "sealer"}


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every command and health check that runs our code: service and words."""
    for name, service in SERVICES.items():
        if "build" in service:
            yield name, service["command"]
            if "healthcheck" in service:
                yield name, service["healthcheck"]["test"][1:]


def test_services() -> None:
    assert set(SERVICES) == ONCE | LONG_RUNNING


@pytest.mark.parametrize("name", sorted(LONG_RUNNING))
def test_what_runs_on_is_watched(name: str) -> None:
    health = SERVICES[name]["healthcheck"]
    assert health["test"][0] == "CMD"
    assert {"interval", "timeout", "retries"} <= set(health)
    assert SERVICES[name]["restart"] == "unless-stopped"


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_waits_for_health_or_completion(name: str) -> None:
    for other, wait in SERVICES[name].get("depends_on", {}).items():
        expected = "service_completed_successfully" if other in ONCE else "service_healthy"
        assert wait == {"condition": expected}


def test_nothing_starts_before_the_schema_and_the_logins() -> None:
    before = {"sealer": "logins", "worker": "activation", "activation": "contract"}
    before |= {"contract": "logins", "logins": "migrate"}
    for name, first in before.items():
        assert first in SERVICES[name]["depends_on"]


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_images_are_pinned(name: str) -> None:
    image = SERVICES[name]["image"]
    assert re.fullmatch(r"[a-z/-]+:\d[\w.-]*", image), image


def test_the_base_image_is_pinned() -> None:
    bases = re.findall(r"^FROM (\S+)", (ROOT / "docker" / "Dockerfile").read_text(), re.MULTILINE)
    assert bases
    assert all(re.fullmatch(r"[a-z/-]+:\d[\w.-]*", base) for base in bases)


def test_no_secret_is_written_down() -> None:
    for service in SERVICES.values():
        for key, value in service.get("environment", {}).items():
            if "PASSWORD" in key:
                assert re.fullmatch(r"\$\{\w+:\?[^}]+\}", value), key
            if "://" in value:
                assert re.match(r"postgresql://\w+:\$\{\w+:\?[^}]+\}@", value), key


def test_only_the_sealer_has_the_key() -> None:
    assert [name for name, service in SERVICES.items() if "secrets" in service] == ["sealer"]
    assert SERVICES["sealer"]["secrets"] == list(COMPOSE["secrets"])


def test_every_variable_is_in_the_example() -> None:
    required = set(re.findall(r"\$\{(\w+):\?", (ROOT / "docker-compose.yml").read_text()))
    example = (ROOT / "docker" / "env.example").read_text()
    assert required == set(re.findall(r"^(\w+)=$", example, re.MULTILINE))


def test_files_exist() -> None:
    for service in SERVICES.values():
        if "build" in service:
            assert (ROOT / service["build"]["dockerfile"]).is_file()
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("."):
                assert (ROOT / source).is_file(), source
            else:
                assert source in COMPOSE["volumes"]


@pytest.mark.parametrize(("service", "words"), list(commands()))
def test_commands_exist(service: str, words: list[str]) -> None:
    match words:
        case ["governance", *arguments]:
            assert_subcommand(arguments)
        case ["python", "-m", module]:
            assert (ROOT / f"{module.replace('.', '/')}.py").is_file(), module
        case ["python", script, *_]:
            assert (ROOT / script).is_file(), script
        case _:
            pytest.fail(f"{service}: no check for {words}")


def assert_subcommand(arguments: list[str]) -> None:
    if find_spec("typer") is None:
        pytest.skip("the cli extra is not installed")
    plain = [word for word in arguments if not word.startswith("-")]
    options = [word for word in arguments if word.startswith("-")]
    code = "import sys; from temporal_integration._entry import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, *plain, "--help"],
        cwd=ROOT,
        env={"COLUMNS": "200", "TERM": "dumb"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for option in options:
        assert option in done.stdout
