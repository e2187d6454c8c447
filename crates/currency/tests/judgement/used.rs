//! A recorded program that used some files and made `out.txt`, and the reasons to run it again.
//!
//! In: the program and those that started it, the files that it used, and changes of them. Out: the
//! reasons that the plan for `out.txt` has. Tests of derived views include this file.
#![allow(dead_code)]

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;

use backstory_currency::{Reason, plan};
use backstory_eventlog::event::Bytes;
use backstory_graph::model::{ActivityId, EntityId, EntityKind, Relation};

use crate::scene::{Scene, bytes};

/// The recorded program, in a directory of its own.
pub struct Used {
    directory: tempfile::TempDir,
    scene: RefCell<Scene>,
    program: ActivityId,
}

impl Used {
    /// A program that was called with these words, and the calls of the programs above it, the
    /// outermost first.
    pub fn by(calls: &[&[&str]]) -> Used {
        let directory = tempfile::tempdir().unwrap();
        let mut scene = Scene::inside(directory.path(), "run0000a", calls[0]);
        let mut program = None;
        for (depth, call) in (0..).zip(calls) {
            let path = directory.path().join(call[0]);
            let times = (depth * 2, 80 - depth * 2);
            program = Some(scene.program(program, path.to_str().unwrap(), call, times));
        }
        let program = program.unwrap();
        let out = directory.path().join("out.txt");
        let out = scene.version(out.to_str().unwrap(), 1, "made\n", 0o100_644);
        scene.edge(program, out, Relation::Write, (60, 61));
        Used {
            directory,
            scene: RefCell::new(scene),
            program,
        }
    }

    /// The absolute path of a file in the directory; an absolute path is unchanged.
    pub fn path(&self, name: &str) -> String {
        let path = self.directory.path().join(name);
        path.to_str().unwrap().to_owned()
    }

    fn used(&self, id: EntityId, relation: Relation) -> &Used {
        let mut scene = self.scene.borrow_mut();
        scene.edge(self.program, id, relation, (30, 31));
        self
    }

    /// The program read a file of the directory, which is written.
    pub fn read(&self, name: &str) -> &Used {
        let path = self.path(name);
        let id = self.scene.borrow_mut().before(&path, "before\n", 0o100_644);
        self.used(id, Relation::Read)
    }

    /// The program read a file that has changed since. The file is not written.
    pub fn read_changed(&self, path: &str) -> &Used {
        let id = self.scene.borrow_mut().changed_since(&self.path(path));
        self.used(id, Relation::Read)
    }

    /// The program read a file of the machine that has not changed since.
    pub fn read_unchanged(&self, path: &str) -> &Used {
        let id = self.scene.borrow_mut().unchanged(path);
        self.used(id, Relation::Read)
    }

    /// The program loaded a library of the machine, called by another name.
    pub fn loaded(&self, path: &str, alias: &str) -> &Used {
        let id = {
            let mut scene = self.scene.borrow_mut();
            let id = scene.unchanged(path);
            scene.entities[id.0 as usize].aliases.push(bytes(alias));
            id
        };
        self.used(id, Relation::Execute)
    }

    /// The program listed a directory with these files.
    pub fn listed(&self, name: &str, files: &[&str]) -> &Used {
        let path = self.path(name);
        for file in files {
            self.write(&format!("{name}/{file}"), "module\n");
        }
        let id = {
            let mut scene = self.scene.borrow_mut();
            scene.listing(&path, files);
            scene.entity(EntityKind::Directory, &path, 0)
        };
        self.used(id, Relation::List)
    }

    /// The program also wrote a file.
    pub fn wrote(&self, name: &str) -> &Used {
        let path = self.path(name);
        let mut scene = self.scene.borrow_mut();
        let id = scene.version(&path, 1, "made\n", 0o100_644);
        scene.edge(self.program, id, Relation::Write, (40, 41));
        drop(scene);
        self
    }

    /// The program looked for a file in vain.
    pub fn missed(&self, name: &str) -> &Used {
        let path = self.path(name);
        let id = self
            .scene
            .borrow_mut()
            .entity(EntityKind::Missing, &path, 0);
        self.used(id, Relation::Missing)
    }

    /// Writes a file of the directory: a change after the run.
    pub fn write(&self, name: &str, text: &str) -> &Used {
        let path = PathBuf::from(self.path(name));
        assert!(path.starts_with(self.directory.path()));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// The reasons to make `out.txt` again, of all steps of the plan.
    pub fn reasons(&self) -> Vec<Reason> {
        let contents = tempfile::tempdir().unwrap();
        let store = self.scene.borrow().store(contents.path());
        let out = self.directory.path().join("out.txt");
        let steps = plan(&store, &[out], &[]).unwrap();
        steps.into_iter().flat_map(|step| step.reasons).collect()
    }

    /// The paths that the reasons are about.
    #[track_caller]
    pub fn is_stale_because_of(&self, path: &str) {
        let about: Vec<Bytes> = self
            .reasons()
            .iter()
            .map(|why| why.subject().clone())
            .collect();
        let expected = bytes(&self.path(path));
        assert!(
            about.contains(&expected),
            "{expected:?} is not in {about:?}"
        );
    }

    /// Nothing makes the program's result outdated.
    #[track_caller]
    pub fn is_current(&self) {
        assert_eq!(self.reasons(), []);
    }
}
