/*
 * Prints every size, offset, constant and operation of the header, one "NAME VALUE" per line.
 * layout.rs compares them.
 */
#include <stddef.h>
#include <stdio.h>

#include "backstory_abi.h"

#define NUMBER(name) printf(#name " %lld\n", (long long)(name))
#define TEXT(name) printf(#name " %s\n", name)
#define SIZE(type) printf(#type " %zu\n", sizeof(struct type))
#define FIELD(type, field) \
    printf(#type "." #field " %zu+%zu\n", offsetof(struct type, field), \
           sizeof(((struct type *)0)->field))
#define OP(name, number, strings, doc) printf("BS_OP_" #name " %d/%d\n", number, strings);

static void deep_constants(void)
{
    NUMBER(BS_DEEP_MORE), NUMBER(BS_DEEP_CUT), NUMBER(BS_DEEP_HANDLER);
    NUMBER(BS_DEEP_ENTERED), NUMBER(BS_DEEP_LEFT), NUMBER(BS_DEEP_LEFT_DIGEST),
        NUMBER(BS_DEEP_FILE), NUMBER(BS_DEEP_PATH), NUMBER(BS_DEEP_ADDRESS);
    NUMBER(BS_DEEP_CONTROL), NUMBER(BS_DEEP_MESSAGE), NUMBER(BS_DEEP_IDENT), NUMBER(BS_DEEP_WORDS);
    NUMBER(BS_DEEP_NO_NAME);
    NUMBER(BS_DEEP_BEGIN), NUMBER(BS_DEEP_DESCRIPTOR), NUMBER(BS_DEEP_SIGNAL),
        NUMBER(BS_DEEP_SIGNAL_END), NUMBER(BS_DEEP_GAP), NUMBER(BS_DEEP_SHALLOW),
        NUMBER(BS_DEEP_CLOCK), NUMBER(BS_DEEP_PROCESSOR), NUMBER(BS_DEEP_UNTIMED);
    NUMBER(BS_DEEP_COUNTER), NUMBER(BS_DEEP_CPUID), NUMBER(BS_DEEP_UNCOUNTED);
    NUMBER(BS_DEEP_RDTSC), NUMBER(BS_DEEP_RDTSCP), NUMBER(BS_DEEP_CPUID_INSTRUCTION);
    NUMBER(BS_DEEP_SINCE), NUMBER(BS_DEEP_WHOLE), NUMBER(BS_DEEP_ASIDE);
    NUMBER(BS_DEEP_BY_EXEC), NUMBER(BS_DEEP_BY_FORK), NUMBER(BS_DEEP_BY_THREAD);
    SIZE(bs_deep_record), FIELD(bs_deep_record, state), FIELD(bs_deep_record, flags),
        FIELD(bs_deep_record, call), FIELD(bs_deep_record, size), FIELD(bs_deep_record, time),
        FIELD(bs_deep_record, took), FIELD(bs_deep_record, fd), FIELD(bs_deep_record, result),
        FIELD(bs_deep_record, a), FIELD(bs_deep_record, b);
    SIZE(bs_deep_section), FIELD(bs_deep_section, kind), FIELD(bs_deep_section, arg),
        FIELD(bs_deep_section, length);
}

static void constants(void)
{
    NUMBER(BS_ABI_VERSION), NUMBER(BS_ARENA_MAGIC), NUMBER(BS_CHUNK_MAGIC);
    TEXT(BS_ENV_ARENA), TEXT(BS_ENV_PRELOAD), TEXT(BS_PRELOAD_NAME), TEXT(BS_PRELOAD_ANY),
        TEXT(BS_PRELOAD_WIDE);
    NUMBER(BS_HOME), NUMBER(BS_CHUNK_SIZE), NUMBER(BS_MAX_CHUNKS), NUMBER(BS_BITMAP_WORDS),
        NUMBER(BS_ARENA_HEADER), NUMBER(BS_ARENA_LOG);
    NUMBER(BS_ARENA_READS), NUMBER(BS_READS_BITS), NUMBER(BS_READS_CHANGED),
        NUMBER(BS_READS_SHARED);
    NUMBER(BS_MAGIC_WHICH), NUMBER(BS_MAGIC_ANNOUNCE), NUMBER(BS_MAGIC_ARENA),
        NUMBER(BS_MAGIC_DRAIN);
    NUMBER(BS_ARENA_GUARDED), NUMBER(BS_ARENA_PIDNS), NUMBER(BS_ARENA_STRICT),
        NUMBER(BS_ARENA_ALL_OPS);
    NUMBER(BS_ARENA_CLOSED), NUMBER(BS_ARENA_KEEP), NUMBER(BS_MAGIC_PRESERVE);
    NUMBER(BS_ARENA_ORDERED), NUMBER(BS_MAGIC_COMMIT);
    NUMBER(BS_ARENA_FULL), NUMBER(BS_ARENA_SHALLOW), NUMBER(BS_CHUNK_DEEP);
    NUMBER(BS_MAGIC_LINE), TEXT(BS_LINE_MARK);
    NUMBER(BS_MAGIC_FUNCTIONS), NUMBER(BS_FUNCTIONS_MAGIC), NUMBER(BS_CALLS_CALL),
        NUMBER(BS_CALLS_RETURN), NUMBER(BS_CALLS_TIME), NUMBER(BS_FUNCTION_INTERPRETED);
    NUMBER(BS_VALUE_UNKNOWN), NUMBER(BS_VALUE_SIGNED), NUMBER(BS_VALUE_UNSIGNED),
        NUMBER(BS_VALUE_FLOAT), NUMBER(BS_VALUE_TEXT), NUMBER(BS_VALUE_POINTER),
        NUMBER(BS_VALUE_STRUCTURE);
    NUMBER(BS_CHANGE_WRITE), NUMBER(BS_CHANGE_PART), NUMBER(BS_CHANGE_UPDATE),
        NUMBER(BS_CHANGE_REMOVE), NUMBER(BS_CHANGE_NAME);
    NUMBER(BS_CHANGE_KIND), NUMBER(BS_CHANGE_ITSELF);
    NUMBER(BS_KEPT_LINK), NUMBER(BS_KEPT_CLONE), NUMBER(BS_KEPT_COPY), NUMBER(BS_KEPT_OWN_LINK);
    NUMBER(BS_RESERVED), NUMBER(BS_DONE);
    NUMBER(BS_F_CALLER), NUMBER(BS_F_IDENT), NUMBER(BS_F_CUT), NUMBER(BS_F_MORE),
        NUMBER(BS_F_PREDICTED);
    NUMBER(BS_F_RESOLVED), NUMBER(BS_F_CHILD), NUMBER(BS_TID_SUBSTITUTE), NUMBER(BS_F_PRIVATE);
    NUMBER(BS_RESOURCE_READ), NUMBER(BS_RESOURCE_WRITE), NUMBER(BS_RESOURCE_CHANGE),
        NUMBER(BS_RESOURCE_DELETE);
    NUMBER(BS_DESCRIBED_ACTIVITY), NUMBER(BS_DESCRIBED_WORD), NUMBER(BS_DESCRIBED_ENTITY),
        NUMBER(BS_DESCRIBED_EDGE), NUMBER(BS_DESCRIBED_INFORM), NUMBER(BS_DESCRIBED_DERIVED);
    NUMBER(BS_DESCRIBED_NOTE), NUMBER(BS_DESCRIBED_RANK), NUMBER(BS_DESCRIBED_CERTAIN);
    NUMBER(BS_DESCRIBED_LAST), NUMBER(BS_DESCRIBED_PART), NUMBER(BS_DESCRIBED_ENDED);
    NUMBER(BS_DESCRIBED_EXECED);
    NUMBER(BS_META_MODE), NUMBER(BS_META_OWNER), NUMBER(BS_META_TIMES), NUMBER(BS_META_ATTR);
    NUMBER(BS_SPAWN_VFORK), NUMBER(BS_SPAWN_POSIX), NUMBER(BS_SPAWN_SYSTEM), NUMBER(BS_SPAWN_POPEN);
    NUMBER(BS_SPAWN_CLONE);
    NUMBER(BS_THREAD_CREATE), NUMBER(BS_THREAD_START), NUMBER(BS_THREAD_JOIN);
    NUMBER(BS_LOST_NO_CHUNK), NUMBER(BS_LOST_SANDBOX), NUMBER(BS_LOST_TOO_LONG);
    NUMBER(BS_HOLD_UNKNOWN);
    TEXT(BS_OPAQUE_TRACER_MEMORY), TEXT(BS_OPAQUE_TRACER_REGISTERS),
        TEXT(BS_OPAQUE_TRACER_EMULATION);
    TEXT(BS_OPAQUE_ACCT), TEXT(BS_OPAQUE_SWAPON), TEXT(BS_OPAQUE_QUEUE), TEXT(BS_OPAQUE_HANDLE);
    TEXT(BS_OPAQUE_MEMORY), TEXT(BS_OPAQUE_DESCRIPTOR), TEXT(BS_OPAQUE_FANOTIFY),
        TEXT(BS_OPAQUE_RING), TEXT(BS_OPAQUE_FILTERED), TEXT(BS_OPAQUE_OUTSIDE),
        TEXT(BS_OPAQUE_UNGUARDED);
    NUMBER(BS_EXEC_ANNOUNCED), NUMBER(BS_ARENA_AUTO), NUMBER(BS_ARENA_EXACT),
        TEXT(BS_SOCKET_SUFFIX), TEXT(BS_KEEPER_SUFFIX), NUMBER(BS_VERDICT_PROGRAM),
        NUMBER(BS_VERDICT_LIBRARY), NUMBER(BS_VERDICT_NOT), NUMBER(BS_VERDICT_KIND),
        NUMBER(BS_VERDICT_CONNECTS), NUMBER(BS_VERDICT_LOADS), NUMBER(BS_VERDICTS_MAGIC);
    NUMBER(BS_VERDICT_LOADED), NUMBER(BS_VERDICT_ALONE), NUMBER(BS_NO_PATH),
        NUMBER(BS_LOAD_ANNOUNCED);
    TEXT(BS_LOADER_CACHE), NUMBER(BS_LOADER_DESCRIPTOR), NUMBER(BS_LIBRARY_SETS),
        NUMBER(BS_LIBRARY_NAMES), NUMBER(BS_STARTS), NUMBER(BS_START_TAKEN),
        NUMBER(BS_START_FILLED), NUMBER(BS_FILTER_BYTES);
    NUMBER(BS_VERDICTS), NUMBER(BS_VERDICT_TRIES), NUMBER(BS_MAGIC_FILTERED),
        NUMBER(BS_MAGIC_SIMULATOR), NUMBER(BS_MAGIC_INSTRUCTIONS), NUMBER(BS_RECORDS_IN_SIMULATOR),
        NUMBER(BS_READABLE_IN_SIMULATOR), NUMBER(BS_RETURNS_IN_SIMULATOR), NUMBER(BS_RETURN_STUBS),
        NUMBER(BS_RETURN_DISTANCE);
    NUMBER(BS_GUARD_PROGRAM), NUMBER(BS_GUARD_LIBRARY), NUMBER(BS_GUARD_FILTER),
        NUMBER(BS_GUARD_LISTENER), NUMBER(BS_GUARD_PRESERVE), NUMBER(BS_GUARD_LOAD);
    NUMBER(BS_ARENA_BROKER), NUMBER(BS_MAGIC_BROKER), TEXT(BS_CLIENT_NAME), TEXT(BS_NODE_HOOKS),
        TEXT(BS_R_HOOKS), TEXT(BS_ENV_FUNCTIONS), TEXT(BS_ENV_PROGRAM);
    NUMBER(BS_BROKER_HELLO), NUMBER(BS_BROKER_DESCRIPTORS), NUMBER(BS_BROKER_READY),
        NUMBER(BS_BROKER_SIGNAL), NUMBER(BS_BROKER_WANTED), NUMBER(BS_BROKER_STARTED);
    NUMBER(BS_BROKER_FAILED), NUMBER(BS_BROKER_STOPPED), NUMBER(BS_BROKER_ENDED);
    NUMBER(BS_BROKER_REPORTED), NUMBER(BS_BROKER_REPORT);
}

static void structures(void)
{
    SIZE(bs_arena);
    FIELD(bs_arena, magic), FIELD(bs_arena, version), FIELD(bs_arena, flags),
        FIELD(bs_arena, chunks);
    FIELD(bs_arena, wanted), FIELD(bs_arena, lost), FIELD(bs_arena, started),
        FIELD(bs_arena, epochs);
    FIELD(bs_arena, dry), FIELD(bs_arena, env_seen), FIELD(bs_arena, free), FIELD(bs_arena, full);
    FIELD(bs_arena, deep_lost), FIELD(bs_arena, kept), FIELD(bs_arena, kept_path),
        FIELD(bs_arena, reported), FIELD(bs_arena, filtered), FIELD(bs_arena, pad2);
    SIZE(bs_chunk);
    FIELD(bs_chunk, magic), FIELD(bs_chunk, index), FIELD(bs_chunk, pid), FIELD(bs_chunk, tid);
    FIELD(bs_chunk, epoch), FIELD(bs_chunk, taken), FIELD(bs_chunk, ppid), FIELD(bs_chunk, seq);
    FIELD(bs_chunk, next), FIELD(bs_chunk, host_pid), FIELD(bs_chunk, flags), FIELD(bs_chunk, pad);
    SIZE(bs_record);
    FIELD(bs_record, state), FIELD(bs_record, op), FIELD(bs_record, size), FIELD(bs_record, flags),
        FIELD(bs_record, time);
    FIELD(bs_record, fd), FIELD(bs_record, arg), FIELD(bs_record, result), FIELD(bs_record, aux);
    SIZE(bs_caller);
    FIELD(bs_caller, pid), FIELD(bs_caller, tid), FIELD(bs_caller, nr), FIELD(bs_caller, arch);
    SIZE(bs_ident);
    FIELD(bs_ident, dev), FIELD(bs_ident, ino), FIELD(bs_ident, size), FIELD(bs_ident, mtime);
    SIZE(bs_broker_message), FIELD(bs_broker_message, kind), FIELD(bs_broker_message, value),
        FIELD(bs_broker_message, word);
    SIZE(bs_verdict), FIELD(bs_verdict, dev), FIELD(bs_verdict, ino), FIELD(bs_verdict, size),
        FIELD(bs_verdict, mtime), FIELD(bs_verdict, ctime), FIELD(bs_verdict, verdict);
    SIZE(bs_verdicts), FIELD(bs_verdicts, magic), FIELD(bs_verdicts, pad),
        FIELD(bs_verdicts, cache), FIELD(bs_verdicts, entry);
    SIZE(bs_library_set), FIELD(bs_library_set, used), FIELD(bs_library_set, names);
    SIZE(bs_start), FIELD(bs_start, state), FIELD(bs_start, epoch), FIELD(bs_start, time),
        FIELD(bs_start, ppid), FIELD(bs_start, set);
    SIZE(bs_filter_code), FIELD(bs_filter_code, size), FIELD(bs_filter_code, code);
    SIZE(bs_programs), FIELD(bs_programs, verdicts), FIELD(bs_programs, filter),
        FIELD(bs_programs, sets), FIELD(bs_programs, starts);
    SIZE(bs_guard_request), FIELD(bs_guard_request, kind), FIELD(bs_guard_request, result),
        FIELD(bs_guard_request, recorded), FIELD(bs_guard_request, change),
        FIELD(bs_guard_request, tid), FIELD(bs_guard_request, dir), FIELD(bs_guard_request, dev),
        FIELD(bs_guard_request, ino);
    SIZE(bs_function_table);
    FIELD(bs_function_table, magic), FIELD(bs_function_table, bytes), FIELD(bs_function_table, low),
        FIELD(bs_function_table, size), FIELD(bs_function_table, bits),
        FIELD(bs_function_table, sleds), FIELD(bs_function_table, count),
        FIELD(bs_function_table, sled_count), FIELD(bs_function_table, first),
        FIELD(bs_function_table, signature_count), FIELD(bs_function_table, signatures),
        FIELD(bs_function_table, values), FIELD(bs_function_table, places),
        FIELD(bs_function_table, names);
    SIZE(bs_signature), FIELD(bs_signature, number), FIELD(bs_signature, count),
        FIELD(bs_signature, result), FIELD(bs_signature, first);
    SIZE(bs_value), FIELD(bs_value, kind), FIELD(bs_value, size), FIELD(bs_value, count),
        FIELD(bs_value, places), FIELD(bs_value, offset), FIELD(bs_value, name),
        FIELD(bs_value, first), FIELD(bs_value, place);
    SIZE(bs_place), FIELD(bs_place, from), FIELD(bs_place, to), FIELD(bs_place, base),
        FIELD(bs_place, memory), FIELD(bs_place, offset);
    FIELD(bs_function_table, targets), FIELD(bs_function_table, libraries),
        FIELD(bs_function_table, target_count), FIELD(bs_function_table, pad);
    SIZE(bs_target), FIELD(bs_target, address), FIELD(bs_target, number),
        FIELD(bs_target, is_chosen);
    SIZE(bs_sled), FIELD(bs_sled, address), FIELD(bs_sled, number), FIELD(bs_sled, kind);
    FIELD(bs_ident, ctime), FIELD(bs_ident, birth), FIELD(bs_ident, mode), FIELD(bs_ident, nlink);
}

/* Prints the filter bits of some files. */
static void filter(void)
{
    for (unsigned i = 0; i < 4; i++) {
        const uint64_t hash = BS_READS_HASH(0x80000fe00 + i, 0x123456789abull * i + i);
        printf("filter%u %llu/%llu\n", i, (unsigned long long)BS_READS_FIRST(hash),
               (unsigned long long)BS_READS_SECOND(hash));
    }
}

int main(void)
{
    deep_constants();
    constants();
    structures();
    filter();
    BS_OPS(OP)
    return 0;
}
