"""The tutorials can be followed to their end: by their own commands, in an environment of their own."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

import programs
from steelyard.online import Settings
from tutorials import FOLDER, NAMES, Step, steps

ROOT = FOLDER.parents[1]
MOVING = [ROOT / "docs" / "moving" / f"{name}.md" for name in ("ragas", "deepeval", "langfuse", "langsmith")]
_MOST_WORDS = 1200
_HARDEST = 9.0
_CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_WORD = re.compile(r"[A-Za-z]+(?:'[a-z]+)?")


def prose(page: str) -> list[str]:
    """The sentences of a page in Markdown, without code, tables and headings."""
    text = _LINK.sub(r"\1", _CODE.sub("", page))
    lines = [line for line in text.splitlines() if not re.match(r"\s*(?:[|#>]|!\[|```)", line)]
    # A list's points and paragraphs end where they end, whatever stands there.
    whole = re.sub(r"\n\s*(?:[-*]|\d+\.) |\n\s*\n", ". ", "\n".join(lines))
    whole = re.sub(r"`[^`]*`", "code", whole)
    return [one for one in re.split(r"(?<=[.!?])\s+", whole) if _WORD.search(one)]


def reading_grade(page: str) -> float:
    """The Flesch-Kincaid grade of a page's prose (Kincaid and others 1975): years of school, about."""
    sentences = prose(page)
    words = [word for sentence in sentences for word in _WORD.findall(sentence)]
    syllables = sum(map(_syllables, words))
    return 0.39 * len(words) / len(sentences) + 11.8 * syllables / len(words) - 15.59


def _syllables(word: str) -> int:
    """Groups of vowels, without a silent e at the end."""
    short = re.sub(r"(?<=[^aeiouyl])e$|(?<=[^aeiouytd])ed$", "", word.lower())
    return max(len(re.findall(r"[aeiouy]+", short)), 1)


def test_every_tutorial_is_here() -> None:
    assert {path.stem for path in FOLDER.glob("*.md")} - {"index"} == set(NAMES)


@pytest.mark.parametrize("path", [*FOLDER.glob("*.md"), *MOVING], ids=lambda path: path.stem)
def test_a_page_to_begin_with_is_short_and_easy_to_read(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    assert len(page.split()) <= _MOST_WORDS
    assert reading_grade(page) <= _HARDEST


@pytest.mark.parametrize("path", MOVING, ids=lambda path: path.stem)
def test_a_page_for_whoever_comes_from_elsewhere_shows_both_sides(path: Path) -> None:
    """Its `python` blocks are run with those of all pages; here is what they leave out."""
    page = path.read_text(encoding="utf-8")
    assert "```py\n" in page and "```python\n" in page
    assert re.search(r"^\| \w+ \| here \|$", page, re.MULTILINE)
    for settings in re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        Settings(**tomllib.loads(settings))


def test_the_test_on_the_page_about_deepeval_passes(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "moving" / "deepeval.md").read_text(encoding="utf-8")
    [(name, written)] = re.findall(r"`(test_\w+\.py)`:\n\n```py\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / name).write_text(written)
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = ["-m", "pytest", "-q", "-p", "steelyard.pytest_plugin", "-p", "no:cacheprovider", name]
    done = programs.run(command, source="", cwd=tmp_path, env=env)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_a_tutorials_application_is_recorded_and_its_gate_is_the_same_in_ci(
    name: str, tmp_path: Path
) -> None:
    todo = steps(name)
    files = [step for step in todo if step.file]
    [application] = [step for step in files if step.file == "app.py"]
    application.save(tmp_path)
    # One metric of the four, so that this is over sooner.
    env = {**os.environ, "STEELYARD_METRICS": "faithfulness", "STEELYARD_SINKS": "jsonl:scores.jsonl"}
    done = programs.run(["app.py"], source=application.text, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    scored = (tmp_path / "scores.jsonl").read_text().splitlines()
    assert len(scored) == 60 and all('"status":"scored"' in line for line in scored)
    [workflow] = [step for step in files if step.file.endswith(".yml")]
    typed = [command for step in todo if not step.file for command in step.commands]
    run = re.findall(r"- run: (.*)", workflow.text)
    assert len(run) == 2 and set(run) <= set(typed)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as it would be published."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder), str(ROOT)]
    subprocess.run(command, check=True, timeout=600)
    [made] = folder.glob("steelyard-*.whl")
    return made


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", NAMES)
def test_a_tutorial_is_done_by_its_own_commands_from_a_wheel(
    name: str, wheel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = ["set -u", *(line for step in steps(name) for line in _typed(step, tmp_path))]
    # `pip install steelyard` finds the wheel, as it would find a published one.
    version = wheel.name.split("-")[1]
    (tmp_path.parent / "wheel.txt").write_text(f"steelyard=={version}\n")
    env = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYTHON", "STEELYARD_", "VIRTUAL_ENV", "OTEL_"))
        and not key.endswith("_API_KEY")
    }
    env |= {
        "PIP_CONSTRAINT": str(tmp_path.parent / "wheel.txt"),
        "PIP_FIND_LINKS": f"{wheel.parent} {env.get('PIP_FIND_LINKS', '')}",
        "PATH": f"{Path(sys.base_prefix) / 'bin'}:{env['PATH']}",
    }
    started = time.monotonic()
    shell = ["bash", "-c", "\n".join(script)]
    done = subprocess.run(
        shell, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=1700, check=False
    )
    said = f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert done.returncode == 0, said
    minutes = (time.monotonic() - started) / 60
    with capsys.disabled():
        sys.stdout.write(
            f"{name}: {sum(not step.file for step in steps(name))} steps, {minutes:.1f} minutes\n"
        )
    assert "faithfulness has fallen" in done.stderr and (tmp_path / "report.html").stat().st_size > 10_000


def _typed(step: Step, folder: Path) -> list[str]:
    """A step as lines of a shell; the first command that exits with something else ends it."""
    if step.file:
        kept = f"'{folder}/.{step.file.replace('/', '_')}'"
        Path(kept.strip("'")).write_text(step.text)
        made = f"mkdir -p \"$(dirname '{step.file}')\""
        return [f"{made}; cat {kept} {'>>' if step.is_added else '>'} '{step.file}' || exit 99"]
    *before, last = step.commands
    expected = f"[ $? = {step.status} ] || {{ echo {shlex.quote(f'another status: {last}')}; exit 98; }}"
    return [*(f"{command} || exit 97" for command in before), last, expected]
