/* Words that every file of the engine uses, and the memory that it reserves.
 *
 * In: Valgrind's tool interface. Out: types, and `reserve`.
 * Invariant: reserved memory lies above every address that the program can have.
 *
 * Part of backstory's byte engine: GPL-2.0-or-later, because it is linked to Valgrind. */
#ifndef ENGINE_H
#define ENGINE_H

#include "pub_tool_basics.h"
#include "pub_tool_vki.h"

#include "pub_tool_aspacemgr.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_machine.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_options.h"
#include "pub_tool_threadstate.h"
#include "pub_tool_tooliface.h"
#include "pub_tool_vkiscnums.h"

#include "libvex_guest_amd64.h"

/* A set of input bytes. 0 is the empty set. The low 31 bits identify the set (labels.h). The top
   bit says that the value was computed: without it, the byte is a copy of an input byte. */
typedef UInt Label;
#define COMPUTED 0x80000000u
#define SET_OF(label) ((label)&0x7fffffffu)

/* Valgrind keeps programs below 16 TiB. */
#define ADDRESS_BITS 44
#define ADDRESS_MASK ((1ULL << ADDRESS_BITS) - 1)

/* Valgrind's own system calls: the library has them, its tool headers do not. */
extern SysRes VG_(do_syscall)(UWord number, RegWord, RegWord, RegWord, RegWord, RegWord, RegWord,
                              RegWord, RegWord);
extern Int VG_(safe_fd)(Int fd);
extern Bool VG_(resolve_filename)(Int fd, const HChar **name);

/* Maps `length` bytes of zeros at `address` (0: anywhere). Pages cost nothing until they are
   written. Ends the program with a message if the kernel refuses. */
void *reserve(ULong address, ULong length, const HChar *purpose);

/* The options of the command line. */
typedef enum { ADDRESS_NONE, ADDRESS_TABLES, ADDRESS_ALL } AddressMode;
typedef struct {
    const HChar *directory; /* output: one file for each program image */
    AddressMode address;    /* whether a table look-up depends on its index */
    Bool all_files;         /* also libraries, /usr, /etc … are sources */
    Bool memory;            /* report how much labels take */
    ULong node_limit;       /* sets before coarsening begins */
    Bool implicit;          /* also follow what branches decide (implicit.h) */
    Bool asks;              /* a supervisor knows what descriptors are (places.h) */
    Bool recorded;          /* a recording observes the program (under_way.h) */
    UInt window;            /* the most instructions that a branch decides */
} Settings;
extern Settings settings;

#endif
