#!/bin/sh
# Prints the system calls of a command for `backstory import perf`.
#
# usage: backstory import perf --print-script > trace.sh
#        sh trace.sh LOG COMMAND [ARGUMENT...]
#
# It needs root, and perf 6.12 or later with BPF skeletons: `perf version --build-options` says
# `bpf_skeletons: [ on ]`. To run a command as another user: sh trace.sh LOG runuser -u NAME -- ...
#
# perf prints names of children only with -a. The events tell which threads are the command's.
# Every program calls set_tid_address when it starts: it shows that no call was left out.
log=$1
shift
calls=set_tid_address,execve,execveat,clone,clone3,fork,vfork,exit,exit_group,wait4,waitid
calls=$calls,kill,tkill,tgkill,unshare,setns,open,openat,openat2,creat,close,close_range
calls=$calls,read,pread64,readv,preadv,preadv2,write,pwrite64,writev,pwritev,pwritev2
calls=$calls,recvfrom,recvmsg,sendto,sendmsg,fallocate,ftruncate,getdents64,mmap
calls=$calls,dup,dup2,dup3,fcntl,sendfile,copy_file_range,splice,tee
calls=$calls,truncate,unlink,rmdir,unlinkat,mkdir,mkdirat,mknod,mknodat
calls=$calls,rename,renameat,renameat2,link,linkat,symlink,symlinkat
calls=$calls,setxattr,lsetxattr,fsetxattr,removexattr,lremovexattr,fremovexattr
calls=$calls,mount,umount2,pivot_root,chmod,fchmodat,fchmod,chown,lchown,fchownat,fchown,utimensat
calls=$calls,chdir,fchdir,chroot,pipe,pipe2,socketpair,socket,connect,bind,accept,accept4
calls=$calls,listen,memfd_create,eventfd2,epoll_create1,timerfd_create,signalfd4,inotify_init1
calls=$calls,pidfd_open
events=task:task_newtask,sched:sched_process_exec,sched:sched_process_exit,signal:signal_deliver
exec perf trace -a -o "$log" -e "$calls,$events" -- "$@"
