"""Judges for the beds: one that knows the truth, and the local one; and the turn as the engine judges it."""

from __future__ import annotations

import asyncio

from faults.faults import DONT_KNOW, Setting
from steelyard.engine import evaluate_one
from steelyard.judge import LocalJudge
from steelyard.metrics import ContextSufficiency, Faithfulness
from steelyard.questions import Answer, Judge, Level, Question, Request, Sufficient, Supported, YesNo
from steelyard.record import Record
from steelyard.scores import Diagnosis
from steelyard.testing import ScriptedJudge


def perfect(setting: Setting) -> ScriptedJudge:
    """A judge that is always right about this turn."""
    case = setting.case

    def answer(question: Question, request: Request) -> Answer | None:
        shown = " ".join(context.text for context in request.view.contexts or ())
        match question:
            case Sufficient():
                if case.passage is None:
                    return Level(value=0.0, reason="Nothing about it.")
                return Level(value=3.0 if case.answer in shown else 1.0)
            case Supported(claim=claim):
                return YesNo(value=claim in shown or (case.answer in shown and claim in setting.right))
        return None

    return ScriptedJudge(answer)


def diagnosed(setting: Setting, record: Record, judge: Judge | None = None) -> Diagnosis | None:
    """What the engine says of a turn, with the local judge or another."""
    metrics = [Faithfulness(claims="sentences"), ContextSufficiency()]
    return asyncio.run(evaluate_one(record, metrics, judge=judge or LocalJudge())).diagnosis


__all__ = ["DONT_KNOW", "diagnosed", "perfect"]
