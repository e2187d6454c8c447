/* Calls of VEX's helpers, for instructions that it does not take apart. See compile.h. */
#include "compile.h"

/* A helper of VEX: everything that it reads reaches everything that it writes. */
void do_helper(IRDirty *d, IRTypeEnv *types)
{
    Value inputs[64];
    UInt count = 0;
    Bool compares = VG_(strstr)(d->cee->name, "PCMPxSTRx") != NULL;
    for (UInt i = 0; d->args[i] && count < 16; i++) {
        if (!is_IRExpr_VECRET_or_GSPTR(d->args[i]))
            inputs[count++] = value_of(d->args[i]);
    }
    for (Int i = 0; i < d->nFxState; i++) {
        for (UInt k = 0; k < 1u + d->fxState[i].nRepeats && d->fxState[i].fx != Ifx_Write; k++) {
            UInt at = d->fxState[i].offset + k * d->fxState[i].repeatLen,
                 end = at + d->fxState[i].size;
            for (; at < end && count < 60; at += 32)
                inputs[count++] = register_value(at, end - at < 32 ? end - at : 32);
        }
    }
    if (d->mFx == Ifx_Read || d->mFx == Ifx_Modify) {
        UInt word = address_word(d->mAddr, 0, d->mSize, d->guard);
        Slot slot = new_slots(1);
        begin_operation(OP_GATHER);
        append(d->mSize);
        append(word);
        append(slot);
        inputs[count++] = all_bytes(slot, 1);
    }
    static Slot all_inputs[2048];
    UInt used = 0;
    for (UInt i = 0; i < count; i++) {
        Slot one = unite_values(&inputs[i], 1);
        all_inputs[used++] = one;
    }
    Slot all = compares ? EMPTY_SLOT : unite_slots(all_inputs, used);
    if (compares && settings.implicit)
        all = decided(unite_slots(all_inputs, used), empty_value(1)).at[0];
    Bool always = d->guard->tag == Iex_Const;
    for (Int i = 0; i < d->nFxState; i++) {
        for (UInt k = 0; k < 1u + d->fxState[i].nRepeats && d->fxState[i].fx != Ifx_Read; k++) {
            UInt at = d->fxState[i].offset + k * d->fxState[i].repeatLen,
                 end = at + d->fxState[i].size;
            for (; at < end; at += 8) {
                UInt n = end - at < 8 ? end - at : 8;
                Value old = register_value(at, n), both[2] = {old, all_bytes(all, 1)};
                put_register(at, all_bytes(always ? all : unite_values(both, 2), n));
            }
        }
    }
    if (d->mFx == Ifx_Write || d->mFx == Ifx_Modify) {
        UInt word = address_word(d->mAddr, 0, d->mSize, d->guard);
        begin_operation(OP_FILL);
        append(d->mSize);
        append(word);
        append(all);
    }
    if (d->mSize > 64 && d->mFx != Ifx_None)
        c.groups |= 1ULL << ALWAYS_GROUP;
    if (d->tmp != IRTemp_INVALID)
        set_temp(d->tmp, all_bytes(all, bytes_of(typeOfIRTemp(types, d->tmp))));
}
