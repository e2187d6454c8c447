//! The numbers of system calls on x86-64, by what the calls do.
//!
//! Readers of deep logs meet calls of other machines, too, so these are not those of the C library
//! here. A test compares them with it.

/// `close`
pub const CLOSE: u16 = 3;
/// `sendfile`
pub const SENDFILE: u16 = 40;
/// `connect`
pub const CONNECT: u16 = 42;
/// `fcntl`
pub const FCNTL: u16 = 72;
/// `creat`
pub const CREAT: u16 = 85;

/// `read`, `pread64`, `readv`, `preadv`, `preadv2`: from a file.
pub const FILE_READS: &[u16] = &[0, 17, 19, 295, 327];
/// `write`, `pwrite64`, `writev`, `pwritev`, `pwritev2`: to a file.
pub const FILE_WRITES: &[u16] = &[1, 18, 20, 296, 328];
/// `read`, `readv`, `recvfrom`, `recvmsg`: from a connection.
pub const RECEIVES: &[u16] = &[0, 19, 45, 47];
/// `write`, `writev`, `sendto`, `sendmsg`: to a connection.
pub const SENDS: &[u16] = &[1, 20, 44, 46];
/// `sendfile`, `splice`, `tee`, `copy_file_range`: from one descriptor to another.
pub const MOVES: &[u16] = &[SENDFILE, 275, 276, 326];
/// `getrandom`
pub const GETRANDOM: u16 = 318;
/// `open`, `openat`, `openat2`
pub const OPENS: &[u16] = &[2, 257, 437];
/// `socket`
pub const SOCKET: u16 = 41;
/// `accept`, `accept4`
pub const ACCEPT: &[u16] = &[43, 288];
/// `clone`, `fork`, `vfork`
pub const FORK: &[u16] = &[56, 57, 58];
/// `poll`, `ppoll`, `select`, `pselect6`, `epoll_wait`, `epoll_pwait`, `epoll_pwait2`: waits for
/// several descriptors.
pub const WAITS: &[u16] = &[7, 271, 23, 270, 232, 281, 441];
/// `dup`, `dup2`, `dup3`
pub const DUP: &[u16] = &[32, 33, 292];
/// `stat`, `fstat`, `lstat`, `newfstatat`, `statx`, `statfs`, `fstatfs`
pub const STATS: &[u16] = &[4, 5, 6, 262, 332, 137, 138];
/// `getdents`, `getdents64`
pub const LISTINGS: &[u16] = &[78, 217];
/// `readlink`, `readlinkat`
pub const LINK_READS: &[u16] = &[89, 267];
/// `gettimeofday`, `time`, `clock_gettime`
pub const TIMES: &[u16] = &[96, 201, 228];
/// `rt_sigtimedwait`
pub const SIGNAL_WAIT: u16 = 128;

/// True if bytes enter the process.
pub fn reads(number: u16) -> bool {
    number == GETRANDOM || FILE_READS.contains(&number) || RECEIVES.contains(&number)
}

/// True if bytes leave the process.
pub fn writes(number: u16) -> bool {
    FILE_WRITES.contains(&number) || SENDS.contains(&number)
}

/// True if the call makes a descriptor that is neither a duplicate nor an accepted connection.
pub fn makes_descriptor(number: u16) -> bool {
    OPENS.contains(&number) || [SOCKET, CREAT].contains(&number)
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use libc as l;

    #[test]
    fn the_numbers_are_those_of_the_c_library() {
        let same = |numbers: &[u16], calls: &[l::c_long]| {
            let numbers: Vec<l::c_long> = numbers.iter().map(|one| (*one).into()).collect();
            assert_eq!(numbers, calls);
        };
        same(
            &[
                CLOSE,
                SENDFILE,
                CONNECT,
                FCNTL,
                CREAT,
                GETRANDOM,
                SOCKET,
                SIGNAL_WAIT,
            ],
            &[
                l::SYS_close,
                l::SYS_sendfile,
                l::SYS_connect,
                l::SYS_fcntl,
                l::SYS_creat,
                l::SYS_getrandom,
                l::SYS_socket,
                l::SYS_rt_sigtimedwait,
            ],
        );
        let reads = [
            l::SYS_read,
            l::SYS_pread64,
            l::SYS_readv,
            l::SYS_preadv,
            l::SYS_preadv2,
        ];
        let writes = [
            l::SYS_write,
            l::SYS_pwrite64,
            l::SYS_writev,
            l::SYS_pwritev,
            l::SYS_pwritev2,
        ];
        same(FILE_READS, &reads);
        same(FILE_WRITES, &writes);
        same(
            RECEIVES,
            &[l::SYS_read, l::SYS_readv, l::SYS_recvfrom, l::SYS_recvmsg],
        );
        same(
            SENDS,
            &[l::SYS_write, l::SYS_writev, l::SYS_sendto, l::SYS_sendmsg],
        );
        same(
            MOVES,
            &[
                l::SYS_sendfile,
                l::SYS_splice,
                l::SYS_tee,
                l::SYS_copy_file_range,
            ],
        );
        same(OPENS, &[l::SYS_open, l::SYS_openat, l::SYS_openat2]);
        same(ACCEPT, &[l::SYS_accept, l::SYS_accept4]);
        same(FORK, &[l::SYS_clone, l::SYS_fork, l::SYS_vfork]);
        let waits = [
            l::SYS_poll,
            l::SYS_ppoll,
            l::SYS_select,
            l::SYS_pselect6,
            l::SYS_epoll_wait,
            l::SYS_epoll_pwait,
            l::SYS_epoll_pwait2,
        ];
        same(WAITS, &waits);
        same(DUP, &[l::SYS_dup, l::SYS_dup2, l::SYS_dup3]);
        let stats = [
            l::SYS_stat,
            l::SYS_fstat,
            l::SYS_lstat,
            l::SYS_newfstatat,
            l::SYS_statx,
            l::SYS_statfs,
            l::SYS_fstatfs,
        ];
        same(STATS, &stats);
        same(LISTINGS, &[l::SYS_getdents, l::SYS_getdents64]);
        same(LINK_READS, &[l::SYS_readlink, l::SYS_readlinkat]);
        let times = [l::SYS_gettimeofday, l::SYS_time, l::SYS_clock_gettime];
        same(TIMES, &times);
    }
}
