//! Joins the arguments and environment of an `exec`: its `ARGS` and `ENV` records precede it, in as
//! many pieces as needed.

use crate::decode::halves;
use crate::event::{Bytes, Op};
use crate::record::RawRecord;
use std::sync::Arc;

/// Strings that arrive in records. The last string of a record may continue in the next.
#[derive(Debug, Default)]
pub struct Strings {
    whole: Vec<Bytes>,
    open: Option<Vec<u8>>,
}

impl Strings {
    /// Adds a record's strings.
    pub fn add(&mut self, raw: &RawRecord<'_>) {
        let mut list = raw.list().peekable();
        if let (Some(open), Some(first)) = (&mut self.open, list.peek()) {
            open.extend_from_slice(first);
            list.next();
            if list.peek().is_some() {
                self.close();
            }
        }
        while let Some(string) = list.next() {
            if raw.more() && list.peek().is_none() {
                self.open = Some(string.to_vec());
            } else {
                self.whole.push(string.into());
            }
        }
        if !raw.more() {
            self.close();
        }
    }

    fn close(&mut self) {
        self.whole
            .extend(self.open.take().map(Vec::into_boxed_slice));
    }

    /// All strings.
    pub fn finish(mut self) -> Vec<Bytes> {
        self.close();
        self.whole
    }
}

/// The arguments and environment of a thread's next `EXEC`, as far as they were seen.
#[derive(Debug, Default)]
pub struct Pending {
    args: Option<Strings>,
    env: Option<Strings>,
    hash: Option<u64>,
}

impl Pending {
    /// Takes an `ARGS` record.
    pub fn args(&mut self, raw: &RawRecord<'_>) {
        self.args.get_or_insert_default().add(raw);
    }

    /// Takes an `ENV` record, which has the strings themselves or the hash of ones logged before.
    pub fn env(&mut self, raw: &RawRecord<'_>) {
        if self.env.is_none() && raw.list().next().is_none() {
            self.hash = Some(halves(raw));
        } else {
            self.env.get_or_insert_default().add(raw);
        }
    }

    /// Completes the `EXEC`. `known` finds an environment by its hash.
    pub fn exec(self, raw: &RawRecord<'_>, known: impl FnOnce(u64) -> Option<Arc<[Bytes]>>) -> Op {
        let mut args = Vec::new();
        if let Some(seen) = self.args {
            args = seen.finish();
            // Empty arguments at the end look like padding. The number of arguments restores them.
            let missing = usize::try_from(raw.head.arg)
                .unwrap_or(0)
                .saturating_sub(args.len());
            args.extend(std::iter::repeat_n(
                Bytes::default(),
                missing.min(MOST_EMPTY),
            ));
        }
        let env = match self.env {
            Some(strings) => Some(strings.finish().into()),
            None => self.hash.and_then(known),
        };
        Op::Exec {
            dir: raw.head.fd,
            path: raw.strings()[0].into(),
            flags: raw.head.aux & !backstory_abi::EXEC_ANNOUNCED,
            args,
            env,
        }
    }
}

/// More empty arguments than padding can hide. A damaged count must not ask for more.
const MOST_EMPTY: usize = 4096;
