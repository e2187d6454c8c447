/* Moves labels as the instructions do that Valgrind does not know. See unknown.h. */
#include "unknown.h"

#include "labels.h"
#include "record.h"

/* ---- labels of registers --------------------------------------------------------------------- */

static UInt slot_of(UInt vector, UInt byte)
{
    return offsetof(VexGuestAMD64State, guest_YMM0) + YMM_BYTES * vector + byte;
}

static Bool is_valgrinds(UInt vector, UInt byte)
{
    return vector < YMM_COUNT && byte < YMM_BYTES;
}

static Label get_vector(Thread *t, UInt vector, UInt byte)
{
    return is_valgrinds(vector, byte) ? t->slots[slot_of(vector, byte)]
                                      : t->wide->labels[vector][byte];
}

static void put_vector(Thread *t, UInt vector, UInt byte, Label label)
{
    label = resolve(label);
    if (is_valgrinds(vector, byte))
        set_register_labels(t, slot_of(vector, byte), 1, label);
    else
        t->wide->labels[vector][byte] = label;
}

static Label all_of_vector(Thread *t, UInt vector)
{
    Label all = 0;
    for (UInt i = 0; i < VECTOR_BYTES; i++)
        all = unite(all, get_vector(t, vector, i));
    return all;
}

/* Without VEX, the rest of a register stays as it was. */
static void fill_vector(Thread *t, const Unknown *u, UInt vector, Label label)
{
    for (UInt i = 0; i < (u->encoding == LEGACY ? u->bytes : VECTOR_BYTES); i++)
        put_vector(t, vector, i, i < u->bytes ? label : 0);
}

#define GENERAL_REGISTER(n) (offsetof(VexGuestAMD64State, guest_RAX) + 8 * (n))

static Label all_of_general(Thread *t, UInt n)
{
    return unite_run(&t->slots[GENERAL_REGISTER(n)], 8);
}

static void fill_general(Thread *t, UInt n, Label label)
{
    set_register_labels(t, GENERAL_REGISTER(n), 8, resolve(label));
}

/* ---- moves and elements ---------------------------------------------------------------------- */

/* The bytes of an element of a move. */
static UInt moved_element(const Unknown *u)
{
    if (u->opcode == 0x6f || u->opcode == 0x7f)
        return (u->prefix == 0xf2 ? 1 : 4) << u->wide_elements;
    return u->prefix == 0x66 ? 8 : 4;
}

/* The mask chooses this element. */
static Bool is_chosen(Thread *t, const Unknown *u, UInt element)
{
    return u->mask == 0 || t->wide->masks[u->mask] >> element & 1;
}

/* The address of the operand: the unit of a short displacement is the operand. */
static Addr operand(const Unknown *u, Addr memory, UInt bytes)
{
    Long unit = u->encoding == EVEX && u->displaced == 1 ? bytes : 1;
    return memory + u->displacement * unit;
}

/* The label of a byte of the operand rm. */
static Label source_byte(Thread *t, const Unknown *u, Addr from, UInt at)
{
    return u->has_memory ? shadow[(from + at) & ADDRESS_MASK] : get_vector(t, u->rm, at);
}

/* Gives a byte of the operand rm a label. */
static void put_operand(Thread *t, const Unknown *u, Addr to, UInt at, Label label)
{
    if (!u->has_memory) {
        put_vector(t, u->rm, at, label);
        return;
    }
    clear_labels(to + at, 1);
    set_label(to + at, resolve(label));
}

static void move_to_register(Thread *t, const Unknown *u, Addr memory)
{
    UInt size = moved_element(u);
    Addr from = operand(u, memory, u->bytes);
    for (UInt i = 0; i < VECTOR_BYTES; i++) {
        Bool chosen = is_chosen(t, u, i / size);
        Label label = 0;
        if (i >= u->bytes || (!chosen && u->zeroes))
            label = 0;
        else if (!chosen)
            continue;
        else
            label = source_byte(t, u, from, i);
        put_vector(t, u->reg, i, label);
    }
}

static void move_to_operand(Thread *t, const Unknown *u, Addr memory)
{
    UInt size = moved_element(u);
    Addr to = operand(u, memory, u->bytes);
    for (UInt i = 0; i < (u->has_memory ? u->bytes : VECTOR_BYTES); i++) {
        Bool chosen = is_chosen(t, u, i / size) && i < u->bytes;
        Label label = chosen ? get_vector(t, u->reg, i) : 0;
        if (chosen || (!u->has_memory && (u->zeroes || i >= u->bytes)))
            put_operand(t, u, to, i, label);
    }
}

/* The union of the same element of all operands. */
static Label element_of(Thread *t, const Unknown *u, Addr from, UInt at, UInt size)
{
    Label all = 0;
    for (UInt i = at; i < at + size; i++) {
        UInt place = u->broadcasts && u->has_memory ? i - at : i;
        all = unite(all, source_byte(t, u, from, place));
        if (u->flow == LANES && has_second_operand(u))
            all = unite(all, get_vector(t, u->vvvv, i));
        if (u->flow == LANES && reads_destination(u))
            all = unite(all, get_vector(t, u->reg, i));
    }
    return all ? all | COMPUTED : 0;
}

/* The bytes of an element of a shift by a constant. */
static UInt shifted_element(const Unknown *u)
{
    if (u->opcode == 0x72)
        return u->wide_elements ? 8 : 4;
    return u->opcode == 0x71 ? 2 : 8;
}

static void unite_lanes(Thread *t, const Unknown *u, Addr memory)
{
    UInt size = u->flow == LANES ? lane_of(u) : shifted_element(u);
    UInt to = u->flow == LANES ? u->reg : u->vvvv;
    Bool is_one = u->broadcasts && u->has_memory, constant = u->flow == LANES && is_constant(u);
    Addr from = operand(u, memory, is_one ? size : u->bytes);
    for (UInt at = 0; at < VECTOR_BYTES; at += size) {
        Bool chosen = is_chosen(t, u, at / size) && at < u->bytes;
        if (!chosen && !u->zeroes && at < u->bytes)
            continue;
        Label label = chosen && !constant ? element_of(t, u, from, at, size) : 0;
        for (UInt i = at; i < at + size; i++)
            put_vector(t, to, i, label);
    }
}

static void blend(Thread *t, const Unknown *u, Addr memory)
{
    UInt size = lane_of(u);
    Bool is_one = u->broadcasts && u->has_memory;
    Addr from = operand(u, memory, is_one ? size : u->bytes);
    for (UInt i = 0; i < VECTOR_BYTES; i++) {
        Label label = 0;
        if (i < u->bytes && is_chosen(t, u, i / size))
            label = source_byte(t, u, from, is_one ? i % size : i);
        else if (i < u->bytes && !u->zeroes)
            label = get_vector(t, u->vvvv, i);
        put_vector(t, u->reg, i, label);
    }
}

/* To a register: it may be the same one. */
static void widen(Thread *t, const Unknown *u, Addr memory)
{
    UInt narrow, wide;
    Label labels[VECTOR_BYTES / 2];
    elements_of_conversion(u, &narrow, &wide);
    Addr from = operand(u, memory, u->bytes / wide * narrow);
    for (UInt i = 0; i < u->bytes / wide * narrow; i++)
        labels[i] = source_byte(t, u, from, i);
    for (UInt i = 0; i < VECTOR_BYTES; i++) {
        UInt element = i / wide;
        Bool chosen = i < u->bytes && is_chosen(t, u, element);
        if (!chosen && i < u->bytes && !u->zeroes)
            continue;
        Label all = chosen ? unite_run(&labels[element * narrow], narrow) : 0;
        put_vector(t, u->reg, i, all ? all | COMPUTED : 0);
    }
}

static void narrow_down(Thread *t, const Unknown *u, Addr memory)
{
    UInt narrow, wide;
    Label labels[VECTOR_BYTES];
    elements_of_conversion(u, &narrow, &wide);
    UInt written = u->bytes / wide * narrow;
    Addr to = operand(u, memory, written);
    for (UInt i = 0; i < VECTOR_BYTES; i++)
        labels[i] = get_vector(t, u->reg, i);
    for (UInt i = 0; i < (u->has_memory ? written : VECTOR_BYTES); i++) {
        UInt element = i / narrow;
        Bool chosen = i < written && is_chosen(t, u, element);
        if (!chosen && (u->has_memory || (i < written && !u->zeroes)))
            continue;
        Label all = chosen ? unite_run(&labels[element * wide], wide) : 0;
        put_operand(t, u, to, i, all ? all | COMPUTED : 0);
    }
}

static void repeat(Thread *t, const Unknown *u, Addr memory)
{
    UInt size = repeated_bytes(u);
    UInt element = u->wide_elements ? 8 : 4;
    Label labels[YMM_BYTES];
    Addr from = operand(u, memory, size);
    for (UInt i = 0; i < size; i++)
        labels[i] = source_byte(t, u, from, i);
    for (UInt i = 0; i < VECTOR_BYTES; i++) {
        Bool chosen = i < u->bytes && is_chosen(t, u, i / (size < 4 ? size : element));
        if (chosen || i >= u->bytes || u->zeroes)
            put_vector(t, u->reg, i, chosen ? labels[i % size] : 0);
    }
}

/* The union of the operand rm. */
static Label all_of_operand(Thread *t, const Unknown *u, Addr memory)
{
    if (!u->has_memory)
        return all_of_vector(t, u->rm);
    UInt size = u->broadcasts ? (u->wide_elements ? 8 : 4) : u->bytes;
    Addr from = operand(u, memory, size);
    Label all = 0;
    for (UInt i = 0; i < size; i++)
        all = unite(all, shadow[(from + i) & ADDRESS_MASK]);
    return all;
}

/* The bytes of a mask that kmov stores. */
static UInt bytes_of_mask(const Unknown *u)
{
    return (u->prefix == 0x66 ? 1 : 2) << (u->wide_elements ? 2 : 0);
}

static Label mixed(Thread *t, const Unknown *u, Label rm)
{
    Label all = rm;
    if (has_second_operand(u))
        all = unite(all, all_of_vector(t, u->vvvv));
    if (reads_destination(u))
        all = unite(all, all_of_vector(t, u->reg));
    /* sha256rnds2 has a third operand that it does not name. */
    if (u->encoding == LEGACY)
        all = unite(all, all_of_vector(t, 0));
    return all;
}

void label_unknown(Thread *t, const Unknown *u, Addr memory)
{
    Label all = 0;
    switch (u->flow) {
    case POSSIBLE:
        record_possible("an instruction that Valgrind does not know was not followed");
        return;
    case DECIDES:
        /* Some write a general register, or a vector. */
        if (u->encoding == VEX && u->opcode == 0x93)
            fill_general(t, u->reg, 0);
        else if (u->encoding == VEX && u->opcode == 0x91)
            clear_labels(operand(u, memory, 0), bytes_of_mask(u));
        else if (u->encoding == EVEX && u->map == 2 && (u->opcode == 0x28 || u->opcode == 0x38))
            fill_vector(t, u, u->reg, 0);
        return;
    case MOVE_TO_REG: move_to_register(t, u, memory); return;
    case MOVE_TO_RM: move_to_operand(t, u, memory); return;
    case LANES:
    case LANES_TO_VVVV: unite_lanes(t, u, memory); return;
    case BLEND: blend(t, u, memory); return;
    case CONVERT_TO_REG: widen(t, u, memory); return;
    case CONVERT_TO_RM: narrow_down(t, u, memory); return;
    case REPEAT_TO_REG: repeat(t, u, memory); return;
    case MIX_TO_VVVV: all = all_of_vector(t, u->rm); break;
    case MIX_TO_REG: all = mixed(t, u, all_of_operand(t, u, memory)); break;
    case MIX_TO_RM:
        all = unite(all_of_vector(t, u->reg), all_of_vector(t, u->rm));
        if (u->map == 1 && u->opcode == 0x11)
            all = unite(all, all_of_vector(t, u->vvvv));
        break;
    case FROM_GENERAL_RM: all = mixed(t, u, all_of_general(t, u->rm)); break;
    case TO_GENERAL_RM: all = all_of_vector(t, u->reg); break;
    case TO_GENERAL_REG: all = all_of_vector(t, u->rm); break;
    }
    all = all ? resolve(all) | COMPUTED : 0;
    if (u->flow == TO_GENERAL_RM)
        fill_general(t, u->rm, all);
    else if (u->flow == TO_GENERAL_REG)
        fill_general(t, u->reg, all);
    else
        fill_vector(t, u,
                    u->flow == MIX_TO_RM     ? u->rm
                    : u->flow == MIX_TO_VVVV ? u->vvvv
                                             : u->reg,
                    all);
}
