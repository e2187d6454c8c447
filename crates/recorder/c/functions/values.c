/*
 * Logs the arguments and the results of functions (`record --functions GLOB --arguments`).
 *
 * In: the registers of the thread, and the table that says where a parameter is and of which type.
 * Out: a VALUES record with a string for each value, as NAME=VALUE. Strings for the pointers to
 * data among them follow, as &NAME=ADDRESS+BYTES, with `const ` before a target that the function
 * does not change.
 *
 * Invariant: the kernel reads the program's memory (process_vm_readv). So a pointer to nowhere has
 * no target, and does not end the program. In a sandbox no target is read.
 */
#include "functions.h"

enum {
    TEXT = 200,     /* the most bytes of a text */
    ROOM = 1500,    /* the most bytes of the values of a record */
    ONE = 400,      /* the room that a value finds; there is none for the next otherwise */
    DEEPEST = 4,    /* values inside each other */
    MOST = 16,      /* parameters */
    POINTER = 128,  /* the room that a pointer finds */
    POINTERS = 640, /* the most bytes of the pointers of a record */
    DWARF_RAX = 0,
    FIRST_VECTOR = 17
};

/* Before the digits of a floating-point number's bits. Readers print the number. */
static const char BITS = 1;

struct text {
    char *at, *end;
};

static void put(struct text *text, char c)
{
    if (text->at < text->end)
        *text->at++ = c;
}

static void put_text(struct text *text, const char *s)
{
    while (*s)
        put(text, *s++);
}

static void put_hex(struct text *text, u64 value, u32 digits)
{
    while (digits-- > 0)
        put(text, "0123456789abcdef"[value >> 4 * digits & 15]);
}

static void put_address(struct text *text, u64 value)
{
    u32 digits = 1;
    while (digits < 16 && value >> 4 * digits)
        digits++;
    put_text(text, "0x");
    put_hex(text, value, digits);
}

static void put_decimal(struct text *text, u64 value)
{
    char digits[20];
    u32 n = 0;
    do
        digits[n++] = (char)('0' + value % 10);
    while (value /= 10);
    while (n)
        put(text, digits[--n]);
}

struct part {
    u64 at, size;
};

u64 bs_fetch(void *to, u64 from, u64 size)
{
    if (bs_modes & (BS_MODE_SANDBOX | BS_MODE_CLOSED) || from + size < from)
        return 0;
    u64 first = BS_PAGE - from % BS_PAGE;
    struct part own = {(u64)to, size};
    struct part parts[2] = {{from, first < size ? first : size}, {from + first, size - first}};
    u32 count = first < size ? 2 : 1;
    s64 n = bs_raw(__NR_process_vm_readv, bs_process->pid, &own, 1, parts, count, 0);
    return n < 0 ? 0 : (u64)n;
}

static u64 number(const u8 *bytes, u32 size)
{
    u64 value = 0;
    bs_copy(&value, bytes, size);
    return value;
}

static void put_string(struct text *text, u64 address)
{
    char content[TEXT];
    u64 n = bs_fetch(content, address, TEXT);
    if (!n) {
        put_address(text, address);
        return;
    }
    u64 i = 0;
    put(text, '"');
    while (i < n && content[i])
        put(text, content[i++]);
    put(text, '"');
    if (i == n)
        put_text(text, "...");
}

static void put_value(struct text *text, const struct bs_function_table *table,
                      const struct bs_value *value, const u8 *bytes, u32 depth);

/* The members of a structure, or the target of a pointer: copied, then printed. */
static void put_target(struct text *text, const struct bs_function_table *table,
                       const struct bs_value *value, u64 address, u32 depth)
{
    u8 bytes[128];
    u32 size = value->size <= sizeof bytes ? value->size : sizeof bytes;
    if (depth == DEEPEST || !size || bs_fetch(bytes, address, size) != size)
        return;
    put_text(text, " (");
    put_value(text, table, value, bytes, depth + 1);
    put(text, ')');
}

static void put_value(struct text *text, const struct bs_function_table *table,
                      const struct bs_value *value, const u8 *bytes, u32 depth)
{
    const u8 *base = (const u8 *)table;
    const struct bs_value *values = (const struct bs_value *)(base + table->values);
    u64 n = value->kind == BS_VALUE_STRUCTURE ? 0 : number(bytes, value->size);
    switch (value->kind) {
    case BS_VALUE_SIGNED:
        if (n >> (8 * value->size - 1) & 1) {
            put(text, '-');
            n = (0 - n) & (~0ull >> (64 - 8 * value->size));
        }
        put_decimal(text, n);
        break;
    case BS_VALUE_UNSIGNED: put_decimal(text, n); break;
    case BS_VALUE_FLOAT:
        put(text, BITS);
        put_hex(text, n, 2 * value->size);
        break;
    case BS_VALUE_TEXT:
        if (n)
            put_string(text, n);
        else
            put_text(text, "NULL");
        break;
    case BS_VALUE_POINTER:
        if (!n) {
            put_text(text, "NULL");
            break;
        }
        put_address(text, n);
        if (value->count)
            put_target(text, table, values + value->first, n, depth);
        break;
    case BS_VALUE_STRUCTURE:
        for (u32 i = 0; i < value->count; i++) {
            const struct bs_value *member = values + value->first + i;
            put_text(text, i ? ", " : "");
            put_text(text, (const char *)base + table->names + member->name);
            put(text, '=');
            put_value(text, table, member, bytes + member->offset, depth);
        }
        break;
    default: put(text, '?');
    }
}

/*
 * The signature of a function, with its table and the offset of `pc` in the file's code. Null
 * without one.
 */
static const struct bs_signature *signature_of(u32 number, u64 pc,
                                               const struct bs_function_table **table, u64 *offset)
{
    u32 count = __atomic_load_n(&bs_module_count, __ATOMIC_ACQUIRE);
    for (u32 i = 0; i < count; i++) {
        const struct bs_module *module = &bs_modules[i];
        if (!module->table || number - module->first >= module->size)
            continue;
        *table = module->table;
        *offset = pc - module->start;
        const struct bs_signature *all =
            (const struct bs_signature *)((const u8 *)*table + (*table)->signatures);
        u32 low = 0, high = (*table)->signature_count;
        while (low < high) {
            u32 middle = low + (high - low) / 2;
            if (all[middle].number < number)
                low = middle + 1;
            else
                high = middle;
        }
        return low < (*table)->signature_count && all[low].number == number ? &all[low] : 0;
    }
    return 0;
}

/* Copies the content of a place. False if it cannot be read. */
static bool content(const struct bs_place *place, const struct bs_registers *registers, u32 size,
                    u8 *to)
{
    if (place->memory)
        return bs_fetch(to, registers->general[place->base & 15] + (u64)(s64)place->offset, size) ==
               size;
    if (place->base >= FIRST_VECTOR)
        bs_copy(to, registers->vectors[(place->base - FIRST_VECTOR) & 15], size);
    else
        bs_copy(to, &registers->general[place->base & 15], size);
    return true;
}

/* The place of a parameter at an offset in the file's code; null if it has none there. */
static const struct bs_place *place_at(const struct bs_function_table *table,
                                       const struct bs_value *value, u64 offset, bool at_entry)
{
    const struct bs_place *places =
        (const struct bs_place *)((const u8 *)table + table->places) + value->place;
    for (u32 i = 0; i < value->places; i++) {
        bool fits = at_entry ? !places[i].to : offset >= places[i].from && offset < places[i].to;
        if (fits)
            return &places[i];
    }
    return 0;
}

static void begin_value(struct text *text, const struct bs_function_table *table,
                        const struct bs_value *value)
{
    put_text(text, (const char *)table + table->names + value->name);
    put(text, '=');
}

/* Where a pointer leads: at most POINTER bytes, since a name has at most 64. */
static void put_pointer(struct text *text, const struct bs_function_table *table,
                        const struct bs_value *value, u64 address)
{
    s64 bytes = value->offset;
    put(text, '&');
    begin_value(text, table, value);
    if (bytes < 0)
        put_text(text, "const ");
    put_address(text, address);
    put(text, '+');
    put_decimal(text, (u64)(bytes < 0 ? -bytes : bytes));
    put(text, 0);
}

static void log_values(u32 number, s32 what, const char *strings, const struct text *text)
{
    u32 size = (u32)(text->at - strings);
    struct bs_reservation rec = bs_begin_room(BS_OP_VALUES, (s32)number, what, strings, size);
    bs_end(rec, 0);
}

void bs_log_arguments(u32 number, const struct bs_registers *registers, u64 pc)
{
    const struct bs_function_table *table;
    u64 offset;
    /*
     * The call instruction is before the address to which it returns. DWARF ends the places that
     * the call may change one byte before that address. The hook still finds them.
     */
    const struct bs_signature *signature = signature_of(number, pc - 2, &table, &offset);
    if (!signature || !signature->count)
        return;
    char strings[ROOM + POINTERS];
    u64 pointers[MOST];
    u32 done = 0;
    struct text all = {strings, strings + ROOM};
    const struct bs_value *values =
        (const struct bs_value *)((const u8 *)table + table->values) + signature->first;
    for (u32 i = 0; i < signature->count && i < MOST && all.end - all.at > ONE; i++) {
        const struct bs_place *place = place_at(table, &values[i], offset, !pc);
        u8 bytes[8] = {0};
        struct text one = {all.at, all.at + ONE - 1};
        begin_value(&one, table, &values[i]);
        if (place && content(place, registers, values[i].size & 15, bytes))
            put_value(&one, table, &values[i], bytes, 0);
        else
            put(&one, '?');
        *one.at = 0;
        all.at = one.at + 1;
        pointers[done] = 0;
        if (values[i].offset)
            bs_copy(&pointers[done], bytes, sizeof bytes);
        done++;
    }
    all.end = strings + sizeof strings;
    for (u32 i = 0; i < done && all.end - all.at > POINTER; i++)
        if (pointers[i])
            put_pointer(&all, table, &values[i], pointers[i]);
    log_values(number, 0, strings, &all);
}

void bs_log_result(u32 number, const struct bs_registers *registers, u64 pc)
{
    const struct bs_function_table *table;
    u64 offset;
    const struct bs_signature *signature = signature_of(number, pc, &table, &offset);
    if (!signature || !signature->result)
        return;
    const struct bs_value *value = (const struct bs_value *)((const u8 *)table + table->values) +
                                   signature->first + signature->count;
    u64 result = registers->general[DWARF_RAX];
    if (value->places)
        bs_copy(&result, registers->vectors[0], sizeof result);
    if (pc && !bs_result_after(pc, registers, value->places, &result))
        return;
    char strings[ONE + POINTER];
    struct text text = {strings, strings + ONE - 1};
    begin_value(&text, table, value);
    put_value(&text, table, value, (const u8 *)&result, 0);
    *text.at++ = 0;
    text.end = strings + sizeof strings;
    if (value->offset && result)
        put_pointer(&text, table, value, result);
    log_values(number, 1, strings, &text);
}
