// NVRTC with a record. The real library compiles; the source's hash is written into the PTX, by
// which the driver knows it again.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int Result;
typedef struct {
    void *real;
    char *source;
    char hash[20];
    char *ptx;
    size_t ptx_size;
} Program;

// A function of the library that STANDIN_NVRTC names.
static void *real(const char *name) {
    static void *library;
    if (!library) {
        const char *path = getenv("STANDIN_NVRTC");
        library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
        if (!library) {
            fprintf(stderr, "stand-in: no NVRTC: %s\n", path ? dlerror() : "STANDIN_NVRTC is not set; use run.sh");
            abort();
        }
    }
    return dlsym(library, name);
}
#define REAL(name, ...) ((Result(*)(__VA_ARGS__))real(name))

Result nvrtcVersion(int *major, int *minor) { return REAL("nvrtcVersion", int *, int *)(major, minor); }
const char *nvrtcGetErrorString(Result result) {
    return ((const char *(*)(Result))real("nvrtcGetErrorString"))(result);
}

Result nvrtcCreateProgram(void **created, const char *source, const char *name, int count, const char *const *headers,
                          const char *const *names) {
    Program *program = calloc(1, sizeof *program);
    program->source = strdup(source);
    // FNV-1a.
    uint64_t hash = 1469598103934665603ull;
    for (const char *c = source; *c; c++) hash = (hash ^ (unsigned char)*c) * 1099511628211ull;
    snprintf(program->hash, sizeof program->hash, "%016llx", (unsigned long long)hash);
    *created = program;
    return REAL("nvrtcCreateProgram", void **, const char *, const char *, int, const char *const *,
                const char *const *)(&program->real, source, name, count, headers, names);
}

Result nvrtcDestroyProgram(void **destroyed) {
    Program *program = *destroyed;
    Result result = REAL("nvrtcDestroyProgram", void **)(&program->real);
    free(program->source);
    free(program->ptx);
    free(program);
    *destroyed = NULL;
    return result;
}

Result nvrtcGetProgramLogSize(void *program, size_t *size) {
    return REAL("nvrtcGetProgramLogSize", void *, size_t *)(((Program *)program)->real, size);
}
Result nvrtcGetProgramLog(void *program, char *log) {
    return REAL("nvrtcGetProgramLog", void *, char *)(((Program *)program)->real, log);
}

static void keep(const Program *program, const char *ending, const char *text) {
    char path[4096];
    snprintf(path, sizeof path, "%s/sources/%s.%s", getenv("STANDIN_LOG"), program->hash, ending);
    FILE *file = fopen(path, "w");
    if (!file) return;
    fputs(text, file);
    fclose(file);
}

// What went wrong, beside the source.
static void keep_failure(Program *program) {
    size_t size = 0;
    keep(program, "cu", program->source);
    if (nvrtcGetProgramLogSize(program, &size) || size <= 1) return;
    char *log = calloc(1, size + 1);
    nvrtcGetProgramLog(program, log);
    keep(program, "log", log);
    free(log);
}

Result nvrtcCompileProgram(void *compiled, int count, const char *const *options) {
    Program *program = compiled;
    Result result = REAL("nvrtcCompileProgram", void *, int, const char *const *)(program->real, count, options);
    char line[64], path[4096];
    int length = snprintf(line, sizeof line, "%s %s\n", result ? "FAILED" : "COMPILED", program->hash);
    snprintf(path, sizeof path, "%s/nvrtc.log", getenv("STANDIN_LOG"));
    int log = open(path, O_WRONLY | O_APPEND | O_CREAT, 0666);
    if (log < 0 || write(log, line, length) != length) {
        perror(path);
        abort();
    }
    close(log);
    if (result) {
        keep_failure(program);
        return result;
    }
    size_t size = 0;
    REAL("nvrtcGetPTXSize", void *, size_t *)(program->real, &size);
    program->ptx = malloc(size + 64);
    int head = sprintf(program->ptx, "// source %s\n", program->hash);
    program->ptx_size = size + head;
    return REAL("nvrtcGetPTX", void *, char *)(program->real, program->ptx + head);
}

Result nvrtcGetPTXSize(void *program, size_t *size) { *size = ((Program *)program)->ptx_size; return 0; }
Result nvrtcGetPTX(void *program, char *ptx) {
    memcpy(ptx, ((Program *)program)->ptx, ((Program *)program)->ptx_size);
    return 0;
}
