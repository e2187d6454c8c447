//! Arranges the facts of a deep log: the beginning of a program, times, descriptors, and what is
//! missing.

use super::Arranging;
use backstory_abi::deep;
use backstory_deep::Call;

const RECORDS_MISSING: &str = "records of it are missing; a whole run is compared up to there";

impl Arranging {
    pub(super) fn fact(&mut self, call: &Call) {
        match call.number {
            deep::BEGIN if call.a != deep::BY_THREAD => self.begin(call),
            deep::BEGIN => self.process.add_thread(call.b as u32),
            deep::CLOCK | deep::PROCESSOR | deep::COUNTER | deep::CPUID if self.in_outline => {}
            deep::CLOCK => {
                let queue = self.process.times.entry((call.tid, call.a as i32));
                queue.or_default().push_back((call.result, call.time));
            }
            deep::PROCESSOR => {
                let queue = self.process.processors.entry(call.tid);
                let told = (call.a as u32, call.b as u32);
                queue.or_default().push_back((told, call.time));
            }
            deep::COUNTER => {
                let queue = self.process.counters.entry(call.tid).or_default();
                let told = (call.result.cast_unsigned(), call.b as u32);
                queue.push_back((told, call.time));
            }
            deep::CPUID => self.identified(call),
            deep::DESCRIPTOR => self.descriptor(call),
            deep::SIGNAL => self.signal(call),
            deep::GAP => {
                // Its own time is that of the first record behind the gap.
                let returned = self.returned.get(&call.tid).copied();
                self.is_whole_until(returned.unwrap_or(self.process.began));
                self.lacks_calls(RECORDS_MISSING);
            }
            deep::UNTIMED => {
                let why = "it tried to limit its own system calls, and its later times are missing";
                self.process.gap.get_or_insert_with(|| why.to_owned());
            }
            deep::UNCOUNTED => {
                let why = "some of its instructions that ask the processor are not recorded";
                self.process.gap.get_or_insert_with(|| why.to_owned());
            }
            deep::SHALLOW => {
                self.is_whole_until(call.time);
                self.lacks_calls(match call.a {
                    1 => "it limited its own system calls",
                    2 => "the disk had no room",
                    _ => "the recording ended before it did",
                });
            }
            _ => {}
        }
    }

    /// `cpuid`
    fn identified(&mut self, call: &Call) {
        let (words, _) = call.entered_at(0).unwrap_or_default().as_chunks::<4>();
        let words: Vec<u32> = words.iter().map(|one| u32::from_le_bytes(*one)).collect();
        if let Ok(told) = <[u32; 4]>::try_from(words) {
            let key = (call.tid, call.a as u32, call.b as u32);
            let queue = self.process.identities.entry(key).or_default();
            queue.push_back((told, call.time));
        }
    }

    /// Calls of one thread are missing behind this time. The calls of the others do not follow from
    /// the record then, either.
    fn is_whole_until(&mut self, time: u64) {
        let known = self.process.whole_until.get_or_insert(time);
        *known = time.min(*known);
    }

    fn lacks_calls(&mut self, why: &str) {
        self.process.gap = Some(why.to_owned());
        self.process.lacks_calls = true;
    }

    /// The log of this process is not whole, whether or not a record says so. `lacks_end`: its last
    /// records may be missing.
    pub(crate) fn is_not_whole(&mut self, lacks_end: bool) {
        self.process.lacks_end = lacks_end;
        if !self.process.lacks_calls {
            self.lacks_calls(RECORDS_MISSING);
        }
    }

    fn begin(&mut self, call: &Call) {
        let words = |arg| {
            let bytes = call.section(deep::WORDS, arg).unwrap_or_default();
            let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
            match bytes.is_empty() {
                true => Vec::new(),
                false => bytes.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect(),
            }
        };
        let bytes = |kind, arg| call.section(kind, arg).unwrap_or_default().to_vec();
        if call.a == deep::BY_EXEC && self.unseen.contains(&self.process.pid) {
            self.forget_vague();
        }
        self.process.began = call.time;
        let start = &mut self.process.start;
        start.by_exec = call.a == deep::BY_EXEC;
        start.arguments = words(0);
        start.environment = words(1);
        start.random = bytes(deep::LEFT, 3);
        start.program = bytes(deep::PATH, 4);
        start.directory = bytes(deep::PATH, 5);
        start.build = bytes(deep::LEFT, 6);
        let stack = call.section(deep::LEFT, 7).and_then(<[u8]>::first_chunk);
        start.stack = stack.map(|address| u64::from_le_bytes(*address));
    }
}
