// Has the PTX of a kernel translated to C and compiled, and loads it. Code is kept in STANDIN_CACHE
// by the hash of the source.
#define _GNU_SOURCE
#include "translated.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../driver/standin.h"

static const char *variable(const char *name) {
    const char *value = getenv(name);
    if (!value) {
        fprintf(stderr, "stand-in: %s is not set; use run.sh\n", name);
        abort();
    }
    return value;
}

Translated *translated_kernel(const char *module) {
    Translated *kernel = calloc(1, sizeof *kernel);
    char code[2048], command[8192], why[2100];
    snprintf(code, sizeof code, "%s/translated/%s.%s.so", variable("STANDIN_CACHE"), module, card()->word);
    if (access(code, R_OK)) {
        snprintf(command, sizeof command, "'%s/translate.sh' '%s/ptx/%s.%s.ptx' '%s'", variable("STANDIN_SOURCE"),
                 log_folder(), module, card()->word, code);
        // Whether it worked shows when the code is loaded.
        if (system(command)) snprintf(kernel->why, sizeof kernel->why, "its translation failed");
    }
    void *library = dlopen(code, RTLD_NOW | RTLD_LOCAL);
    if (library) {
        kernel->run = dlsym(library, "kernel");
        kernel->shared = *(int *)dlsym(library, "static_shared");
        return kernel;
    }
    snprintf(kernel->why, sizeof kernel->why, "its code cannot be loaded");
    snprintf(why, sizeof why, "%s.why", code);
    FILE *file = fopen(why, "r");
    if (file) {
        // The first line has the instruction that is not translated; an empty file leaves what is
        // said above.
        if (fgets(why, sizeof why, file)) snprintf(kernel->why, sizeof kernel->why, "%.190s", strtok(why, "\n"));
        fclose(file);
    }
    return kernel;
}
