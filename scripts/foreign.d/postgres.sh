# what: postgres: initdb, start, psql, pgbench, stop
# needs: /usr/lib/postgresql/15/bin/initdb
# user: ordinary
# limit: 120
PATH=/usr/lib/postgresql/15/bin:$PATH
initdb -D "$HOME/db" -A trust -N >/dev/null && mkdir -p "$HOME/s"
pg_ctl -D "$HOME/db" -o "-k $HOME/s -c listen_addresses=" -l "$HOME/log" -w start >/dev/null; echo $?
export PGHOST=$HOME/s PGDATABASE=postgres
seq 1000 >in.csv
psql -qAt -c 'create table t(a int)' -c "\\copy t from in.csv" -c 'select sum(a) from t' -c "\\copy (select a*2 from t order by a) to out.csv"
pgbench -qi 2>/dev/null; pgbench -n -c 4 -j 2 -t 50 2>/dev/null | grep 'actually'
wc -l <out.csv; pg_ctl -D "$HOME/db" -m fast -w stop >/dev/null; echo $?; grep -c -E 'ERROR|PANIC|FATAL' "$HOME/log"
