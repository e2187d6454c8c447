/*
 * Lets the calls of an object go to stubs. The addresses of redirected functions are replaced in
 * the table of its procedure linkage, and in its other tables of addresses.
 *
 * In: an object that the loader has relocated. Out: each of its slots for a redirected function has
 * the address of the stub.
 *
 * Invariants:
 *
 * - A slot with another content than the function's address stays as it is, unless the loader has
 *   not bound it yet. It is then replaced only if the loader would certainly bind it to the
 *   function.
 * - The program's code is not changed.
 */
#include "objects.h"
#include <linux/mman.h>

enum {
    R_X86_64_64 = 1,
    R_X86_64_GLOB_DAT = 6,
    R_X86_64_JUMP_SLOT = 7,
    R_X86_64_IRELATIVE = 37 /* a function that the object chooses, without a symbol */
};

/* An object with its relocations. */
struct work {
    const struct bs_object *object;
    bool is_writable; /* the part that is read-only after relocation */
};

static bool make_writable(struct work *work, u64 slot)
{
    struct bs_range range = work->object->read_only;
    if (work->is_writable || !bs_is_in(slot, range))
        return true;
    work->is_writable =
        bs_raw(__NR_mprotect, range.start, range.end - range.start, PROT_READ | PROT_WRITE) >= 0;
    return work->is_writable;
}

bool bs_is_initial(u64 base)
{
    for (const struct bs_link_map *l = bs_first_library; l; l = l->next) {
        if (l->base == base)
            return true;
        if (l == bs_last_library)
            return false;
    }
    return false;
}

/*
 * True if the loader has bound the slot, at least to the object's table of the linkage. Before, it
 * has its content in the file: zero, or an address of the code without the base.
 */
static bool is_placed(const struct bs_object *object, struct bs_range code,
                      const struct bs_relocation *relocation)
{
    enum { WEAK = 2 };
    const struct bs_symbol *symbol = &object->symbols.table[relocation->symbol];
    u64 value = __atomic_load_n((u64 *)(object->base + relocation->offset), __ATOMIC_RELAXED);
    if (!value)
        return symbol->info >> 4 == WEAK && !symbol->section;
    return relocation->type != R_X86_64_JUMP_SLOT || !bs_is_in(value, code);
}

/*
 * True if the loader has added the base to the last slot without a symbol: it has those before all
 * others. Some linkers put the address without the base into the file.
 */
static bool has_base(const struct bs_object *object)
{
    u64 size = object->relative_count * sizeof *object->relocations;
    if (!object->relocations || !size || size > object->relocations_size)
        return false;
    const struct bs_relocation *last = &object->relocations[object->relative_count - 1];
    u64 value = __atomic_load_n((u64 *)(object->base + last->offset), __ATOMIC_RELAXED);
    return value && value != (u64)last->addend;
}

static bool is_filled(const struct bs_object *object, const struct bs_relocation *relocation)
{
    return __atomic_load_n((u64 *)(object->base + relocation->offset), __ATOMIC_RELAXED) != 0;
}

/*
 * The loader binds the slots of an object in their order, and calls the object's resolvers between
 * them or behind them. So all slots are bound once none has its content in the file. The slot of a
 * missing weak symbol keeps that, so it decides nothing.
 */
bool bs_is_relocated(u64 base, struct bs_code placed)
{
    const struct bs_link_map *l = bs_first_library;
    while (l && l->base != base)
        l = l->next;
    struct bs_object object;
    if (!l || !bs_read_object(&object, base, l->dynamic))
        return false;
    struct bs_range code = {placed.start - base, placed.start - base + placed.size};
    const struct bs_relocation *all = object.relocations;
    u64 count = all ? object.relocations_size / sizeof *all : 0;
    bool is_decided = false;
    for (u64 i = object.relative_count; i < count; i++) {
        if (all[i].type != R_X86_64_GLOB_DAT)
            continue;
        if (!is_placed(&object, code, &all[i]))
            return false;
        is_decided |= is_filled(&object, &all[i]);
    }
    const struct bs_relocation *jumps = object.symbols.jumps;
    u64 jump_count = jumps ? object.symbols.jumps_size / sizeof *jumps : 0;
    for (u64 i = 0; i < jump_count; i++) {
        if (jumps[i].type != R_X86_64_JUMP_SLOT)
            continue;
        if (!is_placed(&object, code, &jumps[i]))
            return false;
        is_decided |= is_filled(&object, &jumps[i]);
    }
    return is_decided || has_base(&object);
}

/*
 * The function that the loader will bind a symbol to, if it is redirected: the first definition
 * among the objects that the program began with. For objects that were loaded later, the order may
 * be another. There the definition must be the only one.
 */
static u64 binding(const struct bs_object *object, u32 symbol)
{
    const char *name = object->symbols.names + object->symbols.table[symbol].name;
    u32 hash = bs_symbol_hash(name), version = bs_wanted_version(object, symbol);
    bool in_order = bs_is_initial(object->base);
    u64 found = 0;
    for (const struct bs_link_map *l = bs_first_library; l; l = l->next) {
        struct bs_object other;
        if (!bs_read_object(&other, l->base, l->dynamic))
            continue;
        u64 address = bs_definition(&other, name, hash, version);
        if (!address)
            continue;
        if (found)
            return 0;
        found = bs_chosen_by(address);
        if (!bs_stub_of(found))
            return 0;
        if (in_order && bs_is_initial(l->base))
            return found;
    }
    return found;
}

static void redirect(struct work *work, const struct bs_relocation *relocation)
{
    const struct bs_object *object = work->object;
    u64 *slot = (u64 *)(object->base + relocation->offset);
    if (relocation->type == R_X86_64_64 && relocation->addend)
        return;
    u64 value = __atomic_load_n(slot, __ATOMIC_RELAXED), to = bs_stub_of(value);
    bool is_unbound = relocation->type == R_X86_64_JUMP_SLOT && !object->is_apart &&
                      bs_is_in(value, object->memory);
    if (!to && is_unbound)
        to = bs_stub_of(binding(object, relocation->symbol));
    if (to && make_writable(work, (u64)slot))
        __atomic_compare_exchange_n(slot, &value, to, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

void bs_redirect_slots(const struct bs_object *object)
{
    struct work work = {object, false};
    const struct bs_relocation *all = object->relocations;
    u64 count = all ? object->relocations_size / sizeof *all : 0;
    for (u64 i = object->relative_count; i < count; i++)
        if (all[i].type == R_X86_64_64 || all[i].type == R_X86_64_GLOB_DAT ||
            all[i].type == R_X86_64_IRELATIVE)
            redirect(&work, &all[i]);
    const struct bs_relocation *jumps = object->symbols.jumps;
    u64 jump_count = jumps ? object->symbols.jumps_size / sizeof *jumps : 0;
    for (u64 i = 0; i < jump_count; i++)
        if (jumps[i].type == R_X86_64_JUMP_SLOT || jumps[i].type == R_X86_64_IRELATIVE)
            redirect(&work, &jumps[i]);
    if (work.is_writable)
        bs_raw(__NR_mprotect, object->read_only.start,
               object->read_only.end - object->read_only.start, PROT_READ);
}
