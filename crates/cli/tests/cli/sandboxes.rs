//! Programs that limit their own system calls: undisturbed, and what they do is known.

use super::Place;

#[test]
fn what_threads_do_that_begin_in_a_sandbox_is_known() {
    for guard in ["on", "off", "strict"] {
        let place = Place::new();
        let Some(program) = place.fixture("sandbox_threads") else {
            return;
        };
        let answer = place.run(&["record", "--guard", guard, "--", &program]);
        assert_eq!(
            (answer.status, answer.out.as_str(), answer.err.as_str()),
            (0, "sandbox ok\n", ""),
            "{guard}"
        );
        let shown = place.json(&["show", "--json"]);
        assert_eq!(
            (&shown["complete"], &shown["lost"]),
            (&true.into(), &0.into()),
            "{guard}"
        );
        for name in ["c", "t0", "t1", "t2", "t3"] {
            assert!(place.wrote(name), "{guard}: {name}");
        }
    }
}
