# what: man and file, which install seccomp sandboxes of their own
# needs: man file
# quick: yes
man -w man >/dev/null 2>&1; echo $?; mkdir -p m/man1; printf '.TH X 1\n.SH NAME\nx \\- y\n' >m/man1/x.1
MANPATH=$PWD/m man x 2>&1 | head -3; man -l m/man1/x.1 2>&1 | wc -l; file /bin/true /etc/passwd m/man1/x.1; file -S /etc/passwd; file -z m/man1/x.1
