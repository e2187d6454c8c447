//! A recorded pipeline, whose exports make its results again.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use super::Place;
use backstory_testkit::need::find;

/// Ten steps, one of them a pipeline; three inputs.
const PIPELINE: &str = "set -e
mkdir -p out
sort in1.txt > out/1.txt
sort in2.txt > out/2.txt
sort in3.txt > out/3.txt
uniq out/1.txt out/u1.txt
uniq out/2.txt out/u2.txt
uniq out/3.txt out/u3.txt
cat out/u1.txt out/u2.txt > out/12.txt
paste out/12.txt out/u3.txt > out/all.txt
LC_ALL=C tr a-z A-Z < out/all.txt | sed 's/$/!/' | sort -r > out/up.txt
wc -l < out/up.txt >> out/count.txt
";

/// A place in which the pipeline was recorded.
pub(super) fn pipeline() -> Place {
    let place = Place::new();
    for number in 1..4 {
        place.write_aged(&format!("in{number}.txt"), &"x\ny\nx\n".repeat(number));
    }
    place.write_aged("run.sh", PIPELINE);
    assert_eq!(place.run(&["record", "--", "sh", "run.sh"]).status, 0);
    place
}

/// Everything below a directory, by its path there.
pub(super) fn tree(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => waiting.push(path),
                false => {
                    let name = path
                        .strip_prefix(root)
                        .unwrap()
                        .to_str()
                        .unwrap()
                        .to_owned();
                    files.insert(name, std::fs::read(path).unwrap());
                }
            }
        }
    }
    files
}

/// A command line in `work`.
pub(super) fn tool(place: &Place, line: &[&str]) -> Command {
    let mut command = place.stage.command(find(line[0]).unwrap());
    command.args(&line[1..]).current_dir(place.work());
    command
}

/// Everything that a command printed.
pub(super) fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// Exports, removes the outputs, and has the tool make them again.
pub(super) fn made_again(place: &Place, format: &str, mut tool: Command) {
    let before = tree(&place.work().join("out"));
    exported_and_removed(place, format);
    let output = tool.current_dir(place.work()).output().unwrap();
    assert!(output.status.success(), "{format}: {}", text(&output));
    assert_eq!(tree(&place.work().join("out")), before, "{format}");
}

/// Exports, and removes the outputs.
pub(super) fn exported_and_removed(place: &Place, format: &str) {
    let answer = place.run(&["export", format, "-o", "again"]);
    assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{format}");
    std::fs::remove_dir_all(place.work().join("out")).unwrap();
}
