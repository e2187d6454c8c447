//! `peers`: lists the addresses that the processes of a run talked to, or tried to.

use backstory_ordering::SmallSort;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use backstory_query as query;
use backstory_query::answer::{NameSource, PeerContact};

use super::{Outcome, answer, here};
use crate::args::runs::RunArgs;
use crate::current_store::CurrentStore;
use crate::error::one_line;
use crate::json::{self, Value};
use crate::text::line::{Line, columns, width};
use crate::text::shell::{Call, SHORT};
use crate::text::style::{Role, Style};
use crate::text::when;

/// Prints the peers of a run.
pub fn run(args: RunArgs, store: Option<&Path>) -> Outcome {
    let current = CurrentStore::open(store)?;
    let run = current.run(args.run.as_deref())?;
    let peers = query::peers(&current.store, &run)?;
    answer(|out| match args.json {
        true => json::lines(out, peers.iter().map(json)),
        false => text(&peers, Style::of_stdout(), out),
    })
}

fn json(peer: &PeerContact) -> Value {
    let names = peer.names.iter().map(|name| {
        Value::Object(vec![
            ("name", (&name.name).into()),
            ("from", source(name.source).into()),
        ])
    });
    let activity = &peer.activity;
    Value::Object(vec![
        ("address", (&peer.address).into()),
        ("names", Value::Array(names.collect())),
        ("role", if peer.serves { "server" } else { "client" }.into()),
        ("connected", peer.connected.into()),
        ("errno", peer.errno.into()),
        ("sent", peer.sent.into()),
        ("received", peer.received.into()),
        ("bytes", bytes(peer.bytes)),
        ("resolver", is_resolver(&peer.address).into()),
        ("start", Value::Time(peer.interval.start)),
        ("end", Value::Time(peer.interval.end)),
        ("id", peer.id.into()),
        ("pid", activity.pid.into()),
        ("exec_path", activity.exec_path.as_ref().into()),
        ("argv", Value::array(&activity.argv)),
    ])
}

fn bytes(bytes: Option<(u64, u64)>) -> Value {
    bytes.map_or(Value::Null, |(sent, received)| {
        Value::Object(vec![("sent", sent.into()), ("received", received.into())])
    })
}

fn source(source: NameSource) -> &'static str {
    match source {
        NameSource::Lookup => "lookup",
        NameSource::HostsFile => "/etc/hosts",
        NameSource::Arguments => "arguments",
    }
}

/// True for the address of a name server or of a program that looks names up.
fn is_resolver(address: &[u8]) -> bool {
    let programs: [&[u8]; 4] = [b"resolve/", b"nscd/socket", b"nss-", b"avahi-daemon/socket"];
    query::is_name_server(address)
        || address.starts_with(b"unix:")
            && programs
                .iter()
                .any(|part| address.windows(part.len()).any(|window| window == *part))
}

/// True for a datagram socket that libc connected without using it, to find the best of several
/// addresses. The process then talked to the same address over TCP.
fn is_probe(peer: &PeerContact, all: &[PeerContact]) -> bool {
    let Some(rest) = peer.address.strip_prefix(b"udp:") else {
        return false;
    };
    let is_same = |other: &PeerContact| other.address.strip_prefix(b"tcp:") == Some(rest);
    !peer.sent && !peer.received && all.iter().any(is_same)
}

fn text(peers: &[PeerContact], style: Style, out: &mut impl Write) -> io::Result<()> {
    if peers.is_empty() {
        return writeln!(
            out,
            "No process of the run talked to another over a socket address."
        );
    }
    let mut by_address: BTreeMap<&[u8], Vec<&PeerContact>> = BTreeMap::new();
    for peer in peers.iter().filter(|peer| !is_probe(peer, peers)) {
        by_address.entry(&peer.address).or_default().push(peer);
    }
    let mut order: Vec<_> = by_address.into_values().collect();
    order.sort_small_by_key(|contacts| contacts[0].interval.start);
    let (columns, here) = (columns(), here());
    let label = |address: &[u8]| one_line(&String::from_utf8_lossy(address));
    let wide = order
        .iter()
        .map(|contacts| width(&label(&contacts[0].address)));
    let wide = wide.max().unwrap_or(0).min(40);
    let done = peers.iter().map(|contact| outcome(contact).len()).max();
    let done = done.unwrap_or(0).clamp(20, 44);
    for contacts in &order {
        for (at, contact) in contacts.iter().enumerate() {
            let address = if at == 0 {
                label(&contact.address)
            } else {
                String::new()
            };
            let mut line = Line::default();
            line.add(Role::Subject, format!("{address:<wide$}"));
            let role = match contact.connected {
                Some(false) => Role::Bad,
                Some(true) => Role::Good,
                None => Role::Dim,
            };
            line.add(role, format!("  {:<done$}", outcome(contact)));
            let call = Call::of(&contact.activity);
            line.add(None, "  ");
            line.add_flexible(Role::Command, &one_line(&call.line(&here, SHORT).0));
            if at == 0 && !contact.names.is_empty() {
                line.add(Role::Dim, format!("  ({})", names(contact)));
            }
            writeln!(out, "{}", line.text(style, columns))?;
        }
    }
    Ok(())
}

fn outcome(contact: &PeerContact) -> String {
    if contact.connected == Some(false) {
        let errno = contact.errno.unwrap_or_default();
        return format!("failed: {}", backstory_sys::describe(errno));
    }
    if contact.connected.is_none() {
        return "outcome not known".to_owned();
    }
    if let Some((sent, received)) = contact.bytes {
        let (sent, received) = (when::size(sent), when::size(received));
        let role = if contact.serves { "served: " } else { "" };
        return format!("{role}sent {sent}, received {received}");
    }
    let done = match (contact.sent, contact.received) {
        (true, true) => "sent and received",
        (true, false) => "sent",
        (false, true) => "received",
        (false, false) => "connected",
    };
    match contact.serves {
        true => format!("served: {done}"),
        false => done.to_owned(),
    }
}

/// `example.org, by its arguments`
fn names(contact: &PeerContact) -> String {
    let named = contact.names.iter().map(|name| {
        let by = match name.source {
            NameSource::Lookup => "",
            NameSource::HostsFile => " in /etc/hosts",
            NameSource::Arguments => " by its arguments",
        };
        format!("{}{by}", one_line(&name.name))
    });
    named.collect::<Vec<_>>().join(", ")
}
