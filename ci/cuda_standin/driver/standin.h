// Shared by the parts of the stand-in driver.
#ifndef STANDIN_H
#define STANDIN_H
#include <stddef.h>
#include "cuda.h"

// The properties of a card that CubeCL asks for, or that a launch is checked against.
typedef struct {
    // The word for STANDIN_CARD, and the name that the driver returns.
    const char *word, *name;
    // Compute capability.
    int major, minor;
    int multiprocessors;
    // Bytes of shared memory of a block when a kernel asks for more than usual.
    int shared_optin;
    size_t memory;
} Card;

// Bytes of shared memory of a block that does not ask for more.
enum { SHARED_USUAL = 49152 };

const Card *card(void);

// The folder of the log: STANDIN_LOG.
const char *log_folder(void);

// Writes a line to driver.log. The first word says what it is; README.md lists them.
void record(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Seconds of a clock.
double seconds(void);

// The version of CUDA that the driver claims to support, e.g. 12090.
int driver_version(void);

// Sizes of a launch.
typedef struct {
    unsigned grid[3], block[3];
    // Bytes of dynamic shared memory.
    unsigned shared;
} Launch;

// Executes a kernel on the host; `translated` keeps its code from one launch to the next.
CUresult execute(const char *module, const char *kernel, const Launch *launch, void **arguments, void **translated);

#endif
