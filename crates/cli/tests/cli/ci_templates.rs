//! The templates of `examples/ci` and the hook for pre-commit, as their users run them.

use std::path::{Path, PathBuf};
use std::process::Command;

use backstory_testkit::need::{needs, skipped};
use backstory_testkit::stage::Stage;
use backstory_testkit::user::User;
use yaml_rust2::{Yaml, YamlLoader};

use super::{Answer, Place};

fn repository(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name)
}

/// A program of `.venv/ci`, which `scripts/setup test` fills. `None`, with a notice, without it.
fn tool(what: &str, name: &str) -> Option<PathBuf> {
    let tool = repository(".venv/ci/bin").join(name);
    if !tool.exists() {
        skipped(what, &format!("needs {name} in .venv/ci"));
        return None;
    }
    Some(tool.canonicalize().unwrap())
}

fn template(name: &str) -> Yaml {
    let text = std::fs::read_to_string(repository("examples/ci").join(name)).unwrap();
    YamlLoader::load_from_str(&text).unwrap().remove(0)
}

/// The shell lines of a list, without those that install packages.
fn lines(list: &Yaml) -> Vec<String> {
    let lines = list.as_vec().unwrap().iter();
    let lines = lines.map(|line| line.as_str().unwrap().to_owned());
    lines
        .filter(|line| !line.contains("apt-get") && !line.contains("pipx"))
        .collect()
}

/// Runs a shell line as a job does, with `backstory` on the search path.
fn job(place: &Place, shell: &str, line: &str) -> Answer {
    let stage = place.stage.path();
    let mut command = place.stage.command(shell);
    command
        .args(["-e", "-c", line])
        .current_dir(place.work())
        .env("PATH", format!("{}/bin:/usr/bin:/bin", stage.display()))
        .env("BACKSTORY_STORE", place.work().join(".backstory"))
        .env("RUN_NAME", "build-17-1")
        .env("CI_JOB_ID", "17");
    Answer::of(command.output().unwrap())
}

/// Imports the kept record into a store of another machine, and returns the run.
fn kept(place: &Place, name: &str) -> serde_json::Value {
    let import = place.run(&["store", "import", &place.path("run.backstory")]);
    assert_eq!(import.status, 0, "{import:?}");
    place.json(&["show", "--json", name])
}

/// The shell steps of the GitHub template with their conditions, without the installation.
fn github_steps() -> Vec<(bool, String)> {
    let jobs = template("github-actions.yml");
    let steps = jobs["jobs"]["build"]["steps"].as_vec().unwrap();
    let shell = steps.iter().filter_map(|step| {
        let always = step["if"].as_str() == Some("always()");
        Some((always, step["run"].as_str()?.to_owned()))
    });
    shell.filter(|(_, line)| !line.contains("pipx")).collect()
}

#[test]
fn the_steps_of_the_github_template_record_a_job_and_keep_the_record() {
    if !needs("the template for GitHub Actions", &["bash", "make", "jq"]) {
        return;
    }
    for (recipe, succeeds) in [("cp in out", true), ("cp in out; exit 3", false)] {
        let place = Place::new();
        place.write_aged("in", "text\n");
        place.write_aged("Makefile", &format!("test:\n\t{recipe}\n"));
        let mut failed = false;
        for (always, line) in github_steps() {
            if failed && !always {
                continue;
            }
            let answer = job(&place, "bash", &line);
            failed |= answer.status != 0;
            assert!(answer.status == 0 || !succeeds, "{line}: {answer:?}");
        }
        assert_eq!(failed, !succeeds);
        let run = kept(&place, "build-17-1");
        assert_eq!(run["exit"] == 0, succeeds, "{run}");
        assert_eq!(run["complete"], true, "{run}");
    }
}

#[test]
fn the_lines_of_the_gitlab_template_record_a_job_and_keep_the_record() {
    if !needs("the template for GitLab", &["make", "jq"]) {
        return;
    }
    let template = template("gitlab-ci.yml");
    let jobs = template.as_hash().unwrap();
    let (_, build) = jobs.iter().next().unwrap();
    let place = Place::new();
    place.write_aged("in", "text\n");
    place.write_aged("Makefile", "test:\n\tcp in out\n");
    let mut script = lines(&build["before_script"]);
    script.extend(lines(&build["script"]));
    let answer = job(&place, "sh", &script.join("\n"));
    assert_eq!(answer.status, 0, "{answer:?}");
    let answer = job(&place, "sh", &lines(&build["after_script"]).join("\n"));
    assert_eq!(answer.status, 0, "{answer:?}");
    let run = kept(&place, "build-17");
    assert_eq!((&run["exit"], &run["complete"]), (&0.into(), &true.into()));
    let paths = build["artifacts"]["paths"].as_vec().unwrap();
    for path in paths {
        let path = place.work().join(path.as_str().unwrap());
        assert!(path.exists(), "{}", path.display());
    }
}

#[test]
fn the_templates_are_valid_for_their_services() {
    let what = "the schemas of CI templates";
    let Some(check) = tool(what, "check-jsonschema") else {
        return;
    };
    for (schema, file) in [
        ("vendor.github-workflows", "github-actions.yml"),
        ("vendor.gitlab-ci", "gitlab-ci.yml"),
    ] {
        let mut command = Command::new(&check);
        command.args(["--builtin-schema", schema]);
        let output = command
            .arg(repository("examples/ci").join(file))
            .output()
            .unwrap();
        assert!(output.status.success(), "{file}: {output:?}");
    }
    let Some(actionlint) = tool(what, "actionlint") else {
        return;
    };
    let template = repository("examples/ci/github-actions.yml");
    let output = Command::new(actionlint).arg(template).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// A repository with a generated file, whose commits the hook looks at.
struct Guarded {
    place: Place,
    pre_commit: PathBuf,
}

impl Guarded {
    /// The hook is in a git repository of its own, as its users meet it.
    fn new(pre_commit: PathBuf) -> Guarded {
        // The Python of pre-commit may be the suite's user's own.
        let stage = Stage::of(User::Myself, env!("CARGO_BIN_EXE_backstory").as_ref()).unwrap();
        stage.directory("work").unwrap();
        let place = Place { stage };
        let guarded = Guarded { place, pre_commit };
        for (directory, file) in [
            ("hook/scripts", "scripts/refuse-outdated"),
            ("hook", ".pre-commit-hooks.yaml"),
        ] {
            guarded
                .place
                .stage
                .directory(&format!("work/{directory}"))
                .unwrap();
            let to = guarded.place.work().join("hook").join(file);
            std::fs::copy(repository(file), &to).unwrap();
            guarded.place.stage.user().owns(&to).unwrap();
        }
        guarded.place.stage.directory("work/project").unwrap();
        guarded.well("cd hook && git init -q && git add -A && git commit -qm hook");
        guarded.well(
            "cd project && git init -q && echo text >in && printf 'repos:\\n- repo: %s/hook\\n  rev: %s\\n  hooks:\\n  - id: refuse-outdated\\n' \
             \"$PWD/..\" \"$(git -C ../hook rev-parse HEAD)\" >.pre-commit-config.yaml && \"$PRE_COMMIT\" install",
        );
        guarded
    }

    fn shell(&self, line: &str) -> Answer {
        let stage = self.place.stage.path();
        let mut command = self.place.stage.command("sh");
        command
            .args(["-e", "-c", line])
            .current_dir(self.place.work())
            .env("PATH", format!("{}/bin:/usr/bin:/bin", stage.display()))
            .env("BACKSTORY_STORE", self.place.stage.store())
            .env("PRE_COMMIT", &self.pre_commit)
            .env("PRE_COMMIT_HOME", self.place.work().join("cache"));
        Answer::of(command.output().unwrap())
    }

    fn well(&self, line: &str) {
        let answer = self.shell(line);
        assert_eq!(answer.status, 0, "{line}: {answer:?}");
    }
}

#[test]
fn the_hook_refuses_a_commit_with_an_outdated_generated_file() {
    let what = "the hook for pre-commit";
    let Some(pre_commit) = tool(what, "pre-commit") else {
        return;
    };
    if !needs(what, &["git"]) {
        return;
    }
    let guarded = Guarded::new(pre_commit);
    // Nothing is recorded yet.
    guarded.well("cd project && git add -A && git commit -qm first");
    guarded.well(
        "cd project && backstory record -- sh -c 'sort in >\"a result\"; sort in >untracked'",
    );
    guarded.well("cd project && git add 'a result' && git commit -qm second");
    // The input is newer than the result.
    let refused =
        guarded.shell("cd project && echo more >>in && git add in && git commit -qm third");
    assert_eq!(refused.status, 1, "{refused:?}");
    let said = format!("{}{}", refused.out, refused.err);
    assert!(
        said.contains("outdated: ") && said.contains("a result"),
        "{said}"
    );
    assert!(!said.contains("untracked"), "{said}");
    // As it says.
    guarded.well("cd project && backstory rerun 'a result' && git add -A . && git reset -q untracked && git commit -qm third");
    // Nobody may write into a generated file by hand.
    let refused = guarded.shell("cd project && echo hand >>'a result' && git commit -qam fourth");
    assert_eq!(refused.status, 1, "{refused:?}");
    assert!(
        format!("{}{}", refused.out, refused.err).contains("modified: "),
        "{refused:?}"
    );
}

#[test]
fn the_hook_accepts_a_clone_without_records() {
    let what = "the hook for pre-commit";
    let Some(pre_commit) = tool(what, "pre-commit") else {
        return;
    };
    let guarded = Guarded::new(pre_commit);
    let answer = guarded.shell("cd project && git add -A && git commit -m first");
    assert_eq!(answer.status, 0, "{answer:?}");
    assert!(!guarded.place.stage.store().join("graph.db").exists());
}
