"""Scores as annotations in Arize Phoenix: on the RAG span, and on the documents of its retrieval."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from steelyard.record import TraceRef, text_of
from steelyard.scores import Evaluation, Outcome, Score, Verdict
from steelyard.sinks._attributes import annotator_kind
from steelyard.sinks._http import HTTPSink, Item, details, given_or_env, split

_ABOUT_CONTEXT = "useful"
"""The kind of verdict that is about a whole context; `relevant` is asked of sentences, also the answer's."""
_PROBABILITY = "steelyard.verdict.probability"


class PhoenixSink(HTTPSink):
    """Posts to `/v1/span_annotations` and `/v1/document_annotations` of a Phoenix server.

    Annotations are keyed by result id (documents: by metric and position), so writing again replaces them.
    They may arrive before their span; Phoenix keeps them until it does. A Score whose document annotations
    are refused stands on its span all the same, and counts as refused: `documents_rejected`.

    Phoenix computes its own document metrics (nDCG, precision, hit rate) from annotations of the kind `LLM`
    alone, and takes every value above 0 for relevant. So documents get 1 or 0 and that kind, whoever judged;
    the judge's name and its probability are in the metadata.
    """

    _looked_at = "/v1/projects?limit=1"
    _wanted = ("span_id",)
    _without_value = frozenset[Outcome]()
    _most = 100

    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        retrieval_span: Callable[[Evaluation], str | None] | None = None,
        explanations: bool = True,
        timeout: float = 5.0,
    ) -> None:
        """Nothing is sent yet.

        Args:
            url: The server; else `PHOENIX_COLLECTOR_ENDPOINT`, else `http://127.0.0.1:6006`.
            api_key: Else `PHOENIX_API_KEY`; servers without authentication need none.
            retrieval_span: From an Evaluation to the id of the span whose documents were judged; by default
                `retrieval_span` in the record's metadata. Without one there are no document annotations.
            explanations: Whether to send the judges' words.
            timeout: Seconds for one request.

        Raises:
            ConfigurationError: If the URL is not one.
        """
        key = api_key or given_or_env(None, "PHOENIX_API_KEY", what="key", default="-")
        super().__init__(
            "phoenix",
            given_or_env(url, "PHOENIX_COLLECTOR_ENDPOINT", what="URL", default="http://127.0.0.1:6006"),
            headers={} if key == "-" else {"Authorization": f"Bearer {key}"},
            timeout=timeout,
            explanations=explanations,
        )
        self._retrieval_span = retrieval_span or _noted_span

    async def _send(self, items: Sequence[Item]) -> None:
        refused = await split(items, self._post_spans)
        self._settle(refused, "refused", "rejected")
        with_documents = [item for item in items if item.body["documents"] and item not in refused]
        if with_documents:
            self._settle(await split(with_documents, self._post_documents), "refused", "documents_rejected")

    async def _post_spans(self, items: Sequence[Item]) -> None:
        await self._request(
            "POST", "/v1/span_annotations?sync=false", {"data": [one.body["span"] for one in items]}
        )

    async def _post_documents(self, items: Sequence[Item]) -> None:
        documents = [document for item in items for document in item.body["documents"]]
        await self._request("POST", "/v1/document_annotations?sync=false", {"data": documents})

    def _body(self, score: Score, evaluation: Evaluation, trace: TraceRef) -> dict[str, Any]:
        span = {
            "span_id": trace.span_id,
            "name": score.metric,
            "annotator_kind": annotator_kind(score),
            "identifier": score.id,
            "result": {
                "score": score.value,
                "label": score.label or (None if score.status == "scored" else score.status),
                "explanation": self._comment(score),
            },
            "metadata": details(score, evaluation),
        }
        return {"span": span, "documents": list(self._document_annotations(score, evaluation))}

    def _document_annotations(self, score: Score, evaluation: Evaluation) -> Iterator[dict[str, Any]]:
        span_id = self._retrieval_span(evaluation)
        if not span_id:
            return
        for position, verdict in _by_context(score, evaluation):
            # In the metadata, for as a score Phoenix would take everything above 0 for relevant.
            probability = {} if verdict.probability is None else {_PROBABILITY: verdict.probability}
            yield {
                "span_id": span_id,
                "document_position": position,
                "name": score.metric,
                "annotator_kind": "LLM",
                "result": {
                    "score": int(verdict.value is True),
                    "label": "useful" if verdict.value is True else "not useful",
                    "explanation": text_of(verdict.reason) or None if self._explanations else None,
                },
                "metadata": {**details(score, evaluation), **probability},
            }


def _noted_span(evaluation: Evaluation) -> str | None:
    found = evaluation.record.metadata.get("retrieval_span") if evaluation.record else None
    return found if isinstance(found, str) else None


def _by_context(score: Score, evaluation: Evaluation) -> Iterator[tuple[int, Verdict]]:
    """The verdicts that are about a whole context each, with the position their retriever gave it."""
    contexts = evaluation.record.contexts if evaluation.record else ()
    if len(score.verdicts) != len(contexts):
        return
    for index, verdict in enumerate(score.verdicts):
        if not isinstance(verdict.value, bool):
            continue
        if verdict.kind == _ABOUT_CONTEXT and verdict.about == contexts[index].text:
            rank = contexts[index].rank
            yield (index if rank is None else rank), verdict
