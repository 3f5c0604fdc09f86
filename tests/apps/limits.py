"""What a recorder cannot know of an application, and by what it says so.

Records of these pairs may be wrong or missing, but never silently: each record is right, or has the note,
and for each that is missing there is a diagnosis with the cause. A pair whose records are right has no place
here, and the tests say so.
"""

from __future__ import annotations

_BY_SIGN: dict[str, dict[str, str]] = {
    # Each part is a chain run or a trace of its own, and a true turn. What holds them together is not told.
    "no_contexts": {"loop_over_sub_questions": "attach handler"},
    "this run was shown what a model replied": {"sub_questions_on_top_of_each_other": "attach handler"},
    "no_retrieval": {
        "loop_over_sub_questions": "openinference openllmetry",
        "sub_questions_on_top_of_each_other": "openinference openllmetry",
        "query_written_before_the_engine_is_asked": "openinference openllmetry",
        # A turn in which the agent chose not to search leaves the spans of any other conversation.
        "agent_in_a_thread": "openinference openllmetry",
        # Neither the middleware's search nor the streamed call's prompt is on a span.
        "documents_kept_by_middleware": "openllmetry",
    },
    # The instrumentor leaves such blocks out of the prompt's messages.
    "contexts_not_in_prompt": {"results_in_blocks_of_their_own": "openinference"},
    # Out of spans the state's "result" is the answer.
    "answer_call_unknown": {"rows_called_result_in_an_object": "openinference openllmetry"},
    # The instrumentor never ends the root of a stream.
    "unlinked": {"streamed_query_engine": "openllmetry"},
}

LIMITS: dict[tuple[str, str], str] = {
    (app, recorder): sign
    for sign, apps in _BY_SIGN.items()
    for app, recorders in apps.items()
    for recorder in recorders.split()
}
"""The beginning of the note, or the cause of the diagnosis, by application and recorder."""
