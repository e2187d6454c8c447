//! Processes: fork, exec, exit, and the lists of descriptors that a static program gets.

use super::*;

impl World {
    /// Lists the descriptors of a process without a recorder, the first time that the guard sees
    /// it.
    pub(super) fn ask(&mut self, p: usize) {
        if self.processes[p].fixed && !self.processes[p].listed {
            self.processes[p].listed = true;
            self.list(p, false);
        }
    }

    /// Logs the descriptors that `/proc` lists for a process.
    pub(super) fn list(&mut self, p: usize, exec: bool) {
        let pid = self.processes[p].pid;
        let held: Vec<(i32, SimDescriptor)> = self.processes[p]
            .descriptors
            .iter()
            .filter(|(_, d)| !exec || !d.cloexec)
            .map(|(&fd, d)| (fd, d.clone()))
            .collect();
        let mut entries = vec![(-1, i32::from(exec), String::new(), held.len() as i32)];
        for (fd, d) in held {
            let access = match (d.reads, d.writes) {
                (true, false) => common::RDONLY,
                (false, _) => common::WRONLY,
                _ => common::RDWR,
            };
            let flags = if d.cloexec {
                access | common::CLOEXEC
            } else {
                access
            };
            entries.push((fd, flags, self.target(d.to), 0));
        }
        for (fd, flags, target, result) in entries {
            let flags = Some(flags);
            let target = bytes(&target);
            self.log_pid(
                pid,
                Via::Kernel,
                Outcome::Done(result),
                Op::HeldDescriptor { fd, flags, target },
            );
        }
    }

    pub(super) fn fork(&mut self, p: usize) {
        self.fork_with(p, |_| {});
    }

    pub(super) fn fork_with(&mut self, p: usize, change: impl FnOnce(&mut SimProcess)) {
        if self.processes.len() > 5 {
            return;
        }
        self.ask(p);
        let pid = self.next_pid;
        self.next_pid += 1;
        let parent = self.processes[p].clone();
        let mut child = SimProcess {
            pid,
            parent: parent.pid,
            epoch: 0,
            ..parent.clone()
        };
        for d in child.descriptors.values_mut() {
            (d.logged_read, d.logged_write, d.opened_here) = (false, false, false);
        }
        change(&mut child);
        child.listed = parent.fixed;
        self.processes.push(child);
        if parent.fixed {
            let born = Op::Born {
                parent: parent.pid,
                exe: bytes(""),
                cwd: bytes(&parent.cwd),
            };
            self.log_pid(pid, Via::Kernel, Outcome::Done(0), born);
            self.list(self.processes.len() - 1, false);
        } else {
            self.log(
                p,
                Outcome::Done(pid as i32),
                Op::Fork {
                    flags: 17,
                    spawn: None,
                },
            );
            let child = self.processes.len() - 1;
            self.log(
                child,
                Outcome::Done(0),
                Op::Start {
                    ppid: parent.pid,
                    forked: true,
                },
            );
        }
    }

    pub(super) fn exec(&mut self, p: usize, fixed: bool) {
        let via = if self.processes[p].fixed {
            Via::Kernel
        } else {
            Via::Library
        };
        let pid = self.processes[p].pid;
        if self.processes[p].fixed {
            self.list(p, true);
        }
        self.log_pid(pid, via, Outcome::Unknown, exec());
        let process = &mut self.processes[p];
        process.listed = process.fixed;
        let (key, memory) = ((process.pid, process.epoch), process.memory.clone());
        process.epoch += 1;
        process.fixed = fixed;
        process.descriptors.retain(|_, d| !d.cloexec);
        for d in process.descriptors.values_mut() {
            (d.logged_read, d.logged_write, d.opened_here) = (false, false, false);
        }
        let parent = process.parent;
        self.memories.insert(key, memory);
        if !fixed {
            self.log(
                p,
                Outcome::Done(0),
                Op::Start {
                    ppid: parent,
                    forked: false,
                },
            );
        }
    }

    pub(super) fn exit(&mut self, p: usize) {
        let process = self.processes.remove(p);
        self.memories
            .insert((process.pid, process.epoch), process.memory);
        self.log_pid(
            process.pid,
            Via::Kernel,
            Outcome::Done(0),
            Op::Gone { status: Some(0) },
        );
    }
}
