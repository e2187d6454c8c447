//! Recorded names in the place of those that libc chooses now.
//!
//! In: a name that libc has chosen. Out: the next recorded one that it could have chosen for the
//! same template. Invariant: a name that the record has is in no other one's place.

use super::ProcessMatcher;
use crate::process::{CallObject, ResultKey};
use crate::temporary_names::Creation;
use std::ops::Range;

/// Recorded names that are looked at for one creation.
const LOOKED_AT: usize = 1024;

impl ProcessMatcher {
    /// The place of the recorded name for a creation, with the positions of the letters in which
    /// it differs from the name that came. It is one of this recorded thread, if there is one.
    ///
    /// In an execution of a part of the record, other threads may serve the requests that are fed.
    /// Names up to the time that was reached are those of other requests.
    pub fn temporary_name(
        &mut self,
        came: &[u8],
        creation: Creation,
        thread: u32,
    ) -> Option<(usize, Range<usize>)> {
        let names = &mut self.rest.temporary_names;
        let mut next = names.iter().take(LOOKED_AT);
        if let Some(known) = next.position(|(name, _)| name.path == came) {
            names.remove(known);
            return None;
        }
        if self.has_made(came, creation) {
            return None;
        }
        let (is_part, reached) = (self.rest.is_part, self.time);
        let next = self.rest.temporary_names.iter().take(LOOKED_AT);
        let next = next.enumerate();
        let next = next.filter(|(_, (_, time))| !is_part || *time > reached);
        let mut others = None;
        for (place, (name, _)) in next {
            let Some(letters) = name.letters(creation, came) else {
                continue;
            };
            if is_part || name.thread == thread {
                return Some((place, letters));
            }
            others = others.or(Some((place, letters)));
        }
        others
    }

    /// True if the record has a call with this path that opens or makes it.
    fn has_made(&self, path: &[u8], creation: Creation) -> bool {
        match creation {
            Creation::File(_) => self.rest.opens.contains_key(path),
            Creation::Directory => self.rest.results.contains_key(&ResultKey {
                call: libc::SYS_mkdir as u16,
                object: CallObject::Path(path.to_vec()),
                detail: 0,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ProcessMatcher;
    use crate::process::{Made, RecordedProcess};
    use crate::temporary_names::{Creation, TemporaryName};

    const FILE: Creation = Creation::File(0);

    /// A process that made these, each by its thread and at its time.
    fn matcher(names: &[(&str, Creation, u32, u64)]) -> ProcessMatcher {
        let mut process = RecordedProcess::default();
        for (path, creation, thread, time) in names {
            let name = TemporaryName {
                path: path.as_bytes().to_vec(),
                creation: *creation,
                thread: *thread,
                is_libcs: false,
            };
            process.temporary_names.push_back((name, *time));
            let opens = process.opens.entry(path.as_bytes().to_vec()).or_default();
            opens.push_back((Made::Resource(0), *time));
        }
        ProcessMatcher::new(process)
    }

    /// The name that a thread gets, which is taken.
    fn gets(matcher: &mut ProcessMatcher, came: &str, creation: Creation, tid: u32) -> String {
        let found = matcher.temporary_name(came.as_bytes(), creation, tid);
        let Some((place, letters)) = found else {
            return String::new();
        };
        let (name, _) = matcher.rest.temporary_names.remove(place).unwrap();
        let mut whole = came.as_bytes().to_vec();
        whole[letters.clone()].copy_from_slice(&name.path[letters]);
        assert_eq!(whole, name.path);
        String::from_utf8(whole).unwrap()
    }

    #[test]
    fn each_recorded_name_is_given_once_to_its_template_and_kind_and_first_to_its_thread() {
        let mut matcher = matcher(&[
            ("m_aaaaaa", FILE, 1, 10),
            ("m_bbbbbb", FILE, 2, 20),
            ("d_CCCCCC", Creation::Directory, 1, 30),
            ("m_dddddd.c", Creation::File(libc::O_APPEND), 1, 40),
        ]);
        assert_eq!(gets(&mut matcher, "d_012345", FILE, 1), "");
        assert_eq!(gets(&mut matcher, "m_012345", FILE, 2), "m_bbbbbb");
        assert_eq!(gets(&mut matcher, "m_123456", FILE, 2), "m_aaaaaa");
        assert_eq!(gets(&mut matcher, "m_234567", FILE, 1), "");
        let directory = Creation::Directory;
        assert_eq!(gets(&mut matcher, "d_012345", directory, 1), "d_CCCCCC");
        assert_eq!(gets(&mut matcher, "m_012345.c", FILE, 1), "");
        let append = Creation::File(libc::O_APPEND);
        assert_eq!(gets(&mut matcher, "m_012345.c", append, 1), "m_dddddd.c");
    }

    #[test]
    fn a_name_that_the_record_has_stays_and_is_in_no_other_ones_place() {
        let names = [("m_aaaaaa", FILE, 1, 10), ("m_bbbbbb", FILE, 1, 20)];
        let mut matcher = matcher(&names);
        assert_eq!(gets(&mut matcher, "m_aaaaaa", FILE, 1), "");
        // Again: the record has it once.
        assert_eq!(gets(&mut matcher, "m_aaaaaa", FILE, 1), "");
        assert_eq!(gets(&mut matcher, "m_012345", FILE, 1), "m_bbbbbb");
        assert_eq!(gets(&mut matcher, "m_123456", FILE, 1), "");
    }

    #[test]
    fn a_part_of_the_record_gets_the_names_behind_the_time_that_it_has_reached() {
        let names = [
            ("m_aaaaaa", FILE, 1, 10),
            ("m_bbbbbb", FILE, 1, 20),
            ("m_cccccc", FILE, 2, 30),
        ];
        let mut matcher = matcher(&names);
        matcher.rest.is_part = true;
        matcher.reached(25);
        assert_eq!(gets(&mut matcher, "m_012345", FILE, 1), "m_cccccc");
        assert_eq!(gets(&mut matcher, "m_123456", FILE, 1), "");
    }
}
