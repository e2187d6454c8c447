/* System calls that bring bytes in, or carry them out. */
#ifndef CALLS_H
#define CALLS_H

#include "entities.h"

void before_call(ThreadId tid, UInt call, UWord *args, UInt count);
void after_call(ThreadId tid, UInt call, UWord *args, UInt count, SysRes result);

/* Shared mappings that are still mapped when the program ends. */
void write_all_mappings(void);

/* The arguments that another recorded image passed to this one. */
void take_arguments(Addr stack);

#endif
