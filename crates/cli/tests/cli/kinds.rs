//! `replay` of every promised kind of program. All files of the user are removed: inputs, outputs,
//! scripts and packages. Each output comes back bit by bit.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use backstory_testkit::need::{needs, skipped};

use super::Place;
use super::engines::venv;

impl Place {
    fn home(&self) -> PathBuf {
        self.stage.path().join("home")
    }

    /// Writes a file into the user's home, with the directories above it.
    fn write_at_home(&self, name: &str, text: &str) {
        let path = self.home().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self.stage.user().owns(&self.home()).unwrap();
    }

    /// Everything below `work`, by its path there.
    fn held(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        below(&self.work())
    }

    /// Records a line, removes all files below `work`, moves the user's home aside, and replays the
    /// run. Every output must be identical, byte for byte.
    fn comes_back_without_its_user(&self, line: &str, options: &[&str]) -> String {
        let given = self.held();
        let run = self.keep(line, &[&["--contents=lazy"], options].concat());
        let left = self.held();
        fs::rename(self.home(), self.stage.path().join("aside")).unwrap();
        self.stage.directory("home").unwrap();
        if !self.replays_alike(&run) {
            return run;
        }
        let work = self.work();
        let again = self
            .home()
            .join("again/files")
            .join(work.strip_prefix("/").unwrap());
        let again = below(&again);
        let mut made = 0;
        for (name, bytes) in left
            .iter()
            .filter(|(name, bytes)| given.get(*name) != Some(bytes))
        {
            assert!(again.get(name) == Some(bytes), "{line}: {}", name.display());
            made += 1;
        }
        assert!(made > 0, "{line}: it made nothing");
        run
    }
}

fn below(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                waiting.push(entry.path());
            } else if kind.is_file() {
                let name = entry.path().strip_prefix(root).unwrap().to_owned();
                files.insert(name, fs::read(entry.path()).unwrap());
            }
        }
    }
    files
}

#[test]
fn a_c_build_comes_back() {
    if !needs("the replay of a C build", &["gcc", "make", "ar"]) {
        return;
    }
    let place = Place::new();
    place.write_at_home("lib/include/mine.h", "int twice(int);\n");
    place.write_at_home(
        "lib/twice.c",
        "#include \"include/mine.h\"\nint twice(int n) { return 2 * n; }\n",
    );
    let built = place.command_line("cd ~/lib && gcc -c twice.c && ar rcs libmine.a twice.o");
    assert_eq!(built.status, 0, "{built:?}");
    place.write(
        "a.c",
        "#include <stdio.h>\n#include <mine.h>\n#include \"a.h\"\nint main(void) { return printf(\"%d\\n\", twice(A)) != 3; }\n",
    );
    place.write("a.h", "#define A 21\n");
    place.write_aged(
        "Makefile",
        "said: a\n\t./a > said\na: a.o\n\tgcc -o a a.o -L$(HOME)/lib -lmine\na.o: a.c a.h\n\tgcc -O1 -I$(HOME)/lib/include -c a.c\n",
    );
    place.comes_back_without_its_user("make", &[]);
}

/// numpy and matplotlib as pip installs them for a user, with Debian's Python, which every user may
/// run.
#[test]
fn a_numpy_script_with_a_plot_comes_back() {
    const WHAT: &str = "the replay of a numpy script with a plot";
    let python = "/usr/bin/python3";
    let packages = venv("plot");
    if !packages.join("matplotlib").exists() || !Path::new(python).exists() {
        return skipped(
            WHAT,
            "needs numpy and matplotlib for /usr/bin/python3, which `scripts/setup test` installs",
        );
    }
    let place = Place::new();
    let user = place.home().join("lib/site-packages");
    fs::create_dir_all(&user).unwrap();
    let copied = std::process::Command::new("cp")
        .arg("-RL")
        .arg(packages.join("."))
        .arg(&user)
        .status();
    assert!(copied.unwrap().success());
    place.stage.user().owns(&place.home()).unwrap();
    place.write("data.csv", "1,2\n3,4\n5,7\n");
    place.write_aged(
        "plot.py",
        "import sys\nimport matplotlib, numpy\nmatplotlib.use('Agg')\nfrom matplotlib import pyplot\n\
         d = numpy.loadtxt('data.csv', delimiter=',')\nm = numpy.polyfit(d[:, 0], d[:, 1], 1)\nnumpy.save('fit.npy', m)\n\
         pyplot.plot(d[:, 0], d[:, 1])\npyplot.plot(d[:, 0], numpy.polyval(m, d[:, 0]))\npyplot.savefig('plot.png')\n",
    );
    let line = |script: &str| {
        format!(
            "PYTHONDONTWRITEBYTECODE=1 PYTHONPATH={} MPLCONFIGDIR=$HOME/fonts {python} {script}",
            user.display()
        )
    };
    // Its font cache contains times, so it is made beforehand.
    let cached = place.command_line(&line("-c 'import matplotlib.pyplot'"));
    assert_eq!(cached.status, 0, "{cached:?}");
    // A file that pip can verify is stored only on request.
    place.comes_back_without_its_user(&line("plot.py"), &["--self-contained"]);
}

#[test]
fn an_r_script_comes_back() {
    if !needs("the replay of an R script", &["R", "Rscript"]) {
        return;
    }
    let place = Place::new();
    place.write_at_home(
        "source/mine/DESCRIPTION",
        "Package: mine\nVersion: 1.0\nTitle: Mine\nDescription: Mine.\nLicense: GPL-2\nAuthor: A\nMaintainer: A <a@example.org>\n",
    );
    place.write_at_home("source/mine/NAMESPACE", "export(twice)\n");
    place.write_at_home("source/mine/R/twice.R", "twice <- function(x) 2 * x\n");
    place.write_at_home("R/README", "packages\n");
    let installed =
        place.command_line("R CMD INSTALL --no-docs --no-test-load -l ~/R ~/source/mine");
    assert_eq!(installed.status, 0, "{installed:?}");
    place.write("d.csv", "x,y\n1,2\n2,4\n3,7\n");
    place.write_aged(
        "fit.R",
        "d <- read.csv('d.csv'); m <- lm(y ~ x, d); write.csv(mine::twice(coef(m)), 'coef.csv')\n",
    );
    place.comes_back_without_its_user("R_LIBS_USER=$HOME/R Rscript fit.R", &[]);
}

#[test]
fn a_pipeline_of_ten_stages_comes_back() {
    let place = Place::new();
    place.write_at_home("lib/swap.awk", "{ print $2, $1 }\n");
    place.write_aged(
        "words",
        &"the quick brown fox jumps over the lazy dog\n".repeat(50),
    );
    let run = place.comes_back_without_its_user(
        "cat words | tr ' ' '\\n' | grep -v dog | sed 's/q/Q/' | sort | uniq -c | sort -rn | head -5 | awk -f ~/lib/swap.awk | tee top > last",
        &[],
    );
    let other = place.home().join("other");
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
    if !needs("the replay of a Java program", &["java", "javac", "jar"]) {
        return;
    }
    let place = Place::new();
    place.write_at_home(
        "lib/Twice.java",
        "public class Twice { public static long of(long n) { return 2 * n; } }\n",
    );
    place.write(
        "Sum.java",
        "import java.nio.file.*;\npublic class Sum { public static void main(String[] a) throws Exception { \
         long s = Files.readAllLines(Path.of(\"in\")).stream().mapToLong(Long::parseLong).sum(); \
         Files.writeString(Path.of(\"out\"), Twice.of(s) + \"\\n\"); } }\n",
    );
    let built = place.command_line(
        "cd ~/lib && javac Twice.java && jar cf twice.jar Twice.class && cd - && javac -cp ~/lib/twice.jar Sum.java",
    );
    assert_eq!(built.status, 0, "{built:?}");
    place.write_aged("in", "1\n2\n39\n");
    place.comes_back_without_its_user(
        "java -XX:-UsePerfData -Xshare:auto -cp .:$HOME/lib/twice.jar Sum",
        &[],
    );
}

#[test]
fn a_latex_document_comes_back() {
    if !needs("the replay of a LaTeX document", &["pdflatex"]) {
        return;
    }
    let place = Place::new();
    place.write_at_home(
        "texmf/tex/latex/mine/mine.sty",
        "\\ProvidesPackage{mine}\\newcommand{\\who}{World}\n",
    );
    place.write(
        "p.tex",
        "\\documentclass{article}\\usepackage{mine}\\begin{document}Hello \\who, \\input{part}\\end{document}\n",
    );
    place.write_aged("part.tex", "there.\n");
    place.comes_back_without_its_user(
        "SOURCE_DATE_EPOCH=1000000000 FORCE_SOURCE_DATE=1 pdflatex -interaction=batchmode p.tex > /dev/null && rm p.log",
        &[],
    );
}

#[test]
fn a_program_with_sqlite_comes_back() {
    if !needs("the replay of a program with SQLite", &["sqlite3"]) {
        return;
    }
    let place = Place::new();
    place.write_at_home("lib/tables.sql", "create table t(a integer, b text);\n");
    place.write_aged("rows.csv", "1,one\n2,two\n");
    place.comes_back_without_its_user(
        "sqlite3 db \".read $HOME/lib/tables.sql\" '.mode csv' '.import rows.csv t' && sqlite3 db 'select count(*), max(b) from t' > out",
        &[],
    );
}

#[test]
fn a_static_go_program_comes_back() {
    let place = Place::furnished();
    // Left out, with a notice, without a compiler.
    let Some(built) = place.fixture("go_files") else {
        return;
    };
    let own = place.home().join("go_files");
    backstory_testkit::program::copy(built.as_ref(), &own).unwrap();
    place.stage.user().owns(&own).unwrap();
    place.age("../home/go_files");
    place.comes_back_without_its_user("~/go_files", &[]);
}
