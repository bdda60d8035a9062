// Device memory, which is the host's.
#define _GNU_SOURCE
#include "standin.h"
#include <stdlib.h>
#include <string.h>

// Alignment that CUDA promises and more.
enum { ALIGNMENT = 512 };
// Allocations up to this size begin as NaNs: a kernel that reads what nothing wrote computes NaNs.
enum { POISONED = 64 << 20 };

static void *allocate(size_t bytes) {
    void *memory = NULL;
    if (posix_memalign(&memory, ALIGNMENT, bytes ? bytes : 1)) return NULL;
    if (bytes <= POISONED) memset(memory, 0xff, bytes);
    return memory;
}

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
    *pointer = (CUdeviceptr)allocate(bytes);
    return *pointer ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuMemFree_v2(CUdeviceptr pointer) { free((void *)pointer); return CUDA_SUCCESS; }
CUresult cuMemAllocHost_v2(void **pointer, size_t bytes) {
    *pointer = allocate(bytes);
    return *pointer ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuMemFreeHost(void *pointer) { free(pointer); return CUDA_SUCCESS; }
CUresult cuMemGetInfo_v2(size_t *left, size_t *total) { *left = *total = card()->memory; return CUDA_SUCCESS; }

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    memcpy((void *)to, from, bytes);
    return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    memcpy(to, (void *)from, bytes);
    return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    memmove((void *)to, (void *)from, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *c, CUstream stream) {
    char *to = c->dstMemoryType == CU_MEMORYTYPE_HOST ? c->dstHost : (char *)c->dstDevice;
    const char *from = c->srcMemoryType == CU_MEMORYTYPE_HOST ? c->srcHost : (const char *)c->srcDevice;
    for (size_t y = 0; y < c->Height; y++)
        memcpy(to + (c->dstY + y) * c->dstPitch + c->dstXInBytes, from + (c->srcY + y) * c->srcPitch + c->srcXInBytes,
               c->WidthInBytes);
    return CUDA_SUCCESS;
}
