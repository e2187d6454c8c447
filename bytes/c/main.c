/* The byte engine of backstory: a tool of Valgrind that follows input bytes to output bytes.
 *
 * In: a program and its children, unchanged. Out: a file for each program image, in --output
 * (docs/formats/bytes.md), and one that they share.
 * Invariant: the program behaves as under Valgrind without a tool.
 *
 * Copyright: the backstory developers. GPL-2.0-or-later; see LICENSE beside this directory. */
#include "calls.h"
#include "environment.h"
#include "execute.h"
#include "implicit_labels.h"
#include "labels.h"
#include "memory.h"
#include "record.h"
#include "shadow.h"
#include "under_way.h"

Settings settings = {.directory = NULL, .address = ADDRESS_TABLES, .node_limit = 1 << 24};

static const HChar *address_word = "tables", *files_word = "user";
static Long node_limit = 1 << 24, window = 100;

static Bool take_option(const HChar *arg)
{
    if (VG_STR_CLO(arg, "--output", settings.directory)) {
    } else if (VG_STR_CLO(arg, "--address", address_word)) {
    } else if (VG_STR_CLO(arg, "--files", files_word)) {
    } else if (VG_BINT_CLO(arg, "--sets", node_limit, 1000, 400000000)) {
    } else if (VG_BOOL_CLO(arg, "--memory", settings.memory)) {
    } else if (VG_BOOL_CLO(arg, "--implicit", settings.implicit)) {
    } else if (VG_BOOL_CLO(arg, "--ask", settings.asks)) {
    } else if (VG_BOOL_CLO(arg, "--recorded", settings.recorded)) {
    } else if (VG_BINT_CLO(arg, "--window", window, 1, 1000000)) {
    } else
        return False;
    return True;
}

static void print_usage(void)
{
    VG_(printf)
    ("    --output=DIR                directory for the results (exists, and is empty)\n"
     "    --address=none|tables|all   what a look-up's result has of its index [tables]\n"
     "    --files=user|all            all: libraries and system files are inputs, too\n"
     "    --sets=N                    sets of bytes before they become coarser\n"
     "    --memory=no|yes             at the end, print what the labels take [no]\n"
     "    --implicit=no|yes           also follow what branches decide [no]\n"
     "    --window=N                  the most instructions that a branch decides [100]\n"
     "    --ask=no|yes                ask the supervisor of a deep replay for descriptors [no]\n"
     "    --recorded=no|yes           a recording observes the program [no]\n");
}

static void print_debug_usage(void)
{
    VG_(printf)("    (none)\n");
}

static void before_fork(ThreadId tid)
{
    record_flush();
}

static void in_child(ThreadId tid)
{
    under_way_in_child(tid);
    record_start(True);
}

/* A branch must end its block of code, so that a window begins between two blocks. */
static void follow_branches(void)
{
    settings.window = window;
    VG_(clo_vex_control).guest_chase = False;
    VG_(clo_vex_control).iropt_unroll_thresh = 0;
    implicit_labels_start();
}

static void after_options(void)
{
    if (!settings.directory) {
        VG_(message)(Vg_UserMsg, "--output=DIR is missing\n");
        VG_(exit)(1);
    }
    if (VG_STREQ(address_word, "none"))
        settings.address = ADDRESS_NONE;
    else if (VG_STREQ(address_word, "all"))
        settings.address = ADDRESS_ALL;
    settings.all_files = VG_STREQ(files_word, "all");
    settings.node_limit = node_limit;
    shadow_start();
    labels_start();
    if (settings.implicit)
        follow_branches();
    execute_start();
    entities_start();
    shared_start(settings.directory);
    record_start(False);
    under_way_start();
    VG_(atfork)(before_fork, NULL, in_child);
}

static void thread_starts_running(ThreadId tid, ULong blocks)
{
    static Bool first = True;
    running = thread_of(tid);
    begin_thread(tid);
    if (first) {
        first = False;
        restore_environment(VG_(get_SP)(tid));
        take_arguments(VG_(get_SP)(tid));
    }
}

static void thread_stops_running(ThreadId tid, ULong blocks)
{
    catch_up(thread_of(tid));
    resolve_registers(thread_of(tid));
}

static void new_thread(ThreadId parent, ThreadId child)
{
    reset_thread(thread_of(child));
}

static void call_wrote(CorePart part, ThreadId tid, Addr a, SizeT n)
{
    clear_labels(a, n);
}

static void call_wrote_register(CorePart part, ThreadId tid, PtrdiffT offset, SizeT n)
{
    catch_up(thread_of(tid));
    set_register_labels(thread_of(tid), offset, n, 0);
}

static void new_mapping(Addr a, SizeT n, Bool r, Bool w, Bool x, ULong handle)
{
    clear_labels(a, n);
}

static void end_of_mapping(Addr a, SizeT n)
{
    clear_labels(a, n);
}

static void signal_begins(ThreadId tid, Int signal, Bool alternative)
{
    catch_up(thread_of(tid));
    save_registers(thread_of(tid));
}

static void signal_ends(ThreadId tid, Int signal)
{
    restore_registers(thread_of(tid));
}

static void at_end(Int status)
{
    write_all_mappings();
    record_end();
    if (settings.memory)
        report_memory();
}

static void before_options(void)
{
    VG_(details_name)("backstory bytes");
    VG_(details_version)(NULL);
    VG_(details_description)("follows input bytes to output bytes");
    VG_(details_copyright_author)("GPL-2.0-or-later, the backstory developers.");
    VG_(details_bug_reports_to)("the backstory developers");
    VG_(basic_tool_funcs)(after_options, instrument_block, at_end);
    VG_(needs_command_line_options)(take_option, print_usage, print_debug_usage);
    VG_(needs_syscall_wrapper)(before_call, after_call);
    VG_(needs_client_requests)(take_request);
    VG_(track_start_client_code)(thread_starts_running);
    VG_(track_stop_client_code)(thread_stops_running);
    VG_(track_pre_thread_ll_create)(new_thread);
    VG_(track_post_mem_write)(call_wrote);
    VG_(track_post_reg_write)(call_wrote_register);
    VG_(track_new_mem_mmap)(new_mapping);
    VG_(track_die_mem_munmap)(end_of_mapping);
    VG_(track_die_mem_brk)(end_of_mapping);
    VG_(track_copy_mem_remap)(copy_labels);
    VG_(track_pre_deliver_signal)(signal_begins);
    VG_(track_post_deliver_signal)(signal_ends);
}

_Static_assert(sizeof(Words) <= 2 * REGISTERS, "the words fit behind the registers");

VG_DETERMINE_INTERFACE_VERSION(before_options)
