//! Decodes `DESCRIBED` records into the statements of imported descriptions.

use crate::described::{Described, WordRole};
use crate::record::RawRecord;
use backstory_abi as abi;

/// The statement of a record. `None` if its kind is unknown.
pub(crate) fn statement(raw: &RawRecord<'_>) -> Option<Described> {
    let h = &raw.head;
    let [first, second] = raw.strings();
    let (start, end) = times(first);
    let (fd, arg) = (h.fd.cast_unsigned(), h.arg.cast_unsigned());
    let other = u32::try_from(h.arg).ok();
    let detail = (h.aux >> 8) as u8;
    let has = |flag: u32| h.aux & flag != 0;
    Some(match h.aux & 0xff {
        abi::DESCRIBED_ACTIVITY => Described::Activity {
            number: fd,
            parent: other,
            epoch: detail.into(),
            start,
            end,
            status: has(abi::DESCRIBED_ENDED).then_some(h.result),
            is_part: has(abi::DESCRIBED_PART),
            execed: has(abi::DESCRIBED_EXECED),
        },
        abi::DESCRIBED_WORD => Described::Word {
            activity: fd,
            role: match detail {
                0 => WordRole::Argument,
                1 => WordRole::Program,
                2 => WordRole::Directory,
                _ => return None,
            },
            text: first.into(),
            more: raw.more(),
        },
        abi::DESCRIBED_ENTITY => Described::Entity {
            number: fd,
            kind: detail,
            version: h.result.cast_unsigned(),
            previous: other,
            last: has(abi::DESCRIBED_LAST),
            path: first.into(),
        },
        abi::DESCRIBED_EDGE => Described::Edge {
            activity: fd,
            entity: arg,
            relation: detail,
            is_certain: has(abi::DESCRIBED_CERTAIN),
            start,
            end,
        },
        abi::DESCRIBED_INFORM => Described::Inform {
            from: fd,
            to: arg,
            why: detail,
            time: start,
        },
        abi::DESCRIBED_DERIVED => Described::Derived {
            entity: fd,
            from: arg,
            activity: h.result.cast_unsigned(),
            time: start,
        },
        abi::DESCRIBED_NOTE => Described::Note {
            activity: fd,
            key: first.into(),
            value: second.into(),
        },
        abi::DESCRIBED_RANK => Described::Rank {
            activity: fd,
            place: first.into(),
        },
        _ => return None,
    })
}

/// Two moments in ns since 1970, written in decimal digits. One that cannot be read is 0.
fn times(text: &[u8]) -> (i64, i64) {
    let text = std::str::from_utf8(text).unwrap_or_default();
    let mut moments = text.split(' ').map(|one| one.parse().unwrap_or(0));
    let start = moments.next().unwrap_or(0);
    (
        start,
        moments.next().map_or(start, |end: i64| end.max(start)),
    )
}
