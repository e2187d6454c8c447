# what: sqlite3: rollback journal, write-ahead log, two writers
# needs: sqlite3
# quick: yes
# of: out.csv in.csv
seq 2000 | awk '{print $1","$1*$1}' >in.csv
sqlite3 a.db 'create table t(a,b);' '.mode csv' '.import in.csv t' 'select count(*), sum(b) from t;'
sqlite3 -csv a.db 'select * from t where a % 7 = 0' >out.csv; wc -l <out.csv
sqlite3 a.db 'pragma journal_mode=wal; update t set b=b+1; select sum(b) from t;'
for i in 1 2 3 4; do sqlite3 a.db '.timeout 20000' "insert into t select a+$i,b from t limit 500;" & done; wait
sqlite3 a.db 'select count(*) from t; pragma integrity_check; vacuum;'
rm a.db*
