/* The functions of backstory.h by name, for libbackstory.so and libbackstory.a. */
#define BACKSTORY_FUNCTION __attribute__((visibility("default")))
#include "../include/backstory.h"
