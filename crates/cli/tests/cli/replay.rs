//! `replay`: what was recorded can be done again without what it was done from.

use std::fs;

use backstory_testkit::need::{needs, skipped};

use super::{Answer, Place};

impl Place {
    /// Removes everything in `work`: inputs, scripts, outputs.
    fn forget_everything(&self) {
        for entry in fs::read_dir(self.work()).unwrap().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => fs::remove_dir_all(entry.path()).unwrap(),
                false => fs::remove_file(entry.path()).unwrap(),
            }
        }
    }

    pub(crate) fn replay(&self, run: &str, more: &[&str]) -> Answer {
        let again = self.path("../home/again");
        let _ = fs::remove_dir_all(&again);
        self.run(&[&["replay", run, "--output-dir", &again], more].concat())
    }

    /// Records a line in `work`, removes all that is there, and replays it: every output comes out identical.
    pub(crate) fn comes_back(&self, line: &str) -> String {
        let run = self.keep(line, &["--contents=lazy"]);
        self.replays_alike(&run);
        run
    }

    /// Removes all that is in `work`, and replays a run: every output comes out identical.
    pub(crate) fn replays_alike(&self, run: &str) {
        self.forget_everything();
        let answer = self.replay(run, &[]);
        if answer.err.contains("namespace") {
            skipped("a replay", &answer.err);
        } else {
            assert!(
                answer.status == 0 && answer.err.contains("identical: "),
                "{run}: {answer:?}"
            );
        }
    }
}

#[test]
fn a_c_build_comes_back() {
    if !needs("the replay of a C build", &["gcc", "make"]) {
        return;
    }
    let place = Place::new();
    place.write_settled(
        "a.c",
        "#include <stdio.h>\n#include \"a.h\"\nint main(void){return printf(\"%d\\n\", A);}\n",
    );
    place.write_settled("a.h", "#define A 42\n");
    place.write_settled(
        "Makefile",
        "a: a.o\n\tgcc -o a a.o\na.o: a.c a.h\n\tgcc -O1 -c a.c\n",
    );
    place.comes_back("make; ./a > said || true");
}

#[test]
fn a_numpy_script_with_a_plot_comes_back() {
    let numpy = || {
        std::process::Command::new("/usr/bin/python3")
            .args(["-c", "import numpy"])
            .status()
    };
    if !numpy().is_ok_and(|status| status.success()) {
        skipped(
            "the replay of a numpy script",
            "needs /usr/bin/python3 with numpy",
        );
        return;
    }
    let place = Place::new();
    place.write_settled("data.csv", "1,2\n3,4\n5,7\n");
    place.write_settled(
        "plot.py",
        "import numpy, sys\nd = numpy.loadtxt('data.csv', delimiter=',')\nm = numpy.polyfit(d[:, 0], d[:, 1], 1)\n\
         numpy.save('fit.npy', m)\nwith open('plot.svg', 'w') as f:\n    f.write('<svg xmlns=\"http://www.w3.org/2000/svg\">')\n\
         \x20   for x, y in d: f.write(f'<circle cx=\"{x}\" cy=\"{y}\" r=\"1\"/>')\n    f.write('</svg>')\n",
    );
    place.comes_back("/usr/bin/python3 plot.py");
}

#[test]
fn a_plot_by_matplotlib_comes_back() {
    let python = "/usr/bin/python3";
    let there = std::process::Command::new(python)
        .args(["-c", "import matplotlib"])
        .output();
    if !there.is_ok_and(|output| output.status.success()) {
        skipped("the replay of a plot", "needs /usr/bin/python3 with matplotlib");
        return;
    }
    let place = Place::new();
    place.write_settled("data.csv", "1,2\n3,4\n5,7\n");
    place.write_settled(
        "plot.py",
        "import matplotlib, numpy\nmatplotlib.use('Agg')\nfrom matplotlib import pyplot\nd = numpy.loadtxt('data.csv', delimiter=',')\n\
         pyplot.plot(d[:, 0], d[:, 1])\npyplot.savefig('plot.png')\n",
    );
    // Its cache of fonts has times in it: made before.
    let cache = place.path("../home/fonts");
    place.command_line(&format!(
        "MPLCONFIGDIR={cache} {python} -c 'import matplotlib.pyplot'"
    ));
    place.comes_back(&format!("MPLCONFIGDIR={cache} {python} plot.py"));
}

#[test]
fn an_r_script_comes_back() {
    if !needs("the replay of an R script", &["Rscript"]) {
        return;
    }
    let place = Place::new();
    place.write_settled("d.csv", "x,y\n1,2\n2,4\n3,7\n");
    place.write_settled(
        "fit.R",
        "d <- read.csv('d.csv'); m <- lm(y ~ x, d); write.csv(coef(m), 'coef.csv')\n",
    );
    place.comes_back("Rscript fit.R");
}

#[test]
fn what_was_only_appended_to_cut_or_moved_comes_back() {
    for line in ["echo two >> in", "truncate -s 3 in", "mv in out"] {
        let place = Place::new();
        place.write_settled("in", "one\n");
        place.comes_back(line);
    }
}

#[test]
fn a_pipeline_of_ten_stages_comes_back() {
    let place = Place::new();
    place.write_settled(
        "words",
        &"the quick brown fox jumps over the lazy dog\n".repeat(50),
    );
    let run = place.comes_back(
        "cat words | tr ' ' '\\n' | grep -v dog | sed 's/q/Q/' | sort | uniq -c | sort -rn | head -5 | awk '{print $2, $1}' | tee top > last",
    );
    let other = place.stage.path().join("home/other");
    fs::write(&other, "one two two\n").unwrap();
    let answer = place.replay(&run, &["--input", &format!("words={}", other.display())]);
    let top = fs::read_to_string(place.path("../home/again/files") + &place.path("top"));
    assert_eq!(
        (answer.status, top.unwrap().as_str()),
        (1, "two 2\none 1\n"),
        "{answer:?}"
    );
}

#[test]
fn a_java_program_comes_back() {
    if !needs("the replay of a Java program", &["java", "javac"]) {
        return;
    }
    let place = Place::new();
    place.write_settled(
        "Sum.java",
        "import java.nio.file.*;\npublic class Sum { public static void main(String[] a) throws Exception { \
         long s = Files.readAllLines(Path.of(\"in\")).stream().mapToLong(Long::parseLong).sum(); Files.writeString(Path.of(\"out\"), s + \"\\n\"); } }\n",
    );
    place.write_settled("in", "1\n2\n39\n");
    let built = place.keep("javac Sum.java", &["--contents=lazy"]);
    assert!(!built.is_empty());
    place.comes_back("java -XX:-UsePerfData -Xshare:auto -cp . Sum");
}

#[test]
fn a_latex_document_comes_back() {
    if !needs("the replay of a LaTeX document", &["pdflatex"]) {
        return;
    }
    let place = Place::new();
    place.write_settled(
        "p.tex",
        "\\documentclass{article}\\begin{document}Hello \\input{part}\\end{document}\n",
    );
    place.write_settled("part.tex", "there.\n");
    place.comes_back(
        "SOURCE_DATE_EPOCH=1000000000 FORCE_SOURCE_DATE=1 pdflatex -interaction=batchmode p.tex > /dev/null; rm -f p.log",
    );
}

#[test]
fn a_program_with_sqlite_comes_back() {
    if !needs("the replay of a program with SQLite", &["sqlite3"]) {
        return;
    }
    let place = Place::new();
    place.write_settled("rows.csv", "1,one\n2,two\n");
    place.comes_back(
        "sqlite3 db 'create table t(a integer, b text)' '.mode csv' '.import rows.csv t' && sqlite3 db 'select count(*), max(b) from t' > out",
    );
}

#[test]
fn a_static_go_program_comes_back() {
    if !needs("the replay of a Go program", &["go"]) {
        return;
    }
    let place = Place::new();
    place.write_settled(
        "m.go",
        "package main\nimport \"os\"\nfunc main() { b, e := os.ReadFile(\"in\"); if e != nil { panic(e) }; os.WriteFile(\"out\", append(b, b...), 0o644) }\n",
    );
    place.write_settled("in", "text\n");
    let line = "CGO_ENABLED=0 GOCACHE=$PWD/c GOPATH=$PWD/p GOTELEMETRY=off go build -o m m.go";
    let built = place.command_line(line);
    if built.status != 0 {
        skipped("the replay of a Go program", &built.err);
        return;
    }
    place.comes_back("./m");
}

impl Place {
    /// A shell line in `work`, not recorded.
    fn command_line(&self, line: &str) -> Answer {
        let mut command = self.stage.command("sh");
        command.args(["-c", line]).current_dir(self.work());
        Answer::of(command.output().unwrap())
    }
}

#[test]
fn a_run_without_contents_says_what_to_do() {
    let place = Place::new();
    place.write_settled("in", "text\n");
    let run = place.keep("cat in > out", &["--contents=off"]);
    place
        .replay(&run, &[])
        .is_error(1, &["--contents=lazy", "--allow-host"]);
    assert!(
        !std::path::Path::new(&place.path("../home/again")).exists(),
        "nothing half-done"
    );
}

#[test]
fn what_is_asked_for_and_was_not_there_is_named() {
    let place = Place::new();
    place.write_settled("in", "text\n");
    place.write_settled("never", "nobody read this\n");
    let run = place.keep("cat in > out", &["--contents=lazy"]);
    place
        .replay(&run, &["--input", "never=in"])
        .is_error(1, &["never"]);
    place.replay(&run, &["--arg", "9=x"]).is_error(1, &["9", "2"]);
    place
        .replay(&run, &["--env", "SURELY_NOT_SET"])
        .is_error(2, &["SURELY_NOT_SET"]);
    let answer = place.replay(&run, &["--", "sh", "-c", "cat never"]);
    assert!(
        answer.status == 1 && answer.err.contains("/never was looked for"),
        "{answer:?}"
    );
}

#[test]
fn what_differs_is_named_with_what_fed_it() {
    let place = Place::new();
    place.write_settled("in", "text\n");
    let run = place.keep(
        "head -c 8 /dev/urandom > random; cat in > same",
        &["--contents=lazy"],
    );
    let answer = place.replay(&run, &[]);
    assert_eq!(answer.status, 1, "{answer:?}");
    for word in ["1 of 2", "different", "random", "/dev/urandom"] {
        assert!(answer.err.contains(word), "no {word:?} in {answer:?}");
    }
}

#[test]
fn the_network_is_not_there_and_nothing_of_the_users_is_written_to() {
    let place = Place::new();
    place.write_settled("in", "text\n");
    let run = place.keep(
        "cat in > out; ls /sys/class/net > devices; echo changed >> in",
        &["--contents=lazy"],
    );
    place.write_settled("out", "mine\n");
    let answer = place.replay(&run, &[]);
    let devices = fs::read_to_string(place.path("../home/again/files") + &place.path("devices")).unwrap();
    assert_eq!(devices, "lo\n", "{answer:?}");
    assert_eq!(fs::read_to_string(place.path("out")).unwrap(), "mine\n");
    assert_eq!(fs::read_to_string(place.path("in")).unwrap(), "text\nchanged\n");
}

#[test]
fn a_damaged_content_is_named_and_leaves_nothing() {
    let place = Place::new();
    place.write_settled("in", &"some text\n".repeat(100));
    let run = place.keep("cat in > out", &["--contents=lazy"]);
    place.forget_everything();
    let mut files = vec![place.stage.store().join("contents")];
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(fs::read_dir(&path).unwrap().flatten().map(|entry| entry.path()));
        } else if path.parent().is_some_and(|dir| dir.ends_with("packs"))
            && path.extension() == Some("pack".as_ref())
        {
            // Behind the header of 64 bytes at most: the objects themselves.
            let mut bytes = fs::read(&path).unwrap();
            bytes.iter_mut().skip(64).for_each(|byte| *byte ^= 0x55);
            fs::write(&path, bytes).unwrap();
        }
    }
    place.replay(&run, &[]).is_error(1, &["damaged", "store verify"]);
    assert!(
        !std::path::Path::new(&place.path("../home/again")).exists(),
        "nothing half-done"
    );
}

/// A large content has a file of its own, and is checked only while it is read.
#[test]
fn a_damaged_large_content_is_named_wherever_it_is_needed() {
    let place = Place::new();
    let noise = place.command_line("head -c 600000 /dev/urandom > in");
    assert_eq!(noise.status, 0);
    place.settle("in");
    let read = place.keep("cat in > out", &["--contents=lazy"]);
    let mut piped = place.command(&["record", "--contents=lazy", "--", "sh", "-c", "cat > out"]);
    let status = piped.stdin(fs::File::open(place.path("in")).unwrap()).status();
    assert!(status.unwrap().success());
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    let given = place.json(&["log", "--json"])[0]["run"]
        .as_str()
        .unwrap()
        .to_owned();
    place.forget_everything();
    for directory in fs::read_dir(place.stage.store().join("contents/objects"))
        .unwrap()
        .flatten()
    {
        for object in fs::read_dir(directory.path()).unwrap().flatten() {
            let mut bytes = fs::read(object.path()).unwrap();
            *bytes.last_mut().unwrap() ^= 1;
            fs::write(object.path(), bytes).unwrap();
        }
    }
    for run in [read, given] {
        let answer = place.replay(&run, &[]);
        answer.is_error(1, &["damaged", "store verify"]);
        assert!(!answer.err.contains("cannot write the answer"), "{answer:?}");
        assert!(
            !std::path::Path::new(&place.path("../home/again")).exists(),
            "nothing half-done"
        );
    }
    let path = place.path("in");
    let answer = place.run(&["contents", &path, "-o", "again"]);
    answer.is_error(1, &["damaged", "store verify"]);
    assert!(
        fs::read_dir(place.work()).unwrap().next().is_none(),
        "nothing half-done"
    );
}
