CREATE TABLE bodies (id bigserial PRIMARY KEY, record_id text NOT NULL, body bytea NOT NULL);
CREATE TABLE evaluations (
        record_id text PRIMARY KEY,
        evaluated_at double precision NOT NULL, duration double precision NOT NULL,
        trace_id text, span_id text, run_id text, framework text,
        record_status text, question text, answer text, tags jsonb, metadata jsonb,
        requests bigint NOT NULL, questions bigint NOT NULL, reasked bigint NOT NULL,
        prompt_tokens bigint NOT NULL, completion_tokens bigint NOT NULL, cached_tokens bigint NOT NULL,
        cost double precision, seconds double precision NOT NULL, body bigint NOT NULL
    );
CREATE TABLE scores (
        id text PRIMARY KEY, record_id text NOT NULL, position integer NOT NULL,
        evaluated_at double precision NOT NULL,
        metric text NOT NULL, status text NOT NULL, value double precision, passed integer, label text,
        threshold double precision, direction text NOT NULL, standard_error double precision,
        inclusion_probability double precision NOT NULL,
        cause text, explanation text NOT NULL, options text NOT NULL,
        judge text, embedder text, prompt_version text, metric_version text, fuse text, calibrated integer,
        body bigint NOT NULL
    );
CREATE TABLE ledger (
        run text PRIMARY KEY, host text NOT NULL, pid integer NOT NULL,
        started_at double precision NOT NULL, updated_at double precision NOT NULL, counts text NOT NULL
    );
CREATE TABLE labels (
        seq bigserial PRIMARY KEY, record_id text NOT NULL, metric text, claim integer, value text NOT NULL,
        note text NOT NULL, who text NOT NULL, labelled_at double precision NOT NULL
    );
CREATE UNIQUE INDEX labels_by_what_and_who ON labels (record_id, coalesce(metric, ''), coalesce(claim, -1), who);
CREATE INDEX bodies_by_record ON bodies (record_id);
CREATE INDEX evaluations_by_time ON evaluations (evaluated_at, record_id);
CREATE INDEX evaluations_by_trace ON evaluations (trace_id) WHERE trace_id IS NOT NULL;
CREATE INDEX scores_by_record ON scores (record_id, position);
CREATE INDEX scores_by_metric_and_time ON scores (metric, evaluated_at, value);
CREATE INDEX scores_without_value ON scores (metric, status, cause, evaluated_at) WHERE status <> 'scored';
CREATE INDEX scores_not_passed ON scores (metric, evaluated_at) WHERE passed = 0;
