/* Sets that no byte of memory and no register refers to any more are given back.
 *
 * In: the labels of memory and of all threads. Out: free nodes (labels.h).
 * Invariant: it runs only where no label is deferred and no label program runs. */
#ifndef COLLECT_H
#define COLLECT_H

#include "execute.h"

/* Collects if enough sets were made since the last time. */
void collect_sets(void);

#endif
