// The log of the driver, and the clock.
#define _GNU_SOURCE
#include "standin.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const char *log_folder(void) {
    const char *folder = getenv("STANDIN_LOG");
    if (!folder) {
        fprintf(stderr, "stand-in: STANDIN_LOG names no folder; use run.sh\n");
        abort();
    }
    return folder;
}

void record(const char *format, ...) {
    static FILE *file;
    pthread_mutex_lock(&lock);
    if (!file) {
        char path[4096];
        snprintf(path, sizeof path, "%s/driver.log", log_folder());
        file = fopen(path, "a");
        if (!file) {
            perror(path);
            abort();
        }
        // Each line is there when the process is ended from outside.
        setvbuf(file, NULL, _IOLBF, 1 << 12);
    }
    va_list arguments;
    va_start(arguments, format);
    vfprintf(file, format, arguments);
    va_end(arguments);
    fputc('\n', file);
    pthread_mutex_unlock(&lock);
}

double seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}
