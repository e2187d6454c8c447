//! Commands of two sides, aligned and compared.

use backstory_ordering::SmallCollect;
use std::collections::BTreeSet;

use backstory_eventlog::event::Bytes;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::{DiffSide, Difference, DifferenceKind, Findings, SideCommand, variables};

/// Aligns the commands of both sides, and compares each pair.
pub fn compare(a: &DiffSide, b: &DiffSide, found: &mut Findings) {
    let mut open = (Vec::new(), Vec::new());
    let shape = |side: &DiffSide| -> Vec<(Vec<u8>, Vec<Vec<u8>>)> {
        let of = |command: &SideCommand| (program(command), command.argv.clone());
        side.commands.iter().map(of).collect()
    };
    for op in capture_diff_slices(Algorithm::Myers, &shape(a), &shape(b)) {
        match op {
            DiffOp::Equal {
                old_index,
                new_index,
                len,
            } => {
                // Commands that are still open can only be aligned with open commands before this
                // point.
                flush(a, b, &mut open, found);
                for at in 0..len {
                    pair(
                        &a.commands[old_index + at],
                        &b.commands[new_index + at],
                        found,
                    );
                }
            }
            DiffOp::Delete {
                old_index, old_len, ..
            } => open.0.extend(old_index..old_index + old_len),
            DiffOp::Insert {
                new_index, new_len, ..
            } => open.1.extend(new_index..new_index + new_len),
            DiffOp::Replace {
                old_index,
                old_len,
                new_index,
                new_len,
            } => {
                open.0.extend(old_index..old_index + old_len);
                open.1.extend(new_index..new_index + new_len);
            }
        }
    }
    flush(a, b, &mut open, found);
}

/// Pairs commands without an equal by their programs, in order. The rest ran on one side only.
fn flush(a: &DiffSide, b: &DiffSide, open: &mut (Vec<usize>, Vec<usize>), found: &mut Findings) {
    let (old, new) = std::mem::take(open);
    let programs = |side: &DiffSide, which: &[usize]| -> Vec<Vec<u8>> {
        which
            .iter()
            .map(|&at| program(&side.commands[at]))
            .collect()
    };
    let ops = capture_diff_slices(Algorithm::Myers, &programs(a, &old), &programs(b, &new));
    for op in ops {
        if let DiffOp::Equal {
            old_index,
            new_index,
            len,
        } = op
        {
            for at in 0..len {
                pair(
                    &a.commands[old[old_index + at]],
                    &b.commands[new[new_index + at]],
                    found,
                );
            }
            continue;
        }
        for &at in &old[op.old_range()] {
            alone(&a.commands[at], true, found);
        }
        for &at in &new[op.new_range()] {
            alone(&b.commands[at], false, found);
        }
    }
}

/// The name of a command: the last component of its program's path, since the same tool may be
/// installed in two places.
fn program(command: &SideCommand) -> Vec<u8> {
    let path = command.activity.exec_path.as_deref();
    let path = path.or(command.activity.argv.first().map(|arg| &**arg));
    let path = path.unwrap_or_default();
    path.rsplit(|&byte| byte == b'/')
        .next()
        .unwrap_or(path)
        .to_vec()
}

fn line(command: &SideCommand) -> Vec<u8> {
    command.argv.join(&b' ')
}

fn alone(command: &SideCommand, first: bool, found: &mut Findings) {
    let text = Some(line(command));
    let (a, b) = if first { (text, None) } else { (None, text) };
    let mut difference =
        Difference::new(DifferenceKind::Command, program(command), a, b, command.at);
    difference.activities.push(command.key);
    difference.is_of_command = command.activity.parent.is_none();
    found.differences.push(difference);
}

/// The differences between two paired commands.
fn pair(a: &SideCommand, b: &SideCommand, found: &mut Findings) {
    let at = a.at.min(b.at);
    let name = program(a);
    let mut push = |kind, of: Vec<u8>, x: Option<Vec<u8>>, y: Option<Vec<u8>>, at| {
        let mut difference = Difference::new(kind, of, x, y, at);
        difference.activities.extend([a.key, b.key]);
        difference.is_of_command = a.activity.parent.is_none();
        found.differences.push(difference);
    };
    if a.argv != b.argv {
        push(
            DifferenceKind::Arguments,
            name.clone(),
            Some(line(a)),
            Some(line(b)),
            at,
        );
    }
    if a.cwd != b.cwd {
        push(
            DifferenceKind::Directory,
            name.clone(),
            Some(a.cwd.clone()),
            Some(b.cwd.clone()),
            at,
        );
    }
    // The variables of the first command are the run's environment, which is compared by itself.
    let (was, is) = (variables(&a.variables), variables(&b.variables));
    let names: BTreeSet<&[u8]> = was.keys().chain(is.keys()).copied().into_tree();
    for variable in names {
        let (x, y) = (was.get(variable), is.get(variable));
        if x != y && a.activity.parent.is_some() {
            let of = [variable, b" of ", &name].concat();
            let own = |value: Option<&&[u8]>| value.map(|value| value.to_vec());
            push(DifferenceKind::Variable, of, own(x), own(y), at);
        }
    }
    let gone = |command: &SideCommand| -> BTreeSet<Bytes> {
        command.activity.env_unset.iter().cloned().collect()
    };
    let (was, is) = (gone(a), gone(b));
    for variable in was.symmetric_difference(&is) {
        let of = [variable, &b" of "[..], &name].concat();
        let said = |gone: bool| {
            Some(if gone {
                b"removed".to_vec()
            } else {
                b"left".to_vec()
            })
        };
        push(
            DifferenceKind::Variable,
            of,
            said(was.contains(variable)),
            said(is.contains(variable)),
            at,
        );
    }
    let (x, y) = (ending(a), ending(b));
    if x != y {
        let end = |command: &SideCommand| {
            command.activity.interval.end - command.activity.interval.start + command.at
        };
        push(DifferenceKind::Exit, name, x, y, end(a).min(end(b)));
    }
}

fn ending(command: &SideCommand) -> Option<Vec<u8>> {
    let activity = &command.activity;
    match (activity.exit, activity.signal) {
        (_, Some(signal)) => Some(format!("signal {signal}").into_bytes()),
        (Some(status), None) => Some(format!("status {status}").into_bytes()),
        (None, None) => None,
    }
}
