// Modules of PTX, their kernels and launches. Whatever a real driver would refuse is refused.
#define _GNU_SOURCE
#include "standin.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    // The name of its source, which nvrtc.c wrote into the PTX.
    char source[20];
    char *ptx;
} Module;

typedef struct {
    Module *module;
    char name[400];
    // Bytes of dynamic shared memory that it may have.
    int shared;
    void *translated;
} Function;

// The oldest CUDA that takes PTX of a version; 0 if the text has none.
static int oldest_driver(const char *ptx) {
    int major, minor;
    const char *line = strstr(ptx, ".version ");
    if (!line || sscanf(line, ".version %d.%d", &major, &minor) != 2) return 0;
    // PTX 8.5 belongs to CUDA 12.5 and 12.6; from there to 8.8 it is a release behind.
    if (major == 8) return 12000 + 10 * (minor > 5 ? minor + 1 : minor);
    return (major + 4) * 1000 + 10 * minor;
}

CUresult cuModuleLoadData(CUmodule *loaded, const void *image) {
    int needed = oldest_driver(image);
    if (needed > driver_version()) {
        record("REFUSED PTX that needs a driver of CUDA %d", needed);
        return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    }
    Module *module = calloc(1, sizeof *module);
    module->ptx = strdup(image);
    const char *source = strstr(image, "// source ");
    if (source) sscanf(source, "// source %16s", module->source);
    *loaded = (CUmodule)module;
    return CUDA_SUCCESS;
}
// Functions stay usable: CubeCL keeps them as long as its modules.
CUresult cuModuleUnload(CUmodule module) { return CUDA_SUCCESS; }

CUresult cuModuleGetFunction(CUfunction *found, CUmodule of, const char *name) {
    Module *module = (Module *)of;
    char entry[512], path[4096];
    snprintf(entry, sizeof entry, ".entry %s(", name);
    if (!strstr(module->ptx, entry)) {
        record("REFUSED %s: no such kernel in module %s", name, module->source);
        return CUDA_ERROR_NOT_FOUND;
    }
    // Where the translator and ptxas find it.
    snprintf(path, sizeof path, "%s/ptx/%s.%s.ptx", log_folder(), module->source, card()->word);
    FILE *file = fopen(path, "wx");
    if (file) {
        fputs(module->ptx, file);
        fclose(file);
    }
    Function *function = calloc(1, sizeof *function);
    function->module = module;
    snprintf(function->name, sizeof function->name, "%s", name);
    record("KERNEL %s %s", module->source, name);
    *found = (CUfunction)function;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction of, CUfunction_attribute attribute, int value) {
    Function *function = (Function *)of;
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_SUCCESS;
    if (value > card()->shared_optin) {
        record("REFUSED %s: %d bytes of shared memory", function->name, value);
        return CUDA_ERROR_INVALID_VALUE;
    }
    function->shared = value;
    return CUDA_SUCCESS;
}

// Why a card would refuse a launch; NULL if it would not.
static const char *fault(const Function *function, const Launch *launch) {
    const unsigned *grid = launch->grid, *block = launch->block;
    unsigned long threads = (unsigned long)block[0] * block[1] * block[2];
    if (!grid[0] || !grid[1] || !grid[2] || !threads) return "an empty grid or block";
    if (grid[0] > 2147483647u || grid[1] > 65535 || grid[2] > 65535) return "too large a grid";
    if (block[0] > 1024 || block[1] > 1024 || block[2] > 64 || threads > 1024) return "too large a block";
    int allowed = function->shared > SHARED_USUAL ? function->shared : SHARED_USUAL;
    if ((int)launch->shared > allowed) return "too much shared memory";
    return NULL;
}

CUresult cuLaunchKernel(CUfunction of, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, CUstream stream, void **arguments, void **extra) {
    Function *function = (Function *)of;
    Launch launch = {{gx, gy, gz}, {bx, by, bz}, shared};
    const char *why = fault(function, &launch);
    if (why) {
        record("REFUSED %s: %s (grid %u %u %u, block %u %u %u, %u bytes)", function->name, why, gx, gy, gz, bx, by, bz,
               shared);
        return CUDA_ERROR_INVALID_VALUE;
    }
    // To compile kernels ahead of a card.
    if (getenv("STANDIN_COMPILE_ONLY")) return CUDA_SUCCESS;
    return execute(function->module->source, function->name, &launch, arguments, &function->translated);
}

// Limits of a tensor map, from the driver's documentation. Kernels that use one are not translated.
CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                const cuuint64_t *size, const cuuint64_t *stride, const cuuint32_t *box,
                                const cuuint32_t *step, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
    const char *why = rank < 1 || rank > 5 ? "rank" : (size_t)address % 16 ? "alignment of the address" : NULL;
    for (cuuint32_t i = 0; !why && i < rank; i++) {
        if (!size[i] || size[i] > 1ull << 32) why = "size";
        else if (!box[i] || box[i] > 256) why = "box";
        else if (!step[i] || step[i] > 8) why = "step";
        else if (i + 1 < rank && (stride[i] % 16 || stride[i] >= 1ull << 40)) why = "stride";
    }
    memset(map, 0, sizeof *map);
    if (!why) return CUDA_SUCCESS;
    record("REFUSED a tensor map: %s", why);
    return CUDA_ERROR_INVALID_VALUE;
}
