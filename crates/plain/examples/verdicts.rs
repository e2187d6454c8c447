//! Prints the verdict for each program that is named.
#![allow(clippy::print_stdout)]

use backstory_plain::Classifier;
use std::path::Path;

fn main() {
    let Some(mut classifier) = Classifier::of_machine() else {
        return println!("the loader's cache cannot be read");
    };
    for name in std::env::args().skip(1) {
        match classifier.program(Path::new(&name)) {
            Ok(()) => println!("{name}: plain"),
            Err(why) => println!("{name}: {why}"),
        }
    }
}
