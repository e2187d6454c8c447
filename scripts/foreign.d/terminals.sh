# what: script, tmux and expect: pseudo-terminals, job control, a terminal that goes away
# needs: script tmux expect
# limit: 60
script -qec 'tty >/dev/null && echo on a terminal; stty size; sh -c "exit 5"' /dev/null </dev/null; echo $?
tmux -L f -f /dev/null new-session -d -x 80 -y 24 'echo in tmux >tm; sleep 30'; for i in $(seq 50); do [ -s tm ] && break; sleep 0.1; done; cat tm
tmux -L f kill-server; echo $?
expect -c 'set timeout 10; spawn -noecho bash --norc --noprofile -i; send "PS1=ready\\ \r"; expect "ready $"; send "sleep 100\r"; after 300; send "\032"; expect Stopped; send "kill %1; fg\r"; after 200; send "exit 6\r"; expect eof; lassign [wait] a b c d; puts "\nstatus $d"' | tail -1
setsid -w sh -c 'echo own session'; nohup sh -c 'echo nohup' 2>/dev/null
