/* The calls of the program that are under way.
 *
 * Valgrind makes system calls of its own, in the same process. This list says which ones are the
 * program's. Its reader is the supervisor of a deep replay (--ask), or the guard of a recording
 * (--recorded). */
#ifndef UNDER_WAY_H
#define UNDER_WAY_H

#include "places.h"

/* Tells the observer that the program's first call comes next, and where the list is. */
void under_way_start(void);

/* The program's call begins, or has ended. */
void program_calls(ThreadId tid, UInt call, const UWord *args);
void program_called(ThreadId tid);

/* The process was forked. Only this thread is in the child. */
void under_way_in_child(ThreadId tid);

/* The recorder in the program says where its gate is and asks whether to record. It asks whether a
   page is readable, and says where redirected calls return to. */
Bool take_request(ThreadId tid, UWord *words, UWord *answer);

#endif
