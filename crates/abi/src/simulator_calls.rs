//! The byte engine's list of the program's calls that are under way, in the memory of the program's
//! process: `under_way` in `bytes/c/under_way.c`.
//!
//! The engine has a licence of its own, so it has its own definition. A test compares the two.

/// Bytes before the first entry: the number of entries.
pub const HEAD: usize = 8;
/// Words of an entry: active, number, six arguments, gated, thread.
const WORDS: usize = 10;
/// Bytes of an entry.
pub const ENTRY: usize = 8 * WORDS;
/// The most entries. The number of the program's image stands behind them.
pub const MOST: usize = 512;
/// Entries that are read at once.
pub const FEW: usize = 8;

/// A call that the program made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimulatedCall {
    /// Its number.
    pub number: u64,
    /// The arguments as the program gave them.
    pub args: [u64; 6],
    /// The recorder's gate made it.
    pub is_gated: bool,
    /// The thread, as it knows itself: in its own namespace of process ids.
    pub thread: u64,
}

/// The active calls of a list. `read` fills a buffer from this offset in the list on.
///
/// # Errors
///
/// Those of `read`.
pub fn active_calls<E>(
    mut read: impl FnMut(usize, &mut [u8]) -> Result<(), E>,
) -> Result<Vec<SimulatedCall>, E> {
    let mut first = [0; HEAD + FEW * ENTRY];
    read(0, &mut first)?;
    let (used, few) = first.split_at(HEAD);
    let used = usize::try_from(word(used, 0)).map_or(MOST, |used| used.min(MOST));
    let mut entries = few[..used.min(FEW) * ENTRY].to_vec();
    if used > FEW {
        let begin = entries.len();
        entries.resize(used * ENTRY, 0);
        read(HEAD + begin, &mut entries[begin..])?;
    }
    let active = entries.chunks_exact(ENTRY).filter(|one| word(one, 0) == 1);
    let call = |one: &[u8]| SimulatedCall {
        number: word(one, 1),
        args: std::array::from_fn(|at| word(one, 2 + at)),
        is_gated: word(one, 8) == 1,
        thread: word(one, 9),
    };
    Ok(active.map(call).collect())
}

/// Of the calls that a notification can be about, that of its thread. In another namespace of
/// process ids no thread has this id: then the first one.
pub fn of_thread(
    mut calls: impl Iterator<Item = SimulatedCall> + Clone,
    thread: u32,
) -> Option<SimulatedCall> {
    let own = calls.clone().find(|call| call.thread == u64::from(thread));
    own.or_else(|| calls.next())
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes.get(8 * at..).and_then(|rest| rest.first_chunk());
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(active: u64, first: u64, thread: u64) -> [u64; WORDS] {
        [active, 1, first, 2, 3, 4, 5, 6, 1, thread]
    }

    fn list(entries: &[[u64; WORDS]]) -> Vec<u8> {
        let words = [entries.len() as u64];
        let words = words.iter().chain(entries.as_flattened());
        let mut bytes: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
        bytes.resize(bytes.len().max(HEAD + FEW * ENTRY), 0);
        bytes
    }

    fn read(list: &[u8]) -> Vec<SimulatedCall> {
        let copy = |at: usize, to: &mut [u8]| {
            to.copy_from_slice(&list[at..at + to.len()]);
            Ok::<(), ()>(())
        };
        active_calls(copy).unwrap()
    }

    #[test]
    fn the_active_calls_of_a_long_list_are_found() {
        let mut entries = vec![entry(0, 7, 1); FEW + 3];
        entries[2] = entry(1, 8, 2);
        entries[FEW + 2] = entry(1, 9, 3);
        let calls = read(&list(&entries));
        let found: Vec<_> = calls.iter().map(|call| (call.args, call.thread)).collect();
        let args = |first| [first, 2, 3, 4, 5, 6];
        assert_eq!(found, [(args(8), 2), (args(9), 3)]);
        assert!(calls.iter().all(|call| call.number == 1 && call.is_gated));
    }

    #[test]
    fn of_two_calls_with_the_same_arguments_each_thread_has_its_own() {
        let calls = read(&list(&[entry(1, 7, 20), entry(1, 7, 21)]));
        let of = |thread| of_thread(calls.iter().copied(), thread).unwrap().thread;
        assert_eq!((of(20), of(21)), (20, 21));
        assert_eq!(of(1), 20, "another namespace");
        assert_eq!(of_thread(std::iter::empty(), 20), None);
    }

    #[test]
    fn the_engine_has_the_same_list() {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bytes/c/under_way.c");
        let source = std::fs::read_to_string(source).unwrap();
        let fields = |from: &str, to: &str| {
            let (_, rest) = source.split_once(from).unwrap();
            let text = rest.split_once(to).unwrap().0;
            let code = text.lines().map(|line| line.split("/*").next().unwrap());
            code.collect::<String>()
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        };
        let call = fields("typedef struct {\n", "} ProgramCall;");
        assert_eq!(
            call,
            "ULong is_active, number, args[6]; ULong is_gated; ULong thread;"
        );
        let list = fields("static struct {\n", "} under_way;");
        assert_eq!(list, "ULong used; ProgramCall calls[THREADS]; ULong image;");
        assert!(source.contains(&format!("#define THREADS {MOST}\n")));
    }
}
