"""A program that is forked runs as one that is started: its own arguments, streams, folder and exit."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import programs

FRAMEWORK = "import langchain_core.runnables"


@pytest.mark.parametrize(
    ("code", "status"),
    [("pass", 0), ("raise SystemExit(3)", 3), ("1 / 0", 1), ("import os; os.kill(os.getpid(), 9)", -9)],
)
def test_its_exit_is_its_own(code: str, status: int) -> None:
    done = programs.run(["-c", code], source="")
    assert done.returncode == status
    assert ("ZeroDivisionError" in done.stderr) == (status == 1)


def test_it_has_its_arguments_its_folder_and_its_environment(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "import os, sys; print(__name__, sys.argv[1:], os.getcwd(), sorted(os.environ))"
    )
    env = {"ONLY": "this"}
    for command in (["app.py", "a"], ["-m", "app", "a"]):
        done = programs.run(command, source="", cwd=tmp_path, env=env)
        assert done.stdout == f"__main__ ['a'] {os.path.realpath(tmp_path)} ['ONLY']\n", done.stderr


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="programs are forked on Linux alone")
def test_only_frameworks_are_there_beforehand_and_nothing_that_another_has_left() -> None:
    programs.run(["-c", "import langchain_core, steelyard; langchain_core.left = True"], source=FRAMEWORK)
    code = """
import sys
names = {name.partition(".")[0] for name in sys.modules}
import langchain_core
print("langchain_core" in names, any("steelyard" in name for name in names), hasattr(langchain_core, "left"))
"""
    assert programs.run(["-c", code], source=FRAMEWORK).stdout == "True False False\n"


def test_threads_and_exit_handlers_end_before_it_does() -> None:
    code = """
import atexit, threading
atexit.register(print, "handler")
threading.Timer(0.05, print, ["thread"]).start()
"""
    assert programs.run(["-c", code], source="").stdout == "thread\nhandler\n"


def test_one_that_takes_too_long_is_ended() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        programs.run(["-c", "import threading; threading.Event().wait()"], source="", timeout=0.1)
