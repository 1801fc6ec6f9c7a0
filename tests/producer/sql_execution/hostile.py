"""SQL that an agent may write to get out, to hang or to take everything, and what is answered."""

ALLOWED = "answered"
"""The statement is harmless within the limits."""
LONG = "printf('%090000d',0)"
NINE = ", ".join(f"t AS t{index}" for index in range(26))
COUNTING = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) "
TAKES_MINUTES = "SELECT " + " || ".join(
    f"printf('%.*c', 2147483647, '{letter}')" for letter in "abcdefghijklmnopqrst"
)
"""Calls that no progress handler sees, of seconds each on any machine."""

HOSTILE = (
    # Files.
    ("ATTACH ':memory:' AS other", "ATTACH cannot be executed"),
    ("ATTACH DATABASE '/etc/passwd' AS other", "ATTACH cannot be executed"),
    ("/* SELECT */ ATTACH 'x.db' AS y", "ATTACH cannot be executed"),
    ("-- SELECT\nATTACH 'x.db' AS y", "ATTACH cannot be executed"),
    ("DETACH main", "DETACH cannot be executed"),
    ("VACUUM", "VACUUM cannot be executed"),
    ("VACUUM INTO '/tmp/cua-train-hostile.db'", "VACUUM cannot be executed"),
    ("SELECT readfile('/etc/passwd')", "no such function"),
    ("SELECT writefile('/tmp/cua-train-hostile', 'x')", "no such function"),
    ("SELECT load_extension('/tmp/x.so')", "load_extension cannot be used"),
    ("SELECT fts3_tokenizer('simple', x'00')", "fts3_tokenizer cannot be used"),
    (".load /tmp/x.so", "cannot be executed"),
    (".shell touch /tmp/cua-train-hostile", "cannot be executed"),
    ("SELECT 1 INTO OUTFILE '/tmp/cua-train-hostile'", "near"),
    ("LOAD DATA INFILE '/etc/passwd' INTO TABLE t", "LOAD cannot be executed"),
    # Settings and the schema.
    ("PRAGMA writable_schema = 1", "PRAGMA cannot be executed"),
    ("PRAGMA hard_heap_limit = 0", "PRAGMA cannot be executed"),
    ("PRAGMA temp_store_directory = '/tmp'", "PRAGMA cannot be executed"),
    ("SELECT * FROM pragma_table_info('t')", "can be executed"),
    ("SELECT * FROM pragma_database_list", "can be executed"),
    ("SELECT * FROM dbstat", "can be executed"),
    ("SELECT * FROM sqlite_stmt", "can be executed"),
    ("SELECT * FROM json_each('[1]')", "can be executed"),
    ("SELECT * FROM sqlite_dbpage", "sqlite_dbpage"),
    ("UPDATE sqlite_master SET sql = ''", "may not be modified"),
    ("DELETE FROM sqlite_master", "may not be modified"),
    ("INSERT INTO sqlite_schema VALUES (1,1,1,1,1)", "can be executed"),
    ("CREATE TABLE u (x)", "CREATE cannot be executed"),
    ("CREATE TEMP TABLE u (x)", "CREATE cannot be executed"),
    ("CREATE VIRTUAL TABLE f USING fts5(x)", "CREATE cannot be executed"),
    ("CREATE VIRTUAL TABLE r USING rtree(id, a, b)", "CREATE cannot be executed"),
    ("CREATE TRIGGER x AFTER INSERT ON t BEGIN INSERT INTO t VALUES (1, 1); END", "CREATE cannot"),
    ("DROP TABLE t", "DROP cannot be executed"),
    ("ALTER TABLE t RENAME TO u", "ALTER cannot be executed"),
    ("REINDEX", "REINDEX cannot be executed"),
    ("ANALYZE", "ANALYZE cannot be executed"),
    ("EXPLAIN SELECT 1", "EXPLAIN cannot be executed"),
    ("BEGIN EXCLUSIVE", "BEGIN cannot be executed"),
    ("COMMIT", "COMMIT cannot be executed"),
    ("SAVEPOINT a", "SAVEPOINT cannot be executed"),
    # Several statements.
    ("SELECT 1; DROP TABLE t", "one statement at a time"),
    ("SELECT 1; /* */ DELETE FROM t", "one statement at a time"),
    ("SELECT 1; -- only a comment", ALLOWED),
    ("SELECT 1\0; DROP TABLE t", "NUL character"),
    ("", "no statement"),
    ("   ;;  ", "no statement"),
    ("-- nothing", "no statement"),
    ("/* never closed", "cannot be executed"),
    # Without end.
    (COUNTING + "SELECT count(*) FROM c", "too many steps"),
    (COUNTING + "SELECT sum(x) OVER (ORDER BY x) FROM c", "too many steps"),
    (COUNTING + "SELECT group_concat(x) FROM c", "too"),
    (COUNTING.replace(" ALL", "") + "SELECT max(x) FROM c", "too many steps"),
    (f"SELECT count(*) FROM {NINE}", "too many steps"),
    (f"SELECT t1.name FROM {NINE} ORDER BY t1.name || t2.id", "too many steps"),
    ("INSERT INTO t " + COUNTING + "SELECT x, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' FROM c", "full"),
    # Much memory.
    (
        "WITH RECURSIVE c(x,y) AS (SELECT 1, '' UNION SELECT x+1, printf('%090000d',x) FROM c)"
        " SELECT max(x) FROM c",
        "of memory",
    ),
    ("SELECT zeroblob(1000000000)", "zeroblob cannot be used"),
    ("SELECT randomblob(1000000000)", "randomblob cannot be used"),
    ("SELECT printf('%1000000000d', 1)", ALLOWED),
    (f"SELECT replace({LONG}, '0', 'xxxxxxxxxxxxxxxxx')", "too big"),
    (f"SELECT hex(hex({LONG}))", "too big"),
    (f"SELECT group_concat({LONG}) FROM t", "too big"),
    (f"SELECT {LONG} FROM t a, t b, t c, t d", ALLOWED),
    (f"UPDATE t SET name = {LONG} || {LONG}", "too big"),
    # One long call.
    (TAKES_MINUTES, "took longer than"),
    (f"SELECT instr({LONG}, printf('%045000d', 1))", ALLOWED),
    (f"SELECT replace({LONG}, printf('%045000d', 1), '')", ALLOWED),
    (f"SELECT trim({LONG}, printf('%089000d', 1))", "too big"),
    (f"SELECT {LONG} LIKE replace(printf('%090d', 0), '0', '%0') || '1'", ALLOWED),
    (f"SELECT {LONG} LIKE replace({LONG}, '00', '%0')", "too complex"),
    (f"SELECT {LONG} GLOB replace(printf('%090d', 0), '0', '*0') || '1'", ALLOWED),
    # Large or deep texts.
    ("SELECT " + "(" * 5_000 + "1" + ")" * 5_000, "overflow"),
    ("SELECT 1" + "+1" * 5_000, "too large"),
    ("SELECT " + "- " * 5_000 + "1", "overflow"),
    ("SELECT " + "NOT " * 4_000 + "1", "overflow"),
    ("SELECT 1" + " UNION ALL SELECT 1" * 900, "too many terms"),
    ("SELECT " + ", ".join(["1"] * 6_000), "too many columns"),
    ("SELECT '" + "x" * 10_000_000 + "'", "10,000,009 characters"),
    ("SELECT 'a" + "\ud800" + "'", "not valid Unicode"),
    ("SELECT json_extract('" + "[" * 5_000 + "]" * 5_000 + "', '$')", "malformed"),
    # What differs from run to run.
    ("SELECT random()", "random cannot be used"),
    ("SELECT * FROM t ORDER BY random()", "random cannot be used"),
    # Placeholders and arithmetic.
    ("SELECT ?", "bindings"),
    ("SELECT :name", "bindings"),
    ("SELECT abs(-9223372036854775808)", "overflow"),
    ("SELECT sum(9223372036854775807) FROM t", "overflow"),
    ("SELECT 1e999, -1e999", ALLOWED),
    ("SELECT * FROM t LIMIT -1 OFFSET 9223372036854775807", ALLOWED),
)
