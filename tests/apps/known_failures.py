"""What is known to fail, and why. The tests expect these failures; a mend removes its lines."""

from __future__ import annotations

MADE = "The spans do not tell passages that a plain function or middleware brought."
SHOWN = "Spans tell what was retrieved, not what the engine made of it for the prompt."
EMPTY = "The spans do not tell a search that was never made: a turn without contexts is not recorded."
ROOTS = "Calls without a common root are turns of their own, and no note says so."
STREAMS = "Replies that are streamed are not told, so no prompt is known for the answer's; a note says so."
UPSTREAM = "The instrumentor never ends the root of a stream."

_BY_CAUSE: dict[str, dict[str, str]] = {
    MADE: {
        "documents_kept_by_middleware": "openllmetry",
        "texts_of_a_plain_function": "openllmetry",
    },
    SHOWN: {
        "numbered_citations": "openinference openllmetry",
        "sentences_searched_windows_shown": "openinference",
    },
    EMPTY: {
        "agent_in_a_thread": "openinference openllmetry",
    },
    ROOTS: {
        "loop_over_sub_questions": "attach handler openinference openllmetry",
    },
    STREAMS: {
        "fusion_of_ranks": "openllmetry",
        "multi_query_by_map": "openllmetry",
        "one_step_back": "openllmetry",
        "passage_imagined_first": "openllmetry",
        "rewritten_for_retrieval": "openllmetry",
        "routed_by_a_branch": "openllmetry",
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
