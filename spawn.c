#include <pthread.h>
#include <unistd.h>
static void *f(void *a) { return a; }
__attribute__((noinline)) void spawn(void) { pthread_t t; pthread_create(&t, 0, f, 0); usleep(10000); }
int main(void) { spawn(); return 0; }
