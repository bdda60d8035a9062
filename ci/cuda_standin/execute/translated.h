// A kernel's PTX as code of the host.
#ifndef TRANSLATED_H
#define TRANSLATED_H
#include "thread.h"

typedef struct {
    void (*run)(struct Thread *, void **arguments);
    // Bytes of static shared memory, before the dynamic one.
    unsigned shared;
    // Why it cannot be run; empty if it can.
    char why[200];
} Translated;

// Translates the PTX of a module, or takes what an earlier process translated.
Translated *translated_kernel(const char *module);

#endif
