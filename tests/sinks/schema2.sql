PRAGMA application_id = 1398033497;
PRAGMA user_version = 2;
BEGIN TRANSACTION;
CREATE TABLE bodies (id INTEGER PRIMARY KEY, record_id TEXT NOT NULL, body BLOB NOT NULL);
INSERT INTO "bodies" VALUES(1,'r0',X'78F986830A0C43A46823D4145D64405C9A062B4616D335404DE9B12007610B6B8C30353437800250EC22C217CCC516C406F881216A88227914E1436CC11B90580C72AE82819E12C8ED2599B9C0140F4EB5E06C0373AD19B26B4BF24B12738066039322909308521EAD94929A9BAF145B5B0B007DCF6DA5');
INSERT INTO "bodies" VALUES(2,'r1',X'78F986830A0C43A46823D4145D64485C9A062B4616D335444DE9B12007610B6B8C30353437800070EC22C2D700C4C516C406F881116A88227914E1436CC11B90580C72AE82A19E12C8ED2589E92069A594D4DC7CA5D8DA5A0087D65EC2');
INSERT INTO "bodies" VALUES(3,'r2',X'78F986830A0C43A46823D4145D64445C9A062B4616D335424DE9B12007610B6B8C3035343780002350EC22C2D700C4C516C406F881B1526D2D001B024490');
INSERT INTO "bodies" VALUES(4,'r3',X'78F986830A0C43A46823D4145D644C5C9A062B4616D335464DE9B12007610B6B8C3035343780006350EC22C2D700C4C516C406F881096A88227914E1436CC11B90580C72AE82B19E12C8ED2599B9C0140F4EB5E06C0373AD19C80E732303A0F380F694248294442BA5A4E6E62BC5D6D6020085496A62');
INSERT INTO "bodies" VALUES(5,'r3',X'78F986830A0C43A46823D4145D648C234D63E60AA86B3024748D51D37C2CC869D8421D23740DCD0D20C01814CF8890360071B105B6017E60821AB6485E46F8155B40072416839CAB60ACA704727B49662E30ED83D32F3803C15C6B06B2C3DCC800E83CA03D25892025D14A29A9B9F94AB1B5B5001DBD6EA4');
CREATE TABLE evaluations (
        record_id TEXT NOT NULL UNIQUE, evaluated_at REAL NOT NULL, duration REAL NOT NULL,
        trace_id TEXT, span_id TEXT, run_id TEXT, framework TEXT,
        record_status TEXT, question TEXT, answer TEXT, tags TEXT, metadata TEXT,
        requests INTEGER NOT NULL, questions INTEGER NOT NULL, reasked INTEGER NOT NULL,
        prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL,
        cost REAL, seconds REAL NOT NULL, body INTEGER NOT NULL
    );
INSERT INTO "evaluations" VALUES('r0',1700000000.0,0.0,'00000000000000000000000000000001',NULL,NULL,NULL,'ok','Question 0?','Answer 0.','["demo"]','{"version":"v1"}',1,0,0,0,0,0,NULL,0.0,1);
INSERT INTO "evaluations" VALUES('r1',1700000001.0,0.0,'00000000000000000000000000000002',NULL,NULL,NULL,'ok','Question 1?','Answer 1.','["demo"]','{"version":"v1"}',1,0,0,0,0,0,NULL,0.0,2);
INSERT INTO "evaluations" VALUES('r2',1700000002.0,0.0,'00000000000000000000000000000003',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1,0,0,0,0,0,NULL,0.0,3);
INSERT INTO "evaluations" VALUES('r3',1700000003.0,0.0,'00000000000000000000000000000004',NULL,NULL,NULL,'ok','Question 3?','Answer 3.','["demo"]','{"version":"v1"}',1,0,0,0,0,0,NULL,0.0,5);
CREATE TABLE labels (
        record_id TEXT NOT NULL, metric TEXT, claim INTEGER, value TEXT NOT NULL,
        note TEXT NOT NULL, who TEXT NOT NULL, labelled_at REAL NOT NULL
    );
INSERT INTO "labels" VALUES('r0',NULL,NULL,'good','','me',1750000000.0);
CREATE TABLE labels_schema (version INTEGER NOT NULL);
INSERT INTO "labels_schema" VALUES(1);
CREATE TABLE ledger (
        run TEXT NOT NULL PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL,
        started_at REAL NOT NULL, updated_at REAL NOT NULL, counts TEXT NOT NULL
    );
CREATE TABLE score_bars (metric TEXT NOT NULL, hour INTEGER NOT NULL, bar INTEGER NOT NULL,
            weight REAL NOT NULL, PRIMARY KEY (metric, hour, bar)) WITHOUT ROWID;
INSERT INTO "score_bars" VALUES('context_relevancy',472222,16,1.0);
INSERT INTO "score_bars" VALUES('faithfulness',472222,10,1.0);
INSERT INTO "score_bars" VALUES('faithfulness',472222,12,1.0);
INSERT INTO "score_bars" VALUES('faithfulness',472222,14,1.0);
INSERT INTO "score_bars" VALUES('faithfulness',472222,16,1.0);
CREATE TABLE score_sums (metric TEXT NOT NULL, hour INTEGER NOT NULL, threshold REAL,
            direction TEXT NOT NULL, n REAL NOT NULL, ends REAL NOT NULL, weight REAL NOT NULL, value REAL NOT NULL, value_value REAL NOT NULL, value_value_value REAL NOT NULL, square REAL NOT NULL, square_value REAL NOT NULL, square_value_value REAL NOT NULL, fourth REAL NOT NULL, passes_n REAL NOT NULL, passes_weight REAL NOT NULL, passes_value REAL NOT NULL, passes_square REAL NOT NULL, passes_square_value REAL NOT NULL, passes_fourth REAL NOT NULL, least REAL NOT NULL, passes_least REAL NOT NULL, PRIMARY KEY (metric, hour)) WITHOUT ROWID;
INSERT INTO "score_sums" VALUES('context_relevancy',472222,NULL,'higher',1.0,0.0,1.0,0.8,6.40000000000000124344e-01,5.1200000000000012168e-01,1.0,0.8,6.40000000000000124344e-01,1.0,0.0,0.0,0.0,0.0,0.0,0.0,1.0,1.0);
INSERT INTO "score_sums" VALUES('faithfulness',472222,NULL,'higher',4.0,0.0,4.0,2.6,1.74,1.19600000000000017408e+00,4.0,2.6,1.74,4.0,0.0,0.0,0.0,0.0,0.0,0.0,1.0,1.0);
CREATE TABLE scores (
        id TEXT NOT NULL UNIQUE, record_id TEXT NOT NULL, position INTEGER NOT NULL,
        evaluated_at REAL NOT NULL,
        metric TEXT NOT NULL, status TEXT NOT NULL, value REAL, passed INTEGER, label TEXT,
        threshold REAL, direction TEXT NOT NULL, standard_error REAL, inclusion_probability REAL NOT NULL,
        cause TEXT, explanation TEXT NOT NULL, options TEXT NOT NULL,
        judge TEXT, embedder TEXT, prompt_version TEXT, metric_version TEXT, fuse TEXT, calibrated INTEGER,
        body INTEGER NOT NULL
    );
INSERT INTO "scores" VALUES('faithfulness-0','r0',0,1700000000.0,'faithfulness','scored',0.5,NULL,NULL,NULL,'higher',NULL,1.0,NULL,'said','','local',NULL,'','','view',0,1);
INSERT INTO "scores" VALUES('faithfulness-1','r1',0,1700000001.0,'faithfulness','scored',0.6,NULL,NULL,NULL,'higher',NULL,1.0,NULL,'said','','local',NULL,'','','view',0,2);
INSERT INTO "scores" VALUES('faithfulness-2','r2',0,1700000002.0,'faithfulness','scored',0.7,NULL,NULL,NULL,'higher',NULL,1.0,NULL,'said','','local',NULL,'','','view',0,3);
INSERT INTO "scores" VALUES('faithfulness-3','r3',0,1700000003.0,'faithfulness','scored',0.8,NULL,NULL,NULL,'higher',NULL,1.0,NULL,'said','','local',NULL,'','','view',0,4);
INSERT INTO "scores" VALUES('context_relevancy-3','r3',0,1700000003.0,'context_relevancy','scored',0.8,NULL,NULL,NULL,'higher',NULL,1.0,NULL,'said','','local',NULL,'','','view',0,5);
CREATE TABLE stale_hours (hour INTEGER PRIMARY KEY);
CREATE TABLE tag_bars (tag TEXT NOT NULL, metric TEXT NOT NULL, hour INTEGER NOT NULL,
            bar INTEGER NOT NULL, weight REAL NOT NULL, PRIMARY KEY (tag, metric, hour, bar))
            WITHOUT ROWID;
CREATE TABLE tag_missing (tag TEXT NOT NULL, metric TEXT NOT NULL, hour INTEGER NOT NULL,
            status TEXT NOT NULL, cause TEXT NOT NULL, n INTEGER NOT NULL,
            PRIMARY KEY (tag, metric, hour, status, cause)) WITHOUT ROWID;
CREATE TABLE tag_sums (tag TEXT NOT NULL, metric TEXT NOT NULL, hour INTEGER NOT NULL,
            threshold REAL, direction TEXT NOT NULL, n REAL NOT NULL, ends REAL NOT NULL, weight REAL NOT NULL, value REAL NOT NULL, value_value REAL NOT NULL, value_value_value REAL NOT NULL, square REAL NOT NULL, square_value REAL NOT NULL, square_value_value REAL NOT NULL, fourth REAL NOT NULL, passes_n REAL NOT NULL, passes_weight REAL NOT NULL, passes_value REAL NOT NULL, passes_square REAL NOT NULL, passes_square_value REAL NOT NULL, passes_fourth REAL NOT NULL, least REAL NOT NULL, passes_least REAL NOT NULL, PRIMARY KEY (tag, metric, hour))
            WITHOUT ROWID;
CREATE TABLE tags (tag TEXT NOT NULL PRIMARY KEY, turns INTEGER NOT NULL, since_hour INTEGER)
            WITHOUT ROWID;
INSERT INTO "tags" VALUES('demo',3,NULL);
CREATE TABLE turn_keys (kind TEXT NOT NULL, value TEXT NOT NULL, evaluated_at REAL NOT NULL,
            record_id TEXT NOT NULL, PRIMARY KEY (kind, value, evaluated_at, record_id)) WITHOUT ROWID;
INSERT INTO "turn_keys" VALUES('judge','local',1700000000.0,'r0');
INSERT INTO "turn_keys" VALUES('judge','local',1700000001.0,'r1');
INSERT INTO "turn_keys" VALUES('judge','local',1700000002.0,'r2');
INSERT INTO "turn_keys" VALUES('judge','local',1700000003.0,'r3');
INSERT INTO "turn_keys" VALUES('tag','demo',1700000000.0,'r0');
INSERT INTO "turn_keys" VALUES('tag','demo',1700000001.0,'r1');
INSERT INTO "turn_keys" VALUES('tag','demo',1700000003.0,'r3');
INSERT INTO "turn_keys" VALUES('version','v1',1700000000.0,'r0');
INSERT INTO "turn_keys" VALUES('version','v1',1700000001.0,'r1');
INSERT INTO "turn_keys" VALUES('version','v1',1700000003.0,'r3');
CREATE TABLE turn_keys_since (at REAL NOT NULL);
INSERT INTO "turn_keys_since" VALUES(-1.0e+300);
CREATE INDEX bodies_by_record ON bodies (record_id);
CREATE INDEX evaluations_by_time ON evaluations (evaluated_at);
CREATE INDEX evaluations_by_trace ON evaluations (trace_id) WHERE trace_id IS NOT NULL;
CREATE INDEX scores_by_record ON scores (record_id, position);
CREATE INDEX scores_by_metric_and_time ON scores (metric, evaluated_at, value);
CREATE INDEX scores_without_value ON scores (metric, status, cause, evaluated_at, record_id) WHERE status != 'scored';
CREATE INDEX scores_not_passed ON scores (metric, evaluated_at) WHERE passed = 0;
CREATE TRIGGER scores_are_added AFTER INSERT ON scores WHEN new.status = 'scored' AND new.value IS NOT NULL BEGIN
            INSERT INTO score_sums (metric, hour, threshold, direction, n, ends, weight, value, value_value, value_value_value, square, square_value, square_value_value, fourth, passes_n, passes_weight, passes_value, passes_square, passes_square_value, passes_fourth, least, passes_least)
            VALUES (new.metric, CAST(max(new.evaluated_at, 0) / 3600 AS INTEGER), new.threshold, new.direction, 1, (new.value <= 0 OR new.value >= 1), 1 / new.inclusion_probability, new.value / new.inclusion_probability, new.value * new.value / new.inclusion_probability, new.value * new.value * new.value / new.inclusion_probability, 1 / (new.inclusion_probability * new.inclusion_probability), new.value / (new.inclusion_probability * new.inclusion_probability), new.value * new.value / (new.inclusion_probability * new.inclusion_probability), 1 / (new.inclusion_probability * new.inclusion_probability * new.inclusion_probability * new.inclusion_probability), (new.passed IS NOT NULL), (new.passed IS NOT NULL) / new.inclusion_probability, coalesce(new.passed, 0) / new.inclusion_probability, (new.passed IS NOT NULL) / (new.inclusion_probability * new.inclusion_probability), coalesce(new.passed, 0) / (new.inclusion_probability * new.inclusion_probability), (new.passed IS NOT NULL) / (new.inclusion_probability * new.inclusion_probability * new.inclusion_probability * new.inclusion_probability), new.inclusion_probability, CASE WHEN new.passed IS NULL THEN 1.0 ELSE new.inclusion_probability END)
            ON CONFLICT (metric, hour) DO UPDATE
            SET threshold = excluded.threshold, direction = excluded.direction, n = n + excluded.n, ends = ends + excluded.ends, weight = weight + excluded.weight, value = value + excluded.value, value_value = value_value + excluded.value_value, value_value_value = value_value_value + excluded.value_value_value, square = square + excluded.square, square_value = square_value + excluded.square_value, square_value_value = square_value_value + excluded.square_value_value, fourth = fourth + excluded.fourth, passes_n = passes_n + excluded.passes_n, passes_weight = passes_weight + excluded.passes_weight, passes_value = passes_value + excluded.passes_value, passes_square = passes_square + excluded.passes_square, passes_square_value = passes_square_value + excluded.passes_square_value, passes_fourth = passes_fourth + excluded.passes_fourth, least = min(least, excluded.least), passes_least = min(passes_least, excluded.passes_least);
            INSERT INTO score_bars
            VALUES (new.metric, CAST(max(new.evaluated_at, 0) / 3600 AS INTEGER), CAST(max(min(new.value * 20, 19), 0) AS INTEGER), 1 / new.inclusion_probability)
            ON CONFLICT (metric, hour, bar) DO UPDATE SET weight = weight + excluded.weight;
            END;
CREATE TRIGGER scores_are_changed AFTER UPDATE ON scores WHEN old.metric IS NOT new.metric OR old.evaluated_at IS NOT new.evaluated_at OR old.status IS NOT new.status OR old.value IS NOT new.value OR old.passed IS NOT new.passed OR old.inclusion_probability IS NOT new.inclusion_probability OR old.threshold IS NOT new.threshold OR old.direction IS NOT new.direction OR old.cause IS NOT new.cause BEGIN
            INSERT INTO stale_hours VALUES (CAST(max(new.evaluated_at, 0) / 3600 AS INTEGER)) ON CONFLICT DO NOTHING; INSERT INTO stale_hours VALUES (CAST(max(old.evaluated_at, 0) / 3600 AS INTEGER)) ON CONFLICT DO NOTHING; END;
CREATE TRIGGER scores_are_deleted AFTER DELETE ON scores BEGIN
            INSERT INTO stale_hours VALUES (CAST(max(old.evaluated_at, 0) / 3600 AS INTEGER)) ON CONFLICT DO NOTHING; END;
CREATE TRIGGER turns_are_added AFTER INSERT ON evaluations BEGIN INSERT INTO turn_keys SELECT 'tag', value, new.evaluated_at, new.record_id FROM json_each(CASE WHEN json_valid(new.tags) THEN new.tags ELSE '[]' END) WHERE type = 'text' ON CONFLICT DO NOTHING; INSERT INTO turn_keys SELECT 'version', CASE WHEN json_valid(new.metadata) THEN CAST(json_extract(new.metadata, '$.version') AS TEXT) END, new.evaluated_at, new.record_id FROM (SELECT 1) WHERE CASE WHEN json_valid(new.metadata) THEN CAST(json_extract(new.metadata, '$.version') AS TEXT) END IS NOT NULL ON CONFLICT DO NOTHING; INSERT INTO turn_keys SELECT 'route', CASE WHEN json_valid(new.metadata) THEN CAST(json_extract(new.metadata, '$.route') AS TEXT) END, new.evaluated_at, new.record_id FROM (SELECT 1) WHERE CASE WHEN json_valid(new.metadata) THEN CAST(json_extract(new.metadata, '$.route') AS TEXT) END IS NOT NULL ON CONFLICT DO NOTHING; INSERT INTO turn_keys SELECT 'judge', s.judge, new.evaluated_at, new.record_id FROM scores s
            WHERE s.record_id = new.record_id AND s.judge IS NOT NULL ON CONFLICT DO NOTHING; END;
CREATE TRIGGER turns_are_changed AFTER UPDATE ON evaluations WHEN old.evaluated_at IS NOT new.evaluated_at OR old.tags IS NOT new.tags OR old.metadata IS NOT new.metadata OR old.record_id IS NOT new.record_id BEGIN
            DELETE FROM turn_keys WHERE kind = 'tag' AND value IN (SELECT value FROM json_each(CASE WHEN json_valid(old.tags) THEN old.tags ELSE '[]' END))
            AND evaluated_at = old.evaluated_at AND record_id = old.record_id; DELETE FROM turn_keys WHERE kind = 'version' AND value IN (SELECT CASE WHEN json_valid(old.metadata) THEN CAST(json_extract(old.metadata, '$.version') AS TEXT) END)
            AND evaluated_at = old.evaluated_at AND record_id = old.record_id; DELETE FROM turn_keys WHERE kind = 'route' AND value IN (SELECT CASE WHEN json_valid(old.metadata) THEN CAST(json_extract(old.metadata, '$.route') AS TEXT) END)
            AND evaluated_at = old.evaluated_at AND record_id = old.record_id; DELETE FROM turn_keys WHERE kind = 'judge' AND value IN (SELECT judge FROM scores WHERE record_id = old.record_id)
            AND evaluated_at = old.evaluated_at AND record_id = old.record_id; INSERT INTO turn_keys SELECT 'tag', value, new.evaluated_at, new.record_id FROM json_each(CASE WHEN json_valid(new.tags) THEN new.tags ELSE '[]' END) WHERE type = 'text' ON CONFLICT DO NOTHING; INSERT INTO turn_keys SELECT 'version', CASE WHEN json_valid(new.metadata) THEN CAST(json_extract(new.metadata, '$.version') AS TEXT) END, new.evaluated_at, new.record_id FROM (SELECT 1) WHERE CASE WHEN json_valid(new.metadata) THEN CAST(json_extract(new.metadata, '$.version') AS TEXT) END IS NOT NULL ON CONFLICT DO NOTHING; INSERT INTO turn_keys SELECT 'route', CASE WHEN json_valid(new.metadata) THEN CAST(json_extract(new.metadata, '$.route') AS TEXT) END, new.evaluated_at, new.record_id FROM (SELECT 1) WHERE CASE WHEN json_valid(new.metadata) THEN CAST(json_extract(new.metadata, '$.route') AS TEXT) END IS NOT NULL ON CONFLICT DO NOTHING; INSERT INTO turn_keys SELECT 'judge', s.judge, new.evaluated_at, new.record_id FROM scores s
            WHERE s.record_id = new.record_id AND s.judge IS NOT NULL ON CONFLICT DO NOTHING; END;
CREATE TRIGGER turns_are_deleted AFTER DELETE ON evaluations BEGIN DELETE FROM turn_keys WHERE kind = 'tag' AND value IN (SELECT value FROM json_each(CASE WHEN json_valid(old.tags) THEN old.tags ELSE '[]' END))
            AND evaluated_at = old.evaluated_at AND record_id = old.record_id; DELETE FROM turn_keys WHERE kind = 'version' AND value IN (SELECT CASE WHEN json_valid(old.metadata) THEN CAST(json_extract(old.metadata, '$.version') AS TEXT) END)
            AND evaluated_at = old.evaluated_at AND record_id = old.record_id; DELETE FROM turn_keys WHERE kind = 'route' AND value IN (SELECT CASE WHEN json_valid(old.metadata) THEN CAST(json_extract(old.metadata, '$.route') AS TEXT) END)
            AND evaluated_at = old.evaluated_at AND record_id = old.record_id; DELETE FROM turn_keys WHERE kind = 'judge' AND value IN (SELECT judge FROM scores WHERE record_id = old.record_id)
            AND evaluated_at = old.evaluated_at AND record_id = old.record_id; END;
CREATE TRIGGER judges_are_added AFTER INSERT ON scores BEGIN INSERT INTO turn_keys SELECT 'judge', new.judge, evaluated_at, record_id FROM evaluations
        WHERE record_id = new.record_id AND new.judge IS NOT NULL ON CONFLICT DO NOTHING; END;
CREATE TRIGGER judges_are_changed AFTER UPDATE ON scores WHEN old.judge IS NOT new.judge BEGIN
            DELETE FROM turn_keys WHERE kind = 'judge' AND value = old.judge
        AND evaluated_at = (SELECT evaluated_at FROM evaluations WHERE record_id = old.record_id)
        AND record_id = old.record_id
        AND NOT EXISTS (SELECT 1 FROM scores WHERE record_id = old.record_id AND judge = old.judge); INSERT INTO turn_keys SELECT 'judge', new.judge, evaluated_at, record_id FROM evaluations
        WHERE record_id = new.record_id AND new.judge IS NOT NULL ON CONFLICT DO NOTHING; END;
CREATE TRIGGER judges_are_deleted AFTER DELETE ON scores BEGIN DELETE FROM turn_keys WHERE kind = 'judge' AND value = old.judge
        AND evaluated_at = (SELECT evaluated_at FROM evaluations WHERE record_id = old.record_id)
        AND record_id = old.record_id
        AND NOT EXISTS (SELECT 1 FROM scores WHERE record_id = old.record_id AND judge = old.judge); END;
CREATE INDEX tags_with_sums ON tags (since_hour) WHERE since_hour IS NOT NULL;
CREATE INDEX tags_without_sums ON tags (turns) WHERE since_hour IS NULL AND turns >= 1000;
CREATE TRIGGER tags_are_added AFTER INSERT ON turn_keys WHEN new.kind = 'tag' BEGIN
            INSERT INTO tags (tag, turns) VALUES (new.value, 1)
            ON CONFLICT (tag) DO UPDATE SET turns = turns + 1; END;
CREATE TRIGGER tags_are_deleted AFTER DELETE ON turn_keys WHEN old.kind = 'tag' BEGIN
            UPDATE tags SET turns = turns - 1 WHERE tag = old.value;
            DELETE FROM tags WHERE tag = old.value AND turns <= 0; END;
CREATE TRIGGER tags_are_forgotten AFTER DELETE ON tags BEGIN DELETE FROM tag_sums WHERE tag = old.tag; DELETE FROM tag_bars WHERE tag = old.tag; DELETE FROM tag_missing WHERE tag = old.tag; END;
CREATE TRIGGER missing_are_added_by_tag AFTER INSERT ON scores
            WHEN new.status != 'scored' AND EXISTS (SELECT 1 FROM tags WHERE since_hour IS NOT NULL) BEGIN
            INSERT INTO tag_missing
            SELECT t.tag, new.metric, CAST(max(new.evaluated_at, 0) / 3600 AS INTEGER), new.status, coalesce(new.cause, 'unknown'), 1 FROM evaluations e CROSS JOIN json_each(CASE WHEN json_valid(e.tags) THEN e.tags ELSE '[]' END) k CROSS JOIN tags t
    WHERE e.record_id = new.record_id AND k.type = 'text'
    AND t.tag = k.value AND t.since_hour <= CAST(max(new.evaluated_at, 0) / 3600 AS INTEGER)
            ON CONFLICT (tag, metric, hour, status, cause) DO UPDATE SET n = n + 1; END;
CREATE TRIGGER turns_after_scores AFTER INSERT ON evaluations WHEN EXISTS (SELECT 1 FROM tags WHERE since_hour IS NOT NULL) BEGIN
            INSERT INTO stale_hours SELECT DISTINCT CAST(max(evaluated_at, 0) / 3600 AS INTEGER) FROM scores WHERE record_id = new.record_id ON CONFLICT DO NOTHING; END;
CREATE TRIGGER tags_are_changed AFTER UPDATE ON evaluations
            WHEN old.tags IS NOT new.tags AND EXISTS (SELECT 1 FROM tags WHERE since_hour IS NOT NULL) BEGIN INSERT INTO stale_hours SELECT DISTINCT CAST(max(evaluated_at, 0) / 3600 AS INTEGER) FROM scores WHERE record_id = new.record_id ON CONFLICT DO NOTHING; END;
CREATE TRIGGER scores_are_added_by_tag AFTER INSERT ON scores
            WHEN new.status = 'scored' AND new.value IS NOT NULL AND EXISTS (SELECT 1 FROM tags WHERE since_hour IS NOT NULL) BEGIN
            INSERT INTO tag_sums (tag, metric, hour, threshold, direction, n, ends, weight, value, value_value, value_value_value, square, square_value, square_value_value, fourth, passes_n, passes_weight, passes_value, passes_square, passes_square_value, passes_fourth, least, passes_least)
            SELECT t.tag, new.metric, CAST(max(new.evaluated_at, 0) / 3600 AS INTEGER), new.threshold, new.direction, 1, (new.value <= 0 OR new.value >= 1), 1 / new.inclusion_probability, new.value / new.inclusion_probability, new.value * new.value / new.inclusion_probability, new.value * new.value * new.value / new.inclusion_probability, 1 / (new.inclusion_probability * new.inclusion_probability), new.value / (new.inclusion_probability * new.inclusion_probability), new.value * new.value / (new.inclusion_probability * new.inclusion_probability), 1 / (new.inclusion_probability * new.inclusion_probability * new.inclusion_probability * new.inclusion_probability), (new.passed IS NOT NULL), (new.passed IS NOT NULL) / new.inclusion_probability, coalesce(new.passed, 0) / new.inclusion_probability, (new.passed IS NOT NULL) / (new.inclusion_probability * new.inclusion_probability), coalesce(new.passed, 0) / (new.inclusion_probability * new.inclusion_probability), (new.passed IS NOT NULL) / (new.inclusion_probability * new.inclusion_probability * new.inclusion_probability * new.inclusion_probability), new.inclusion_probability, CASE WHEN new.passed IS NULL THEN 1.0 ELSE new.inclusion_probability END FROM evaluations e CROSS JOIN json_each(CASE WHEN json_valid(e.tags) THEN e.tags ELSE '[]' END) k CROSS JOIN tags t
    WHERE e.record_id = new.record_id AND k.type = 'text'
    AND t.tag = k.value AND t.since_hour <= CAST(max(new.evaluated_at, 0) / 3600 AS INTEGER)
            ON CONFLICT (tag, metric, hour) DO UPDATE
            SET threshold = excluded.threshold, direction = excluded.direction, n = n + excluded.n, ends = ends + excluded.ends, weight = weight + excluded.weight, value = value + excluded.value, value_value = value_value + excluded.value_value, value_value_value = value_value_value + excluded.value_value_value, square = square + excluded.square, square_value = square_value + excluded.square_value, square_value_value = square_value_value + excluded.square_value_value, fourth = fourth + excluded.fourth, passes_n = passes_n + excluded.passes_n, passes_weight = passes_weight + excluded.passes_weight, passes_value = passes_value + excluded.passes_value, passes_square = passes_square + excluded.passes_square, passes_square_value = passes_square_value + excluded.passes_square_value, passes_fourth = passes_fourth + excluded.passes_fourth, least = min(least, excluded.least), passes_least = min(passes_least, excluded.passes_least);
            INSERT INTO tag_bars
            SELECT t.tag, new.metric, CAST(max(new.evaluated_at, 0) / 3600 AS INTEGER), CAST(max(min(new.value * 20, 19), 0) AS INTEGER), 1 / new.inclusion_probability FROM evaluations e CROSS JOIN json_each(CASE WHEN json_valid(e.tags) THEN e.tags ELSE '[]' END) k CROSS JOIN tags t
    WHERE e.record_id = new.record_id AND k.type = 'text'
    AND t.tag = k.value AND t.since_hour <= CAST(max(new.evaluated_at, 0) / 3600 AS INTEGER)
            ON CONFLICT (tag, metric, hour, bar) DO UPDATE SET weight = weight + excluded.weight; END;
CREATE UNIQUE INDEX labels_by_what_and_who
        ON labels (record_id, ifnull(metric, ''), ifnull(claim, -1), who);
COMMIT;
