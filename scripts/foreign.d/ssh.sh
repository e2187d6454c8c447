# what: ssh-keygen, sshd with its privilege separation, ssh, scp and sftp on the loopback device
# needs: ssh sshd ssh-keygen
# limit: 60
# user: root
# of: copy plain
set -e; mkdir -p /run/sshd
echo plain >plain; ssh-keygen -q -t ed25519 -N '' -f host; ssh-keygen -q -t rsa -b 2048 -N '' -f key; cp key.pub authorized; chmod 600 authorized
port=$((20000 + $$ % 20000))
printf '%s\n' "Port $port" "ListenAddress 127.0.0.1" "HostKey $PWD/host" "AuthorizedKeysFile $PWD/authorized" "PidFile $PWD/pid" \
    "StrictModes no" "UsePAM no" "PermitRootLogin yes" "Subsystem sftp internal-sftp" "PasswordAuthentication no" >conf
/usr/sbin/sshd -f conf -E log
o="-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -i key"
for i in $(seq 50); do [ -s pid ] && break; sleep 0.1; done
ssh $o -p $port 127.0.0.1 'echo from afar; exit 3' || echo $?
ssh $o -p $port 127.0.0.1 'cat' <plain
scp -q $o -P $port "127.0.0.1:$PWD/plain" copy && cat copy
tar cf - plain | ssh $o -p $port 127.0.0.1 'tar tf -'
kill "$(cat pid)"; rm -f host* key* authorized conf log pid
