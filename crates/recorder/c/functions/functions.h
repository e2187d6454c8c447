/*
 * Declarations of the files that record calls of functions (`record --functions`). The library for
 * ordinary runs has none of them.
 *
 * The supervisor knows the names that the user asked for. For an executable file or a library it
 * makes a table (struct bs_function_table), which all processes of the run map. The table has one
 * bit for each byte of the file's code: set where a function begins whose calls are recorded.
 */
#ifndef FUNCTIONS_H
#define FUNCTIONS_H

#include "../arena.h"

#pragma GCC visibility push(hidden)

/* A file whose code the process has mapped. */
struct bs_module {
    u64 start, size; /* of the code, in memory */
    const u64 *bits; /* null if no function of the file is recorded */
    u32 first;       /* the number of a function is `first` plus its offset from `start` */
    const struct bs_function_table *table; /* if arguments are recorded; else null */
    u64 bias; /* how far the file was moved from the addresses that it was linked for */
};

/* The registers of a thread in a hook, by DWARF's numbers. The vectors are 17 to 32. */
struct bs_registers {
    u64 general[16];
    u8 vectors[16][16];
};

enum { BS_MODULES = 64 };
extern struct bs_module bs_modules[BS_MODULES];
extern u32 bs_module_count;

/* modules.c: finds the module of a function at its first call. Returns the function's number. */
u32 bs_number_in_new_module(u64 function);

/* Returns the number of a function whose calls are recorded; 0 for any other. */
static inline u32 bs_function_number(u64 function)
{
    u32 count = __atomic_load_n(&bs_module_count, __ATOMIC_ACQUIRE);
    for (u32 i = 0; i < count; i++) {
        const struct bs_module *module = &bs_modules[i];
        u64 at = function - module->start;
        if (at < module->size)
            return module->bits && module->bits[at / 64] >> at % 64 & 1 ? module->first + (u32)at
                                                                        : 0;
    }
    return bs_number_in_new_module(function);
}

/*
 * hooks.c: a function is called, and returns. `stack` is an address in its frame, `site` the
 * address that it returns to.
 */
void bs_function_called(u32 number, u64 stack, u64 site);
void bs_function_returned(u32 number, u64 stack);
/* A redirected function returns. The address that it was called with was at `stack`. */
void bs_redirected_function_returned(u64 stack);
/* The thread goes on with this stack pointer: functions whose frames are below it are left. */
void bs_functions_left(u64 stack);

/* hooks.c: functions of interpreters, whose numbers have the highest bit. */
BS_API int backstory_function(u32 number, const char *name, const char *where);
BS_API void backstory_call(u32 number);
BS_API void backstory_return(u32 number);

/* 1 once a module has signatures. The hooks then save the registers. */
extern u8 bs_values_wanted;

/* hooks.c: logs the values of a call, unless it was only counted. `stack` as above. */
void bs_log_called(u32 number, const struct bs_registers *registers, u64 pc);
void bs_log_returned(u32 number, u64 stack, const struct bs_registers *registers, u64 pc);

/*
 * values.c: logs the arguments of a call that has just been logged. `pc` is the address to which
 * the hook returns; 0: the function is at its first instruction.
 */
void bs_log_arguments(u32 number, const struct bs_registers *registers, u64 pc);
/* Logs a result: the content of rax, or of the first vector register. */
void bs_log_result(u32 number, const struct bs_registers *registers, u64 pc);
/*
 * result.c: the result that a function will return after its hook, found in the instructions from
 * `pc` on. False if they are of another form than the compiler's usual one.
 */
bool bs_result_after(u64 pc, const struct bs_registers *registers, bool is_vector, u64 *result);

/* values.c: copies memory of the process. Returns the bytes up to a page that cannot be read. */
u64 bs_fetch(void *to, u64 from, u64 size);

/* ---- redirection: calls of libraries without hooks ------------------------------------------- */

/*
 * A function whose calls are redirected. Its stub is the one with the same index (redirection.S).
 */
struct bs_redirected {
    u64 address;
    u32 number; /* 0: its library was unloaded */
    u32 pad;
};

/* The code of a file, in memory. */
struct bs_code {
    u64 start, size;
};

enum {
    BS_REDIRECTED = 4096, /* functions of a process. STUBS in redirection.S */
    BS_RETURNS = 4096,    /* calls that have not returned */
    BS_STUB = 16,         /* bytes of a stub */
    BS_CHOSEN = 512,      /* functions of a process that libraries chose when they were loaded */
};
extern const u8 bs_call_stubs[], bs_return_stubs[];

/* targets.c */
extern struct bs_redirected *bs_redirected; /* null before the first redirection */
extern u32 bs_redirected_count;
/*
 * Takes in the functions of a library with this code. Returns false if some of them have no stub
 * left.
 */
bool bs_add_targets(u64 bias, struct bs_code code, const struct bs_target *targets, u32 count);
/*
 * Functions that libraries choose, and whose libraries were still being loaded at the last look:
 * their number, and another attempt. As bs_add_targets.
 */
extern u32 bs_waiting_count;
bool bs_add_waiting_targets(void);
/* The function that the code at an address has chosen (IFUNC). Any other address as it is. */
u64 bs_chosen_by(u64 address);
/* The library with code in this range was unloaded. */
void bs_forget_targets(u64 start, u64 size);
/* The stub of a function; 0 if it has none. */
u64 bs_stub_of(u64 address);
/* The function of a stub; any other address as it is. */
u64 bs_function_of(u64 address);

/* returns.c: maps the addresses to which redirected calls return. False if that is not possible. */
bool bs_map_returns(void);

/* slots.c: lets the calls of an object go to stubs. */
struct bs_object;
void bs_redirect_slots(const struct bs_object *object);
/* Whether the program began with the object at a base. */
bool bs_is_initial(u64 base);
/* Whether the loader has relocated the object at a base, with this code. */
bool bs_is_relocated(u64 base, struct bs_code code);

/* libraries.c */
/* The patterns of the libraries whose functions are wanted, each with its NUL; null without one. */
extern const char *bs_library_patterns;
/* Looks for libraries that were loaded since the last look, and redirects calls of them. */
void bs_redirect_libraries(void);

/* modules.c: asks for the table of a library. `address` is in its memory. */
void bs_add_library(u64 address, u64 bias);
/* Adds the functions whose libraries were still being loaded at the last look. */
void bs_add_waiting(void);
/* Forgets those of the first `count` modules whose bits are not in `loaded`. */
void bs_forget_modules(u64 loaded, u32 count);

/* sleds.c: switches on the sleds of a module that the compiler left for XRay. */
void bs_switch_on(const struct bs_module *module, u64 bias, const struct bs_sled *sleds, u32 count);

#pragma GCC visibility pop

#endif
