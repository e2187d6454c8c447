//! The heap of a process that gives one answer and ends.
//!
//! An answer with thousands of links is made of many small pieces. In pages of 4 KiB the kernel is asked for each few dozen of them, which
//! takes a third of such a question's time (docs/performance.md); in pages of 2 MiB it hardly is.
#![allow(unsafe_code)]

/// Bytes that the heap grows by.
const STEP: usize = 64 << 20;

/// Bytes of a huge page.
const HUGE: usize = 2 << 20;

/// Lets the heap grow in large steps, in huge pages where the kernel has them, and keeps what is freed. For a process of one thread that is
/// about to give an answer; without effect where libc is not glibc. Memory that is not used is only reserved.
pub fn use_huge_pages() {
    #[cfg(target_env = "gnu")]
    grow();
}

#[cfg(target_env = "gnu")]
fn grow() {
    // SAFETY: `mallopt` only sets numbers; the piece is given back before anybody sees it; `sbrk(0)` only asks; `huge` lies before `end`, as
    // the piece is further from it than a huge page is long; `madvise` with this advice changes no contents.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, libc::c_int::MAX);
        libc::mallopt(libc::M_MMAP_THRESHOLD, (STEP / 4) as libc::c_int);
        libc::mallopt(libc::M_TOP_PAD, STEP as libc::c_int);
        // Larger than what is left of the first step, which glibc took before it was told.
        let piece = libc::malloc(1 << 20);
        let end = libc::sbrk(0) as usize;
        // Else the heap is elsewhere (another thread's, another allocator's).
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

/// One heap for all threads to come: mapping one for each takes longer than most recorded commands run.
pub fn share_between_threads() {
    #[cfg(target_env = "gnu")]
    // SAFETY: no pointers; an unknown parameter is refused.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}
