//! Descriptors: open, read, write, close, dup and pipes.

use super::*;

impl World {
    pub(super) fn target(&self, to: To) -> String {
        match to {
            To::Pipe(pipe) => format!("pipe:[{pipe}]"),
            To::File(inode) => match self.paths.iter().find(|(_, i)| **i == inode) {
                Some((path, _)) => path.clone(),
                None => {
                    let name = self.inodes[inode].names.last().unwrap();
                    format!("{} (deleted)", common::text(name))
                }
            },
        }
    }

    pub(super) fn open(&mut self, p: usize, name: &str, flags: i32) {
        let named = self.absolute(p, name);
        let path = self.resolve(&named);
        let found = self.paths.get(&path).copied();
        if self.links.contains_key(&path) {
            return;
        }
        let fixed = self.processes[p].fixed;
        let open = Op::Open {
            dir: CWD,
            path: bytes(if fixed { &named } else { name }),
            flags,
            mode: 0,
        };
        if found.is_none() && (flags & common::CREAT == 0 || !self.exists_directory(&path)) {
            let event = self.call(p, open, |_, op| op);
            event.outcome = if fixed {
                Outcome::Predicted(-2)
            } else {
                Outcome::Done(-2)
            };
            return;
        }
        let fd = (3..)
            .find(|fd| !self.processes[p].descriptors.contains_key(fd))
            .unwrap();
        let before = found.filter(|_| flags & 3 != 0).map(|i| self.ident(i));
        let idents = self.manner.idents;
        let event = self.call(p, open, |_, op| op);
        event.outcome = if fixed {
            Outcome::Predicted(0)
        } else {
            Outcome::Done(fd)
        };
        if idents {
            event.ident = before;
        }
        let time = self.time;
        let inode = found.unwrap_or_else(|| {
            let made = self.inode(time, Labels::new());
            self.name(&path, made);
            made
        });
        if flags & common::TRUNC != 0 && flags & 3 != 0 {
            self.inodes[inode].labels.clear();
            (self.inodes[inode].mtime, self.inodes[inode].ctime) = (time, time);
        }
        let mode = flags & 3;
        let descriptor = SimDescriptor {
            to: To::File(inode),
            reads: mode != common::WRONLY,
            writes: mode != common::RDONLY,
            cloexec: flags & common::CLOEXEC != 0,
            logged_read: false,
            logged_write: false,
            opened_here: true,
        };
        self.processes[p].descriptors.insert(fd, descriptor);
    }

    pub(super) fn pick(&self, p: usize, d: usize) -> Option<i32> {
        let numbers: Vec<i32> = self.processes[p].descriptors.keys().copied().collect();
        (!numbers.is_empty()).then(|| numbers[d % numbers.len()])
    }

    /// An open descriptor's number, and the descriptor.
    fn held(&self, p: usize, d: usize) -> Option<(i32, SimDescriptor)> {
        let fd = self.pick(p, d)?;
        Some((fd, self.processes[p].descriptors[&fd].clone()))
    }

    pub(super) fn read(&mut self, p: usize, d: usize) {
        let Some((fd, held)) = self.held(p, d).filter(|(_, held)| held.reads) else {
            return;
        };
        if !held.logged_read && !self.processes[p].fixed {
            self.log(p, Outcome::Done(1), Op::Read { fd });
        }
        let labels = match held.to {
            To::File(inode) => self.inodes[inode].labels.clone(),
            To::Pipe(pipe) => self.pipes[pipe].clone(),
        };
        let process = &mut self.processes[p];
        process.memory.extend(labels);
        process.descriptors.get_mut(&fd).unwrap().logged_read = true;
    }

    pub(super) fn write(&mut self, p: usize, d: usize) {
        let Some((fd, held)) = self.held(p, d).filter(|(_, held)| held.writes) else {
            return;
        };
        if !held.logged_write && !self.processes[p].fixed {
            self.log(p, Outcome::Done(1), Op::Write { fd });
        }
        self.processes[p]
            .descriptors
            .get_mut(&fd)
            .unwrap()
            .logged_write = true;
        let labels = self.processes[p].memory.clone();
        match held.to {
            To::File(inode) => self.change(inode, labels),
            To::Pipe(pipe) => self.pipes[pipe].extend(labels),
        }
    }

    pub(super) fn change(&mut self, inode: usize, labels: Labels) {
        let inode = &mut self.inodes[inode];
        inode.labels.extend(labels);
        (inode.mtime, inode.ctime) = (self.time, self.time);
    }

    pub(super) fn close(&mut self, p: usize, d: usize) {
        if let Some(fd) = self.pick(p, d) {
            self.close_number(p, fd);
        }
    }

    pub(super) fn close_number(&mut self, p: usize, fd: i32) {
        let Some(held) = self.processes[p].descriptors.remove(&fd) else {
            return;
        };
        if self.processes[p].fixed {
            return;
        }
        let ident = match held.to {
            To::File(inode) if held.writes && held.opened_here && self.manner.idents => {
                Some(self.ident(inode))
            }
            _ => None,
        };
        self.log(p, Outcome::Done(0), Op::Close { fd }).ident = ident;
    }

    pub(super) fn dup(&mut self, p: usize, d: usize) {
        let Some((fd, mut copy)) = self.held(p, d) else {
            return;
        };
        let new = (3..)
            .find(|fd| !self.processes[p].descriptors.contains_key(fd))
            .unwrap();
        (copy.logged_read, copy.logged_write, copy.cloexec) = (false, false, false);
        self.processes[p].descriptors.insert(new, copy);
        if !self.processes[p].fixed {
            self.log(
                p,
                Outcome::Done(new),
                Op::Dup {
                    fd,
                    cloexec: false,
                    replaced: false,
                },
            );
        }
    }

    pub(super) fn pipe(&mut self, p: usize) {
        // Data that a static program passes to itself does not matter.
        if self.processes[p].fixed {
            return;
        }
        self.pipes.push(Labels::new());
        let to = To::Pipe(self.pipes.len() - 1);
        let mut numbers = Vec::new();
        for (reads, writes) in [(true, false), (false, true)] {
            let fd = (3..)
                .find(|fd| !self.processes[p].descriptors.contains_key(fd))
                .unwrap();
            let end = SimDescriptor {
                to,
                reads,
                writes,
                cloexec: false,
                logged_read: false,
                logged_write: false,
                opened_here: false,
            };
            self.processes[p].descriptors.insert(fd, end);
            numbers.push(fd);
        }
        self.log(
            p,
            Outcome::Done(0),
            Op::Pipe {
                read: numbers[0],
                write: numbers[1],
                flags: 0,
            },
        );
    }

    /// Makes a pipe whose creation is not seen. It is found with the processes that got an end of
    /// it.
    pub(super) fn plumb(&mut self, p: usize, kind: usize) {
        if !self.processes[p].fixed || self.processes.len() > 4 {
            return;
        }
        self.pipes.push(Labels::new());
        let to = To::Pipe(self.pipes.len() - 1);
        let end = |reads: bool| SimDescriptor {
            to,
            reads,
            writes: !reads,
            cloexec: false,
            logged_read: false,
            logged_write: false,
            opened_here: false,
        };
        if kind != 2 {
            self.fork_with(p, |child| {
                child.descriptors.insert(1, end(false));
            });
        }
        if kind != 1 {
            self.fork_with(p, |child| {
                child.descriptors.insert(0, end(true));
            });
        }
        if kind > 0 {
            let own = (3..)
                .find(|fd| !self.processes[p].descriptors.contains_key(fd))
                .unwrap();
            self.processes[p].descriptors.insert(own, end(kind == 1));
        }
    }

    pub(super) fn whole(&mut self, p: usize, name: &str, flags: i32) {
        let before: BTreeSet<i32> = self.processes[p].descriptors.keys().copied().collect();
        self.open(p, name, flags);
        let new = self.processes[p]
            .descriptors
            .keys()
            .copied()
            .find(|fd| !before.contains(fd));
        let Some(fd) = new else { return };
        let at = self.processes[p]
            .descriptors
            .keys()
            .position(|&n| n == fd)
            .unwrap();
        self.read(p, at);
        self.write(p, at);
        self.close_number(p, fd);
    }
}
