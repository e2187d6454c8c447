//! The numbers of the names that strace prints.
//!
//! A part of flags may also be a number, with its names in a comment (`-X raw`, `-X verbose`).

/// The number behind a name. `None` if the name is not known here.
type Named = (&'static str, i64);

macro_rules! named {
    ($($name:ident)*) => { &[$((stringify!($name), libc::$name as i64)),*] };
}

/// Names of flags whose numbers matter to records.
const FLAGS: &[Named] = named! {
    O_RDONLY O_WRONLY O_RDWR O_CREAT O_EXCL O_NOCTTY O_TRUNC O_APPEND O_NONBLOCK O_DSYNC O_SYNC
    O_DIRECT O_DIRECTORY O_NOFOLLOW O_NOATIME O_CLOEXEC O_PATH O_TMPFILE
    AT_FDCWD AT_SYMLINK_NOFOLLOW AT_REMOVEDIR AT_SYMLINK_FOLLOW AT_EMPTY_PATH AT_EACCESS
    R_OK W_OK X_OK F_OK
    PROT_READ PROT_WRITE PROT_EXEC PROT_NONE MAP_SHARED MAP_PRIVATE MAP_SHARED_VALIDATE
    MAP_ANONYMOUS MAP_FIXED
    CLONE_VM CLONE_FS CLONE_FILES CLONE_SIGHAND CLONE_PTRACE CLONE_VFORK CLONE_PARENT CLONE_THREAD
    CLONE_NEWNS CLONE_SYSVSEM CLONE_SETTLS CLONE_PARENT_SETTID CLONE_CHILD_CLEARTID
    CLONE_UNTRACED CLONE_CHILD_SETTID CLONE_NEWCGROUP CLONE_NEWUTS CLONE_NEWIPC CLONE_NEWUSER
    CLONE_NEWPID CLONE_NEWNET CLONE_IO
    S_IFMT S_IFREG S_IFDIR S_IFCHR S_IFBLK S_IFIFO S_IFLNK S_IFSOCK
    MS_RDONLY MS_BIND MS_REC MS_MOVE MS_REMOUNT MS_PRIVATE MS_SHARED MS_SLAVE MS_UNBINDABLE
    RENAME_NOREPLACE RENAME_EXCHANGE RENAME_WHITEOUT
    F_DUPFD F_DUPFD_CLOEXEC F_SETFD FD_CLOEXEC
    SOCK_STREAM SOCK_DGRAM SOCK_RAW SOCK_SEQPACKET SOCK_NONBLOCK SOCK_CLOEXEC
    AF_UNSPEC AF_UNIX AF_INET AF_INET6 AF_NETLINK AF_PACKET
    WNOHANG WNOWAIT WEXITED
    SIGHUP SIGINT SIGQUIT SIGILL SIGTRAP SIGABRT SIGBUS SIGFPE SIGKILL SIGUSR1 SIGSEGV SIGUSR2
    SIGPIPE SIGALRM SIGTERM SIGSTKFLT SIGCHLD SIGCONT SIGSTOP SIGTSTP SIGTTIN SIGTTOU SIGURG
    SIGXCPU SIGXFSZ SIGVTALRM SIGPROF SIGWINCH SIGIO SIGPWR SIGSYS
};

/// Names of errors.
const ERRORS: &[Named] = named! {
    EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG ENOEXEC EBADF ECHILD EAGAIN ENOMEM EACCES EFAULT
    ENOTBLK EBUSY EEXIST EXDEV ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY ETXTBSY EFBIG
    ENOSPC ESPIPE EROFS EMLINK EPIPE EDOM ERANGE EDEADLK ENAMETOOLONG ENOLCK ENOSYS ENOTEMPTY
    ELOOP ENODATA ETIME EPROTO EOVERFLOW EILSEQ EUSERS ENOTSOCK EDESTADDRREQ EMSGSIZE EPROTOTYPE
    ENOPROTOOPT EPROTONOSUPPORT ESOCKTNOSUPPORT EOPNOTSUPP EPFNOSUPPORT EAFNOSUPPORT EADDRINUSE
    EADDRNOTAVAIL ENETDOWN ENETUNREACH ENETRESET ECONNABORTED ECONNRESET ENOBUFS EISCONN ENOTCONN
    ESHUTDOWN ETOOMANYREFS ETIMEDOUT ECONNREFUSED EHOSTDOWN EHOSTUNREACH EALREADY EINPROGRESS
    ESTALE EDQUOT ECANCELED EKEYEXPIRED EKEYREVOKED EOWNERDEAD
};

/// The number of an error, from the text after `-1`: `ENOENT (No such …)`, or `(errno 2)`. An
/// unknown error counts as `EIO`: nothing is known of it but that the call failed.
pub(crate) fn error_number(text: &str) -> i32 {
    let name = text.split([' ', '(']).next().unwrap_or_default();
    let known = ERRORS.iter().find(|(known, _)| *known == name);
    let told = || {
        let told = text.strip_prefix("(errno ")?;
        number(told.split(')').next()?)
    };
    let found = known.map(|(_, value)| *value).or_else(told);
    found
        .and_then(|value| i32::try_from(value).ok())
        .filter(|value| *value > 0)
        .unwrap_or(libc::EIO)
}

/// A number as strace prints it: decimal, `0x` hexadecimal, or octal with a leading `0`.
pub(crate) fn number(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?.cast_signed(),
        None if digits.len() > 1 && digits.starts_with('0') => {
            i64::from_str_radix(digits, 8).ok()?
        }
        None => digits.parse().ok()?,
    };
    Some(value.wrapping_mul(sign))
}

/// The number behind a name, or a number.
fn part(text: &str) -> i64 {
    let known = |name: &str| FLAGS.iter().find(|(known, _)| *known == name);
    if let Some((_, value)) = known(text) {
        return *value;
    }
    match text {
        // Older names of strace.
        "O_LARGEFILE" | "SIG_0" => 0,
        "AF_LOCAL" | "AF_FILE" => i64::from(libc::AF_UNIX),
        "SIGPOLL" => i64::from(libc::SIGIO),
        "AT_STATX_SYNC_AS_STAT" | "AT_NO_AUTOMOUNT" => 0,
        _ => number(text).unwrap_or(0),
    }
}

/// Flags joined by `|`, without the comments that `-X verbose` adds.
pub(crate) fn flags(text: &str) -> i64 {
    let mut all = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let (before, after) = rest.split_once("/*").unwrap_or((rest, ""));
        for one in before.split('|') {
            all |= part(one.trim());
        }
        rest = after.split_once("*/").map_or("", |(_, after)| after);
    }
    all
}

/// The field `name=` of a structure, up to the next comma outside of brackets.
pub(crate) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut from = 0;
    loop {
        let at = from + text.get(from..)?.find(name)?;
        let after = text.get(at + name.len()..)?;
        let begins = text[..at]
            .chars()
            .next_back()
            .is_none_or(|c| "{ ,[".contains(c));
        if begins && let Some(value) = after.strip_prefix('=') {
            return Some(value[..end_of_value(value)].trim());
        }
        from = at + name.len();
    }
}

fn end_of_value(text: &str) -> usize {
    let (mut depth, mut quoted, mut escaped) = (0_i32, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => return at,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => return at,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_in_every_style_of_strace() {
        let wanted = i64::from(libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC);
        assert_eq!(flags("O_WRONLY|O_CREAT|O_TRUNC"), wanted);
        assert_eq!(flags("0x241"), wanted);
        assert_eq!(flags("0x241 /* O_WRONLY|O_CREAT|O_TRUNC */"), wanted);
        assert_eq!(
            flags("0x1200000 /* CLONE_CHILD_SETTID */|17 /* SIGCHLD */"),
            0x120_0011
        );
        assert_eq!(flags("S_IFIFO|0666"), i64::from(libc::S_IFIFO) | 0o666);
    }

    #[test]
    fn errors_have_their_numbers() {
        assert_eq!(
            error_number("ENOENT (No such file or directory)"),
            libc::ENOENT
        );
        assert_eq!(error_number("(errno 111)"), libc::ECONNREFUSED);
        assert_eq!(error_number("EWHATEVER (?)"), libc::EIO);
    }

    #[test]
    fn a_field_of_a_structure_ends_at_its_own_comma() {
        let text = "{flags=CLONE_VM|CLONE_FS, exit_signal=SIGCHLD, stack=0x7f}";
        assert_eq!(field(text, "flags"), Some("CLONE_VM|CLONE_FS"));
        assert_eq!(field(text, "stack"), Some("0x7f"));
        assert_eq!(field(text, "signal"), None);
        assert_eq!(
            field("{sun_path=\"a,\\\"}\", x=1}", "sun_path"),
            Some("\"a,\\\"}\"")
        );
    }
}
