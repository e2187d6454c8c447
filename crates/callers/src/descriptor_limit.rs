//! The limit of descriptors: a source has one for each process that it knows.

use rustix::process::{Resource, Rlimit};

/// Lets this process have as many descriptors as the kernel permits, and a million as root.
pub fn raise_descriptor_limit() {
    let present = rustix::process::getrlimit(Resource::Nofile);
    let most = match rustix::process::geteuid().is_root() {
        true => Some(1 << 20).max(present.maximum),
        false => present.maximum,
    };
    let wanted = Rlimit {
        current: most,
        maximum: most,
    };
    // A container may refuse more. Then the hard limit is what there is.
    if rustix::process::setrlimit(Resource::Nofile, wanted).is_err() {
        let wanted = Rlimit {
            current: present.maximum,
            ..present
        };
        let _ = rustix::process::setrlimit(Resource::Nofile, wanted);
    }
}
