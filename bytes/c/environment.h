/* The environment of the program. */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

#include "engine.h"

/* Takes what Valgrind adds out of a new program's environment: the directory of its files, and a
   library that only tools need which report unfreed memory. `stack`: the first stack pointer. */
void restore_environment(Addr stack);

#endif
