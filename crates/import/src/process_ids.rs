//! A set of process ids.

/// The largest process id of Linux.
const LARGEST: u32 = 1 << 22;

/// Process ids, a bit for each. It has at most half a megabyte.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessIds {
    words: Vec<u64>,
}

impl ProcessIds {
    /// Adds a process id. A greater number than the kernel uses is not added.
    pub fn insert(&mut self, pid: u32) {
        if pid > LARGEST {
            return;
        }
        let at = pid as usize / 64;
        if at >= self.words.len() {
            self.words.resize(at + 1, 0);
        }
        self.words[at] |= 1 << (pid % 64);
    }

    /// True if the process id was added.
    pub fn contains(&self, pid: u32) -> bool {
        let word = self.words.get(pid as usize / 64);
        word.is_some_and(|word| word >> (pid % 64) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_id_is_found_and_no_other_and_an_impossible_one_takes_no_memory() {
        let mut ids = ProcessIds::default();
        for pid in [0, 63, 64, LARGEST, u32::MAX] {
            ids.insert(pid);
        }
        let found = [0, 1, 63, 64, 65, LARGEST, u32::MAX].map(|pid| ids.contains(pid));
        assert_eq!(found, [true, false, true, true, false, true, false]);
        assert!(ids.words.len() <= LARGEST as usize / 64 + 1);
    }
}
