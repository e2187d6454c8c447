use super::*;
use crate::AnnotationKind;
use crate::annotations::AnnotationRecord;
use proptest::prelude::*;

fn record(run: u8, key: u8, at: i64, by: u8, value: Option<u8>) -> StampedAnnotation {
    StampedAnnotation {
        run: format!("aaaa000{}", run % 3),
        kind: ["tag", "name", "note"][usize::from(key % 3)].to_owned(),
        key: match key % 3 {
            0 => format!("k{}", key / 3),
            _ => String::new(),
        },
        at,
        by: format!("{by}@host"),
        value: value.map(|value| value.to_string()),
    }
}

fn records() -> impl Strategy<Value = Vec<StampedAnnotation>> {
    let one = (
        0..3u8,
        0..6u8,
        1..6i64,
        0..2u8,
        proptest::option::of(0..3u8),
    );
    let one = one.prop_map(|(run, key, at, by, value)| record(run, key, at, by, value));
    proptest::collection::vec(one, 0..12)
}

fn home() -> (tempfile::TempDir, Home) {
    let tmp = tempfile::tempdir().unwrap();
    let home = Home::open(tmp.path()).unwrap();
    (tmp, home)
}

/// The values that a reader of the journal's lines sees.
fn by_lines(home: &Home) -> BTreeMap<Subject, Option<String>> {
    let text = std::fs::read(home.annotations_path()).unwrap_or_default();
    let lines = text.split(|&byte| byte == b'\n');
    let lines = lines.filter_map(|line| serde_json::from_slice::<StampedAnnotation>(line).ok());
    lines
        .map(|record| (record.subject(), record.value))
        .collect()
}

fn all(home: &Home) -> BTreeMap<String, BTreeSet<StampedAnnotation>> {
    AnnotationHistory::of(home).unwrap().runs
}

proptest! {
    #[test]
    fn stores_that_merge_each_others_annotations_in_any_order_agree(
        sets in proptest::collection::vec(records(), 3),
    ) {
        let orders = [[0, 1, 2], [2, 1, 0], [1, 2, 0]];
        let homes = orders.map(|order| {
            let (tmp, home) = home();
            for at in order {
                merge(&home, sets[at].clone()).unwrap();
            }
            (tmp, home)
        });
        for (_, home) in &homes[1..] {
            prop_assert_eq!(all(home), all(&homes[0].1));
            prop_assert_eq!(by_lines(home), by_lines(&homes[0].1));
        }
        let history = AnnotationHistory::of(&homes[0].1).unwrap();
        for (subject, value) in by_lines(&homes[0].1) {
            prop_assert_eq!(&history.newest(&subject).unwrap().value, &value);
        }
        for set in sets {
            let again = merge(&homes[0].1, set).unwrap();
            prop_assert_eq!(again.added, 0);
        }
    }
}

#[test]
fn lines_of_an_older_program_are_older_than_every_later_one() {
    let (_tmp, home) = home();
    let line = |value: &str| {
        format!("{{\"run\":\"aaaa0000\",\"kind\":\"tag\",\"key\":\"k\",\"value\":\"{value}\"}}\n")
    };
    let text = line("z") + &line("a");
    std::fs::write(home.annotations_path(), text).unwrap();
    let subject = ("aaaa0000".into(), "tag".into(), "k".into());
    let newest = |home: &Home| {
        let history = AnnotationHistory::of(home).unwrap();
        history.newest(&subject).unwrap().value.clone()
    };
    assert_eq!(newest(&home).as_deref(), Some("a"));
    let later = record(0, 0, 1000, 1, Some(7));
    let later = StampedAnnotation {
        key: "k".into(),
        ..later
    };
    merge(&home, vec![later]).unwrap();
    assert_eq!(newest(&home).as_deref(), Some("7"));
}

#[test]
fn a_record_that_is_set_now_counts_although_the_clock_was_set_back() {
    let (_tmp, home) = home();
    let ahead = StampedAnnotation {
        at: now() + AHEAD / 2,
        ..record(0, 1, 1, 9, Some(1))
    };
    assert_eq!(merge(&home, vec![ahead]).unwrap().added, 1);
    let own = StampedAnnotation::label("aaaa0000", Label::Name, Some("own"));
    append_newest(&home, vec![own]).unwrap();
    let history = AnnotationHistory::of(&home).unwrap();
    assert_eq!(history.label("aaaa0000", Label::Name), Some(Some("own")));
}

#[test]
fn a_record_from_far_ahead_or_with_an_odd_name_is_refused() {
    let (_tmp, home) = home();
    let good = record(0, 1, 5, 1, Some(1));
    let bad = [
        StampedAnnotation {
            at: i64::MAX,
            ..good.clone()
        },
        StampedAnnotation {
            at: 0,
            ..good.clone()
        },
        StampedAnnotation {
            run: "../../x".into(),
            ..good.clone()
        },
        StampedAnnotation {
            kind: "other".into(),
            ..good.clone()
        },
        StampedAnnotation {
            key: "k".into(),
            ..good.clone()
        },
        StampedAnnotation {
            value: Some("\x1b[2J".into()),
            ..good.clone()
        },
        StampedAnnotation {
            by: "x".repeat(300),
            ..good.clone()
        },
    ];
    let merged = merge(&home, bad.to_vec()).unwrap();
    assert_eq!(
        merged,
        MergedAnnotations {
            added: 0,
            refused: 7
        }
    );
    assert_eq!(merge(&home, vec![good]).unwrap().added, 1);
}

#[test]
fn what_was_said_before_a_run_was_removed_does_not_count() {
    let (_tmp, home) = home();
    let tag = |value: &str| {
        AnnotationRecord::Set(Annotation {
            run: "aaaa0000".into(),
            kind: AnnotationKind::Tag,
            key: "k".into(),
            value: Some(value.into()),
        })
    };
    let gone = AnnotationRecord::Forgotten {
        forgotten: "aaaa0000".into(),
    };
    annotations::append(&home, &[tag("1"), gone, tag("2")]).unwrap();
    let history = AnnotationHistory::of(&home).unwrap();
    let values: Vec<_> = history
        .of_run("aaaa0000")
        .map(|one| one.value.as_deref())
        .collect();
    assert_eq!(values, [Some("2")]);
    assert!(
        history
            .of_run("aaaa0000")
            .all(|one| one.at > 1 && one.by.contains('@'))
    );
}

#[test]
fn lines_about_other_runs_stay_as_they_are_when_one_is_erased() {
    let (_tmp, home) = home();
    let mut store = crate::MemoryStore::default();
    let tag = AnnotationRecord::Set(Annotation {
        run: "r".into(),
        kind: AnnotationKind::Tag,
        key: "a".into(),
        value: Some("1".into()),
    });
    let name = |run: &str| {
        let record = StampedAnnotation::label(run, Label::Name, Some("n"));
        append_newest(&home, vec![record]).unwrap();
    };
    annotations::append(&home, &[tag]).unwrap();
    name("other");
    let kept = std::fs::read(home.annotations_path()).unwrap();
    name("gone");
    annotations::erase(&home, &mut store, &["gone"]).unwrap();
    assert_eq!(std::fs::read(home.annotations_path()).unwrap(), kept);
    assert_eq!(
        crate::RunAnnotations::annotations_read(&store).unwrap(),
        kept.len() as u64
    );
}
