//! Versions come back as they were, and regular ones are small.

use super::*;
use proptest::prelude::*;

const SECOND: i64 = 1_000_000_000;

fn ident() -> impl Strategy<Value = Ident> {
    let time = || prop_oneof![any::<i64>(), (0i64..4).prop_map(|s| s * SECOND), Just(0)];
    let parts = (
        any::<u64>(),
        any::<u64>(),
        any::<i64>(),
        time(),
        time(),
        time(),
        any::<u32>(),
        0u32..3,
    );
    parts.prop_map(|(dev, ino, size, mtime, ctime, birth, mode, nlink)| Ident {
        dev,
        ino,
        size,
        mtime,
        ctime,
        birth,
        mode,
        nlink,
    })
}

/// Name, number of the kind, identity.
type Parts = (Vec<u8>, usize, Option<Ident>);

fn parts() -> impl Strategy<Value = Parts> {
    let name = proptest::collection::vec(b'a'..b'e', 0..9);
    (name, 0usize..8, proptest::option::of(ident()))
}

fn name(list: &[Parts], position: usize) -> VersionName<'_> {
    match position % 3 {
        2 => VersionName::As(position as u32 - 1),
        _ => VersionName::Here(&list[position].0),
    }
}

proptest! {
    #[test]
    fn versions_come_back_as_they_were(list in proptest::collection::vec(parts(), 0..80)) {
        let mut builder = Builder::default();
        for (position, (_, kind, ident)) in list.iter().enumerate() {
            builder.push(name(&list, position), KINDS[*kind], ident.as_ref());
        }
        let mut got = 0;
        decode(&builder.finish(), |position, version| {
            let (_, kind, ident) = &list[position as usize];
            let (kind, ident) = (KINDS[*kind], *ident);
            let name = name(&list, position as usize);
            assert_eq!(version, CodedVersion { name, kind, ident });
            got += 1;
            Ok(())
        })
        .unwrap();
        prop_assert_eq!(got, list.len());
    }
}

#[test]
fn files_made_one_after_another_take_a_few_bytes_each() {
    let mut builder = Builder::default();
    for i in 0..64u32 {
        let now = 1_700_000_000 * SECOND + i64::from(i) * 40_000;
        let ident = Ident {
            dev: 26,
            ino: u64::from(900 + i),
            size: 64,
            mtime: now,
            ctime: now,
            birth: now,
            mode: 0o100_644,
            nlink: 1,
        };
        let name = format!("f{:05}.txt", 300 - i);
        builder.push(
            VersionName::Here(name.as_bytes()),
            EntityKind::File,
            Some(&ident),
        );
    }
    let block = builder.finish();
    assert!(block.len() < 64 * 4, "{} bytes", block.len());
}

#[test]
fn each_kind_keeps_its_number() {
    for (number, kind) in KINDS.iter().enumerate() {
        assert_eq!(usize::from(kind_number(*kind)), number);
    }
}
