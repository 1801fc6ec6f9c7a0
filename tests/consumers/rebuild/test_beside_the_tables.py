"""What users put beside our tables is theirs: a rebuild carries it over, or is refused by name."""

from collections.abc import Mapping

import pytest

from consumers.database.migrate import migrate
from consumers.errors import CuaProjectError
from consumers.log.reader import TopicPartition
from consumers.rebuild.rebuild import rebuild, roll_back
from tests.reference_fold.histories import LoggedEvent
from tests.support.logs import memory_log
from tests.support.memory_log import MemoryLog, MemoryReader
from tests.support.postgres import execute, one
from tests.support.rebuilding import project, run

pytestmark = pytest.mark.services


def test_views_give_fresh_rows_after_three_rebuilds_and_keep_what_was_given_to_them(
    migrated_url: str, log: MemoryLog, events: list[LoggedEvent]
) -> None:
    role = "analyst_" + migrated_url.rsplit("_", 1)[1]
    execute(
        migrated_url,
        "CREATE SCHEMA mine; CREATE VIEW public.turns WITH (security_barrier=true) AS SELECT id,"
        " rollout_id, reward FROM cua.turn WHERE reward >= 0; CREATE VIEW mine.per_rollout AS"
        " SELECT rollout_id, count(*) AS num FROM public.turns GROUP BY rollout_id; CREATE VIEW"
        " cua.inside AS SELECT r.id, r.status, to_jsonb(r.*) AS whole FROM cua.rollout AS r GROUP"
        " BY r.id; COMMENT ON VIEW public.turns IS 'mine'; COMMENT ON COLUMN public.turns.reward IS"
        f" 'per turn'; ALTER VIEW public.turns ALTER COLUMN reward SET DEFAULT 1; CREATE ROLE"
        f' "{role}"; GRANT SELECT ON public.turns TO "{role}"; GRANT USAGE ON SCHEMA mine TO'
        f' "{role}"; CREATE RECURSIVE VIEW public.counted (n) AS VALUES (1) UNION ALL SELECT n + 1'
        " FROM counted WHERE n < (SELECT count(*) FROM cua.rollout)",
    )
    before = one(migrated_url, "SELECT 'public.turns'::regclass::oid")
    try:
        for _ in range(3):
            run(log, migrated_url)
        for event in events[-20:]:
            memory_log([event], log)
        project(log, migrated_url)

        assert one(migrated_url, "SELECT count(*) FROM public.turns") == one(
            migrated_url, "SELECT count(*) FROM cua.turn"
        )
        assert one(
            migrated_url, "SELECT (SELECT sum(num) FROM mine.per_rollout) = count(*) FROM cua.turn"
        )
        assert one(migrated_url, "SELECT count(*) FROM cua.inside") == one(
            migrated_url, "SELECT max(n) FROM public.counted"
        )
        assert one(
            migrated_url,
            "SELECT oid, reloptions, obj_description(oid, 'pg_class'), col_description(oid, 3),"
            f" has_table_privilege('{role}', oid, 'SELECT'), (SELECT count(*) FROM pg_attrdef WHERE"
            " adrelid = pg_class.oid) FROM pg_class WHERE oid = 'public.turns'::regclass",
        ) == (before, ["security_barrier=true"], "mine", "per turn", True, 1)
        execute(migrated_url, "DROP TABLE IF EXISTS cua_previous.turn RESTRICT")
    finally:
        execute(migrated_url, f'DROP OWNED BY "{role}"; DROP ROLE "{role}"')


CARRIED = {
    "an index": (
        "CREATE INDEX mine ON cua.rollout (status, reward DESC) WHERE reward > 0; COMMENT ON INDEX"
        " cua.mine IS 'x'; CREATE UNIQUE INDEX mine_too ON cua.\"group\" (lower(status), id)",
        "SELECT string_agg(pg_get_indexdef(indexrelid) || coalesce(obj_description(indexrelid,"
        " 'pg_class'), ''), ';' ORDER BY 1) FROM pg_index WHERE indexrelid::regclass::text IN"
        " ('cua.mine', 'cua.mine_too')",
    ),
    "constraints": (
        "ALTER TABLE cua.turn ADD CONSTRAINT mine CHECK (reward > -5); ALTER TABLE cua.rollout ADD"
        " CONSTRAINT mine_unique UNIQUE (id, status); ALTER TABLE cua.turn ADD CONSTRAINT mine_ref"
        " FOREIGN KEY (rollout_id) REFERENCES cua.rollout (id) NOT VALID; COMMENT ON CONSTRAINT"
        " mine ON cua.turn IS 'x'; COMMENT ON CONSTRAINT mine_ref ON cua.turn IS 'y'",
        "SELECT string_agg(concat(conrelid::regclass, pg_get_constraintdef(oid),"
        " obj_description(oid, 'pg_constraint')), ';' ORDER BY conname)"
        " FROM pg_constraint WHERE connamespace = 'cua'::regnamespace AND conname LIKE 'mine%'",
    ),
    "a trigger": (
        "CREATE FUNCTION public.notify_me() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM"
        " pg_notify(''mine'', NEW.id::text); RETURN NEW; END'; CREATE TRIGGER mine AFTER INSERT OR"
        " UPDATE OF status ON cua.rollout FOR EACH ROW WHEN (NEW.status <> '') EXECUTE FUNCTION"
        " public.notify_me(); ALTER TABLE cua.rollout ENABLE ALWAYS TRIGGER mine; COMMENT ON"
        " TRIGGER mine ON cua.rollout IS 'x'",
        "SELECT pg_get_triggerdef(oid), tgenabled, obj_description(oid, 'pg_trigger') FROM"
        " pg_trigger WHERE tgname = 'mine'",
    ),
    "a rule": (
        "CREATE TABLE public.seen (id uuid); CREATE RULE mine AS ON DELETE TO cua.turn DO ALSO"
        " INSERT INTO public.seen SELECT old.id FROM cua.rollout WHERE id = old.rollout_id",
        "SELECT pg_get_ruledef(oid) FROM pg_rewrite WHERE rulename = 'mine'",
    ),
    "a rule of a view": (
        "CREATE VIEW public.v AS SELECT id FROM cua.turn; CREATE RULE mine AS ON DELETE TO public.v"
        " DO INSTEAD DELETE FROM cua.turn WHERE id = old.id",
        "SELECT pg_get_ruledef(oid) FROM pg_rewrite WHERE rulename = 'mine'",
    ),
    "row security": (
        "ALTER TABLE cua.rollout ENABLE ROW LEVEL SECURITY; CREATE POLICY mine ON cua.rollout AS"
        " RESTRICTIVE FOR SELECT TO PUBLIC USING (training_id IN (SELECT id FROM cua.training));"
        " COMMENT ON POLICY mine ON cua.rollout IS 'x'",
        "SELECT relrowsecurity, relforcerowsecurity, polname, polpermissive, polcmd,"
        " pg_get_expr(polqual, polrelid), obj_description(pg_policy.oid, 'pg_policy') FROM pg_class"
        " JOIN pg_policy ON polrelid = pg_class.oid WHERE pg_class.oid = 'cua.rollout'::regclass",
    ),
    "a policy of a user's table": (
        "CREATE TABLE public.notes (rollout_id uuid); CREATE POLICY mine ON public.notes USING"
        " (rollout_id IN (SELECT id FROM cua.rollout))",
        "SELECT pg_get_expr(polqual, polrelid) FROM pg_policy WHERE polname = 'mine'",
    ),
    "a foreign key": (
        "CREATE TABLE public.notes (rollout_id uuid CONSTRAINT mine REFERENCES cua.rollout ON"
        " DELETE CASCADE DEFERRABLE, text text); INSERT INTO public.notes SELECT id FROM"
        " cua.rollout; COMMENT ON CONSTRAINT mine ON public.notes IS 'x'",
        "SELECT pg_get_constraintdef(oid), convalidated, confrelid::regclass::text,"
        " obj_description(oid, 'pg_constraint') FROM pg_constraint WHERE conname = 'mine'",
    ),
    "extended statistics": (
        "CREATE STATISTICS public.mine (dependencies) ON status, task_success FROM cua.rollout;"
        " COMMENT ON STATISTICS public.mine IS 'x'",
        "SELECT pg_get_statisticsobjdef(oid), obj_description(oid, 'pg_statistic_ext') FROM"
        " pg_statistic_ext WHERE stxname = 'mine'",
    ),
    "publications": (
        "CREATE PUBLICATION mine FOR TABLE cua.turn (id, reward) WHERE (reward > 0), cua.rollout;"
        " CREATE PUBLICATION mine_all FOR TABLES IN SCHEMA cua",
        "SELECT string_agg(concat(pubname, schemaname, tablename, rowfilter, CASE tablename WHEN"
        " 'turn' THEN attnames END), ';' ORDER BY pubname, tablename) FROM pg_publication_tables",
    ),
    "grants": (
        "GRANT SELECT ON cua.step TO PUBLIC; GRANT SELECT (id), UPDATE (reward) ON cua.rollout TO"
        " PUBLIC; ALTER DEFAULT PRIVILEGES IN SCHEMA cua GRANT SELECT ON TABLES TO PUBLIC; REVOKE"
        " TRUNCATE ON cua.turn FROM CURRENT_USER",
        "SELECT string_agg(concat(relname, relacl, (SELECT string_agg(concat(attname, attacl), ','"
        " ORDER BY attnum) FROM pg_attribute WHERE attrelid = pg_class.oid)), ';' ORDER BY relname)"
        " || (SELECT string_agg(defaclacl::text, '') FROM pg_default_acl) FROM pg_class WHERE"
        " relnamespace = 'cua'::regnamespace AND relname IN ('step', 'rollout', 'turn')",
    ),
    "no more rights than before": (
        "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC",
        "SELECT string_agg(coalesce(relacl, acldefault('r', relowner))::text, '') FROM pg_class"
        " WHERE relnamespace = 'cua'::regnamespace AND relkind = 'r'",
    ),
    "storage and comments": (
        "ALTER TABLE cua.turn SET (fillfactor = 55, autovacuum_enabled = false,"
        " toast.autovacuum_enabled = false); ALTER TABLE cua.training RESET (fillfactor); ALTER"
        " TABLE cua.turn ALTER COLUMN model_response SET STORAGE EXTERNAL, ALTER COLUMN reward SET"
        " STATISTICS 500, ALTER COLUMN reward SET (n_distinct = 5), ALTER COLUMN reward SET DEFAULT"
        " 0;"
        " COMMENT ON CONSTRAINT pk_turn ON cua.turn IS 'c'",
        "SELECT (SELECT array_agg(option ORDER BY option) FROM unnest(c.reloptions) AS option),"
        " t.reloptions, (SELECT reloptions FROM pg_class WHERE oid ="
        " 'cua.training'::regclass), attstorage, (SELECT row(attstattarget, attoptions,"
        " pg_get_expr(adbin, adrelid))::text FROM pg_attribute JOIN pg_attrdef ON adrelid ="
        " attrelid AND adnum = attnum WHERE attrelid = c.oid),"
        " (SELECT obj_description(oid, 'pg_constraint') FROM pg_constraint WHERE conrelid = c.oid"
        " AND conname = 'pk_turn') FROM pg_class c JOIN pg_class t ON t.oid = c.reltoastrelid JOIN"
        " pg_attribute ON attrelid = c.oid AND attname = 'model_response' WHERE c.oid ="
        " 'cua.turn'::regclass",
    ),
    "replica identity": (
        "ALTER TABLE cua.turn REPLICA IDENTITY FULL; CREATE UNIQUE INDEX mine ON cua.obs (id,"
        " turn_id); ALTER TABLE cua.obs REPLICA IDENTITY USING INDEX mine; ALTER TABLE cua.obs"
        " CLUSTER ON mine",
        "SELECT string_agg(relreplident::text, '' ORDER BY relname), (SELECT"
        " string_agg(concat(indexrelid::regclass, indisreplident, indisclustered), '') FROM"
        " pg_index WHERE indisreplident AND indrelid = 'cua.obs'::regclass) FROM pg_class WHERE oid"
        " IN ('cua.turn'::regclass,"
        " 'cua.obs'::regclass)",
    ),
    "functions with parsed bodies": (
        "CREATE FUNCTION public.mine(low double precision) RETURNS bigint STABLE BEGIN ATOMIC"
        " SELECT count(*) FROM cua.turn WHERE reward > low; END; COMMENT ON FUNCTION"
        " public.mine(double precision) IS 'x'; CREATE VIEW public.asks AS SELECT public.mine(0)",
        "SELECT p.oid, pg_get_functiondef(p.oid), obj_description(p.oid, 'pg_proc') FROM pg_proc p"
        " WHERE proname = 'mine'",
    ),
    "things of others in our schema": (
        "CREATE TABLE cua.notes (id serial PRIMARY KEY, mood cua_mood) ; INSERT INTO cua.notes"
        " DEFAULT VALUES; CREATE FUNCTION cua.f() RETURNS int LANGUAGE sql AS 'SELECT 1'; GRANT"
        " USAGE ON SCHEMA cua TO PUBLIC; COMMENT ON SCHEMA cua IS 'ours'",
        "SELECT (SELECT count(*) FROM cua.notes), cua.f(), nspacl, obj_description(oid,"
        " 'pg_namespace'), 'cua.notes_id_seq'::regclass::oid FROM pg_namespace WHERE nspname ="
        " 'cua'",
    ),
}


@pytest.mark.parametrize("what", CARRIED)
def test_what_can_be_carried_is_the_same_after_rebuilds_and_a_rollback(
    migrated_url: str, log: MemoryLog, what: str
) -> None:
    make, look = CARRIED[what]
    execute(migrated_url, "CREATE TYPE public.cua_mood AS ENUM ('a')")
    execute(migrated_url, make)
    before = one(migrated_url, look)

    run(log, migrated_url)
    assert one(migrated_url, look) == before
    run(log, migrated_url)
    roll_back(migrated_url)
    assert one(migrated_url, look) == before
    roll_back(migrated_url)

    assert one(migrated_url, look) == before
    run(log, migrated_url)
    migrate(migrated_url)
    # Nothing of theirs hangs on the replaced tables, so that theirs can be dropped.
    execute(migrated_url, "DROP SCHEMA IF EXISTS cua_previous CASCADE")
    assert one(migrated_url, look) == before


REFUSED = {
    "materialized view public.mine": "CREATE MATERIALIZED VIEW public.mine AS TABLE cua.turn",
    "column cua.turn.mine": "ALTER TABLE cua.turn ADD COLUMN mine text",
    "table public.child": "CREATE TABLE public.child () INHERITS (cua.turn)",
    "column rollout of table public.keeps": "CREATE TABLE public.keeps (rollout cua.rollout)",
    "column rollouts of table public.keeps": "CREATE TABLE public.keeps (rollouts cua.rollout[])",
    "function public.mine()": "CREATE FUNCTION public.mine() RETURNS SETOF cua.turn LANGUAGE sql AS"
    " 'SELECT * FROM cua.turn'",
    "sequence cua.mine": "CREATE SEQUENCE cua.mine OWNED BY cua.turn.turn",
    "view public.mine": "CREATE VIEW public.mine AS SELECT t FROM cua.turn AS t",
    "turn: it inherits from public.parent": "CREATE TABLE public.parent (id uuid NOT NULL); ALTER"
    " TABLE"
    " cua.turn INHERIT public.parent",
    "rename it": "ALTER TABLE cua.turn RENAME TO turn_old; CREATE VIEW cua.turn AS TABLE"
    " cua.turn_old",
    "constraint mine on table public.keeps: its triggers are disabled": "CREATE TABLE public.keeps"
    " (id uuid CONSTRAINT mine REFERENCES cua.turn); ALTER TABLE public.keeps DISABLE TRIGGER ALL",
    "type public.mine": "CREATE DOMAIN public.mine AS cua.turn",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_carried_is_named_before_the_replay_and_nothing_changes(
    migrated_url: str, log: MemoryLog, name: str
) -> None:
    execute(migrated_url, REFUSED[name])
    tables = one(migrated_url, "SELECT array_agg(oid ORDER BY oid) FROM pg_class")

    with pytest.raises(CuaProjectError, match="cannot be carried") as refused:
        rebuild(_Unreadable(log), migrated_url)

    assert name in str(refused.value)
    assert tables == one(migrated_url, "SELECT array_agg(oid ORDER BY oid) FROM pg_class")


def test_a_subscription_that_writes_into_a_table_is_named_before_the_replay(
    migrated_url: str, log: MemoryLog
) -> None:
    execute(
        migrated_url,
        "CREATE SUBSCRIPTION mine CONNECTION 'dbname=x' PUBLICATION p WITH (connect = false); SET"
        " allow_system_table_mods = on; INSERT INTO pg_subscription_rel SELECT oid,"
        " 'cua.turn'::regclass, 'r', NULL FROM pg_subscription",
    )
    try:
        with pytest.raises(CuaProjectError, match=r"turn: the subscription mine replicates into"):
            rebuild(_Unreadable(log), migrated_url)
    finally:
        execute(
            migrated_url,
            "ALTER SUBSCRIPTION mine SET (slot_name = NONE); DROP SUBSCRIPTION mine",
        )


class _Unreadable(MemoryReader):
    """A log whose replay would take long."""

    def seek(self, positions: Mapping[TopicPartition, int]) -> None:
        """Nothing may be read."""
        pytest.fail(f"the replay had begun at {positions}")


def test_a_view_of_somebody_on_the_replaced_tables_is_named_and_never_dropped(
    migrated_url: str, log: MemoryLog
) -> None:
    run(log, migrated_url)
    execute(migrated_url, "CREATE VIEW public.old AS TABLE cua_previous.turn")

    with pytest.raises(CuaProjectError, match=r"view old \(reads table cua_previous\.turn\)"):
        rebuild(_Unreadable(log), migrated_url)
    migrate(migrated_url, "base")

    assert one(migrated_url, "SELECT count(*) FROM public.old") == one(
        migrated_url, "SELECT count(*) FROM cua_previous.turn"
    )


def test_a_publication_of_somebody_that_lists_the_replaced_tables_is_named_and_never_emptied(
    migrated_url: str, log: MemoryLog
) -> None:
    run(log, migrated_url)
    execute(migrated_url, "CREATE PUBLICATION mine FOR TABLE cua_previous.turn")

    with pytest.raises(CuaProjectError, match="publication mine"):
        rebuild(MemoryReader(log), migrated_url)

    listed = "SELECT schemaname || '.' || tablename FROM pg_publication_tables"
    assert one(migrated_url, listed) == "cua_previous.turn"


def test_rows_of_a_user_that_the_log_does_not_back_keep_the_swap_from_breaking_the_constraint(
    migrated_url: str, log: MemoryLog
) -> None:
    execute(
        migrated_url,
        "INSERT INTO cua.validator SELECT gen_random_uuid(), task_id, 'x', 'y', 'z', '{}', now()"
        " FROM cua.validator LIMIT 1; CREATE TABLE public.notes (v uuid REFERENCES cua.validator);"
        " INSERT INTO public.notes SELECT id FROM cua.validator",
    )

    with pytest.raises(CuaProjectError, match="1 of its rows refer to rows that the log does not"):
        rebuild(MemoryReader(log), migrated_url)

    execute(
        migrated_url,
        "DELETE FROM public.notes WHERE v NOT IN (SELECT id FROM cua.validator"
        " WHERE validator_type <> 'x')",
    )
    run(log, migrated_url)


@pytest.mark.usefixtures("log")
def test_a_downgrade_never_drops_a_view_of_a_user(migrated_url: str) -> None:
    execute(migrated_url, "CREATE VIEW public.mine AS SELECT id FROM cua.turn")

    with pytest.raises(CuaProjectError, match=r"view mine depends on table cua\.turn"):
        migrate(migrated_url, "base")

    assert one(migrated_url, "SELECT count(*) FROM public.mine") == one(
        migrated_url, "SELECT count(*) FROM cua.turn"
    )
