"""From a failing application to the smallest that still fails in the same way."""

from __future__ import annotations

from collections.abc import Callable

from generator.choices import Axes, Choices
from generator.verdicts import Judgement

Try = Callable[[Choices], Judgement]


def shrink(failed: Judgement, axes: Axes, run: Try) -> Judgement:
    """Set one axis after the other to its simplest option while the failure stays."""
    failures = failed.failures()
    smallest = failed
    changed = True
    while changed:
        changed = False
        for axis, option in list(smallest.run.choices.parts()):
            for simpler in _simpler(axes[axis], option):
                tried = _run(run, smallest.run.choices.replace(**{axis: simpler}))
                if tried and failures & tried.failures():
                    smallest, changed = tried, True
                    break
    return smallest


def _simpler(options: tuple[str, ...], option: str) -> tuple[str, ...]:
    return options[: options.index(option)][:1] if option in options else ()


def _run(run: Try, choices: Choices) -> Judgement | None:
    try:
        return run(choices)
    except Exception:  # noqa: BLE001 - a simpler application may not run at all
        return None
