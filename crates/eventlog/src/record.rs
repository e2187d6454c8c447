//! Records: one operation each, as bytes. Reads them within bounds, and builds them.

use backstory_abi::{
    self as abi, CallerIds, DONE, F_CALLER, F_CUT, F_IDENT, F_MORE, F_PREDICTED, F_RESOLVED,
    RESERVED, Record, op,
};
use backstory_files::Ident;

/// Most bytes in a record: a chunk without its header.
pub const MAX: usize = abi::CHUNK_SIZE as usize - abi::Chunk::SIZE;

/// `AT_SYMLINK_NOFOLLOW`: in an `IDENT` record's `arg`, the path's final link was not followed.
pub const NOFOLLOW: i32 = 0x100;

/// A parsed record. Its strings are still in `body`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RawRecord<'a> {
    /// The fixed part.
    pub head: Record,
    /// Process and thread, in a record of the supervisor.
    pub caller: Option<CallerIds>,
    /// The file concerned.
    pub ident: Option<Ident>,
    /// Strings, or a socket address; then padding.
    pub body: &'a [u8],
}

impl<'a> RawRecord<'a> {
    /// Parses the record that begins these bytes. `None` if it does not lie within them.
    pub fn parse(bytes: &'a [u8]) -> Option<RawRecord<'a>> {
        let head = Record::read(bytes)?;
        let mut body = bytes.get(Record::SIZE..usize::from(head.size))?;
        let mut caller = None;
        let mut ident = None;
        if head.flags & F_CALLER != 0 {
            caller = Some(CallerIds::read(body)?);
            body = &body[CallerIds::SIZE..];
        }
        if head.flags & F_IDENT != 0 {
            ident = Some(Ident::read(body)?);
            body = &body[Ident::SIZE..];
        }
        Some(RawRecord {
            head,
            caller,
            ident,
            body,
        })
    }

    /// The next string of a body, without its NUL, and the bytes after it.
    pub fn string(body: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        match body.iter().position(|b| *b == 0) {
            Some(end) => (&body[..end], &body[end + 1..]),
            None => (body, &[]),
        }
    }

    /// The first two strings of the record. A missing string is empty.
    pub fn strings(&self) -> [&'a [u8]; 2] {
        let (first, rest) = RawRecord::string(self.body);
        [first, RawRecord::string(rest).0]
    }

    /// The strings of a list (`ARGS`, `ENV`). If `aux` does not give their length, empty strings at
    /// the end look like padding and are left out.
    pub fn list(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let told = self
            .body
            .get(..self.head.aux as usize)
            .and_then(|b| b.strip_suffix(&[0]));
        let end = self
            .body
            .iter()
            .rposition(|b| *b != 0)
            .map_or(0, |last| last + 1);
        let mut rest = told.or(Some(&self.body[..end]).filter(|r| !r.is_empty()));
        std::iter::from_fn(move || {
            let body = rest?;
            let (first, after) = RawRecord::string(body);
            rest = (first.len() < body.len()).then_some(after);
            Some(first)
        })
    }

    /// True if the last string continues in the thread's next record of this operation.
    pub fn more(&self) -> bool {
        self.head.flags & F_MORE != 0
    }
}

/// Builds records one after the other, in reused memory.
///
/// ```
/// use backstory_eventlog::record::RecordBuilder;
/// use backstory_abi::op;
/// let mut builder = RecordBuilder::new();
/// let bytes = builder.start(op::OPEN, 7).fd(-100).arg(0).result(3).string(b"/etc/hosts").finish();
/// assert_eq!(bytes.len() % 8, 0);
/// ```
#[derive(Debug, Default)]
pub struct RecordBuilder {
    head: Record,
    caller: Option<CallerIds>,
    ident: Option<Ident>,
    body: Vec<u8>,
    bytes: Vec<u8>,
}

impl RecordBuilder {
    /// A builder without a record.
    pub fn new() -> RecordBuilder {
        RecordBuilder::default()
    }

    /// Begins a record: reserved, with every field 0.
    pub fn start(&mut self, op: u16, time: u64) -> &mut Self {
        self.head = Record {
            state: RESERVED,
            op,
            time,
            ..Record::default()
        };
        self.caller = None;
        self.ident = None;
        self.body.clear();
        self
    }

    /// Sets process and thread.
    pub fn caller(&mut self, caller: CallerIds) -> &mut Self {
        self.caller = Some(caller);
        self
    }

    /// Sets the file concerned.
    pub fn ident(&mut self, ident: &Ident) -> &mut Self {
        self.ident = Some(*ident);
        self
    }

    /// Sets `fd`.
    pub fn fd(&mut self, fd: i32) -> &mut Self {
        self.head.fd = fd;
        self
    }

    /// Sets `arg`.
    pub fn arg(&mut self, arg: i32) -> &mut Self {
        self.head.arg = arg;
        self
    }

    /// Sets `aux`.
    pub fn aux(&mut self, aux: u32) -> &mut Self {
        self.head.aux = aux;
        self
    }

    /// Sets the call's result. The record is done.
    pub fn result(&mut self, result: i32) -> &mut Self {
        self.head.state = DONE;
        self.head.result = result;
        self
    }

    /// Sets `result` of an operation whose outcome is not known (`EXEC`). The record stays
    /// reserved.
    pub fn says(&mut self, value: i32) -> &mut Self {
        self.head.result = value;
        self
    }

    /// Sets the result that the supervisor concluded. The record is done.
    pub fn predicted(&mut self, result: i32) -> &mut Self {
        self.head.flags |= F_PREDICTED;
        self.result(result)
    }

    /// Marks the paths as absolute, resolved for the caller.
    pub fn resolved(&mut self) -> &mut Self {
        self.head.flags |= F_RESOLVED;
        self
    }

    /// Marks the last string as continued in the next record.
    pub fn more(&mut self) -> &mut Self {
        self.head.flags |= F_MORE;
        self
    }

    /// Sets further flags.
    pub fn flags(&mut self, flags: u16) -> &mut Self {
        self.head.flags |= flags;
        self
    }

    /// Adds a string. A string that does not fit is cut, and the record marked. A NUL within ends
    /// it.
    pub fn string(&mut self, string: &[u8]) -> &mut Self {
        let string = RawRecord::string(string).0;
        let fits = self.room().saturating_sub(1).min(string.len());
        if fits < string.len() {
            self.head.flags |= F_CUT;
        }
        self.body.extend_from_slice(&string[..fits]);
        self.body.push(0);
        self
    }

    /// Adds a socket address and sets `aux` to its length.
    pub fn address(&mut self, address: &[u8]) -> &mut Self {
        let fits = self.room().min(address.len());
        self.body.extend_from_slice(&address[..fits]);
        self.aux(fits as u32)
    }

    /// Appends arguments, as many as there is room for.
    pub fn arguments(&mut self, arguments: &[Vec<u8>]) {
        for argument in arguments {
            if self.room() == 0 {
                break;
            }
            self.string(argument);
        }
    }

    /// Fills a `BORN`: a process that is met for the first time, and its current directory.
    pub fn process(&mut self, pid: u32, parent: u32, directory: &[u8]) {
        self.caller(CallerIds::of_process(pid))
            .fd(pid as i32)
            .arg(parent as i32)
            .result(0)
            .string(b"")
            .string(directory);
    }

    /// Fills an `ARGS`: the arguments of the program that a process runs.
    pub fn program_arguments(&mut self, pid: u32, arguments: &[Vec<u8>]) {
        self.caller(CallerIds::of_process(pid))
            .result(0)
            .arguments(arguments);
    }

    /// Fills an `EXEC` of the program at an absolute path, with this number of arguments.
    pub fn program(&mut self, pid: u32, path: &[u8], arguments: usize) {
        self.caller(CallerIds::of_process(pid))
            .fd(crate::event::CWD)
            .arg(arguments as i32)
            .resolved()
            .string(path);
    }

    /// Bytes left for strings. The last 8 bytes of a record are reserved for the NULs of cut
    /// strings.
    pub fn room(&self) -> usize {
        (MAX - 8 - Record::SIZE - CallerIds::SIZE - Ident::SIZE).saturating_sub(self.body.len())
    }

    /// The padded record. For a list, `aux` has the number of its bytes. The bytes stay valid until
    /// the next [`RecordBuilder::start`].
    pub fn finish(&mut self) -> &[u8] {
        if matches!(self.head.op, op::ARGS | op::ENV | op::VALUES) {
            self.head.aux = self.body.len() as u32;
        }
        self.bytes.clear();
        self.bytes.extend_from_slice(&[0; Record::SIZE]);
        if let Some(caller) = &self.caller {
            self.head.flags |= F_CALLER;
            self.bytes.extend_from_slice(&caller.to_bytes());
        }
        if let Some(ident) = &self.ident {
            self.head.flags |= F_IDENT;
            self.bytes.extend_from_slice(&ident.to_bytes());
        }
        self.bytes.extend_from_slice(&self.body);
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        // The reserved bytes keep the size within MAX, which fits.
        self.head.size = self.bytes.len() as u16;
        self.bytes[..Record::SIZE].copy_from_slice(&self.head.to_bytes());
        &self.bytes
    }

    /// A finished record of a path's identity, or of the errno of its look-up.
    pub fn identity(
        &mut self,
        time: u64,
        path: &[u8],
        follow: bool,
        found: Result<&Ident, i32>,
    ) -> &[u8] {
        self.start(op::IDENT, time)
            .arg(if follow { 0 } else { NOFOLLOW })
            .string(path);
        match found {
            Ok(ident) => self.ident(ident).result(0),
            Err(errno) => self.result(-errno.abs()),
        };
        self.finish()
    }

    /// A finished record of the text of a symbolic link, as it is after the run.
    pub fn link_text(&mut self, time: u64, path: &[u8], text: &[u8]) -> &[u8] {
        self.start(op::LINK_TEXT, time)
            .string(path)
            .string(text)
            .result(0);
        self.finish()
    }

    /// A finished record of a program's interpreter, as the program's first bytes name it.
    pub fn runs(&mut self, time: u64, program: &[u8], interpreter: &[u8]) -> &[u8] {
        self.start(op::RUNS, time)
            .string(program)
            .string(interpreter)
            .result(0);
        self.finish()
    }
}
