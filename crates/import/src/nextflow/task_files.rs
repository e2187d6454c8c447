//! The files of a task's directory.

use backstory_eventlog::event::Time;

/// A task, as the files of its directory have it.
#[derive(Debug, Default)]
pub(super) struct TaskFiles {
    /// Its directory when it ran.
    pub(super) workdir: Option<Vec<u8>>,
    pub(super) name: Option<Vec<u8>>,
    /// Names and patterns below its directory.
    pub(super) outputs: Vec<Vec<u8>>,
    /// Absolute paths.
    pub(super) inputs: Vec<Vec<u8>>,
    pub(super) script: Option<Vec<u8>>,
    pub(super) exit: Option<i32>,
    pub(super) began: Option<Time>,
    pub(super) ended: Option<Time>,
    /// `.command.run` was read to the list of inputs.
    pub(super) is_whole: bool,
}

impl TaskFiles {
    /// Takes `.command.run`: Nextflow's comment with the name and the outputs, and the function
    /// that stages the inputs.
    pub(super) fn launched(&mut self, lines: &[Vec<u8>]) {
        let mut stages = false;
        for line in lines {
            let text = line.trim_ascii();
            if let Some(name) = text.strip_prefix(b"### name: ") {
                self.name = Some(unquoted(name));
            } else if let Some(output) = text.strip_prefix(b"### - ") {
                self.outputs.push(unquoted(output));
            } else if text == b"nxf_stage() {" {
                stages = true;
            } else if stages && text == b"}" {
                stages = false;
                self.is_whole = true;
            } else if stages {
                self.inputs.extend(staged(text));
            }
            if self.workdir.is_none() {
                self.workdir = directory(text);
            }
        }
    }

    /// Takes `.command.sh`.
    pub(super) fn script(&mut self, lines: &[Vec<u8>]) {
        let is_shebang = lines.first().is_some_and(|line| line.starts_with(b"#!"));
        let lines = &lines[usize::from(is_shebang)..];
        self.script = Some(lines.join(&b'\n').trim_ascii().to_vec());
    }

    /// Takes `.exitcode`, which is written when the task ends.
    pub(super) fn exited(&mut self, lines: &[Vec<u8>], changed: Time) {
        let text = lines
            .first()
            .and_then(|line| std::str::from_utf8(line).ok());
        self.exit = text.and_then(|text| text.trim().parse().ok());
        self.ended = Some(changed);
    }
}

/// The directory in a line that runs the task: `/bin/bash -ue DIR/.command.sh`.
fn directory(line: &[u8]) -> Option<Vec<u8>> {
    let all = words(line);
    let first = all.first()?;
    if !(first.ends_with(b"bash") || first.ends_with(b"sh")) {
        return None;
    }
    let path = all.iter().find_map(|word| {
        let path = word.strip_suffix(b"/.command.sh");
        path.or(word.strip_suffix(b"/.command.run"))
    })?;
    path.starts_with(b"/").then(|| path.to_vec())
}

/// The path behind `ln -s PATH NAME` and `cp -fRL PATH NAME`.
fn staged(line: &[u8]) -> Option<Vec<u8>> {
    let all = words(line);
    if !matches!(all.first()?.as_slice(), b"ln" | b"cp") {
        return None;
    }
    let is_option = |word: &&Vec<u8>| word.starts_with(b"-");
    let path = all.iter().skip(1).find(|word| !is_option(word))?;
    path.starts_with(b"/").then(|| path.clone())
}

/// The words of a line, as Nextflow escapes them: with backslashes.
fn words(line: &[u8]) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = Vec::new();
    let (mut inside, mut bytes) = (false, line.iter());
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b' ' | b'\t' => {
                inside = false;
                continue;
            }
            b'\\' => bytes.next().unwrap_or(&b'\\'),
            byte => byte,
        };
        if !std::mem::replace(&mut inside, true) {
            all.push(Vec::new());
        }
        if let Some(word) = all.last_mut() {
            word.push(*byte);
        }
    }
    all
}

/// The text in the single quotes of YAML.
fn unquoted(text: &[u8]) -> Vec<u8> {
    let inner = text
        .strip_prefix(b"'")
        .and_then(|text| text.strip_suffix(b"'"));
    let Some(inner) = inner else {
        return text.to_vec();
    };
    let mut out = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter().peekable();
    while let Some(byte) = bytes.next() {
        out.push(*byte);
        if *byte == b'\'' {
            bytes.next_if(|next| **next == b'\'');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn staged_inputs_and_the_directory_are_read_with_their_escapes() {
        assert_eq!(
            staged(b"ln -s /a\\ b/in.txt in.txt").unwrap(),
            b"/a b/in.txt"
        );
        assert_eq!(staged(b"cp -fRL /a/x y").unwrap(), b"/a/x");
        assert_eq!(staged(b"rm -f in.txt"), None);
        assert_eq!(staged(b"ln -s relative y"), None);
        let line = b"    /bin/bash -ue /w/8d/96/.command.sh";
        assert_eq!(directory(line.trim_ascii()).unwrap(), b"/w/8d/96");
        assert_eq!(directory(b"rm /w/.command.sh"), None);
        assert_eq!(unquoted(b"'it''s'"), b"it's");
    }
}
