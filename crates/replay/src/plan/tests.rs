//! Tests of the plan of a replay.

use super::*;

fn bytes(text: &str) -> Bytes {
    text.as_bytes().into()
}

#[test]
fn an_argument_is_replaced_by_its_number_and_one_that_is_not_there_is_named() {
    let argv = [b"sort".to_vec(), b"-n".to_vec()];
    let mut deviations = Deviations {
        args: vec![(1, bytes("-r"))],
        ..Deviations::default()
    };
    assert_eq!(arguments(&argv, &deviations).unwrap()[1], b"-r");
    deviations.args[0].0 = 2;
    assert!(matches!(
        arguments(&argv, &deviations),
        Err(Error::NoArgument {
            number: 2,
            count: 1
        })
    ));
    deviations.args[0].0 = 0;
    assert!(arguments(&argv, &deviations).is_err());
}

#[test]
fn a_redacted_argument_without_a_value_is_refused() {
    let argv = [
        b"x".to_vec(),
        b"-v".to_vec(),
        b"--token=<redacted>".to_vec(),
    ];
    let refused = arguments(&argv, &Deviations::default());
    assert!(matches!(
        refused,
        Err(Error::RedactedArgument { number: 2 })
    ));
    let given = Deviations {
        args: vec![(2, bytes("--token=mine"))],
        ..Deviations::default()
    };
    assert_eq!(arguments(&argv, &given).unwrap()[2], b"--token=mine");
}

#[test]
fn a_redacted_variable_is_not_set_and_named_unless_it_is_given() {
    let recorded = [
        b"A=1".to_vec(),
        b"TOKEN=<redacted>".to_vec(),
        b"PASSWORD=***".to_vec(),
    ];
    let mut notes = Vec::new();
    let env = environment(&recorded, &Deviations::default(), &mut notes);
    assert_eq!(env, [(b"A".to_vec(), b"1".to_vec())]);
    assert!(notes[0].contains("TOKEN") && notes[1].contains("PASSWORD"));
    let given = Deviations {
        env: vec![(bytes("TOKEN"), bytes("x"))],
        ..Deviations::default()
    };
    let mut none = Vec::new();
    assert_eq!(environment(&recorded, &given, &mut none).len(), 2);
    assert!(
        matches!(&none[..], [note] if note.contains("PASSWORD")),
        "{none:?}"
    );
}
