"""Each sample of `profiles` counts for one part of a recording, before or after the prompt."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from backstory_bench import load_profile, profile_parts, profiles
from backstory_bench.apart import measured
from backstory_bench.cli import main
from backstory_bench.perf_script import Fork, Lost, Named, Sample, event, events
from backstory_bench.profile_parts import AFTER, BEFORE, Roles, Span, attributed
from backstory_bench.report import all_rows, write_rows

ROOT = 100
KERNEL = "ffffffff81a00000"
PROGRAM = "/usr/bin/backstory"

# A recorded `sh` that starts `tar`; the supervisor executes the indexer, which starts `git`.
RECORDED = f"""
         swapper       0/0          1.000000:  {KERNEL} pv_native_safe_halt ([kernel.kallsyms])
         python3     100/100        1.100000: PERF_RECORD_FORK(101:101):(100:100)
       backstory     101/101        1.110000: PERF_RECORD_COMM exec: backstory:101/101
       backstory     101/101        1.120000:      55f000001000 backstory_cli::record::run ({PROGRAM})
       backstory     101/101        1.200000: PERF_RECORD_FORK(102:102):(101:101)
  backstory-keep     102/102        1.210000: PERF_RECORD_COMM: backstory-keep:102/102
  backstory-keep     102/102        1.220000: PERF_RECORD_FORK(103:103):(102:102)
 backstory-super     103/103        1.230000: PERF_RECORD_COMM: backstory-super:103/103
 backstory-super     103/103        1.240000: PERF_RECORD_FORK(103:104):(103:103)
           drain     103/104        1.250000: PERF_RECORD_COMM: drain:103/104
           drain     103/104        1.260000:      55f000002000 backstory_eventlog::writer::append ({PROGRAM})
           guard     103/105        1.270000:  {KERNEL} seccomp_notify_ioctl ([kernel.kallsyms])
      guard-keep     103/106        1.280000:  {KERNEL} shmem_file_write_iter ([kernel.kallsyms])
            deep     103/108        1.285000:      55f000002050 ZSTD_compressBlock_fast ({PROGRAM})
 backstory-super     103/103        1.290000:      55f000002100 <core::iter::Map<I, F> as Iterator>::next ({PROGRAM})
           start     103/107        1.300000: PERF_RECORD_FORK(110:110):(103:107)
              sh     110/110        1.310000: PERF_RECORD_COMM exec: sh:110/110
              sh     110/110        1.320000: PERF_RECORD_FORK(111:111):(110:110)
             tar     111/111        1.330000: PERF_RECORD_COMM exec: tar:111/111
             tar     111/111        1.340000:      55f000003000 [unknown] (/usr/bin/tar)
             tar     111/111        1.350000:      7f0000001000 bs_log (/tmp/a b/linux-backstory.so (deleted))
             tar     111/111        1.360000:  {KERNEL} __seccomp_filter ([kernel.kallsyms])
             tar     111/111        1.370000:  {KERNEL} do_syscall_64 ([kernel.kallsyms])
     kworker/0:1      20/20         1.380000:  {KERNEL} process_one_work ([kernel.kallsyms])
       backstory     103/103        2.010000: PERF_RECORD_COMM exec: backstory:103/103
       backstory     103/103        2.020000:      55f000004000 blake3_hash_many_avx512 ({PROGRAM})
       backstory     103/103        2.030000:      55f000004100 ZSTD_compressBlock_fast ({PROGRAM})
       backstory     103/103        2.040000:      55f000004200 balance_nonroot ({PROGRAM})
       backstory     103/103        2.050000:      55f000004300 backstory_graph::fold::Fold<S>::open ({PROGRAM})
       backstory     103/103        2.060000:  {KERNEL} link_path_walk ([kernel.kallsyms])
       backstory     103/103        2.070000:  {KERNEL} native_queued_spin_lock_slowpath ([kernel.kallsyms])
       backstory     103/103        2.080000:      7f0000002000 __memmove_avx_unaligned_erms (/usr/lib/libc.so.6)
       backstory     103/103        2.090000: PERF_RECORD_FORK(120:120):(103:103)
             git     120/120        2.100000: PERF_RECORD_COMM exec: git:120/120
             git     120/120        2.110000:      55f000005000 [unknown] (/usr/bin/git)
             git     120/120        9.000000:      55f000005000 [unknown] (/usr/bin/git)
"""
SPAN = Span(began=1.0, prompt=2.0, ended=3.0)
SYMBOLS = """
   Num:    Value          Size Type    Bind   Vis      Ndx Name
     1: 0000000000000000     0 FILE    LOCAL  DEFAULT  ABS sqlite3.c
     2: 00000000012922f4  5578 FUNC    LOCAL  DEFAULT   16 balance_nonroot
     3: 0000000000000000     0 FILE    LOCAL  DEFAULT  ABS backstory.32a9-cgu.0
     4: 00000000012922f4    20 FUNC    LOCAL  DEFAULT   16 _ZN4core3fooE
"""


def samples(text: str) -> Mapping[tuple[str, str], int]:
    """Returns the number of samples of each part and phase."""
    roles = Roles(ROOT, {"backstory"})
    sources = profile_parts.symbol_sources(SYMBOLS)
    return attributed(events(text.splitlines()), roles, SPAN, sources).samples


def test_each_sample_of_a_recording_counts_for_the_part_that_worked() -> None:
    before = (
        *(profile_parts.LAUNCHER, profile_parts.DRAIN, profile_parts.GUARD, profile_parts.COPIER),
        *(profile_parts.COMPRESSOR, profile_parts.SUPERVISOR, profile_parts.PROGRAM, profile_parts.RECORDER),
        *(profile_parts.FILTER, profile_parts.PROGRAM_KERNEL, profile_parts.OTHERS, profile_parts.IDLE),
    )
    after = (
        *(profile_parts.HASHING, profile_parts.COMPRESSION, profile_parts.DATABASE, profile_parts.FOLD),
        *(profile_parts.LOOK_UPS, profile_parts.INDEX_KERNEL, profile_parts.INDEX, profile_parts.INDEX_PROGRAMS),
    )
    expected = {(part, BEFORE): 1 for part in before} | {(part, AFTER): 1 for part in after}
    assert samples(RECORDED) == expected
    assert {part for part, _ in expected} == set(profile_parts.PARTS)


def test_a_native_program_has_no_part_of_a_recording() -> None:
    text = f"""
          python3     100/100        1.100000: PERF_RECORD_FORK(101:101):(100:100)
               sh     101/101        1.110000: PERF_RECORD_COMM exec: sh:101/101
            drain     101/102        1.120000:      55f000001000 main (/usr/bin/sh)
            drain     101/102        1.130000:  {KERNEL} do_syscall_64 ([kernel.kallsyms])
    """
    assert samples(text) == {(profile_parts.PROGRAM, BEFORE): 1, (profile_parts.PROGRAM_KERNEL, BEFORE): 1}


def test_the_number_of_an_ended_process_that_another_one_gets_is_not_of_the_run() -> None:
    text = f"""
          python3     100/100        1.100000: PERF_RECORD_FORK(101:101):(100:100)
             cron      50/50         1.200000: PERF_RECORD_FORK(101:101):(50:50)
             cron     101/101        1.300000:  {KERNEL} do_syscall_64 ([kernel.kallsyms])
    """
    assert samples(text) == {(profile_parts.OTHERS, BEFORE): 1}


def test_lines_of_samples_forks_and_names_are_read_with_blanks_in_names() -> None:
    found = event("  Web Content  7/8  12.500000:  7f00000000aa <A as B<C, D>>::f(int) (/opt/a (b)/x.so)")
    assert found == Sample("Web Content", 7, 12.5, 0x7F00000000AA, "<A as B<C, D>>::f(int)", "/opt/a (b)/x.so")
    assert not found.in_kernel
    kernel = event(f"  sh  7/7  12.500000:  {KERNEL} [unknown] ([unknown])")
    assert isinstance(kernel, Sample) and kernel.in_kernel
    assert event("  sh 7/7  1.000000: PERF_RECORD_FORK(9:9):(7:7)") == Fork(9, 7)
    assert event("  sh 7/7  1.000000: PERF_RECORD_COMM exec: a:b c:9/9") == Named(9, "a:b c", True)
    assert event("  sh 7/7  1.000000: PERF_RECORD_LOST lost 12") == Lost(12)


@pytest.mark.parametrize(
    "line",
    [
        "  sh 7/7  1.000000: PERF_RECORD_FORK(7:9):(7:7)",
        "  sh 7/9  1.000000: PERF_RECORD_COMM: worker:7/9",
        "  sh 7/7  1.000000: PERF_RECORD_EXIT(7:7):(7:7)",
        "",
    ],
)
def test_threads_and_ends_are_no_events_of_processes(line: str) -> None:
    assert event(line) is None


def test_what_perf_has_lost_is_counted() -> None:
    text = "  sh 7/7  1.0: PERF_RECORD_LOST lost 12\n  sh 7/7  1.1: PERF_RECORD_LOST lost 3"
    assert attributed(events(text.splitlines()), Roles(ROOT, set()), SPAN, {}).lost == 15


def rows(collector: str, seconds: Mapping[tuple[str, str], list[float]]) -> list[dict[str, object]]:
    """Returns the rows of a workload under a collector, with the seconds of each round."""
    return [
        dict(zip(profiles.FIELDS, ["tar", collector, number, part, phase, value], strict=True))
        for (part, phase), values in seconds.items()
        for number, value in enumerate(values)
    ]


def test_the_table_has_medians_and_shares_of_native_time_without_small_parts() -> None:
    native = {(profile_parts.PROGRAM, BEFORE): [2.0, 1.0, 9.0], (profile_parts.IDLE, BEFORE): [4.0, 4.0, 4.0]}
    recorded = {
        (profile_parts.PROGRAM, BEFORE): [2.5, 2.5, 2.5],
        (profile_parts.DRAIN, BEFORE): [0.002, 0.002, 0.002],
        (profile_parts.HASHING, AFTER): [0.2, 0.4],
    }
    found = profiles.summary([*rows("backstory", recorded), *rows("none", native)])
    assert found == [
        "| tar | native | `backstory` |",
        "| --- | ---: | ---: |",
        "| **before the prompt** | 2.000 s (100.0%) | 2.502 s (125.1%) |",
        "| program | 2.000 s (100.0%) | 2.500 s (125.0%) |",
        "| idle | 4.000 s (200.0%) | 0.000 s (0.0%) |",
        "| **after the prompt** | 0.000 s (0.0%) | 0.200 s (10.0%) |",
        "| indexer: hashing | 0.000 s (0.0%) | 0.200 s (10.0%) |",
        "| **both** | 2.000 s (100.0%) | 2.702 s (135.1%) |",
    ]


def test_tables_prints_the_tables_of_a_profile_and_puts_them_into_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "docs" / "benchmark" / "profiles.md"
    page.parent.mkdir(parents=True)
    page.write_text("<!-- profiles -->\n<!-- end of profiles -->\n")
    file = tmp_path / "2026-11-29-profiles.csv"
    write_rows(file, profiles.FIELDS, rows("none", {(profile_parts.PROGRAM, BEFORE): [2.0, 1.0, 3.0]}))
    assert main(["tables", str(file), "--root", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    for text in (printed, page.read_text()):
        assert "| tar | native |\n| --- | ---: |\n| **before the prompt** | 2.000 s (100.0%) |\n" in text
        assert "Medians of 3 rounds (`bench/runs/2026-11-29-profiles.csv`)." in text


def test_without_perf_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SystemExit, match=r"perf is not installed \(Debian package linux-perf\)"):
        main(["profiles"])


def test_a_command_apart_is_measured_until_its_last_process_ends(tmp_path: Path) -> None:
    words = [sys.executable, "-c", "import os, time; os.fork() or time.sleep(0.3)"]
    pid, cost = measured(words, tmp_path, os.environ, tmp_path)
    assert pid != os.getpid() and cost.status == 0
    assert cost.background > 0.1


def test_a_profiler_that_fails_is_an_error_with_its_words(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no such event"):
        measured(["true"], tmp_path, os.environ, tmp_path, ["sh", "-c", "echo no such event >&2; exit 1", "--"])


def test_a_profile_has_the_program_before_the_prompt(tmp_path: Path) -> None:
    if reason := load_profile.missing():
        pytest.skip(f"SKIPPED: {reason}")
    out = tmp_path / "profiles.csv"
    words = ["--workloads", "true", "--collectors", "none", "--rounds", "1"]
    assert main(["profiles", *words, "--workdir", str(tmp_path), "--out", str(out)]) == 0
    seconds = {(row["part"], row["phase"]): float(row["seconds"]) for row in all_rows(out)}
    assert seconds[profile_parts.PROGRAM_KERNEL, BEFORE] > 0
    # A container may have a filter of its own.
    own = {profile_parts.PROGRAM, profile_parts.PROGRAM_KERNEL, profile_parts.FILTER}
    assert not {part for part, _ in seconds} & (set(profile_parts.OWN) - own)
