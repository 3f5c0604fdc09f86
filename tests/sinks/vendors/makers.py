"""A sink of each vendor, and what is written to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sinks.making import TRACE, failed, make_evaluation, make_score
from sinks.vendor_server import Answer, Request
from steelyard.record import TraceRef
from steelyard.scores import Evaluation
from steelyard.sinks import DatadogSink, LangfuseSink, LangSmithSink, MLflowSink, PhoenixSink

KEYS: dict[str, Any] = {"public_key": "pk-public", "secret_key": "sk-secret"}

RUN = "0190d5ac-3d2e-7f31-9c53-0123456789ab"


def _patient(more: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a sink; a busy machine may let a server wait for long."""
    return {"timeout": 60.0, **more}


MAKERS: dict[str, Callable[..., Any]] = {
    "phoenix": lambda url, **more: PhoenixSink(url, api_key="px-secret", **_patient(more)),
    "langfuse": lambda url, **more: LangfuseSink(url, **KEYS, **_patient(more)),
    "mlflow": lambda url, **more: MLflowSink(url, token="ml-secret", **_patient({"patience": 0.2, **more})),
    "langsmith": lambda url, **more: LangSmithSink(
        url, api_key="ls-secret", **_patient({"patience": 0.2, **more})
    ),
    "datadog": lambda url, **more: DatadogSink("app", api_key="dd-secret", url=url, **_patient(more)),
}


def traced(**changes: Any) -> Evaluation:
    ref = TraceRef(trace_id=TRACE.trace_id, span_id=TRACE.span_id, run_id=RUN)
    return make_evaluation("r1", make_score(id="id-1"), failed(id="id-2"), trace=ref, **changes)


class FakeMLflow:
    """Keeps assessments per trace, like the tracking server."""

    def __init__(self, *, arrives_after: int = 0) -> None:
        self.kept: list[Any] = []
        self.arrives_after = arrives_after

    def __call__(self, request: Request) -> Answer:
        if self.arrives_after:
            self.arrives_after -= 1
            return 404, {"error_code": "RESOURCE_DOES_NOT_EXIST"}
        if request.method == "GET":
            return 200, {"trace": {"trace_info": {"assessments": self.kept}}}
        if "/assessments" in request.path:
            self.kept.append(request.body["assessment"])
        return 200, {}
