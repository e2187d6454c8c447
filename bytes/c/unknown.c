/* See unknown.h: what the bytes of an instruction say, and how it is executed. */
#include "unknown.h"

#include "labels.h"

extern ULong LibVEX_GuestAMD64_get_rflags(const VexGuestAMD64State *);

#define MOST_BYTES 15
#define STUB_BYTES 32
#define STUBS 1024
#define STATUS_FLAGS 0x8d5
#define DEFAULT_CONTROL 0x1f80

/* ---- decoding -------------------------------------------------------------------------------- */

typedef struct {
    const UChar *bytes;
    UInt at, end;
} Reader;

static Int next_byte(Reader *r)
{
    return r->at < r->end ? r->bytes[r->at++] : -1;
}

static UInt readable_bytes(Addr address)
{
    UInt count = 0;
    while (count < MOST_BYTES && VG_(am_is_valid_for_client)(address + count, 1, VKI_PROT_READ))
        count++;
    return count;
}

/* The prefixes of an instruction: where they are, and the bits that extend its operands. */
typedef struct {
    UInt vector_at;       /* of a VEX or EVEX prefix, or of a REX */
    UInt r, x, b, r2, v2; /* r2, v2: R' and V' */
    UChar legacy[4];      /* prefixes that the stub needs, too */
    UInt legacies;
} Prefixes;

/* By the two bits that VEX and EVEX have for it. */
static const UChar prefixes[4] = {0, 0x66, 0xf3, 0xf2};

static Bool read_evex(Reader *r, Unknown *u, Prefixes *p)
{
    Int first = next_byte(r), second = next_byte(r), third = next_byte(r);
    if (third < 0 || !(second & 4) || first & 8)
        return False;
    u->encoding = EVEX;
    u->map = first & 7;
    p->r = !(first & 0x80), p->x = !(first & 0x40), p->b = !(first & 0x20);
    p->r2 = !(first & 0x10), p->v2 = !(third & 8);
    u->wide_elements = second >> 7;
    u->vvvv = (~second >> 3 & 15) | p->v2 << 4;
    u->prefix = prefixes[second & 3];
    u->zeroes = third >> 7;
    u->broadcasts = third >> 4 & 1;
    u->mask = third & 7;
    UInt length = third >> 5 & 3;
    u->bytes = length == 3 ? 64 : 16 << length;
    return True;
}

static Bool read_vex(Reader *r, Unknown *u, Prefixes *p, Bool is_long)
{
    Int first = next_byte(r), second = is_long ? next_byte(r) : first;
    if (first < 0 || second < 0)
        return False;
    u->encoding = VEX;
    u->map = is_long ? first & 31 : 1;
    p->r = !(first & 0x80);
    if (is_long)
        p->x = !(first & 0x40), p->b = !(first & 0x20), u->wide_elements = second >> 7;
    u->vvvv = ~second >> 3 & 15;
    u->prefix = prefixes[second & 3];
    u->bytes = second & 4 ? 32 : 16;
    return True;
}

/* Reads up to the opcode. Without VEX, only the maps 0F 38 and 0F 3A are read. Any other
   instruction that Valgrind does not know is privileged, or none. */
static Bool read_prefixes(Reader *r, Unknown *u, Prefixes *p)
{
    for (;;) {
        UInt at = r->at;
        Int byte = next_byte(r);
        switch (byte) {
        case 0x64:
        case 0x65: u->segment = byte; continue;
        case 0x66:
        case 0xf2:
        case 0xf3:
            if (p->legacies == sizeof p->legacy)
                return False;
            p->legacy[p->legacies++] = u->prefix = byte;
            continue;
        default: break;
        }
        p->vector_at = at;
        if (p->legacies && (byte == 0x62 || byte == 0xc4 || byte == 0xc5))
            return False;
        if (byte == 0x62)
            return read_evex(r, u, p);
        if (byte == 0xc4 || byte == 0xc5)
            return read_vex(r, u, p, byte == 0xc4);
        if ((byte & 0xf0) == 0x40) {
            p->r = byte >> 2 & 1, p->x = byte >> 1 & 1, p->b = byte & 1;
            u->wide_elements = byte >> 3 & 1;
            byte = next_byte(r);
        }
        Int second = next_byte(r);
        if (byte != 0x0f || (second != 0x38 && second != 0x3a))
            return False;
        u->encoding = LEGACY;
        u->map = second == 0x38 ? 2 : 3;
        u->bytes = 16;
        return True;
    }
}

static UInt bytes_of_immediate(const Unknown *u)
{
    if (u->map == 3)
        return 1;
    if (u->map != 1)
        return 0;
    switch (u->opcode) {
    case 0x70:
    case 0x71:
    case 0x72:
    case 0x73:
    case 0xc2:
    case 0xc4:
    case 0xc5:
    case 0xc6: return 1;
    default: return 0;
    }
}

/* The addresses of a gather or a scatter are a vector. */
static Bool has_vector_of_addresses(const Unknown *u)
{
    return u->encoding == EVEX && u->map == 2 &&
           ((u->opcode >= 0x90 && u->opcode <= 0x93) || (u->opcode >= 0xa0 && u->opcode <= 0xa3) ||
            u->opcode == 0xc6 || u->opcode == 0xc7);
}

static Bool read_operands(Reader *r, Unknown *u, const Prefixes *p)
{
    UInt mod = u->modrm >> 6, rm = u->modrm & 7;
    u->base = u->index = -1;
    u->reg = (u->modrm >> 3 & 7) | p->r << 3 | p->r2 << 4;
    u->by_vector = has_vector_of_addresses(u);
    u->has_memory = mod != 3;
    /* Without memory, the bit of a broadcast says that the length is a rounding mode. */
    if (!u->has_memory && u->broadcasts)
        u->bytes = is_scalar(u) ? 16 : 64;
    if (!u->has_memory) {
        u->rm = rm | p->b << 3 | (u->encoding == EVEX ? p->x << 4 : 0);
        return True;
    }
    u->base = rm | p->b << 3;
    if (rm == 4) {
        Int sib = next_byte(r);
        if (sib < 0)
            return False;
        u->base = (sib & 7) | p->b << 3;
        u->scale = sib >> 6;
        UInt index = (sib >> 3 & 7) | p->x << 3;
        u->index = index == 4 && !u->by_vector ? -1 : (Char)index;
        if ((sib & 7) == 5 && mod == 0)
            u->base = -1;
    } else if (rm == 5 && mod == 0) {
        u->base = -1;
        u->of_next = True;
    }
    u->displaced = mod == 1 ? 1 : mod == 2 || u->base < 0 ? 4 : 0;
    for (UInt i = 0; i < u->displaced; i++) {
        Int byte = next_byte(r);
        if (byte < 0)
            return False;
        u->displacement |= (UInt)byte << (8 * i);
    }
    if (u->displaced == 1)
        u->displacement = (signed char)u->displacement;
    return True;
}

/* The program has not replaced the instruction. */
static Bool is_there(const Unknown *u)
{
    return VG_(memcmp)((const void *)u->address, u->code, u->length) == 0;
}

/* ---- the stub -------------------------------------------------------------------------------- */

static UChar *new_stub(void)
{
    static UChar *next, *end;
    if (next == end) {
        next = reserve(0, STUBS * STUB_BYTES, "instructions that Valgrind does not know");
        end = next + STUBS * STUB_BYTES;
        SysRes changed =
            VG_(do_syscall)(__NR_mprotect, (UWord)next, STUBS * STUB_BYTES,
                            VKI_PROT_READ | VKI_PROT_WRITE | VKI_PROT_EXEC, 0, 0, 0, 0, 0);
        if (sr_isError(changed)) {
            next = end;
            return NULL;
        }
    }
    next += STUB_BYTES;
    return next - STUB_BYTES;
}

/* A general register that is no operand. */
static UChar free_register(const Unknown *u)
{
    static const UChar candidates[] = {0, 1, 2, 3, 6, 7};
    for (UInt i = 0; i < sizeof candidates; i++) {
        UChar n = candidates[i];
        if (n != u->reg && n != u->vvvv && (!u->by_vector || n != u->index))
            return n;
    }
    return 0;
}

/* The prefix of the stub names no part of an address any more. */
static void forget_address(UChar *at, const Unknown *u)
{
    if (u->encoding == EVEX)
        at[1] |= u->by_vector ? 0x20 : 0x60;
    else if (u->encoding == VEX && at[0] == 0xc4)
        at[1] |= 0x60;
    else if (u->encoding == LEGACY && (at[0] & 0xf0) == 0x40)
        at[0] &= ~3;
}

/* `opcode_at`, `operands_at`: where the opcode and what follows ModRM and SIB are. */
static Bool make_stub(Unknown *u, const UChar *bytes, const Prefixes *p, UInt opcode_at,
                      UInt operands_at)
{
    UChar *to = new_stub();
    if (!to)
        return False;
    u->stub = to;
    VG_(memcpy)(to, p->legacy, p->legacies);
    to += p->legacies;
    UChar *prefix = to;
    VG_(memcpy)(to, bytes + p->vector_at, opcode_at + 1 - p->vector_at);
    to += opcode_at + 1 - p->vector_at;
    UChar modrm = u->modrm;
    if (u->has_memory) {
        UInt mod = u->displaced == 0 ? 0 : u->displaced == 1 ? 1 : 2;
        u->scratch = free_register(u);
        forget_address(prefix, u);
        modrm = mod << 6 | (modrm & 0x38) | (u->by_vector ? 4 : u->scratch);
        *to++ = modrm;
        if (u->by_vector)
            *to++ = u->scale << 6 | (u->index & 7) << 3 | u->scratch;
    } else
        *to++ = modrm;
    VG_(memcpy)(to, bytes + operands_at, u->length - operands_at);
    to += u->length - operands_at;
    *to = 0xc3;
    return True;
}

/* The stack pointer is Valgrind's. */
static Bool uses_stack_pointer(const Unknown *u)
{
    /* The conversions of 16 bits, and vmovw. */
    static const UChar of_general[] = {0x2a, 0x2c, 0x2d, 0x6e, 0x78, 0x79, 0x7b, 0x7e};
    Bool is_rm = !u->has_memory && u->rm == 4, is_reg = u->reg == 4;
    switch (u->flow) {
    case FROM_GENERAL_RM:
    case TO_GENERAL_RM: return is_rm;
    case TO_GENERAL_REG: return is_reg;
    case DECIDES:
        return u->encoding == VEX &&
               ((u->opcode == 0x92 && is_rm) || (u->opcode == 0x93 && is_reg));
    default: break;
    }
    for (UInt i = 0; u->map == 5 && i < sizeof of_general; i++) {
        if (u->opcode == of_general[i])
            return is_rm || is_reg;
    }
    /* Instructions without VEX have general registers, apart from SHA and GFNI. */
    return u->encoding == LEGACY && u->flow == POSSIBLE && (is_rm || is_reg);
}

/* Descriptions by address. Code that is translated again has the same. */
static VgHashTable *described;

const Unknown *describe_unknown(Addr address)
{
    if (!described)
        described = VG_(HT_construct)("unknown.described");
    Unknown *known = VG_(HT_lookup)(described, address);
    UInt readable = readable_bytes(address);
    if (known && readable >= known->length && is_there(known))
        return known;
    Unknown u = {.address = address};
    Prefixes p = {0};
    Reader r = {(const UChar *)address, 0, readable};
    if (!has_wide_registers() || !read_prefixes(&r, &u, &p))
        return NULL;
    UInt opcode_at = r.at;
    Int opcode = next_byte(&r), modrm = next_byte(&r);
    if (modrm < 0 || u.map == 0 || u.map == 4 || u.map > 6)
        return NULL;
    u.opcode = opcode;
    u.modrm = modrm;
    if (!read_operands(&r, &u, &p))
        return NULL;
    UInt operands_at = r.at - u.displaced;
    u.length = r.at + bytes_of_immediate(&u);
    u.flow = flow_of(&u);
    if (uses_stack_pointer(&u))
        return NULL;
    if (u.length > r.end || !make_stub(&u, r.bytes, &p, opcode_at, operands_at))
        return NULL;
    VG_(memcpy)(u.code, r.bytes, u.length);
    if (known)
        VG_(HT_remove)(described, address);
    /* A block that is still being executed may have the former one. */
    Unknown *kept = VG_(malloc)("unknown", sizeof u);
    *kept = u;
    VG_(HT_add_node)(described, kept);
    return kept;
}

/* ---- executing ------------------------------------------------------------------------------- */

static UChar *ymm(VexGuestAMD64State *guest, UInt n)
{
    return (UChar *)&guest->guest_YMM0 + YMM_BYTES * n;
}

/* All of the address but the displacement. */
static Addr address_without_displacement(VexGuestAMD64State *guest, const Unknown *u)
{
    const ULong *general = &guest->guest_RAX;
    Addr address = u->of_next ? u->address + u->length : 0;
    if (u->base >= 0)
        address += general[(UInt)u->base];
    if (u->index >= 0 && !u->by_vector)
        address += general[(UInt)u->index] << u->scale;
    if (u->segment)
        address += u->segment == 0x64 ? guest->guest_FS_CONST : guest->guest_GS_CONST;
    return address;
}

static void load_state(StepState *state, VexGuestAMD64State *guest, const Wide *wide)
{
    VG_(memcpy)(state->vectors, wide->vectors, sizeof state->vectors);
    for (UInt n = 0; n < YMM_COUNT; n++)
        VG_(memcpy)(state->vectors[n], ymm(guest, n), YMM_BYTES);
    VG_(memcpy)(state->masks, wide->masks, sizeof state->masks);
    VG_(memcpy)(state->general, &guest->guest_RAX, sizeof state->general);
    state->flags = LibVEX_GuestAMD64_get_rflags(guest) & STATUS_FLAGS;
    state->control = DEFAULT_CONTROL | (guest->guest_SSEROUND & 3) << 13;
}

static void store_state(const StepState *state, VexGuestAMD64State *guest, Wide *wide, ULong flags)
{
    VG_(memcpy)(wide->vectors, state->vectors, sizeof wide->vectors);
    for (UInt n = 0; n < YMM_COUNT; n++)
        VG_(memcpy)(ymm(guest, n), state->vectors[n], YMM_BYTES);
    VG_(memcpy)(wide->masks, state->masks, sizeof wide->masks);
    VG_(memcpy)(&guest->guest_RAX, state->general, sizeof state->general);
    if ((state->flags & STATUS_FLAGS) != flags) {
        guest->guest_CC_OP = 0; /* AMD64G_CC_OP_COPY */
        guest->guest_CC_DEP1 = state->flags & STATUS_FLAGS;
        guest->guest_CC_DEP2 = guest->guest_CC_NDEP = 0;
        set_register_labels(running, offsetof(VexGuestAMD64State, guest_CC_DEP1), 16, 0);
    }
}

VG_REGPARM(2) Addr run_unknown(UChar *registers, const Unknown *u)
{
    /* One thread runs at a time, and a fault leaves nothing that is read later. */
    static StepState state __attribute__((aligned(64)));
    VexGuestAMD64State *guest = (VexGuestAMD64State *)registers;
    Words *words = (Words *)(registers + REGISTERS);
    Thread *t = running;
    t->words = words;
    if (!is_there(u)) {
        guest->guest_CMSTART = u->address;
        guest->guest_CMLEN = MOST_BYTES;
        return u->address;
    }
    guest->guest_RIP = u->address;
    Wide *wide = wide_of(t);
    empty_upper_halves(wide, words);
    load_state(&state, guest, wide);
    Addr address = u->has_memory ? address_without_displacement(guest, u) : 0;
    if (u->has_memory)
        state.general[u->scratch] = address;
    ULong flags = state.flags;
    state.stub = u->stub;
    catch_up(t);
    resolve_registers(t);
    step_once(&state);
    if (u->has_memory)
        state.general[u->scratch] = (&guest->guest_RAX)[u->scratch];
    state.general[4] = guest->guest_RSP;
    store_state(&state, guest, wide, flags);
    label_unknown(t, u, address);
    return u->address + u->length;
}
