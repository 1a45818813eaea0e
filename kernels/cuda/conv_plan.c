/* Chooses algorithm and batch chunk of a convolution's pass: a rule of shapes, limit, and cuDNN's heuristics, which
 * know the device but time nothing, so that two runs of one spec choose alike. */
#include "conv_plan.h"

#include "side_streams.h"

/* OUTPUTS_LEAST: kernels with fewer outputs are assumed not to fill a large device, of 128 multiprocessors with 8192
 * each. TERMS_LEAST: sums of fewer terms, pixels of y, are assumed not to be worth splitting. */
enum { OUTPUTS_LEAST = 1 << 20, TERMS_LEAST = 1 << 12 };

void cuda_conv_plan_release(struct conv_plan *plan)
{
    for (int i = 0; i < 2; i++) convolution_release(&plan->call[i]);
    *plan = (struct conv_plan){0};
}

static enum status take(const struct conv_request *request, const struct conv_choice *choice, struct conv_plan *plan)
{
    *plan = (struct conv_plan){.choice = *choice, .rest = request->batch % choice->chunk};
    enum status status = convolution_describe(request->problem, choice->chunk, choice->math, &plan->call[0]);
    if (status == ST_OK && plan->rest > 0)
        status = convolution_describe(request->problem, plan->rest, choice->math, &plan->call[1]);
    if (status != ST_OK) cuda_conv_plan_release(plan);
    return status;
}

/* The workspace of a choice on samples samples; false where cuDNN cannot do it. */
static bool workspace_of(const struct conv_request *request, int64_t samples, const struct conv_choice *choice,
                         size_t *bytes)
{
    struct convolution convolution;
    if (convolution_describe(request->problem, samples, choice->math, &convolution) != ST_OK) return false;
    const bool done = convolution_workspace(request->cudnn, &convolution, request->pass, choice->algorithm, bytes);
    convolution_release(&convolution);
    return done;
}

/* Fills in streams and scratch of a choice of algorithm, chunk and workspace: as many streams as the limit allows. */
static void fill_streams(const struct conv_request *request, struct conv_choice *choice)
{
    const int64_t turns = ratio_up(request->batch, choice->chunk);
    choice->streams = 1;
    choice->scratch = choice->workspace;
    if (request->pass != CONV_PARAMS || turns == 1) return;
    const size_t sums = (size_t)turns * conv_sum_bytes(request->problem), room = round_up(choice->workspace);
    const size_t left = request->limit > sums ? request->limit - sums : 0;
    const int most = turns < SIDE_STREAMS ? (int)turns : SIDE_STREAMS;
    choice->streams = room == 0 || left / room >= (size_t)most ? most : left < room ? 1 : (int)(left / room);
    choice->scratch = (size_t)choice->streams * room + sums;
}

/* Fills in the workspace, streams and scratch of a choice of algorithm and chunk. */
static bool measure(const struct conv_request *request, struct conv_choice *choice)
{
    const int64_t rest = request->batch % choice->chunk;
    size_t bytes = 0;
    if (!workspace_of(request, choice->chunk, choice, &choice->workspace)) return false;
    if (rest > 0 && !workspace_of(request, rest, choice, &bytes)) return false;
    if (bytes > choice->workspace) choice->workspace = bytes;
    fill_streams(request, choice);
    return true;
}

/* Chunks are multiples of this, so that each starts at a multiple of 16 bytes in x and in y. */
static int64_t chunk_step(const struct conv_problem *problem)
{
    const int64_t elements = shape_elements(&problem->x) | shape_elements(&problem->y);
    return elements % 4 == 0 ? 1 : elements % 2 == 0 ? 2 : 4;
}

/* The chunk that divides a batch into at most so many turns, as evenly as possible: 64, 32, 22, 16 ... of 64. */
static int64_t chunk_of(const struct conv_request *request, int64_t turns)
{
    const int64_t step = chunk_step(request->problem), chunk = ratio_up(ratio_up(request->batch, turns), step) * step;
    return chunk < request->batch ? chunk : request->batch;
}

/* The next smaller chunk, 0: none. */
static int64_t next_chunk(const struct conv_request *request, int64_t chunk)
{
    const int64_t step = chunk_step(request->problem);
    return chunk <= step ? 0 : chunk_of(request, ratio_up(request->batch, chunk - step));
}

/* The chunk of PARAMS with at most a turn a stream, each of which is worth it. */
static int64_t shared_chunk(const struct conv_request *request)
{
    const int64_t *y = request->problem->y.dim, worth = request->batch * y[0] * y[1] / TERMS_LEAST;
    return chunk_of(request, worth < 1 ? 1 : worth < SIDE_STREAMS ? worth : SIDE_STREAMS);
}

/* The chunk of PARAMS with enough outputs to fill the device, if splitting that far is worth it. */
static int64_t filling_chunk(const struct conv_request *request)
{
    const int64_t shared = shared_chunk(request);
    const int64_t filling = chunk_of(request, ratio_up(OUTPUTS_LEAST, shape_elements(&request->problem->weights)));
    return filling > shared ? filling : shared;
}

enum { STARTS = 3, CHOICES_MOST = STARTS * ALGORITHMS_MOST };

/* The largest chunks of candidates, beginning with the largest that cuDNN can describe. */
static int list_starts(const struct conv_request *request, int64_t largest, int64_t starts[STARTS])
{
    const int64_t chunks[STARTS] = {largest, filling_chunk(request), shared_chunk(request)};
    int count = 0;
    for (int i = 0; i < (request->pass == CONV_PARAMS ? STARTS : 1); i++)
        if (count == 0 || chunks[i] < starts[count - 1]) starts[count++] = chunks[i];
    return count;
}

/* The largest chunk, at most chunk, that keeps the limit, else the one that needs least scratch; false where the
 * algorithm supports none. Scratch is assumed to be proportional to the chunk: chunks that would exceed the limit are
 * skipped, since each query takes time. */
static bool fit(const struct conv_request *request, int64_t chunk, struct conv_choice *choice)
{
    bool found = false;
    int64_t most = chunk, following;
    for (; chunk > 0; chunk = following) {
        following = next_chunk(request, chunk);
        struct conv_choice next = {.algorithm = choice->algorithm, .math = choice->math, .chunk = chunk};
        if ((chunk > most && following > 0) || !measure(request, &next)) continue;
        if (!found || next.scratch < choice->scratch) *choice = next;
        found = true;
        if (choice->scratch <= request->limit) break;
        most = (int64_t)((double)chunk * (double)request->limit / (double)next.scratch);
    }
    return found;
}

/* The candidates, in cuDNN's order of algorithms; returns their number, -1: cuDNN failed, the message says why. */
static int list_candidates(const struct conv_request *request, struct conv_choice choices[CHOICES_MOST])
{
    struct convolution convolution;
    struct conv_ranked ranked[ALGORITHMS_MOST];
    int64_t starts[STARTS];
    int found = 0;
    int64_t chunk = request->batch;
    while (chunk > 0 &&
           convolution_describe(request->problem, chunk, conv_math(request->problem), &convolution) != ST_OK)
        chunk = next_chunk(request, chunk);
    if (chunk == 0) return 0;
    const int algorithms = convolution_rank(request->cudnn, &convolution, request->pass, ranked);
    convolution_release(&convolution);
    if (algorithms < 0) return -1;
    const int started = list_starts(request, chunk, starts);
    for (int i = 0; i < algorithms * started; i++) {
        const struct conv_ranked *one = &ranked[i / started];
        struct conv_choice choice = {.algorithm = one->algorithm, .math = one->math};
        if (fit(request, starts[i % started], &choice)) choices[found++] = choice;
    }
    return found;
}

/* Demands on a choice, each weaker than the one before: chunks fill the device; the limit; only the family. */
enum demand { DEMAND_FILLS, DEMAND_FITS, DEMAND_LEAST, DEMANDS };

/* PARAMS: at least half of the chunks run side by side. */
static bool fills(const struct conv_request *request, const struct conv_choice *choice)
{
    const int64_t turns = ratio_up(request->batch, choice->chunk);
    if (request->pass == CONV_PARAMS) return choice->chunk <= filling_chunk(request) && 2 * choice->streams >= turns;
    return choice->chunk == request->batch || choice->chunk * shape_elements(&request->problem->y) >= OUTPUTS_LEAST;
}

static bool meets(const struct conv_request *request, enum demand demand, const struct conv_choice *choice)
{
    static const enum conv_family families[][DEMANDS] = {
        [CONV_AUTO] = {FAMILY_NONE, FAMILY_NONE, FAMILY_NONE}, /* NONE: any */
        [CONV_DIRECT] = {FAMILY_DIRECT, FAMILY_DIRECT, FAMILY_DIRECT},
        [CONV_WINOGRAD] = {FAMILY_WINOGRAD, FAMILY_NONE, FAMILY_NONE}};
    const enum conv_family family = families[request->algorithm][demand];
    if (family != FAMILY_NONE && family != convolution_algorithm(request->pass, choice->algorithm)->family)
        return false;
    if (demand < DEMAND_LEAST && choice->scratch > request->limit) return false;
    return demand > DEMAND_FILLS || fills(request, choice);
}

/* The first choice that meets the strongest demand any choice meets; without a limit, the one with least scratch. */
static const struct conv_choice *choose(const struct conv_request *request, const struct conv_choice *choices,
                                        int count)
{
    const struct conv_choice *least = NULL;
    for (int demand = 0; demand < DEMANDS; demand++)
        for (int i = 0; i < count; i++) {
            if (!meets(request, (enum demand)demand, &choices[i])) continue;
            if (demand < DEMAND_LEAST) return &choices[i];
            if (least == NULL || choices[i].scratch < least->scratch) least = &choices[i];
        }
    return least;
}

enum status cuda_conv_plan_make(const struct conv_request *request, struct conv_plan *plan)
{
    struct conv_choice choices[CHOICES_MOST];
    const int count = list_candidates(request, choices);
    const struct conv_choice *choice = choose(request, choices, count);
    *plan = (struct conv_plan){0};
    if (count < 0) return ST_FAILED;
    if (choice == NULL)
        return fail(ST_FAILED, "cuDNN has no deterministic algorithm for such a convolution with %s",
                    request->problem->order == ORDER_CHANNELS_FIRST ? "channels first" : "channels last");
    return take(request, choice, plan);
}
