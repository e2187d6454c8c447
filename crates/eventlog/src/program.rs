//! What the kernel opens by itself to run a program: the interpreter of a script, the dynamic loader of an ELF file, the interpreter
//! that `binfmt_misc` has for it. No call asks for these, so no recorder and no guard sees them opened; the program's first bytes
//! name them.
//!
//! Absent on purpose: opening anything. Who calls brings the bytes.

/// So much of a program is enough: its headers, and where they name an interpreter.
pub const HEAD: usize = 4096;

/// As much of a script's first line as the kernel looks at (`BINPRM_BUF_SIZE`).
const LINE: usize = 256;

/// The interpreter or loader that a program's first bytes name, as it is written there; none if the program runs by itself.
pub fn interpreter(head: &[u8]) -> Option<&[u8]> {
    match head {
        [b'#', b'!', ..] => script(&head[2..head.len().min(LINE)]),
        _ => loader(head),
    }
    .filter(|path| !path.is_empty())
}

/// The first word of a script's first line.
fn script(line: &[u8]) -> Option<&[u8]> {
    let line = line.split(|&byte| byte == b'\n').next()?;
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | 0);
    line.split(blank).find(|word| !word.is_empty())
}

/// The loader that the first bytes of an ELF file name (`PT_INTERP`); none if it is static, or no ELF file of this machine's byte order.
/// Fields lie as `elf(5)` says, for ELF-64 and ELF-32.
pub fn loader(head: &[u8]) -> Option<&[u8]> {
    const INTERP: u64 = 3;
    let wide = match head.get(..6)? {
        [0x7f, b'E', b'L', b'F', 2, 1] => true,
        [0x7f, b'E', b'L', b'F', 1, 1] => false,
        _ => return None,
    };
    let number = |at: usize, bytes: usize| -> Option<u64> {
        let field = head.get(at..at.checked_add(bytes)?)?;
        Some(
            field
                .iter()
                .rev()
                .fold(0, |sum, &byte| sum << 8 | u64::from(byte)),
        )
    };
    let (table, size, count) = match wide {
        true => (number(32, 8)?, number(54, 2)?, number(56, 2)?),
        false => (number(28, 4)?, number(42, 2)?, number(44, 2)?),
    };
    for at in 0..count {
        let entry = usize::try_from(table.checked_add(at.checked_mul(size)?)?).ok()?;
        if number(entry, 4)? != INTERP {
            continue;
        }
        let (from, length) = match wide {
            true => (number(entry + 8, 8)?, number(entry + 32, 8)?),
            false => (number(entry + 4, 4)?, number(entry + 16, 4)?),
        };
        let from = usize::try_from(from).ok()?;
        let name = head.get(from..from.checked_add(usize::try_from(length).ok()?)?)?;
        return name.split(|&byte| byte == 0).next();
    }
    None
}

/// A format that was registered with `binfmt_misc`: programs of it are run by an interpreter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    interpreter: Vec<u8>,
    by: Recognised,
}

/// What tells that a program is of a format.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Recognised {
    /// What its name ends with, after a dot.
    Extension(Vec<u8>),
    /// Bytes at an offset, of which those bits count that are set in the mask.
    Magic {
        offset: usize,
        magic: Vec<u8>,
        mask: Vec<u8>,
    },
}

impl Format {
    /// From the text of a file in `/proc/sys/fs/binfmt_misc`; none if the format is disabled, or not understood.
    pub fn parse(text: &str) -> Option<Format> {
        let mut lines = text.lines();
        if lines.next() != Some("enabled") {
            return None;
        }
        let (mut interpreter, mut extension, mut offset, mut magic, mut mask) =
            (None, None, 0, None, None);
        for line in lines {
            let (key, value) = line.split_once(' ').unwrap_or((line, ""));
            match key {
                "interpreter" => interpreter = Some(value.as_bytes().to_vec()),
                "extension" => extension = value.strip_prefix('.').map(|e| e.as_bytes().to_vec()),
                "offset" => offset = value.parse().ok()?,
                "magic" => magic = Some(bytes(value)?),
                "mask" => mask = Some(bytes(value)?),
                _ => {}
            }
        }
        let by = match (extension, magic) {
            (Some(extension), _) => Recognised::Extension(extension),
            (None, Some(magic)) => Recognised::Magic {
                offset,
                mask: mask.unwrap_or_else(|| vec![0xff; magic.len()]),
                magic,
            },
            (None, None) => return None,
        };
        Some(Format {
            interpreter: interpreter?,
            by,
        })
    }

    /// The interpreter of the program at `path` that begins with `head`, if it is of this format.
    pub fn interpreter(&self, path: &[u8], head: &[u8]) -> Option<&[u8]> {
        let is = match &self.by {
            Recognised::Extension(extension) => {
                let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
                name.iter()
                    .rposition(|byte| *byte == b'.')
                    .is_some_and(|dot| name[dot + 1..] == **extension)
            }
            Recognised::Magic {
                offset,
                magic,
                mask,
            } => {
                let there = head.get(*offset..).and_then(|rest| rest.get(..magic.len()));
                let bits = |there: &[u8]| {
                    there
                        .iter()
                        .zip(magic)
                        .zip(mask)
                        .all(|((a, b), mask)| (a ^ b) & mask == 0)
                };
                there.is_some_and(bits)
            }
        };
        is.then_some(self.interpreter.as_slice())
    }
}

/// Bytes from pairs of hexadecimal digits.
fn bytes(hex: &str) -> Option<Vec<u8>> {
    let pairs = hex.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scripts_interpreter_is_the_first_word_of_its_first_line() {
        assert_eq!(
            interpreter(b"#! \t/usr/bin/env sh\nexit\n"),
            Some(&b"/usr/bin/env"[..])
        );
        assert_eq!(interpreter(b"#!bin/own\n"), Some(&b"bin/own"[..]));
        for none in [
            &b"#!\n/bin/sh\n"[..],
            b"#!",
            b"text",
            b"",
            b"\x7fELF\x02\x01",
        ] {
            assert_eq!(interpreter(none), None);
        }
    }

    #[test]
    fn this_programs_loader_is_found_and_cut_headers_are_none() {
        let whole = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let head = &whole[..HEAD];
        let found = interpreter(head).expect("a dynamically linked test");
        assert!(found.starts_with(b"/lib"), "{found:?}");
        for cut in 0..800 {
            let _ = interpreter(&head[..cut]);
        }
    }

    #[test]
    fn a_registered_format_is_known_by_its_bytes_or_its_name() {
        let text =
            "enabled\ninterpreter /usr/bin/qemu-arm\nflags: OCF\noffset 1\nmagic 4c00\nmask ff00\n";
        let arm = Format::parse(text).unwrap();
        assert_eq!(
            arm.interpreter(b"/p", b"\x7fL!"),
            Some(&b"/usr/bin/qemu-arm"[..])
        );
        assert_eq!(arm.interpreter(b"/p", b"\x7fM!"), None);
        assert_eq!(arm.interpreter(b"/p", b"\x7fL"), None, "too short");
        let jar = Format::parse("enabled\ninterpreter /usr/bin/jexec\nflags: \nextension .jar\n")
            .unwrap();
        assert_eq!(
            jar.interpreter(b"/d/a.jar", b""),
            Some(&b"/usr/bin/jexec"[..])
        );
        assert_eq!(jar.interpreter(b"/d.jar/a", b""), None);
        let off = text.replace("enabled", "disabled");
        for none in [
            off.as_str(),
            "enabled\n",
            "enabled\ninterpreter /x\nmagic 4\n",
            "",
        ] {
            assert!(Format::parse(none).is_none_or(|f| f.interpreter(b"/p", b"\x7fL!").is_none()));
        }
    }
}
