//! The operations: number, name and how many strings follow each.

/// The header's definition of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpInfo {
    /// Number of the operation in a record.
    pub number: u16,
    /// Name of the operation, as in the header.
    pub name: &'static str,
    /// Number of NUL-terminated strings that follow the record's header, or [`LIST`].
    pub strings: u8,
}

/// Value of [`OpInfo::strings`] for an operation with a list of strings up to the record's end.
pub const LIST: u8 = 9;

macro_rules! ops {
    ($($name:ident $number:literal $strings:literal)*) => {
        /// Operation numbers. The header gives the meaning of each record field.
        pub mod op {
            $(#[doc = concat!("`", stringify!($name), "`")] pub const $name: u16 = $number;)*
        }

        /// Every operation, in the header's order.
        pub const OPS: &[OpInfo] =
            &[$(OpInfo { number: $number, name: stringify!($name), strings: $strings }),*];
    };
}

ops! {
    START 1 0
    OPEN 10 1
    CLOSE 11 0
    CLOSE_RANGE 12 0
    READ 13 0
    WRITE 14 0
    MAP 15 0
    DUP 16 0
    CLOEXEC 17 0
    TRUNCATE 18 1
    COPY 19 0
    STAT 20 1
    ACCESS 21 1
    READLINK 22 1
    LIST 23 0
    RENAME 24 2
    LINK 25 2
    SYMLINK 26 2
    UNLINK 27 1
    MKDIR 28 1
    MKNOD 29 1
    META 30 1
    CHDIR 31 2
    CHROOT 32 1
    MOUNT 33 2
    PIVOT 34 2
    NAMESPACE 35 0
    FORK 40 0
    VFORK 41 0
    VFORKED 42 0
    EXEC 43 1
    ARGS 44 9
    ENV 45 9
    WAIT 46 0
    EXIT 47 0
    THREAD 48 0
    KILL 49 0
    PIPE 60 0
    SOCKET 61 0
    SOCKETPAIR 62 0
    CONNECT 63 0
    BIND 64 0
    ACCEPT 65 0
    LISTEN 66 0
    PASS 67 0
    MEMFD 68 1
    EVENTFD 69 0
    LOAD 70 1
    RESOLVE 71 2
    TRAFFIC 72 0
    DATAGRAM 73 0
    ENDS 74 0
    LOST 80 0
    OPAQUE 81 1
    LINK_TEXT 82 2
    IDENT 90 1
    GONE 91 0
    BORN 92 2
    HOLD 93 1
    KEPT 94 1
    RUNS 95 2
    WORK 96 2
    RESOURCE 97 1
    FACT 98 2
    DESCRIBED 99 2
    FUNCTION 100 2
    CALLS 101 0
    VALUES 102 9
}

const LAST: usize = 128;

/// For each number, the position in [`OPS`] plus one. Decoding looks up every record here.
static BY_NUMBER: [u8; LAST] = by_number();

const fn by_number() -> [u8; LAST] {
    let mut table = [0; LAST];
    let mut i = 0;
    while i < OPS.len() {
        table[OPS[i].number as usize] = i as u8 + 1;
        i += 1;
    }
    table
}

/// Returns the definition of an operation; `None` if no operation has the number.
pub fn op_info(number: u16) -> Option<&'static OpInfo> {
    let position = *BY_NUMBER.get(usize::from(number))?;
    OPS.get(usize::from(position).checked_sub(1)?)
}
