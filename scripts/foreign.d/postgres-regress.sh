# what: PostgreSQL's regression tests (33 that need no library of their own), its server started under recording
# needs: /usr/lib/postgresql/15/lib/pgxs/src/test/regress/pg_regress
# source: postgresql-15
# user: ordinary
# compare: tests
# limit: 280
cp -a "$FOREIGN_SOURCES"/postgresql-15/src/test/regress/{sql,expected,data} . && chmod -R u+w .
sed -i '/regresslib\|^CREATE FUNCTION binary_coercible/,/;$/d' sql/test_setup.sql
mkdir -m 700 "$HOME/s"
timeout $((270 * FOREIGN_PATIENCE)) /usr/lib/postgresql/15/lib/pgxs/src/test/regress/pg_regress --temp-instance="$HOME/db" --inputdir=. --outputdir=. \
    --bindir=/usr/lib/postgresql/15/bin --port=$((20000 + $$ % 20000)) --temp-config=/dev/null \
    boolean char name varchar text int2 int4 int8 oid float4 float8 bit numeric txid uuid enum money pg_lsn regproc strings numerology point lseg line box path polygon circle date time timetz interval inet \
    2>&1 | sed -nE 's/^(test )?([a-z0-9_]+) +\.\.\. ([A-Za-z]+).*$/RESULT \2: \3/p'
rm -rf results log regression.*
