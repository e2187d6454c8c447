//! The user's `tools.toml` extends what backstory knows about tools.

use super::{Answer, Place};

const FILE: &str =
    "[paths]\ntools = ['/vendored/']\ntols = ['/x/']\n\n[programs]\nbuilders = 'farm'\n";

/// The rule of the makefile that an export of `out.txt` holds, and what was printed on stderr.
fn rule(place: &Place, variable: (&str, &str)) -> (String, String) {
    let mut command = place.command(&["export", "make", "out.txt"]);
    let answer = Answer::of(command.env(variable.0, variable.1).output().unwrap());
    assert_eq!(answer.status, 0, "{answer:?}");
    let rule = answer.out.lines().find(|line| line.starts_with("out.txt:"));
    (rule.unwrap().to_owned(), answer.err)
}

#[test]
fn a_users_tools_file_extends_the_knowledge_and_its_mistakes_are_named() {
    let place = Place::new();
    let directory = place.stage.directory("work/vendored").unwrap();
    std::fs::write(directory.join("part.txt"), "part\n").unwrap();
    place.write_aged("in.txt", "in\n");
    place.record("cat vendored/part.txt in.txt > out.txt");
    let (plain, silence) = rule(&place, ("UNUSED", ""));
    assert_eq!(
        (plain.as_str(), silence.as_str()),
        ("out.txt: in.txt vendored/part.txt", "")
    );

    let config = place.stage.directory("config").unwrap();
    let home = place.stage.directory("home/.config").unwrap();
    for (name, base) in [
        ("config/backstory", config),
        ("home/.config/backstory", home),
    ] {
        place.stage.directory(name).unwrap();
        let file = base.join("backstory/tools.toml");
        std::fs::write(&file, FILE).unwrap();
        let xdg = match name.starts_with("config") {
            true => base.to_str().unwrap(),
            // Not absolute: it counts as unset.
            false => "config",
        };
        let (extended, errors) = rule(&place, ("XDG_CONFIG_HOME", xdg));
        assert_eq!(extended, "out.txt: in.txt", "{name}");
        let file = file.display();
        assert_eq!(
            errors,
            format!(
                "backstory: {file}:3: unknown key paths.tols: it is ignored\n\
                 backstory: {file}:6: programs.builders is not a list of strings: it is ignored\n"
            )
        );
        std::fs::remove_dir_all(base.join("backstory")).unwrap();
    }
}
