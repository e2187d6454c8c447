//! The operations of a log, as far as an import uses them. They are maps with the names of the
//! fields of PROBE's `probe_headers/src/ops.rs`.

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, SeqAccess, Visitor};
use std::fmt;

/// Bytes of a path or an argument.
#[derive(Debug, Clone, Default)]
pub(super) struct Bytes(pub(super) Vec<u8>);

/// The number that PROBE gives an open descriptor. 0 is one from before the program.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct OpenNumber {
    pub(super) value: u16,
}

/// A name, and the directory to which it is relative.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct PathArgument {
    pub(super) directory: OpenNumber,
    pub(super) name: Option<Bytes>,
}

/// A file. If an open failed, PROBE has zeros, or bytes that it did not initialize.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Inode {
    pub(super) device_major: u32,
    pub(super) device_minor: u32,
    pub(super) number: u64,
    pub(super) mode: u32,
}

impl Inode {
    /// The type of the file. `None` if the record has no type.
    pub(super) fn file_type(self) -> Option<u32> {
        // Linux numbers devices by 12 and 20 bits.
        let is_number = self.device_major < 1 << 12 && self.device_minor < 1 << 20;
        let kind = self.mode & libc::S_IFMT;
        let is_type = [
            libc::S_IFREG,
            libc::S_IFDIR,
            libc::S_IFCHR,
            libc::S_IFBLK,
            libc::S_IFIFO,
            libc::S_IFSOCK,
        ]
        .contains(&kind);
        (self.number != 0 && is_number && is_type).then_some(kind)
    }
}

/// An operation.
#[derive(Debug, Deserialize)]
pub(super) struct Operation {
    pub(super) data: OperationData,
}

/// Its kind and arguments.
#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub(super) enum OperationData {
    InitExecEpoch {
        parent_pid: i64,
        argv: Vec<Bytes>,
        env: Vec<Bytes>,
        std_in: Inode,
        std_out: Inode,
        std_err: Inode,
    },
    Exec {
        path: PathArgument,
    },
    Spawn {
        exec: SpawnedProgram,
        child_pid: i64,
    },
    Clone {
        task_type: TaskType,
        task_id: i64,
    },
    Wait {
        task_type: TaskType,
        task_id: i64,
        status: i32,
    },
    ExitProcess {
        status: i32,
    },
    Open {
        path: PathArgument,
        inode: Inode,
        flags: i32,
    },
    Access {
        path: PathArgument,
    },
    Stat {
        path: PathArgument,
    },
    Readdir {
        dir: PathArgument,
    },
    ReadLink {
        linkpath: PathArgument,
    },
    UpdateMetadata {
        path: PathArgument,
    },
    HardLink {
        old: PathArgument,
        new: PathArgument,
    },
    SymbolicLink {
        new: PathArgument,
    },
    Rename {
        src: PathArgument,
        dst: PathArgument,
    },
    Unlink {
        path: PathArgument,
    },
    MkFile {
        path: PathArgument,
        file_type: FileType,
    },
    // Ends and copies of descriptors, threads, and kinds of later versions.
    #[serde(other)]
    Other,
}

/// The program of a process that was started by one call.
#[derive(Debug, Deserialize)]
pub(super) struct SpawnedProgram {
    pub(super) path: PathArgument,
}

/// The meaning of a task's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum TaskType {
    Pid,
    #[serde(other)]
    Thread,
}

/// The kind of a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum FileType {
    Dir,
    Pipe,
    #[serde(other)]
    Node,
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Bytes, D::Error> {
        struct BytesVisitor;
        impl Visitor<'_> for BytesVisitor {
            type Value = Bytes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(bytes.to_vec()))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Bytes, E> {
                Ok(Bytes(text.as_bytes().to_vec()))
            }
        }
        source.deserialize_byte_buf(BytesVisitor)
    }
}

/// Passes each operation of an array on, until the function returns false.
pub(super) struct OperationList<F>(pub(super) F);

impl<'de, F: FnMut(Operation) -> bool> DeserializeSeed<'de> for OperationList<F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        source.deserialize_seq(self)
    }
}

impl<'de, F: FnMut(Operation) -> bool> Visitor<'de> for OperationList<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of operations")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(operation) = list.next_element()? {
            if !(self.0)(operation) {
                return Err(A::Error::custom("the rest is not needed"));
            }
        }
        Ok(())
    }
}
