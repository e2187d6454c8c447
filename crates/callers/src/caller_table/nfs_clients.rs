//! The clients of NFS servers. A thread of the server sends their requests.
//!
//! A request has the user and the group for which the server acts. It does not say which machine or
//! which program of the client it comes from. So the clients with one user and group are one
//! activity inside the server.
//!
//! The kernel's server acts as the client's user in all it does. A server that is a program does so
//! when it makes and changes files. It reads with its own user. Its reads belong to an activity
//! without a user. A client with a user can have got what that activity read: it is a possible
//! source of what the client writes.
//!
//! Invariants:
//!
//! - An operation for a client is no doing of the server's program.
//! - A file that a client has read is a source of all that it writes later. It is a possible source
//!   if the server read it with its own user.

use super::{Caller, CallerTable, KnownCallers};
use crate::operation_log::OperationLog;
use crate::process_facts::ProcessFacts;
use backstory_sys::clock::counter;
use std::collections::HashMap;

/// Programs that serve NFS: nfs-ganesha and UNFS3.
const PROGRAMS: [&str; 2] = ["ganesha.nfsd", "unfsd"];
/// The name of the threads of the kernel's server.
const KERNEL_THREAD: &[u8] = b"nfsd";

/// A server: the kernel's, which has many threads, or a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum NfsServer {
    Kernel,
    Program { pid: u32, name: &'static str },
}

impl NfsServer {
    /// The server that a process belongs to.
    pub(super) fn of(facts: &ProcessFacts) -> Option<NfsServer> {
        let Some(path) = &facts.program else {
            let name = facts.kernel_thread.as_deref();
            return (name == Some(KERNEL_THREAD)).then_some(NfsServer::Kernel);
        };
        let file = path.rsplit(|byte| *byte == b'/').next()?;
        let name = PROGRAMS.into_iter().find(|name| name.as_bytes() == file)?;
        Some(NfsServer::Program {
            pid: facts.pid,
            name,
        })
    }

    fn name(self) -> &'static str {
        match self {
            NfsServer::Kernel => "the kernel",
            NfsServer::Program { name, .. } => name,
        }
    }
}

/// The user and the group for which a server acts. `None` if it acts with its own user.
type User = Option<(u32, u32)>;

#[derive(Debug)]
struct NfsClient {
    caller: Caller,
    /// The version of the knowledge of all clients that it can have got.
    knows: u64,
}

#[derive(Debug, Default)]
struct ServedClients {
    clients: HashMap<User, NfsClient>,
    /// The activity without a user has read since the last version.
    has_read: bool,
    /// Counts the versions of what it has read.
    version: u64,
}

/// The clients of all servers.
#[derive(Debug)]
pub(super) struct NfsClients {
    /// The user of the servers that are programs.
    own_user: u32,
    servers: HashMap<NfsServer, ServedClients>,
    activities: HashMap<u32, (NfsServer, User)>,
}

impl NfsClients {
    /// Forgets the clients of a process that has ended, and records their end.
    pub(super) fn forget(&mut self, pid: u32, log: &OperationLog) {
        let of_process =
            |server: &NfsServer| matches!(server, NfsServer::Program { pid: of, .. } if *of == pid);
        let Some(server) = self.servers.keys().copied().find(of_process) else {
            return;
        };
        let served = self.servers.remove(&server).unwrap_or_default();
        for client in served.clients.values() {
            self.activities.remove(&client.caller.ids.pid);
            log.gone(client.caller.ids.pid, counter());
        }
    }

    /// A client reads contents.
    fn reads(&mut self, caller: Caller) {
        if let Some((server, None)) = self.activities.get(&caller.ids.pid)
            && let Some(served) = self.servers.get_mut(server)
        {
            served.has_read = true;
        }
    }

    /// A client is about to write contents.
    fn writes(&mut self, caller: Caller, log: &OperationLog) {
        let Some((server, user)) = self.activities.get(&caller.ids.pid) else {
            return;
        };
        let Some(served) = self.servers.get_mut(server).filter(|_| user.is_some()) else {
            return;
        };
        let thing = format!("what clients of {} have read", server.name());
        let number = match server {
            NfsServer::Kernel => 0,
            NfsServer::Program { pid, .. } => *pid as i32,
        };
        if std::mem::take(&mut served.has_read)
            && let Some(reader) = served.clients.get(&None)
        {
            served.version += 1;
            log.adds(reader.caller.ids.pid, (&thing, number), counter());
        }
        if let Some(client) = served.clients.get_mut(user)
            && client.knows < served.version
        {
            client.knows = served.version;
            log.may_use(caller.ids.pid, (&thing, number), counter());
        }
    }
}

impl CallerTable {
    /// Lets the table know NFS servers. `own_user` is the user of those that are programs.
    pub fn serve_nfs(&self, own_user: u32) {
        self.known().nfs = Some(NfsClients {
            own_user,
            servers: HashMap::new(),
            activities: HashMap::new(),
        });
    }

    /// The clients for which a server sends a request with this user and group. The caller itself,
    /// if it is no NFS server.
    pub fn nfs_client(&self, caller: Caller, user: u32, group: u32) -> Caller {
        let mut known = self.known();
        let process = known.processes.get(&caller.ids.pid);
        match process.and_then(|process| process.server) {
            Some(server) => known.client_of(server, caller, (user, group)),
            None => caller,
        }
    }

    /// A caller has read contents. It may be an NFS client.
    pub fn nfs_reads(&self, caller: Caller) {
        if let Some(clients) = &mut self.known().nfs {
            clients.reads(caller);
        }
    }

    /// A caller is about to write contents. It may be an NFS client.
    pub fn nfs_writes(&self, caller: Caller) {
        let known = &mut *self.known();
        if let Some(clients) = &mut known.nfs {
            clients.writes(caller, &known.log);
        }
    }
}

impl KnownCallers {
    fn client_of(&mut self, server: NfsServer, by: Caller, (user, group): (u32, u32)) -> Caller {
        let Some(clients) = &self.nfs else {
            return by;
        };
        let own = server != NfsServer::Kernel && user == clients.own_user;
        let user = (!own).then_some((user, group));
        let served = clients.servers.get(&server);
        if let Some(client) = served.and_then(|served| served.clients.get(&user)) {
            return client.caller;
        }
        let caller = self.unknown();
        let what = format!("NFS client of {}", server.name());
        let text = match user {
            Some((user, group)) => format!("user {user}, group {group}"),
            None => "user not told".to_owned(),
        };
        let (activity, inside) = (caller.ids.pid, by.ids.pid);
        self.log.work(activity, inside, &what, &text, counter());
        if let Some(clients) = &mut self.nfs {
            let served = clients.servers.entry(server).or_default();
            served.clients.insert(user, NfsClient { caller, knows: 0 });
            clients.activities.insert(activity, (server, user));
        }
        caller
    }
}
