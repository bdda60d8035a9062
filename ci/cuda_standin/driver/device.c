// One card, its context, streams and events. Everything is done when a call returns, so that there
// is nothing to wait for.
#define _GNU_SOURCE
#include "standin.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const Card CARDS[] = {
    {"h100", "NVIDIA H100 80GB HBM3", 9, 0, 132, 232448, 85017755648ull},
    {"a100", "NVIDIA A100-SXM4-80GB", 8, 0, 108, 166912, 84974239744ull},
    {"v100", "Tesla V100-SXM2-32GB", 7, 0, 80, 98304, 34072559616ull},
};

const Card *card(void) {
    static const Card *chosen;
    const char *word = getenv("STANDIN_CARD");
    for (size_t i = 0; !chosen && i < sizeof CARDS / sizeof *CARDS; i++)
        if (!word || !strcmp(word, CARDS[i].word)) chosen = &CARDS[i];
    if (!chosen) {
        fprintf(stderr, "stand-in: STANDIN_CARD=%s is not a known card\n", word);
        abort();
    }
    return chosen;
}

int driver_version(void) {
    const char *given = getenv("STANDIN_DRIVER");
    return given ? atoi(given) : 12090;
}

CUresult cuInit(unsigned flags) { return CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int *version) { *version = driver_version(); return CUDA_SUCCESS; }
// NVRTC asks for it, and goes on without.
CUresult cuGetExportTable(const void **table, const CUuuid *id) { return CUDA_ERROR_NOT_SUPPORTED; }

CUresult cuDeviceGetCount(int *count) { *count = 1; return CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice *device, int number) {
    *device = 0;
    return number ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
    snprintf(name, length, "%s", card()->name);
    return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) { *bytes = card()->memory; return CUDA_SUCCESS; }
CUresult cuDeviceGetPCIBusId(char *id, int length, CUdevice device) {
    snprintf(id, length, "0000:18:00.0");
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    switch ((int)attribute) {
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = card()->major; break;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = card()->minor; break;
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = card()->multiprocessors; break;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *value = SHARED_USUAL; break;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = card()->shared_optin; break;
        case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *value = 32; break;
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X: *value = 1024; break;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: *value = 1024; break;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: *value = 64; break;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: *value = 2147483647; break;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y: *value = 65535; break;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: *value = 65535; break;
        default:
            // A number of its own would be a guess.
            record("UNKNOWN attribute %d", attribute);
            *value = 0;
    }
    return CUDA_SUCCESS;
}

static char context[64];
CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice device) { *c = (CUcontext)context; return CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) { return CUDA_SUCCESS; }
CUresult cuCtxSetCurrent(CUcontext c) { return CUDA_SUCCESS; }
CUresult cuCtxGetCurrent(CUcontext *c) { *c = (CUcontext)context; return CUDA_SUCCESS; }
CUresult cuCtxSynchronize(void) { return CUDA_SUCCESS; }

CUresult cuStreamCreate(CUstream *stream, unsigned flags) { *stream = malloc(64); return CUDA_SUCCESS; }
CUresult cuStreamDestroy_v2(CUstream stream) { free(stream); return CUDA_SUCCESS; }
CUresult cuStreamSynchronize(CUstream stream) { return CUDA_SUCCESS; }
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) { return CUDA_SUCCESS; }

// An event is the time of its record.
CUresult cuEventCreate(CUevent *event, unsigned flags) { *event = calloc(1, sizeof(double)); return CUDA_SUCCESS; }
CUresult cuEventDestroy_v2(CUevent event) { free(event); return CUDA_SUCCESS; }
CUresult cuEventRecord(CUevent event, CUstream stream) { *(double *)event = seconds(); return CUDA_SUCCESS; }
CUresult cuEventSynchronize(CUevent event) { return CUDA_SUCCESS; }
CUresult cuEventQuery(CUevent event) { return CUDA_SUCCESS; }
CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent from, CUevent to) {
    *milliseconds = (float)((*(double *)to - *(double *)from) * 1e3);
    return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **text) {
    static char name[40];
    snprintf(name, sizeof name, "CUDA_ERROR_%d", error);
    *text = name;
    return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult error, const char **text) { return cuGetErrorName(error, text); }
