/* The state that the files share which make a label program out of a block, one at a time.
 *
 * ```
 *   compile.c     statements: registers, memory, exits
 *   registers.c   reads and writes of registers
 *   helpers.c     instructions that are a call of VEX
 *   operations.c  expressions: which bytes of the operands a byte of the result depends on
 *   rearrange.c   operations that mix bytes: masks, shifts, lanes
 *   building.c    operations of the program are appended, and removed if nothing uses them
 *   instrument.c  the block's code is made to store its words
 * ```
 */
#ifndef COMPILE_H
#define COMPILE_H

#include "program.h"

/* The labels of a value: one slot for each byte. A value of one bit has one. */
typedef struct {
    UInt n;
    Slot at[32];
} Value;

/* A word that the block must store before (or after) one of its statements. */
typedef struct {
    Int statement;
    Bool after;
    Bool is_address;
    IRExpr *value;   /* an atom; for an address, of 64 bits */
    IRExpr *guard;   /* NULL, or the address counts only if this atom is true */
    UInt half;       /* for a value of 128 bits: which 64 */
    UInt plus;       /* added to the address */
    Bool if_swapped; /* the address counts only if the statement (a CAS) stored */
    UInt span;       /* bytes of the access */
    Bool used;
    UShort number; /* after numbering */
} WordRequest;

#define MAX_REQUESTS 1000
#define MAX_OPS 6000
#define MAX_CODE 100000
#define MAX_EXITS 120

typedef struct {
    IRSB *block;
    Int statement;
    UShort *temps; /* first slot list of each temporary, in temp_slots */
    Slot *temp_slots;
    UInt temp_slots_used;
    Slot registers[REGISTERS]; /* the slot that holds each register byte's label now */
    UInt next_slot;
    Bool computed[SLOTS]; /* the slot's label is that of a computed value, if it has one */
    UShort code[MAX_CODE];
    UInt code_used;
    UInt op_starts[MAX_OPS];
    UInt op_count;
    WordRequest requests[MAX_REQUESTS];
    UInt request_count;
    struct {
        UInt op_count, requests_before;
        UInt puts, puts_end;
        Bool overlapping;
        UInt code_end; /* after removal */
        Addr target;
    } exits[MAX_EXITS];
    UInt exit_count;
    UShort puts[MAX_CODE];
    UInt puts_used;
    ULong groups;
    Bool overflow;       /* the block is too large: it is marked as lost */
    Int flags_operation; /* the last constant put into CC_OP, or -1 */
    IRExpr *subtractions[64][2];
    UInt subtraction_count;
} Compilation;

extern Compilation c;

/* building.c */
void begin_operation(UShort op);
void append(UInt word);
void append_list(const Slot *slots, UInt n);
/* The value of an operation on a requested word and two lists of the same size. */
Value of_two_lists(UShort op, UInt word, const Value *first, const Value *second);
Slot new_slots(UInt n);
/* A value of new slots, one behind the other: the first one's number stands for all. */
Value new_value(UInt n);
Slot unite_slots(const Slot *slots, UInt n);
Slot unite_values(const Value *values, UInt count);
Value all_bytes(Slot slot, UInt n);
Value empty_value(UInt n);
/* The same labels, and with --implicit those of a slot that decided about the value. */
Value decided(Slot by, Value v);
/* The same labels of an operation's result, without the implicit ones if both operands, of 64 bits,
   are pointers (implicit.h). */
Value of_operands(IRExpr *a, IRExpr *b, Value v);
/* A value of n bytes that the values decide: without labels, but for --implicit. */
Value decision(const Value *values, UInt count, UInt n);
UInt request_word(WordRequest request);
void remove_unused(void);

/* compile.c */
void set_temp(IRTemp temp, Value v);
UInt address_word(IRExpr *address, UInt plus, UInt span, IRExpr *guard);

/* registers.c */
Bool is_fp(UInt offset);
Value fp_read(IRExpr *index, UInt bias);
void fp_write(IRExpr *index, UInt bias, Value v);
Value register_value(UInt offset, UInt n);
void put_register(UInt offset, Value v);
/* As the program does: the operands of a mere comparison are left out. */
void write_register(UInt offset, IRExpr *data);

/* helpers.c */
void do_helper(IRDirty *d, IRTypeEnv *types);

/* operations.c */
/* The constant, if the atom is one of at most 64 bits. */
Bool constant(const IRExpr *atom, ULong *value);
UInt bytes_of(IRType type);
Value value_of(IRExpr *atom);
Value apply_operation(IROp op, IRExpr **args, UInt count, IRType type);
/* False if the operation, of two operands, is of another kind. */
Bool rearrange(IROp op, IRExpr **args, Value *v);
Value apply_call(const IRCallee *callee, IRExpr **args, IRType type);

#endif
