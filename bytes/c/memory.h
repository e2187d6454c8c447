/* How much memory the labels of a program take (--memory=yes). */
#ifndef MEMORY_H
#define MEMORY_H

/* Before much memory is given back. */
void note_memory(void);

/* Prints how many bytes were resident at most: of the program, of the labels, and of the sets. At
   the end of an image. */
void report_memory(void);

#endif
