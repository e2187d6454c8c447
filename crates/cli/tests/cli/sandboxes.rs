//! Programs that limit their own system calls are not disturbed, and their operations are recorded.

use super::Place;

/// A program that forbids itself unneeded calls behaves as it does alone, in every guard mode, and
/// no operation is lost. `then` examines the record. The file `a` exists.
fn nothing_is_lost(fixture: &str, then: impl Fn(&Place, &str)) {
    for guard in ["on", "off", "strict"] {
        let place = Place::new();
        let Some(program) = place.fixture(fixture) else {
            return;
        };
        place.write("a", "text\n");
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
        then(&place, guard);
    }
}

#[test]
fn threads_that_start_in_a_sandbox_are_recorded() {
    nothing_is_lost("sandbox_threads", |place, guard| {
        for name in ["c", "t0", "t1", "t2", "t3"] {
            assert!(place.wrote(name), "{guard}: {name}");
        }
    });
}

#[test]
fn children_forked_in_a_sandbox_without_exec_are_recorded() {
    nothing_is_lost("sandbox_forks", |place, guard| {
        for name in ["f0", "f1", "f2", "g"] {
            assert!(place.wrote(name), "{guard}: {name}");
            let origin = place.json(&["of", name, "--json"]).to_string();
            assert!(
                origin.contains(&place.path("a")),
                "{guard}: {name}: {origin}"
            );
        }
        let processes = place.json(&["processes", "--json"]);
        assert_eq!(
            processes.as_array().unwrap().len(),
            5,
            "{guard}: {processes}"
        );
    });
}
