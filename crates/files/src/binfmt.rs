//! Registrations registered with `binfmt_misc`: the kernel runs a program of such a format with an
//! interpreter.
//!
//! Absent on purpose: opening anything. The caller passes the text of a registration and a
//! program's first bytes.

/// A format registered with `binfmt_misc`: the kernel runs programs of this format with an
/// interpreter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    interpreter: Vec<u8>,
    by: Recognised,
}

/// How the kernel recognises a program of the format.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Recognised {
    /// Its name ends with a dot and these bytes.
    Extension(Vec<u8>),
    /// It has these bytes at an offset; only bits that are set in the mask are compared.
    Magic {
        offset: usize,
        magic: Vec<u8>,
        mask: Vec<u8>,
    },
}

impl Registration {
    /// Parses the text of a file in `/proc/sys/fs/binfmt_misc`; `None` if the format is disabled or
    /// the text has another form.
    pub fn parse(text: &str) -> Option<Registration> {
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
        Some(Registration {
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
    fn a_registered_format_is_known_by_its_bytes_or_its_name() {
        let text =
            "enabled\ninterpreter /usr/bin/qemu-arm\nflags: OCF\noffset 1\nmagic 4c00\nmask ff00\n";
        let arm = Registration::parse(text).unwrap();
        assert_eq!(
            arm.interpreter(b"/p", b"\x7fL!"),
            Some(&b"/usr/bin/qemu-arm"[..])
        );
        assert_eq!(arm.interpreter(b"/p", b"\x7fM!"), None);
        assert_eq!(arm.interpreter(b"/p", b"\x7fL"), None, "too short");
        let jar =
            Registration::parse("enabled\ninterpreter /usr/bin/jexec\nflags: \nextension .jar\n")
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
            assert!(
                Registration::parse(none).is_none_or(|f| f.interpreter(b"/p", b"\x7fL!").is_none())
            );
        }
    }
}
