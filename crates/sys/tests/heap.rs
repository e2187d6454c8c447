//! The heap of a process that gives one answer. Its own `main`: only the thread that a process
//! begins with has the heap that grows.
#![allow(clippy::print_stdout)]

/// True if the kernel was advised to use huge pages for the memory at `address`.
fn is_advised(address: usize) -> bool {
    let text = std::fs::read_to_string("/proc/self/smaps").expect("/proc is there");
    let mut here = false;
    for line in text.lines() {
        let range = line.split(' ').next().and_then(|word| word.split_once('-'));
        let range = range.map(|(from, to)| {
            (
                usize::from_str_radix(from, 16),
                usize::from_str_radix(to, 16),
            )
        });
        if let Some((Ok(from), Ok(to))) = range {
            here = (from..to).contains(&address);
        } else if let (true, Some(flags)) = (here, line.strip_prefix("VmFlags:")) {
            return flags.split_whitespace().any(|flag| flag == "hg");
        }
    }
    false
}

fn main() {
    let name = "test the_heap_of_a_report_lies_in_huge_pages";
    let possible = cfg!(target_env = "gnu")
        && std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists();
    if !possible {
        println!("SKIPPED: huge pages: the kernel or the allocator has none");
        return;
    }
    backstory_sys::heap::use_huge_pages();
    let pieces: Vec<Box<[u8; 256]>> = (0..100_000).map(|n| Box::new([n as u8; 256])).collect();
    let last = std::ptr::from_ref(&**pieces.last().expect("it has some")).addr();
    assert!(
        is_advised(last),
        "{name} ... FAILED: small pages at {last:#x}"
    );
    println!("{name} ... ok");
}
