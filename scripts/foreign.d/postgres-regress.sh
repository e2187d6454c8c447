# what: PostgreSQL's regression tests (55: types, indexes, joins, transactions, copies, vacuum), its server started under recording
# needs: /usr/lib/postgresql/15/lib/pgxs/src/test/regress/pg_regress
# source: postgresql-15
# user: ordinary
# compare: tests
# limit: 280
# These tests need at most a few functions of the tests' own C library, which is not packaged. Where
# it is missing, they fail natively, too.
cp -a "$FOREIGN_SOURCES"/postgresql-15/src/test/regress/{sql,expected,data} . && chmod -R u+w . || exit
timeout $((270 * FOREIGN_PATIENCE)) /usr/lib/postgresql/15/lib/pgxs/src/test/regress/pg_regress --temp-instance="$HOME/db" --inputdir=. --outputdir=. \
    --bindir=/usr/lib/postgresql/15/bin --port=$((20000 + $$ % 20000)) --temp-config=/dev/null \
    test_setup boolean char name varchar text int2 int4 int8 oid float4 float8 bit numeric txid uuid enum money pg_lsn regproc strings numerology \
    point lseg line box path polygon circle date time timetz interval inet copy copyselect create_index create_view select join aggregates \
    transactions vacuum subselect union case random portals arrays btree_index hash_index update delete namespace prepared_xacts \
    2>&1 | sed -nE 's/^(test )?([a-z0-9_]+) +\.\.\. ([A-Za-z]+).*$/RESULT \2: \3/p'
rm -rf results log regression.*
