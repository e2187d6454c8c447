# what: nginx with two workers serves 3,000 requests
# needs: nginx ab curl
# limit: 60
port=$((20000 + $$ % 20000)); mkdir t www; echo page >www/index.html
cat >conf <<C
worker_processes 2; pid $PWD/t/pid; error_log $PWD/t/error; events {}
http { access_log $PWD/t/access; client_body_temp_path t/b; proxy_temp_path t/p; fastcgi_temp_path t/f; uwsgi_temp_path t/u; scgi_temp_path t/s; sendfile on; server { listen 127.0.0.1:$port; root $PWD/www; } }
C
nginx -e $PWD/t/error -p "$PWD" -c "$PWD/conf"; curl -s "127.0.0.1:$port/"; curl -s -o /dev/null -w '%{http_code}\n' "127.0.0.1:$port/none"
ab -q -n 3000 -c 20 "http://127.0.0.1:$port/" 2>&1 | grep -E '(Complete|Failed) requests'
sleep 0.2; wc -l <t/access; kill -HUP "$(cat t/pid)"; sleep 0.5; curl -s "127.0.0.1:$port/"; kill -QUIT "$(cat t/pid)"; for i in $(seq 50); do [ -e t/pid ] || break; sleep 0.1; done; ls t/pid 2>&1
rm -rf t conf
