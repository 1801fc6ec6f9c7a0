"""What users put beside our tables is theirs: a rebuild leaves it alone, or is refused by name."""

import psycopg2
import pytest

from consumers.database.forbidden import forbidden
from consumers.database.migrate import migrate, schema_differences
from consumers.errors import CuaProjectError
from consumers.rebuild.rebuild import rebuild
from consumers.rebuild.verify import verify
from tests.reference_fold.histories import LoggedEvent
from tests.support.logs import memory_log
from tests.support.memory_log import MemoryLog, MemoryReader
from tests.support.postgres import execute, one
from tests.support.rebuilding import project, run

pytestmark = pytest.mark.services

EDIT = (
    "UPDATE cua.rollout SET status = 'edited'; UPDATE cua.turn SET reward = 7; DELETE FROM"
    " cua.action; INSERT INTO cua.validator SELECT gen_random_uuid(), task_id, 'x', 'y', 'z', '{}',"
    " now() FROM cua.validator LIMIT 1"
)
MADE = """
CREATE VIEW public.turns WITH (security_barrier=true) AS SELECT id, reward FROM cua.turn;
CREATE VIEW cua.inside AS SELECT r.id, to_jsonb(r.*) AS whole FROM cua.rollout AS r GROUP BY r.id;
CREATE VIEW public.whole AS SELECT t FROM cua.turn AS t;
CREATE MATERIALIZED VIEW public.stored AS TABLE cua.turn;
CREATE INDEX mine ON cua.rollout (status, reward DESC) WHERE reward > 0;
CREATE UNIQUE INDEX mine_too ON cua."group" (lower(status), id);
ALTER TABLE cua.turn ADD CONSTRAINT mine CHECK (reward > -5);
ALTER TABLE cua.turn ADD CONSTRAINT mine_ref FOREIGN KEY (rollout_id) REFERENCES cua.rollout (id);
ALTER TABLE cua.turn ADD COLUMN note text DEFAULT 'none';
CREATE FUNCTION public.notify_me() RETURNS trigger LANGUAGE plpgsql
    AS 'BEGIN PERFORM pg_notify(''mine'', NEW.id::text); RETURN NEW; END';
CREATE TRIGGER mine AFTER INSERT OR UPDATE OF status ON cua.rollout FOR EACH ROW
    WHEN (NEW.status <> '') EXECUTE FUNCTION public.notify_me();
ALTER TABLE cua.rollout ENABLE ALWAYS TRIGGER mine;
CREATE TABLE public.seen (id uuid);
CREATE RULE mine AS ON DELETE TO cua.obs DO ALSO INSERT INTO public.seen VALUES (old.id);
ALTER TABLE cua.rollout ENABLE ROW LEVEL SECURITY;
CREATE POLICY mine ON cua.rollout FOR SELECT TO PUBLIC USING (status <> '');
CREATE TABLE public.notes (rollout_id uuid REFERENCES cua.rollout ON DELETE CASCADE);
INSERT INTO public.notes SELECT id FROM cua.rollout;
CREATE STATISTICS public.mine (dependencies) ON status, task_success FROM cua.rollout;
CREATE PUBLICATION mine FOR TABLE cua.turn WHERE (reward > 0), cua.rollout;
GRANT SELECT ON cua.step TO PUBLIC;
GRANT SELECT (id), UPDATE (reward) ON cua.rollout TO PUBLIC;
ALTER TABLE cua.turn SET (fillfactor = 55, toast.autovacuum_enabled = false);
ALTER TABLE cua.turn ALTER COLUMN model_response SET STORAGE EXTERNAL, REPLICA IDENTITY FULL;
CREATE FUNCTION public.counts(low double precision) RETURNS bigint STABLE
    BEGIN ATOMIC SELECT count(*) FROM cua.turn WHERE reward > low; END;
CREATE TABLE public.child () INHERITS (cua.obs);
CREATE TABLE public.keeps (rollouts cua.rollout[]);
CREATE TABLE cua.notes (id serial PRIMARY KEY);
COMMENT ON SCHEMA cua IS 'theirs';
"""
CATALOGUES = (
    *("pg_class", "pg_attribute", "pg_index", "pg_constraint", "pg_trigger", "pg_rewrite"),
    *("pg_policy", "pg_statistic_ext", "pg_publication_rel", "pg_proc", "pg_namespace", "pg_type"),
    *("pg_description", "pg_attrdef", "pg_depend"),
)
CHANGING = {"pg_class": "relpages reltuples relallvisible relallfrozen relfrozenxid relminmxid"}
"""What autovacuum and ANALYZE write."""


def catalogue(url: str) -> dict[str, object]:
    """A hash of every row of PostgreSQL's catalogues, oids and all."""
    return {
        name: one(
            url,
            "SELECT md5(string_agg(line, ';' ORDER BY line)) FROM (SELECT (to_jsonb(c) -"
            f" '{{{','.join(CHANGING.get(name, '').split())}}}'::text[])::text AS line FROM {name}"
            " AS c) AS lines",
        )
        for name in CATALOGUES
    }


def test_objects_of_users_are_the_same_ones_after_a_rebuild_that_changes_rows(
    migrated_url: str, log: MemoryLog
) -> None:
    execute(migrated_url, MADE)
    execute(migrated_url, "UPDATE cua.turn SET note = id::text")
    before = catalogue(migrated_url)
    execute(migrated_url, EDIT)

    report = run(log, migrated_url)

    assert {"rollout", "turn", "action", "validator"} == set(report.different)
    assert catalogue(migrated_url) == before
    assert one(migrated_url, "SELECT bool_and(note = id::text) FROM cua.turn") is True
    assert one(migrated_url, "SELECT count(*) FROM public.turns WHERE reward = 7") == 0
    kept = "SELECT count(*) = (SELECT count(*) FROM cua.rollout) FROM public.notes"
    assert one(migrated_url, kept) is True
    migrate(migrated_url)
    assert schema_differences(migrated_url) == []
    assert verify(MemoryReader(log), migrated_url).equal


def test_twenty_views_stay_the_same_views(migrated_url: str, log: MemoryLog) -> None:
    for number in range(20):
        source = "cua.turn" if number % 2 == 0 else f"public.v{number - 1}"
        execute(migrated_url, f"CREATE VIEW public.v{number} AS SELECT id, reward FROM {source}")
    views = "SELECT array_agg(oid ORDER BY oid) FROM pg_class WHERE relkind = 'v'"
    before = one(migrated_url, views)
    execute(migrated_url, EDIT)

    run(log, migrated_url)

    assert one(migrated_url, views) == before
    counts = "SELECT (SELECT count(*) FROM public.v19), (SELECT count(*) FROM cua.turn)"
    assert one(migrated_url, f"SELECT a = b FROM ({counts}) AS counted (a, b)") is True


def test_a_trigger_fires_for_the_rows_that_differ_and_for_no_other(
    migrated_url: str, log: MemoryLog
) -> None:
    execute(
        migrated_url,
        "UPDATE cua.turn SET reward = 7 WHERE id = (SELECT min(id::text)::uuid FROM cua.turn);"
        " DELETE FROM cua.turn WHERE id = (SELECT max(id::text)::uuid FROM cua.turn); CREATE TABLE"
        " public.seen (what text); CREATE FUNCTION public.see() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN INSERT INTO public.seen VALUES (TG_OP); RETURN NULL; END'; CREATE TRIGGER mine"
        " AFTER INSERT OR UPDATE OR DELETE ON cua.turn FOR EACH ROW EXECUTE FUNCTION public.see()",
    )

    assert run(log, migrated_url).changed_rows == {"turn": 2}

    seen = "SELECT array_agg(what ORDER BY what) FROM public.seen"
    assert one(migrated_url, seen) == ["INSERT", "UPDATE"]


def _function(body: str) -> str:
    return (
        "CREATE FUNCTION public.guard() RETURNS trigger LANGUAGE plpgsql AS"
        f" 'BEGIN {body}; END'; CREATE TRIGGER mine BEFORE UPDATE ON cua.turn FOR EACH ROW EXECUTE"
        " FUNCTION public.guard()"
    )


REFUSING = {
    r'foreign key constraint "notes_v_fkey" on table "notes" \(Key \(id\)=': (
        "CREATE TABLE public.notes (v uuid REFERENCES cua.validator); INSERT INTO public.notes"
        " SELECT id FROM cua.validator"
    ),
    r'unique constraint "mine" \(Key \(reward\)=': (
        "UPDATE cua.turn SET reward = n FROM (SELECT id, row_number() OVER () + 100 AS n FROM"
        " cua.turn) AS numbered WHERE numbered.id = turn.id; CREATE UNIQUE INDEX mine ON cua.turn"
        " (reward)"
    ),
    r'check constraint "mine"': "ALTER TABLE cua.turn ADD CONSTRAINT mine CHECK (reward = 7)",
    r"not that row \(PL/pgSQL function (public\.)?guard\(\)": (
        _function("RAISE EXCEPTION ''not that row''")
    ),
    r"division by zero \(.*guard\(\)": _function("PERFORM 1 / 0"),
    r"permission denied .*guard\(\)": (
        _function("RAISE insufficient_privilege USING MESSAGE = ''permission denied''")
    ),
    r"rows of cua.turn still differ .*\(trigger mine\)": _function("RETURN OLD"),
    r"one of its triggers or rules changes what is written \(rule mine\)": (
        "CREATE RULE mine AS ON UPDATE TO cua.turn DO INSTEAD NOTHING"
    ),
}


@pytest.mark.parametrize("named", REFUSING)
def test_an_object_of_a_user_that_refuses_a_row_is_named_and_nothing_is_changed(
    migrated_url: str, log: MemoryLog, named: str
) -> None:
    execute(migrated_url, EDIT)
    execute(migrated_url, REFUSING[named])

    with pytest.raises(CuaProjectError, match=named) as refused:
        rebuild(MemoryReader(log), migrated_url)

    assert (refused.value.exit_code, "no row was changed" in str(refused.value)) == (1, True)
    assert one(migrated_url, "SELECT min(reward) >= 7 FROM cua.turn") is True
    assert one(migrated_url, "SELECT count(*) FROM cua.action") == 0
    assert one(migrated_url, "SELECT count(*) FROM pg_namespace WHERE nspname ~ '^cua_re'") == 0


def test_row_security_counts_only_where_it_is_forced_upon_the_owner(
    owners_url: str, events: list[LoggedEvent]
) -> None:
    log = memory_log(events)
    project(log, owners_url)
    execute(
        owners_url,
        "ALTER TABLE cua.turn ENABLE ROW LEVEL SECURITY; CREATE POLICY mine ON cua.turn USING"
        " (false)",
    )
    assert run(log, owners_url).equal
    execute(owners_url, "UPDATE cua.turn SET reward = 7")
    assert run(log, owners_url).different == ["turn"]

    execute(owners_url, "ALTER TABLE cua.turn FORCE ROW LEVEL SECURITY")
    with pytest.raises(psycopg2.errors.InsufficientPrivilege, match="row-level security") as hidden:
        rebuild(MemoryReader(log), owners_url)
    told = str(forbidden(hidden.value))
    assert "To disable the policy for the table's owner, use ALTER TABLE NO FORCE" in told


@pytest.mark.usefixtures("log")
def test_a_downgrade_never_drops_a_view_of_a_user(migrated_url: str) -> None:
    execute(migrated_url, "CREATE VIEW public.mine AS SELECT id FROM cua.turn")

    with pytest.raises(CuaProjectError, match=r"view mine depends on table cua\.turn"):
        migrate(migrated_url, "base")

    assert one(migrated_url, "SELECT count(*) FROM public.mine") == one(
        migrated_url, "SELECT count(*) FROM cua.turn"
    )
