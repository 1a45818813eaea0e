/* Contract: see text.h. Nothing depends on the locale: the program never sets one. */
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/region.h"

enum { WORD_MAX = 64 };

/* Digits of a decimal without a leading zero at *text; moves past them. */
static bool whole(const char **text)
{
    const char *start = *text;
    while (isdigit((unsigned char)**text)) ++*text;
    return *text > start && (*start != '0' || *text == start + 1);
}

const char *text_to_int(const char *text, int64_t *value)
{
    const char *end = text + (*text == '-');
    if (isdigit((unsigned char)*end) && (!whole(&end) || !strcmp(text, "-0")))
        return *end ? "is not an integer" : "has a leading zero";
    if (end == text || *end || end[-1] == '-') return "is not an integer";
    errno = 0;
    *value = strtoll(text, NULL, 10);
    return errno ? "does not fit 64 bits" : NULL;
}

const char *text_to_real(const char *text, double *value)
{
    const char *end = text + (*text == '-'), *digits = end;
    if (!whole(&end)) return end > digits && !*end ? "has a leading zero" : "is not a number";
    if (*end == '.') {
        const char *point = ++end;
        while (isdigit((unsigned char)*end)) end++;
        if (end == point) return "is not a number";
    }
    if (*end == 'e' || *end == 'E') {
        end += end[1] == '-' || end[1] == '+' ? 2 : 1;
        const char *exponent = end;
        while (isdigit((unsigned char)*end)) end++;
        if (end == exponent) return "is not a number";
    }
    if (*end) return "is not a number";
    *value = strtod(text, NULL);
    if (!isfinite(*value)) return "is too large for a double";
    return *value == 0 && strcspn(text, "123456789") < strcspn(text, "eE") ? "is too small for a double" : NULL;
}

static const struct {
    const char *name;
    uint64_t bytes;
} units[] = {{"", 1},
             {"B", 1},
             {"KiB", UINT64_C(1) << 10},
             {"MiB", UINT64_C(1) << 20},
             {"GiB", UINT64_C(1) << 30},
             {"TiB", UINT64_C(1) << 40},
             {"kB", 1000},
             {"KB", 1000},
             {"MB", 1000000},
             {"GB", 1000000000},
             {"TB", UINT64_C(1000000000000)}};

const char *text_to_bytes(const char *text, uint64_t *value)
{
    enum { DECIMALS = 6 }; /* so that decimals times a TiB fit 64 bits */
    const char *end = text;
    uint64_t decimals = 0, scale = 1, unit = 0;
    if (!whole(&end)) return "is not a size";
    errno = 0;
    uint64_t count = strtoull(text, NULL, 10);
    if (errno) return "does not fit 64 bits";
    if (*end == '.') {
        const char *point = ++end;
        for (; isdigit((unsigned char)*end); end++, scale *= 10) {
            if (end - point >= DECIMALS) return "has more than 6 decimals";
            decimals = decimals * 10 + (uint64_t)(*end - '0');
        }
        if (end == point) return "is not a size";
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!strcmp(end, units[i].name)) unit = units[i].bytes;
    if (!unit) return "is not a size";
    if (decimals * unit % scale) return "is not a whole number of bytes";
    if (count > UINT64_MAX / unit || count * unit > UINT64_MAX - decimals * unit / scale) return "does not fit 64 bits";
    *value = count * unit + decimals * unit / scale;
    return NULL;
}

char *text_from_real(double value, struct region *region)
{
    char text[32];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    return region_text(region, "%s", text);
}

char *text_from_bytes(uint64_t value, struct region *region)
{
    static const char *const name[] = {"", "KiB", "MiB", "GiB"};
    int i = 0;
    for (; i < 3 && value && value % 1024 == 0; i++) value /= 1024;
    return region_text(region, "%" PRIu64 "%s", value, name[i]);
}

static bool same_letter(char a, char b) { return tolower((unsigned char)a) == tolower((unsigned char)b); }

/* Whether the texts are the same but for case, as far as their first length characters. */
static bool same_start(const char *a, const char *b, size_t length)
{
    for (; length && same_letter(*a, *b); a++, b++, length--)
        if (!*a) return true;
    return !length;
}

char *text_quote(const char *text, struct region *region)
{
    static const char *const taken[] = {"true", "false", "null", "yes", "no", "on", "off", "y", "n", NULL};
    bool bare = isalpha((unsigned char)*text) || *text == '_';
    for (const char *c = text; *c; c++) bare = bare && (isalnum((unsigned char)*c) || strchr("_-./", *c));
    for (int i = 0; taken[i]; i++) bare = bare && !same_start(text, taken[i], WORD_MAX);
    if (bare) return region_text(region, "%s", text);
    char *out = region_array(region, strlen(text) * 4 + 3, 1), *to = out;
    *to++ = '"';
    for (const char *c = text; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7F)
            to += sprintf(to, "\\x%02X", (unsigned)*c);
        else {
            if (*c == '"' || *c == '\\') *to++ = '\\';
            *to++ = *c;
        }
    }
    *to = '"';
    return out;
}

/* Edits (insert, delete, replace, swap neighbours) from a to b, both shorter than WORD_MAX. */
static int distance(const char *a, const char *b)
{
    int d[WORD_MAX][WORD_MAX], m = (int)strlen(a), n = (int)strlen(b);
    for (int i = 0; i <= m; i++) d[i][0] = i;
    for (int j = 0; j <= n; j++) d[0][j] = j;
    for (int i = 1; i <= m; i++)
        for (int j = 1; j <= n; j++) {
            d[i][j] = d[i - 1][j - 1] + !same_letter(a[i - 1], b[j - 1]);
            if (d[i][j] > d[i - 1][j] + 1) d[i][j] = d[i - 1][j] + 1;
            if (d[i][j] > d[i][j - 1] + 1) d[i][j] = d[i][j - 1] + 1;
            bool swapped = i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1]);
            if (swapped && d[i][j] > d[i - 2][j - 2] + 1) d[i][j] = d[i - 2][j - 2] + 1;
        }
    return d[m][n];
}

/* Names here, and what other programs and earlier versions call the same, separated by blanks. */
static const struct {
    const char *own, *others;
} synonyms[] = {
    {"cuda", "gpu nvidia"},
    {"cpu", "host onednn mkldnn"},
    {"backend", "device accelerator"},
    {"threads", "num_threads n_threads num_workers"},
    {"batch", "batch_size bs train_batch_size per_device_train_batch_size"},
    {"slices", "micro_batch micro_batches micro_batch_size microbatch microbatches num_microbatches grad_accumulation "
               "gradient_accumulation gradient_accumulation_steps accumulate_grad_batches"},
    {"epochs", "num_epochs num_train_epochs max_epochs n_epochs"},
    {"steps", "num_steps max_steps iterations iters"},
    {"seed", "manual_seed random_seed"},
    {"lr", "learning_rate"},
    {"lr_schedule", "schedule scheduler lr_scheduler lr_scheduler_type"},
    {"warmup", "warmup_steps warmup_ratio"},
    {"least", "min_lr_ratio min_lr_rate"},
    {"every", "step_size"},
    {"at", "milestones"},
    {"clip", "max_grad_norm gradient_clip_val"},
    {"weight_decay", "wd"},
    {"loss", "criterion loss_fn"},
    {"model", "network net arch"},
    {"data", "dataset"},
    {"precision", "dtype mixed_precision"},
    {"results", "output_dir logdir"},
    {"policy", "strategy recompute remat checkpointing activation_checkpointing gradient_checkpointing"},
    {"budget", "memory_budget memory_limit max_memory activation_memory_budget"},
    {"segments", "num_segments chunks checkpoint_sequential uniform"},
    {"slots", "checkpoints snapshots"},
    {"store_all", "none off no_checkpointing"},
    {"every", "full checkpoint gradient_checkpointing"},
    {"revolve", "binomial treeverse"},
    {"optimal", "rotor rockmate hiremate checkmate milp ilp mip best"},
    {"linear", "dense fc"},
    {"units", "out_features features hidden_size"},
    {"conv", "conv1d conv2d convolution"},
    {"channels", "out_channels filters"},
    {"kernel", "kernel_size"},
    {"batch_norm", "bn"},
    {"global_avg_pool", "adaptiveavgpool2d gap"},
    {"attention", "multiheadattention self_attention mha sdpa"},
    {"heads", "num_heads n_heads num_attention_heads"},
    {"rate", "p dropout_prob"},
    {"vocabulary", "vocab_size num_embeddings"},
    {"group", "sequential"},
    {"residual", "skip"},
    {"concat", "cat"},
    {"cross_entropy", "crossentropyloss nll"},
    {"bce", "bceloss bcewithlogitsloss binary_crossentropy"},
    {"mse", "mseloss mean_squared_error l2"},
    {"dice", "diceloss dice_loss"},
    {"class_weights", "weight class_weight"},
    {"schedule", "word"},
    {"recompute", "replay"},
    {"skip_recompute", "skip_replay"},
};

/* Of "policy.budget" the second word, unless text has a dot too. */
static const char *comparable(const char *word, const char *text)
{
    const char *dot = strrchr(word, '.');
    return dot && !strchr(text, '.') ? dot + 1 : word;
}

static bool among(const char *text, const char *words)
{
    for (size_t length; *words; words += length + (words[length] == ' ')) {
        length = strcspn(words, " ");
        if (strlen(text) == length && same_start(text, words, length)) return true;
    }
    return false;
}

static const char *synonym(const char *text, const char *const *words)
{
    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
        for (const char *const *word = words; among(text, synonyms[i].others) && *word; word++)
            if (!strcmp(comparable(*word, text), synonyms[i].own)) return *word;
    return NULL;
}

const char *text_nearest(const char *text, const char *const *words)
{
    size_t length = strnlen(text, WORD_MAX);
    const char *nearest = synonym(text, words);
    if (nearest || length < 2 || length == WORD_MAX) return nearest;
    int best = length < 6 ? 1 : (int)length / 3; /* a third of the letters may be wrong */
    for (; *words; words++) {
        const char *word = comparable(*words, text);
        int d = strnlen(word, WORD_MAX) < WORD_MAX ? distance(text, word) : WORD_MAX;
        if (d < best || (d == best && !nearest)) best = d, nearest = *words;
    }
    return nearest;
}

char *text_suggestion(const char *text, const char *const *words, char suggestion[TEXT_SUGGESTION])
{
    const char *near = text_nearest(text, words);
    *suggestion = '\0';
    if (near) snprintf(suggestion, TEXT_SUGGESTION, " (did you mean '%s'?)", near);
    return suggestion;
}

char *text_size_suggestion(const char *text, char suggestion[TEXT_SUGGESTION])
{
    const size_t digits = strspn(text, "0123456789."), blanks = strspn(text + digits, " ");
    const char *unit = text + digits + blanks;
    const size_t length = strlen(unit);
    char size[32];
    uint64_t bytes;
    *suggestion = '\0';
    for (size_t i = 0; length && i < sizeof units / sizeof *units; i++) {
        const char *name = units[i].name;
        const size_t whole = strlen(name);
        if ((length != whole && length + 1 != whole) || !same_start(unit, name, length)) continue;
        snprintf(size, sizeof size, "%.*s%s", (int)digits, text, name);
        if (digits + whole < sizeof size && !text_to_bytes(size, &bytes))
            snprintf(suggestion, TEXT_SUGGESTION, " (did you mean '%s'?)", size);
        break;
    }
    return suggestion;
}

int text_shown(const char *text, int most)
{
    size_t n = strnlen(text, (size_t)most + 1);
    if (n <= (size_t)most) return (int)n;
    for (n = (size_t)most; n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80;) n--;
    return (int)n;
}

bool text_ends(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);
    return length > tail && strcmp(text + length - tail, end) == 0;
}
