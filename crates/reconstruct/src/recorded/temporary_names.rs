//! Notes the files and directories whose names libc may have chosen.

use super::{Arranging, ended};
use crate::temporary_names::{Creation, TemporaryName};
use backstory_deep::Call;

/// The third argument in the record of a directory whose name the recorder chose for `mkdtemp`.
const MADE_BY_LIBC: u64 = 1;

impl Arranging {
    /// A call made a directory, or failed to.
    pub(super) fn made_directory(&mut self, call: &Call) {
        self.note_temporary(call, Creation::of_directory(call.a as u32));
        self.result(call);
    }

    /// Notes what a call made, if libc may have chosen its name. libc knows no directory but the
    /// current one.
    pub(super) fn note_temporary(&mut self, call: &Call, creation: Option<Creation>) {
        let is_made = call.result >= 0 && call.fd == libc::AT_FDCWD && !call.is_cut;
        if !is_made || self.in_outline {
            return;
        }
        if let (Some(creation), Some(path)) = (creation, call.path()) {
            let name = TemporaryName {
                path: path.to_vec(),
                creation,
                thread: call.tid,
                is_libcs: creation == Creation::Directory && call.b == MADE_BY_LIBC,
            };
            let names = &mut self.process.temporary_names;
            names.push_back((name, ended(call)));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::recorded::RecordedRun;
    use crate::temporary_names::{Creation, TemporaryName};
    use backstory_abi::deep;
    use backstory_deep::{Call, Section};
    use libc::{AT_FDCWD, O_CREAT, O_EXCL, O_NOFOLLOW, O_RDWR, SYS_mkdir, SYS_openat};

    /// A call in the current directory, with its result and its arguments.
    fn call(number: i64, path: &str, result: i64, (a, b): (i32, u64)) -> Call {
        Call {
            tid: 7,
            number: number as u16,
            fd: AT_FDCWD,
            result,
            a: a as u64,
            b,
            sections: vec![Section {
                kind: deep::PATH,
                arg: 1,
                bytes: path.as_bytes().to_vec(),
            }],
            ..Call::default()
        }
    }

    #[test]
    fn names_of_files_and_directories_that_libc_may_have_made_are_noted_in_order() {
        let libcs = O_RDWR | O_CREAT | O_EXCL;
        let below = Call {
            fd: 3,
            ..call(SYS_openat, "below", 4, (libcs, 0o600))
        };
        // A log of an earlier build has no path of a directory.
        let without_path = Call {
            sections: Vec::new(),
            ..call(SYS_mkdir, "", 0, (0o700, 0))
        };
        let calls = vec![
            call(SYS_openat, "exists", -17, (libcs, 0o600)),
            call(SYS_openat, "file", 3, (libcs, 0o600)),
            call(SYS_openat, "pythons", 4, (libcs | O_NOFOLLOW, 0o600)),
            call(SYS_openat, "shared", 4, (libcs, 0o644)),
            below,
            without_path,
            call(SYS_mkdir, "shared directory", 0, (0o755, 0)),
            call(SYS_mkdir, "directory", 0, (0o700, 1)),
            call(SYS_mkdir, "another", 0, (0o700, 0)),
        ];
        let run = RecordedRun::arrange([(1, 7, 0, calls.into_iter())].into_iter());
        let names = run.processes[0].temporary_names.iter();
        let names: Vec<TemporaryName> = names.map(|(name, _)| name.clone()).collect();
        let name = |path: &str, creation| TemporaryName {
            path: path.as_bytes().to_vec(),
            creation,
            thread: 7,
            is_libcs: path == "directory",
        };
        let expected = [
            name("file", Creation::File(0)),
            name("directory", Creation::Directory),
            name("another", Creation::Directory),
        ];
        assert_eq!(names, expected);
    }
}
