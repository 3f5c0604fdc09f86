"""Writes docs/reference/api.md, the list of public names, and docs/reference/python/, their docstrings.

python scripts/api.py
"""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from types import NoneType
from typing import get_args

HEAD = """# Public names

What you may build upon. A name on this page changes or goes only with a warning for one minor version and a
line in the changelog ([upgrading](../moving/upgrading.md)). What is not here is the project's own, even if
you can import it, and may change with any release. `python scripts/api.py` writes this page.
"""

PUBLIC: dict[str, str] = {
    "steelyard": "Context Evaluation Monitor Record Results Score SteelyardError aevaluate evaluate",
    "steelyard.metrics": """
        AnswerAccuracy AnswerCorrectness AnswerRelevancy AnswerSimilarity AspectCritique
        ContextEntityRecall ContextPrecision ContextRecall ContextRelevance ContextRelevancy
        ContextSufficiency ContextUtilization CrossEncoder CustomJudge FactualCorrectness
        Faithfulness Hallucination
        Metric NoiseSensitivity RagScore ResponseGroundedness RetrievalPrecision RetrievalRecall
        RubricScore Threshold default_metrics parse_metrics""",
    "steelyard.record": """
        Context ContextsSource Record Stage Status Timings TraceRef record_from_dict
        record_from_json record_to_dict record_to_json""",
    "steelyard.scores": """
        Diagnosis Evaluation Evidence Outcome Provenance Score TurnEvidence Usage Verdict
        evaluation_from_dict
        evaluation_from_json evaluation_to_dict evaluation_to_json""",
    "steelyard.judge": """
        ChatJudge DecisionsJudge LocalJudge MiniLMEmbedder OpenAIEmbedder PairJudge PairLabels
        StaticEmbedder judge_from""",
    "steelyard.judge.chat": "ModelEmbedder ModelJudge",
    "steelyard.judge.middleware": """
        AdaptiveConcurrency Cache CircuitBreaker RateLimit Retry RetryPolicy Wrapper""",
    "steelyard.questions": """
        Answer Choose Claims Contradicted Embedder Entities GeneratedQuestions Judge Noncommittal
        Question Rating Relevant Reply Request Same ScoreOf Supported Texts Useful View YesNo""",
    "steelyard.diagnosis": "Experiments MENDS diagnose",
    "steelyard.probing": "JudgeCheck ProbeSet check_judge load_probes",
    "steelyard.online": """
        Budget Canaries Monitor MonitorOptions Price Rule Selection SpoolSettings Stats Suspicion
        default_monitor""",
    "steelyard.sinks": """
        DatadogSink JSONLSink LangSmithSink LangfuseSink MLflowSink OpenTelemetrySink PhoenixSink
        PostgresSink Retention SQLiteSink Sink prune read_evaluations read_jsonl sink_from
        span_attributes""",
    "steelyard.report": "Report TurnFilter open_results report",
    "steelyard.view": "app export_labels import_labels",
    "steelyard.alarms": "Alarm AlarmEvent AlarmSink AlarmStatus AlarmWatcher alarms_from",
    "steelyard.stats": """
        Change ChangeAlarm ConfidenceSequence Difference Estimate FallAlarm GatePlan
        Sample auroc cohen_kappa corrected_mean find_changes find_slices paired_difference pass_rate
        plan_gate turns_needed unpaired_difference weighted_mean""",
    "steelyard.calibration": "Agreement Calibration fit read_annotations",
    "steelyard.golden": """
        Case CaseResult Comparison Gate GateResult GoldenSet Message MetricResult Run arun_golden
        assert_scores compare_runs diff golden_from golden_to junit_xml markdown_summary run_golden""",
    "steelyard.golden.making": "Plan make plan read_passages",
    "steelyard.golden.mining": "Mined Review apply_labels mine production_mean",
    "steelyard.pytest_plugin": "Steelyard",
    "steelyard.backfill": """
        Backfill BackfillCounts Columns TracesFound open_sources read_record read_records record_of""",
    "steelyard.collect": "Collector CollectorCounts app",
    "steelyard.cli.demo": "demo_chain",
    "steelyard.errors": """
        ConfigurationError InvalidGoldenSet InvalidRecord JudgeError JudgeRejected JudgeUnavailable
        MalformedReply MissingDependency RateLimited SinkError SteelyardError Unanswerable""",
    "steelyard.testing": "MemorySink ScriptedJudge",
    "steelyard_langchain": """
        CallbackHandler LangChainEmbedder LangChainJudge ManualTurn attach detach feedback record
        replay_of""",
    "steelyard_llamaindex": """
        CallbackHandler LlamaIndexEmbedder LlamaIndexJudge ManualTurn attach detach instrument
        record replay_of uninstrument""",
    "steelyard_opentelemetry": """
        ContentLogRecordProcessor EvaluationSpanProcessor Extraction HoldingSpanProcessor read_otlp
        read_spans""",
}


def described(package: str, name: str) -> str:
    """The first sentence of a name's docstring; of a type, what it may be."""
    value = getattr(importlib.import_module(package), name)
    if get_args(value):
        return "One of " + ", ".join(f"`{choice}`" for choice in choices(value)) + "."
    return " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split()).replace("|", "\\|")


def choices(value: object) -> list[str]:
    """What a union of types or of texts may be."""
    if value is NoneType:
        return ["None"]
    if isinstance(value, type):
        return [value.__name__]
    return [one for part in get_args(value) for one in choices(part)] or [repr(value)]


def page() -> str:
    """The whole list."""
    rows = [
        f"| `{package}` | "
        + ", ".join(f"[`{name}`]({file_of(package)}#{package}.{name})" for name in listed(names))
        + " |"
        for package, names in PUBLIC.items()
    ]
    return "\n".join([HEAD, "| package | names |", "|---|---|", *rows]) + "\n"


def listed(names: str) -> list[str]:
    """The names of a package in order."""
    return sorted(names.split(), key=str.lower)


def file_of(package: str) -> str:
    """Where a package's names are shown whole, seen from the list."""
    return f"python/{package.removeprefix('steelyard.').replace('.', '-')}.md"


def pages() -> dict[str, str]:
    """What each file under docs/reference holds; the site puts docstrings where a line begins with `:::`."""
    shown = {
        file_of(package): f"# `{package}`\n\n"
        + "\n\n".join(f"::: {package}.{name}" for name in listed(names))
        + "\n"
        for package, names in PUBLIC.items()
    }
    return {"api.md": page(), **shown}


if __name__ == "__main__":
    for file, text in pages().items():
        (Path("docs/reference") / file).write_text(text, encoding="utf-8")
