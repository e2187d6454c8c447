//! Prints the verdict for each program that is named. `--kept FILE`: with the verdicts that earlier
//! runs kept in a file, or the reason why that is ignored.
#![allow(clippy::print_stdout)]

use backstory_plain::Classifier;
use std::path::Path;

fn main() {
    let Some(mut classifier) = Classifier::of_machine() else {
        return println!("the loader's cache cannot be read");
    };
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    if let [option, kept, ..] = &names[..]
        && option == "--kept"
    {
        if let Err(why) = classifier.recall(Path::new(kept)) {
            println!("{kept} is ignored: {why}");
        }
        names.drain(..2);
    }
    for name in names {
        let before = classifier.classified();
        let verdict = classifier.program(Path::new(&name));
        let new = classifier.classified() - before;
        match verdict {
            Ok(()) => println!("{name}: plain ({new} files classified)"),
            Err(why) => println!("{name}: {why} ({new} files classified)"),
        }
    }
}
