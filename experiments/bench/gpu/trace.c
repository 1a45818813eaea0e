/* Records when a device works. CUDA's driver loads this library into a program (CUDA_INJECTION64_PATH). When the
 * program ends, the library appends one line to the file named by REMATCH_TRACE for every kernel, copy and fill of the
 * recorded steps: the launch of the graph, start and end in ns; and a last line "lost N" if CUPTI lost records. Only
 * for experiments/bench/gpu.py. */
#include <cupti.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUFFER = 8 << 20 };

static FILE *file;

static void CUPTIAPI lend(uint8_t **buffer, size_t *bytes, size_t *records)
{
    *buffer = malloc(BUFFER);
    *bytes = *buffer ? BUFFER : 0;
    *records = 0; /* as many as there is room for */
}

/* What belongs to no graph was queued call by call. */
static void put(uint32_t graph, uint32_t launch, uint64_t start, uint64_t end)
{
    if (graph != 0) fprintf(file, "%" PRIu32 " %" PRIu64 " %" PRIu64 "\n", launch, start, end);
}

#define PUT(type, record)                                                                                              \
    put(((const type *)(record))->graphId, ((const type *)(record))->correlationId, ((const type *)(record))->start,   \
        ((const type *)(record))->end)

static void CUPTIAPI take_back(CUcontext context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
    CUpti_Activity *record = NULL;
    (void)context, (void)stream, (void)bytes;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) PUT(CUpti_ActivityKernel10, record);
        if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) PUT(CUpti_ActivityMemcpy6, record);
        if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) PUT(CUpti_ActivityMemset4, record);
    }
    free(buffer);
}

static void finish(void)
{
    size_t lost = 0;
    cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    if (cuptiActivityGetNumDroppedRecords(NULL, 0, &lost) != CUPTI_SUCCESS || lost > 0)
        fprintf(file, "lost %zu\n", lost);
    fclose(file);
}

/* What the driver calls as a program first uses it; 1: the program goes on. */
int InitializeInjection(void);

int InitializeInjection(void)
{
    static const CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                               CUPTI_ACTIVITY_KIND_MEMSET};
    const char *path = getenv("REMATCH_TRACE");
    if (!path || !(file = fopen(path, "a"))) return 1;
    CUptiResult result = cuptiActivityRegisterCallbacks(lend, take_back);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && result == CUPTI_SUCCESS; i++)
        result = cuptiActivityEnable(kinds[i]);
    if (result != CUPTI_SUCCESS) fprintf(file, "CUPTI's error %d\n", (int)result);
    atexit(finish);
    return 1;
}
