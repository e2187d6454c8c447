//! Children whose parent was killed before it could record that it forked them.

use super::Place;

#[test]
fn a_child_is_recorded_though_its_parent_died_forking_it() {
    for guard in ["on", "off"] {
        for how in ["fork", "vfork"] {
            let place = Place::new();
            let Some(orphans) = place.fixture("orphans") else {
                return;
            };
            // Which of the two is faster is chance.
            for round in 0..8 {
                let file = format!("o{round}");
                let answer = place.run(&["record", "--guard", guard, "--", &orphans, how, &file]);
                assert_eq!(
                    (answer.status, answer.out.as_str(), answer.err.as_str()),
                    (0, "9\n", "")
                );
                place.finalized();
                assert!(
                    place.work().join(&file).exists(),
                    "{how} {guard}: the child ran"
                );
                let shown = place.json(&["show", "--json"]);
                assert_eq!(shown["complete"], true, "{how} {guard}");
                assert!(
                    place.wrote(&file),
                    "{how} {guard}: {}",
                    place.json(&["files", "--json"])
                );
            }
        }
    }
}
