//! The tolerant matching of input and output, for any way to cut them.
#![allow(clippy::unwrap_used)]

use backstory_deep::digest::xxh64;
use backstory_reconstruct::input::{InputItem, InputStream, Taken};
use backstory_reconstruct::output::{ExpectedOutput, Interruption, OutputItem};
use backstory_reconstruct::volatile::VolatileRules;
use proptest::collection::vec;
use proptest::prelude::*;

/// A stream of these recorded reads.
fn stream(reads: &[Vec<u8>], absent: &[usize]) -> InputStream {
    let mut input = InputStream::default();
    for (at, read) in reads.iter().enumerate() {
        if absent.contains(&at) {
            input.push(InputItem::Absent);
        }
        if !read.is_empty() {
            input.push(InputItem::Bytes(read.clone()));
        }
    }
    input.push(InputItem::End);
    input
}

/// Reads to the end with rooms of these sizes, over and over.
fn drain(input: &mut InputStream, rooms: &[usize], waits: bool) -> Vec<u8> {
    let mut all = Vec::new();
    for room in rooms.iter().cycle() {
        match input.take(*room, waits, false) {
            Taken::Bytes(bytes, _) => {
                assert!(!bytes.is_empty() && bytes.len() <= *room);
                all.extend(bytes);
            }
            Taken::Absent => assert!(!waits, "a blocking read never sees EAGAIN"),
            Taken::End => return all,
            other => panic!("{other:?}"),
        }
    }
    all
}

/// Cuts bytes into pieces of these lengths, over and over.
fn cut(bytes: &[u8], lengths: &[usize]) -> Vec<Vec<u8>> {
    let (mut rest, mut pieces) = (bytes, Vec::new());
    for length in lengths.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at(rest.len().min(*length));
        pieces.push(piece.to_vec());
        rest = after;
    }
    pieces
}

fn expected(pieces: &[Vec<u8>], digests: bool) -> ExpectedOutput {
    let mut output = ExpectedOutput::default();
    for piece in pieces {
        output.push(match digests {
            true => OutputItem::Digest(piece.len() as u64, xxh64(piece)),
            false => OutputItem::Bytes(piece.clone()),
        });
    }
    output
}

proptest! {
    #[test]
    fn reads_of_any_length_get_the_recorded_bytes(
        reads in vec(vec(any::<u8>(), 0..40), 0..12),
        absent in vec(0usize..12, 0..4),
        rooms in vec(1usize..50, 1..6),
        waits in any::<bool>(),
    ) {
        let recorded: Vec<u8> = reads.concat();
        let mut input = stream(&reads, &absent);
        prop_assert_eq!(input.remaining(), recorded.len() as u64);
        prop_assert_eq!(drain(&mut input, &rooms, waits), recorded);
        prop_assert_eq!(input.remaining(), 0);
    }

    #[test]
    fn a_peek_takes_nothing(
        reads in vec(vec(any::<u8>(), 1..20), 1..5),
        room in 1usize..30,
    ) {
        let mut input = stream(&reads, &[]);
        let peeked = input.take(room, true, true);
        prop_assert_eq!(input.take(room, true, true), peeked);
        prop_assert_eq!(drain(&mut input, &[7], true), reads.concat());
    }

    #[test]
    fn equal_output_never_differs_however_it_is_cut(
        bytes in vec(any::<u8>(), 1..300),
        then in vec(1usize..60, 1..5),
        now in vec(1usize..60, 1..5),
        digests in any::<bool>(),
    ) {
        let mut output = expected(&cut(&bytes, &then), digests);
        for piece in cut(&bytes, &now) {
            prop_assert_eq!(output.leave(&piece, &VolatileRules::default()), None);
        }
        prop_assert_eq!(output.end(), None);
        prop_assert_eq!(output.position(), bytes.len() as u64);
    }

    #[test]
    fn a_changed_byte_of_output_always_differs(
        bytes in vec(any::<u8>(), 1..300),
        at in any::<prop::sample::Index>(),
        change in 1u8..,
        then in vec(1usize..60, 1..5),
        now in vec(1usize..60, 1..5),
        digests in any::<bool>(),
    ) {
        let mut output = expected(&cut(&bytes, &then), digests);
        let at = at.index(bytes.len());
        let mut other = bytes.clone();
        other[at] ^= change;
        let found = cut(&other, &now).iter().find_map(|piece| output.leave(piece, &VolatileRules::default()));
        let found = found.or_else(|| output.end()).expect("a difference");
        let range = found.position..found.position + found.within;
        prop_assert!(range.contains(&(at as u64)), "{:?} is not at {}", found, at);
    }

    #[test]
    fn output_that_is_longer_or_shorter_differs(
        bytes in vec(any::<u8>(), 1..100),
        cut_off in 1usize..20,
        digests in any::<bool>(),
        longer in any::<bool>(),
    ) {
        let mut output = expected(&cut(&bytes, &[9]), digests);
        let found = if longer {
            output.leave(&[&bytes[..], &vec![0; cut_off]].concat(), &VolatileRules::default())
        } else {
            let rest = bytes.len().saturating_sub(cut_off);
            output.leave(&bytes[..rest], &VolatileRules::default()).or_else(|| output.end())
        };
        prop_assert!(found.is_some());
    }
}

#[test]
fn other_bytes_come_with_the_first_of_the_reads_that_they_replace() {
    let mut stream = InputStream::default();
    for (time, text) in [(1, "before"), (2, "ask"), (3, " more")] {
        stream.push_at(InputItem::Bytes(text.into()), time);
    }
    stream.push_at(InputItem::End, 4);
    stream.replace_at(b"other".to_vec(), |time| time > 1);
    assert_eq!((stream.remaining(), stream.len()), (11, 3));
    let mut came = Vec::new();
    while let Taken::Bytes(bytes, _) = stream.take(100, true, false) {
        came.push(bytes);
    }
    assert_eq!(came, [&b"before"[..], b"other"]);
    assert_eq!((stream.remaining(), stream.last_time()), (0, 4));
}

#[test]
fn a_message_keeps_its_boundary() {
    let mut input = InputStream::default();
    for text in ["first", "second"] {
        input.push(InputItem::Message {
            bytes: text.into(),
            address: vec![2, 0],
            whole: text.len(),
        });
    }
    assert_eq!(
        input.take(3, true, false),
        Taken::Bytes(b"fir".to_vec(), vec![2, 0])
    );
    assert_eq!(
        input.take(30, true, false),
        Taken::Bytes(b"second".to_vec(), vec![2, 0])
    );
    assert_eq!(input.take(30, true, false), Taken::Exhausted);
}

#[test]
fn a_message_that_was_taken_without_room_is_taken_again() {
    let mut input = InputStream::default();
    for (bytes, whole) in [("", 100), ("cut", 100), ("whole", 5)] {
        input.push(InputItem::Message {
            bytes: bytes.into(),
            address: Vec::new(),
            whole,
        });
    }
    let none = Taken::Bytes(Vec::new(), Vec::new());
    assert_eq!(input.next_message(), Some(100));
    assert_eq!(input.take(0, true, true), none, "a look");
    assert_eq!(input.take(0, true, false), none);
    assert_eq!(input.take(0, true, false), Taken::End, "no such read");
    assert_eq!(input.next_message(), Some(100));
    assert_eq!(
        input.take(9, true, false),
        Taken::Bytes(b"cut".to_vec(), Vec::new())
    );
    assert_eq!(input.next_message(), Some(5));
}

#[test]
fn a_recorded_error_of_a_write_comes_at_its_position() {
    let mut output = ExpectedOutput::default();
    output.push(OutputItem::Bytes(b"ab".to_vec()));
    output.push(OutputItem::Failed(libc::EPIPE));
    assert_eq!(output.failure(), None);
    assert_eq!(output.leave(b"a", &VolatileRules::default()), None);
    assert_eq!(output.failure(), None);
    assert_eq!(output.leave(b"b", &VolatileRules::default()), None);
    assert_eq!(output.failure(), Some(libc::EPIPE));
}

#[test]
fn output_ends_where_the_resource_was_full() {
    for digests in [false, true] {
        let mut output = expected(&[b"abcd".to_vec(), b"ef".to_vec()], digests);
        output.push(OutputItem::Failed(libc::EAGAIN));
        output.push(OutputItem::Bytes(b"gh".to_vec()));
        assert_eq!(output.until_full(6, false), 6);
        assert_eq!(output.until_full(9, false), 6);
        assert_eq!(output.leave(b"abcde", &VolatileRules::default()), None);
        assert_eq!(output.until_full(9, false), 1);
        assert_eq!(output.leave(b"f", &VolatileRules::default()), None);
        // The next write fails, and the one behind that has room.
        assert_eq!(output.failure(), Some(libc::EAGAIN));
        assert_eq!(output.until_full(9, false), 9);
    }
}

#[test]
fn a_failed_write_is_known_before_it_is_taken() {
    for digests in [false, true] {
        let mut output = expected(&[b"abcd".to_vec()], digests);
        output.push(OutputItem::Interrupted(vec![libc::SIGALRM]));
        output.push(OutputItem::Failed(libc::EAGAIN));
        output.push(OutputItem::Bytes(b"ef".to_vec()));
        assert_eq!(output.leave(b"ab", &VolatileRules::default()), None);
        assert!(!output.is_at_failure());
        assert_eq!(output.leave(b"cd", &VolatileRules::default()), None);
        assert!(output.is_at_failure() && output.is_at_failure());
        assert_eq!(output.failure(), Some(libc::EAGAIN));
        assert!(!output.is_at_failure());
    }
}

#[test]
fn a_write_of_any_length_ends_where_the_recorded_one_was_short() {
    for digests in [false, true] {
        for waits in [false, true] {
            let mut output = expected(&[b"abcd".to_vec(), b"ef".to_vec()], digests);
            output.push(OutputItem::Short);
            output.push(OutputItem::Failed(libc::EPIPE));
            output.push(OutputItem::Bytes(b"gh".to_vec()));
            assert_eq!(output.until_full(6, waits), 6);
            assert_eq!(output.until_full(9, waits), 6);
            assert_eq!(output.leave(b"abcde", &VolatileRules::default()), None);
            assert_eq!(output.until_full(9, waits), 1);
            assert_eq!(output.leave(b"f", &VolatileRules::default()), None);
            assert_eq!(output.until_full(9, waits), 9);
            assert_eq!(output.failure(), Some(libc::EPIPE));
            assert_eq!(output.leave(b"gh", &VolatileRules::default()), None);
            assert_eq!(output.remaining(), 0);
        }
    }
}

#[test]
fn a_write_ends_where_the_recorded_one_was_short_before_a_later_interruption() {
    let mut output = expected(&[b"abcd".to_vec()], false);
    output.push(OutputItem::Short);
    output.push(OutputItem::Bytes(b"ef".to_vec()));
    output.push(OutputItem::Interrupted(vec![libc::SIGALRM]));
    assert_eq!(output.interruption(9), None);
    assert_eq!(output.until_full(9, true), 4);
    assert_eq!(output.leave(b"abcd", &VolatileRules::default()), None);
    let after = output.interruption(9).map(|found| found.after);
    assert_eq!(after, Some(2));
}

#[test]
fn only_a_write_that_does_not_wait_ends_where_the_resource_was_full() {
    let mut output = expected(&[b"abcd".to_vec()], false);
    output.push(OutputItem::Failed(libc::EAGAIN));
    output.push(OutputItem::Bytes(b"ef".to_vec()));
    assert_eq!(output.until_full(6, false), 4);
    assert_eq!(output.until_full(6, true), 6);
}

#[test]
fn a_write_of_any_length_is_interrupted_at_the_recorded_byte() {
    for digests in [false, true] {
        let mut output = expected(&[b"abcd".to_vec(), b"ef".to_vec()], digests);
        output.push_at(OutputItem::Interrupted(vec![libc::SIGALRM]), 7);
        output.push(OutputItem::Bytes(b"gh".to_vec()));
        let after = |after| {
            Some(Interruption {
                after,
                signals: vec![libc::SIGALRM],
                time: 7,
            })
        };
        assert_eq!(output.interruption(6), None);
        assert_eq!(output.interruption(9), after(6));
        assert_eq!(output.leave(b"abcde", &VolatileRules::default()), None);
        assert_eq!(output.interruption(1), None);
        assert_eq!(output.interruption(9), after(1));
        assert_eq!(output.leave(b"f", &VolatileRules::default()), None);
        assert_eq!(output.interruption(0), None);
        assert_eq!(output.interruption(1), after(0));
        output.interrupted();
        assert_eq!(output.interruption(9), None);
        assert_eq!(output.leave(b"gh", &VolatileRules::default()), None);
        assert_eq!(output.remaining(), 0);
    }
}

#[test]
fn an_interruption_that_does_not_come_hides_no_error_and_no_bytes() {
    let mut output = ExpectedOutput::default();
    output.push(OutputItem::Bytes(b"ab".to_vec()));
    output.push(OutputItem::Interrupted(vec![libc::SIGALRM]));
    output.push(OutputItem::Failed(libc::EAGAIN));
    output.push(OutputItem::Bytes(b"cd".to_vec()));
    output.push(OutputItem::Interrupted(vec![libc::SIGALRM]));
    output.push(OutputItem::Bytes(b"ef".to_vec()));
    assert_eq!(output.until_full(6, false), 2);
    assert_eq!(output.leave(b"ab", &VolatileRules::default()), None);
    assert_eq!(output.failure(), Some(libc::EAGAIN));
    assert_eq!(output.leave(b"cdef", &VolatileRules::default()), None);
    assert_eq!(output.remaining(), 0);
}

#[test]
fn a_difference_in_the_preparation_is_noted_and_the_comparison_goes_on() {
    for digests in [false, true] {
        let item = |bytes: &[u8]| match digests {
            true => OutputItem::Digest(bytes.len() as u64, xxh64(bytes)),
            false => OutputItem::Bytes(bytes.to_vec()),
        };
        let mut output = ExpectedOutput::default();
        output.push_at(item(b"key 1234"), 1);
        output.push_at(item(b"answer"), 2);
        output.prepares_until(1);
        let mut other = output.clone();
        assert_eq!(output.leave(b"key 99", &VolatileRules::default()), None);
        assert_eq!(output.leave(b"34answer", &VolatileRules::default()), None);
        assert!(output.differs_before().is_some());
        assert_eq!((output.remaining(), output.end()), (0, None));
        assert!(
            other
                .leave(b"key 1234insult", &VolatileRules::default())
                .is_some()
        );
        assert_eq!(other.differs_before(), None);
    }
}

/// Answers with these texts, each to an input before it, of which all but the last prepare it.
fn answers(texts: &[&str]) -> ExpectedOutput {
    let mut output = ExpectedOutput::default();
    for (number, text) in texts.iter().enumerate() {
        let time = 10 * number as u64 + 5;
        output.push_at(OutputItem::Bytes(text.as_bytes().to_vec()), time);
    }
    output.prepares_until(10 * texts.len() as u64 - 10);
    output
}

#[test]
fn an_earlier_answer_of_another_length_moves_no_later_one() {
    let rules = VolatileRules::default();
    for earlier in [":9\n", ":10\n", ":1000\n", ""] {
        let mut output = answers(&[":10\n", "last"]);
        output.answers_until(Some(10));
        assert_eq!(output.leave(earlier.as_bytes(), &rules), None);
        assert_eq!(output.owes(10), earlier.len() < 4, "{earlier:?}");
        output.goes_on_behind(10);
        assert!(!output.owes(10));
        output.answers_until(None);
        let mut other = output.clone();
        assert_eq!(output.leave(b"last", &rules), None, "{earlier:?}");
        assert_eq!((output.end(), output.remaining()), (None, 0));
        assert_eq!(output.differs_before().is_some(), earlier != ":10\n");
        assert_eq!(
            other.leave(b"lost", &rules).map(|found| found.position),
            Some(5)
        );
    }
}

#[test]
fn an_answer_of_another_length_differs_where_nothing_prepares() {
    let rules = VolatileRules::default();
    let mut output = answers(&["last"]);
    output.answers_until(Some(3));
    output.goes_on_behind(30);
    assert!(!output.owes(30));
    assert_eq!(output.leave(b"la", &rules), None);
    assert!(output.end().is_some());
    let mut output = answers(&["last"]);
    output.answers_until(Some(3));
    assert!(output.leave(b"lastly", &rules).is_some());
}

#[test]
fn a_difference_behind_a_date_tells_how_far_the_dates_are_apart() {
    const NS: i64 = 1_000_000_000;
    let mut rules = VolatileRules::of_run(1_795_448_860 * NS, 1_795_448_870 * NS);
    rules.give(1_795_448_865 * NS);
    for (came, is_volatile, apart) in [
        ("at 1795448865 key ab", true, Some(-NS)),
        ("at 1795448865 key cd", false, Some(-NS)),
        ("at 1795448865 key ab, more", false, Some(-NS)),
        ("at 1795448864 key cd", false, None),
    ] {
        let mut output = ExpectedOutput::default();
        output.push(OutputItem::Bytes(b"at 1795448864 key ab".to_vec()));
        let found = output.leave(came.as_bytes(), &rules).unwrap();
        assert_eq!(found.volatile.is_some(), is_volatile, "{came}");
        assert_eq!(found.apart, apart, "{came}");
    }
}
