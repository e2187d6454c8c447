//! The arena, and the file system that it is made in.

use backstory_arena::Arena;

use crate::file_systems::{Room, bytes};
use crate::finding::Finding;

const NAME: &str = "shared memory";
const DIRECTORY: &str = "/dev/shm";
/// With less room a busy run may fill it.
const ENOUGH: u64 = 64 << 20;
const MOUNT: &str =
    "Mount it larger: mount -o remount,size=256m /dev/shm; in a container: --shm-size=256m.";

/// Makes an arena, and removes it.
pub fn arena() -> Finding {
    let id = format!("doctor-{}", std::process::id());
    let made = Arena::create(&id, 0);
    let named = match &made {
        Ok(arena) => {
            let named = arena.path().is_some();
            arena.remove();
            named
        }
        Err(error) => {
            return Finding::fails(
                NAME,
                format!("no arena can be made: {error}"),
                "`record` cannot start a command.",
                "Allow the user more memory, a larger file (`ulimit -f`) or more descriptors \
                 (`ulimit -n`).",
            );
        }
    };
    let room = Room::of(DIRECTORY.as_ref());
    let found = match &room {
        Some(room) => format!(
            "{DIRECTORY}: {} of {} are free{}",
            bytes(room.free),
            bytes(room.size),
            if room.no_exec {
                " (noexec, which does not matter)"
            } else {
                ""
            }
        ),
        None => format!("{DIRECTORY} does not exist"),
    };
    if !named {
        return Finding::limited(
            NAME,
            format!("{found}; the arena is a memory file instead"),
            "Programs that cannot open the arena through /proc are watched by the guard alone.",
            MOUNT,
        );
    }
    if room.is_some_and(|room| room.free < ENOUGH) {
        return Finding::limited(
            NAME,
            found,
            "If it is full while a command runs, operations are lost and counted.",
            MOUNT,
        );
    }
    Finding::works(NAME, found)
}
