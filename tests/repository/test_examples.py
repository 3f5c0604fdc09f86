"""Every example runs, offline and without a key, in an empty folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import programs

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_runs(example: Path, tmp_path: Path) -> None:
    env = {key: value for key, value in os.environ.items() if not key.endswith("_API_KEY")}
    done = programs.run([example], source=example.read_text(), cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Traceback" not in done.stderr, done.stderr[-3000:]
    assert done.stdout.strip(), "an example shows something"
