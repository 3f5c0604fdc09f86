"""What is known to fail, and why. The tests expect these failures; a mend removes its lines."""

from __future__ import annotations

ESCAPED = "Passages that the prompt holds in another writing are not found (records 1)."
CUT = "Of a passage that is shown in part the share that was seen is not told (records 1)."
ORDER = "Contexts stand in the order of retrieval, not of the prompt (records 15)."
GRADERS = "Prompts of calls that did not make the answer are searched for passages (records 2)."
MADE = "Passages that no retriever returned are lost: made in a node, mappings, a tool's text (records 6)."
FORMS = "An answer in the arguments of a tool call is not seen (records 7)."
SHOWN = "What was retrieved is recorded, not what was shown (records 15)."
LISTS = "Results of a tool that come as a list or as JSON are not read (records 5)."
QUESTION = "A query that a model wrote, or a serialised event, is taken for the question (records 4)."
ANSWER = "The reply of another step is taken for the answer (records 3)."
EMPTY = "A turn in which nothing was found is not recorded (outputs 10)."
ROOTS = "Calls without a common root are turns of their own, and no note says so (records 10)."
UPSTREAM = "The instrumentor never ends the root of a stream (records 14)."

_BY_CAUSE: dict[str, dict[str, str]] = {
    ESCAPED: {
        "fusion_of_ranks": "openllmetry",
        "multi_query_by_map": "openllmetry",
        "one_step_back": "openllmetry",
        "passage_imagined_first": "openllmetry",
        "routed_by_structured_output": "openinference openllmetry",
    },
    ORDER: {
        "nodes_reordered": "openinference openllmetry",
    },
    MADE: {
        "documents_kept_by_middleware": "openllmetry",
        "texts_of_a_plain_function": "openinference openllmetry",
    },
    SHOWN: {
        "numbered_citations": "openinference openllmetry",
        "sentences_searched_windows_shown": "openinference",
    },
    QUESTION: {
        "rewritten_for_retrieval": "openllmetry",
    },
    EMPTY: {
        "agent_in_a_thread": "openinference openllmetry",
    },
    ROOTS: {
        "loop_over_sub_questions": "attach handler openinference openllmetry",
    },
    UPSTREAM: {
        "streamed_query_engine": "openllmetry",
    },
}

KNOWN_FAILURES: dict[tuple[str, str], str] = {
    (app, recorder): cause
    for cause, apps in _BY_CAUSE.items()
    for app, recorders in apps.items()
    for recorder in recorders.split()
}
"""The reason, by application and recorder."""
