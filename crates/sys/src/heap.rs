//! The heap of a process that makes one report and ends.
//!
//! A report with thousands of links is made of many small blocks. With pages of 4 KiB the kernel
//! maps memory for every few dozen blocks. That takes a third of the time of such a question
//! (docs/performance.md). In pages of 2 MiB that time is small.
#![allow(unsafe_code)]

/// Bytes that the heap grows by.
#[cfg(target_env = "gnu")]
const STEP: usize = 64 << 20;

/// Bytes of a huge page.
#[cfg(target_env = "gnu")]
const HUGE: usize = 2 << 20;

/// Lets the heap grow in large steps and in huge pages, and keeps what is freed. For a process of
/// one thread that is about to make a report. Without effect where libc is not glibc or the kernel
/// has no huge pages. Unused memory is only reserved.
pub fn use_huge_pages() {
    #[cfg(target_env = "gnu")]
    grow();
}

#[cfg(target_env = "gnu")]
fn grow() {
    // SAFETY: `mallopt` only sets numbers, and `sbrk(0)` only reads. The block is freed unused.
    // `huge` lies before `end`: the block is further from it than a huge page is long. `madvise`
    // with this advice changes no contents.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, libc::c_int::MAX);
        libc::mallopt(libc::M_MMAP_THRESHOLD, (STEP / 4) as libc::c_int);
        libc::mallopt(libc::M_TOP_PAD, STEP as libc::c_int);
        // The block is larger than the rest of the first step, which glibc took before the
        // parameters were set.
        let piece = libc::malloc(1 << 20);
        let end = libc::sbrk(0) as usize;
        // Otherwise the block is in another heap: another thread's, or another allocator's.
        if !piece.is_null()
            && ((piece as usize) + 2 * HUGE..=(piece as usize) + 2 * STEP).contains(&end)
        {
            let skipped = (piece as usize).next_multiple_of(HUGE) - piece as usize;
            let huge = piece.byte_add(skipped);
            libc::madvise(
                huge,
                (end - huge as usize) / HUGE * HUGE,
                libc::MADV_HUGEPAGE,
            );
        }
        libc::free(piece);
    }
}

/// Has all threads that are started from now on share one heap: mapping one for each takes longer
/// than most recorded commands run.
pub fn share_between_threads() {
    #[cfg(target_env = "gnu")]
    // SAFETY: no pointers; an unknown parameter is refused.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}
