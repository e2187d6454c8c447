//! Stored contents are the contents that were read: compared with copies taken eagerly before each
//! read.
//!
//! A script makes random changes to a few files. Before each read it names the file to a copier,
//! which is not part of the run, and waits for the copy. Afterwards the store must have the
//! copier's content for each read.

use std::fmt::Write as _;
use std::fs;
use std::ops::RangeInclusive;
use std::process::Stdio;

use super::Place;
use backstory_testkit::need::needs;

/// The kinds of change: overwrite, truncate, append, rename over, delete; in place, through another
/// name, through a mapping, relative to a descriptor. `{n}` is a text that no other change writes.
const CHANGES: [&str; 11] = [
    "echo {n} > $f",
    "echo {n} >> $f",
    "printf {n} | dd of=$f conv=notrunc 2>/dev/null",
    "truncate -s 3 $f",
    "echo {n} > new; mv -f new $f",
    "rm -f $f; echo {n} > $f",
    "ln -f $f second; echo {n} >> second; rm second",
    "ln -sf $f soft; printf {n} | dd of=soft conv=notrunc 2>/dev/null; rm soft",
    "mv $f aside; echo {n} > $f; rm aside",
    "/usr/bin/python3 -c 'import mmap,sys; f=open(sys.argv[1],\"r+b\"); m=mmap.mmap(f.fileno(),0); m[0:2]=sys.argv[2][:2].encode(); m.flush()' $f {n}",
    "/usr/bin/python3 -c 'import os,sys; d=os.open(\".\",0); open(\"new\",\"w\").write(sys.argv[2]); os.rename(\"new\",sys.argv[1],src_dir_fd=d,dst_dir_fd=d)' $f {n}",
];

/// Programs that read and change: one with the recorder, and one that only the guard sees.
const HANDS: [&str; 2] = ["", "busybox "];

/// Random numbers from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) as usize % end
    }
}

/// A script with this many reads, each after a change, and the file that each reads.
fn script(seed: u64, reads: usize) -> (String, Vec<String>) {
    let mut dice = Dice(seed);
    let (mut text, mut read) = ("exec 8> request 9< done\n".to_owned(), Vec::new());
    for at in 0..reads {
        for _ in 0..=dice.below(2) {
            let file = format!("f{}", dice.below(3));
            let change = CHANGES[dice.below(CHANGES.len())]
                .replace("{n}", &format!("text-{seed}-{at}-{}", dice.below(1000)));
            // An empty file cannot be mapped.
            let hand = HANDS[dice.below(2)];
            let line = match hand {
                "" => format!("f={file}; [ -s $f ] || echo first > $f; {change}"),
                // Its own applets, because it has no path to find others. `docs/limits.md`
                // describes changes through another hard link.
                busybox if !change.contains("python3") && !change.contains("second") => {
                    format!(
                        "{busybox}sh -c 'PATH=; f={file}; [ -s $f ] || echo first > $f; {change}'"
                    )
                }
                _ => format!("f={file}; [ -s $f ] || echo first > $f; {change}"),
            };
            writeln!(text, "{line}").unwrap();
        }
        let file = format!("f{}", dice.below(3));
        let hand = HANDS[dice.below(2)];
        writeln!(
            text,
            "echo {file} >&8; read x <&9; {hand}cat {file} > out{at}"
        )
        .unwrap();
        read.push(file);
    }
    (text, read)
}

#[test]
fn every_version_that_was_read_equals_the_copy_of_an_eager_copier() {
    equals_the_copies("--guard=on", 1..=8);
}

#[test]
fn without_a_filter_every_version_that_was_read_equals_the_copy_too() {
    equals_the_copies("--guard=auto", 9..=16);
}

fn equals_the_copies(guard: &str, seeds: RangeInclusive<u64>) {
    if !needs(
        "an eager copier",
        &["busybox", "mkfifo", "/usr/bin/python3", "truncate"],
    ) {
        return;
    }
    for seed in seeds {
        let place = Place::new();
        let (text, read) = script(seed, 12);
        for name in ["f0", "f1", "f2"] {
            place.write_aged(name, &format!("{name} as it was found\n"));
        }
        place.write_aged("run.sh", &text);
        assert_eq!(place.shell("mkfifo request done").status, 0);
        let words = ["record", guard, "--contents=lazy", "--", "sh", "run.sh"];
        let mut command = place.command(&words);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let copies = copy_eagerly(&place);
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && said.is_empty(),
            "{seed}: {said}\n{text}"
        );
        assert_eq!(place.run(&["index", "--wait"]).status, 0);
        assert_eq!(copies.len(), read.len());
        for (at, (file, copy)) in read.iter().zip(&copies).enumerate() {
            let out = format!("out{at}");
            assert_eq!(
                fs::read(place.path(&out)).unwrap(),
                *copy,
                "the copier is right"
            );
            // An empty file has no content to store, although it was read to its end.
            if copy.is_empty() {
                continue;
            }
            let kept = place.kept_input(&out, file);
            let copy = String::from_utf8_lossy(copy);
            assert_eq!(
                kept.as_deref(),
                Some(&*copy),
                "seed {seed}: {out} from {file}\n{text}"
            );
        }
        assert_eq!(place.run(&["store", "verify"]).status, 0);
    }
}

/// Copies each requested file until the script ends.
fn copy_eagerly(place: &Place) -> Vec<Vec<u8>> {
    use std::io::{BufRead, BufReader, Write};
    let request = fs::File::open(place.path("request")).unwrap();
    let mut done = fs::File::options()
        .write(true)
        .open(place.path("done"))
        .unwrap();
    let mut copies = Vec::new();
    for name in BufReader::new(request).lines() {
        let name = name.unwrap();
        copies.push(fs::read(place.path(&name)).unwrap());
        // A file changed a moment ago may change again within the same tick of the file system's
        // clock.
        place.age(&name);
        // The reader may have been killed, which the caller notices.
        let _ = done.write_all(b"x\n");
    }
    copies
}

impl Place {
    /// The stored content of the version of `name` that the last step before `of` read.
    fn kept_input(&self, of: &str, name: &str) -> Option<String> {
        let lineage = self.json(&["of", of, "--depth", "1", "--json"]);
        let path = self.path(name);
        let nodes = lineage["nodes"].as_array().unwrap();
        let node = nodes
            .iter()
            .find(|node| node["path"] == path.as_str() && node["digest"].is_string())?;
        Some(
            self.run(&["contents", node["digest"].as_str().unwrap()])
                .out,
        )
    }
}
