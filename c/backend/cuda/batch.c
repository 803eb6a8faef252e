/* batch.c - batches of rows on a device: memory, and the settings of slots. lzsampler_cuda.h says what it does. */
#include "../../include/lzsampler_cuda.h"

#include <stdio.h>
#include <stdlib.h>

#include "../../penalty/token_classes.h"
#include "../../penalty/params.h"
#include "../../penalty/penalty.h"
#include "machine.h"
#include "settings.h"

struct lzs_batch {
    lzs_batch_shape shape;
    lzs_launch launch; /* everything except the step */
    void *memory;      /* one block on the device, which holds all arrays */
    size_t bytes;
    bool too_large;    /* the size overflows size_t */
    int32_t n_blocks;   /* that pick tokens at a time */
    int32_t most;       /* tokens of a share */
    char *staged;       /* (slot_bytes) host memory where a slot is prepared */
    char problem[LZS_PROBLEM_SIZE];
};

static lzs_status fail(lzs_batch *b, lzs_status status, const char *line) {
    snprintf(b->problem, sizeof b->problem, "%s", line);
    return status;
}

/* ---- life ---- */

static const char *shape_invalid(const lzs_batch_shape *shape) {
    if (shape->size != sizeof *shape) return "size is not that of this version's lzs_batch_shape";
    if (shape->device < 0) return "device is below 0";
    if (shape->n_vocab < 1 || shape->n_vocab > LZS_MAX_VOCAB) return "n_vocab is not 1 to 1073741824";
    if (shape->n_slots < 1) return "n_slots is below 1";
    if (shape->max_rows < 1) return "max_rows is below 1";
    if (shape->max_edits < 0 || shape->max_edits > shape->n_vocab) return "max_edits is not 0 to n_vocab";
    return shape->max_listed < 0 ? "max_listed is below 0" : NULL;
}

/* Finds how many blocks there are, and how many tokens a block can have. */
static const char *find_room(lzs_batch *b) {
    lzs_room room;
    const char *line = lzs_machine_room(b->shape.device, &room);
    if (line) return line;
    const size_t held = sizeof(lzs_pick_shared), unit = LZS_CUDA_UNIT * sizeof(float);
    const size_t units = room.bytes > held ? (room.bytes - held) / unit : 0;
    b->n_blocks = room.n_blocks;
    b->most = (int32_t)(units < LZS_CUDA_SHARE / LZS_CUDA_UNIT ? units : LZS_CUDA_SHARE / LZS_CUDA_UNIT) * LZS_CUDA_UNIT;
    const bool fits = (int64_t)b->most * b->n_blocks >= b->shape.n_vocab;
    return fits ? NULL : "the device has too little shared memory for a row of n_vocab logits";
}

/* Divides the rows of a step into shares, for the least time: that of the largest share, for as many rounds as all rows
 * take. A round has waits that take the time of about 4,096 tokens. Returns the rows of a round. */
static int32_t divide(const lzs_batch *b, lzs_launch *launch, int32_t n_rows) {
    const int32_t n = b->shape.n_vocab, least = (n - 1) / b->most + 1;
    int64_t best = INT64_MAX;
    int32_t rows_at_once = 1;
    for (int32_t shares = least; shares <= b->n_blocks && (shares == least || shares <= LZS_CUDA_SHARES); shares++) {
        const int32_t units = ((n - 1) / shares + LZS_CUDA_UNIT) / LZS_CUDA_UNIT, size = units * LZS_CUDA_UNIT;
        const int32_t at_once = b->n_blocks / shares < n_rows ? b->n_blocks / shares : n_rows;
        const int64_t time = (int64_t)((n_rows - 1) / at_once + 1) * (size + 4096);
        if (time >= best || (shares > least && size < 2048)) continue;
        best = time;
        launch->n_shares = shares;
        launch->share_size = size;
        rows_at_once = at_once;
    }
    return rows_at_once;
}

/* Takes `n` items of `size` bytes out of the device block. If the block is not allocated yet, only adds to its size. */
static void *take(lzs_batch *b, size_t n, size_t size) {
    void *at = b->memory ? (char *)b->memory + b->bytes : NULL;
    if (n && size > SIZE_MAX / 16 / n) {
        b->too_large = true;
        return NULL;
    }
    b->bytes += (n * size + 255) / 256 * 256;
    return at;
}

/* The bytes of a slot with its edits or its lists. */
static size_t slot_bytes(const lzs_batch_shape *shape) {
    const size_t edits = (size_t)shape->max_edits * sizeof(lzs_edit), lists = (size_t)shape->max_listed * sizeof(lzs_logit_bias);
    return sizeof(lzs_batch_slot) + ((edits > lists ? edits : lists) + 7) / 8 * 8;
}

static void lay_out(lzs_batch *b) {
    const lzs_batch_shape *shape = &b->shape;
    lzs_launch *l = &b->launch;
    const size_t rows = (size_t)shape->max_rows, slots = (size_t)shape->n_slots, edits = (size_t)shape->max_edits;
    b->bytes = 0;
    l->slots = take(b, slots, l->slot_bytes);
    l->table = take(b, rows * l->n_table, sizeof *l->table);
    l->folded = take(b, rows, sizeof *l->folded);
    l->edits = take(b, rows * edits, sizeof *l->edits);
    l->used = take(b, rows * edits, sizeof *l->used);
    l->states = take(b, rows, sizeof *l->states);
}

/* The address of a slot on the device. */
static char *slot_at(const lzs_batch *b, int32_t slot) {
    return (char *)lzs_slot_at(&b->launch, slot);
}

/* Resets the device memory: no slot has settings, and all hash tables are free. */
static const char *clear(lzs_batch *b) {
    const lzs_batch_slot unset = {.pick = {.status = LZS_EINVAL}};
    const int32_t device = b->shape.device;
    const char *line = lzs_machine_clear(device, b->memory, b->bytes, NULL);
    for (int32_t i = 0; !line && i < b->shape.n_slots; i++) {
        line = lzs_machine_copy(device, slot_at(b, i), &unset, sizeof unset, NULL);
    }
    return line ? line : lzs_machine_wait(device);
}

/* Checks by a probe that the kernels round as those that `make cuda` builds. */
static const char *probe(lzs_batch *b) {
    lzs_probe found;
    const char *line = lzs_machine_probe(b->shape.device, b->memory, &found);
    if (line || lzs_probe_is_right(found)) return line;
    return "the kernels round otherwise than the CPU: build them as make cuda does, without fused operations or flushed denormals";
}

lzs_status lzs_batch_new(const lzs_batch_shape *shape, lzs_batch **batch, char *problem) {
    lzs_status status = LZS_ENOMEM;
    const char *line = "out of memory";
    *batch = NULL;
    lzs_batch *b = calloc(1, sizeof *b);
    if (b) {
        status = LZS_EINVAL;
        line = shape_invalid(shape);
    }
    if (b && !line) {
        b->shape = *shape;
        b->launch.n_vocab = shape->n_vocab;
        b->launch.n_slots = shape->n_slots;
        b->launch.max_edits = (uint32_t)shape->max_edits;
        b->launch.n_table = 2;
        while (b->launch.n_table < 2 * b->launch.max_edits) b->launch.n_table *= 2;
        b->launch.slot_bytes = slot_bytes(shape);
        status = LZS_EDEVICE;
        line = lzs_machine_find(shape->device);
        if (!line) line = find_room(b);
    }
    if (b && !line) {
        lay_out(b);
        status = LZS_ENOMEM;
        b->staged = b->too_large ? NULL : malloc(b->launch.slot_bytes);
        b->memory = b->staged ? lzs_machine_allocate(shape->device, b->bytes) : NULL;
        if (!b->memory) line = "the device has too little memory for this batch";
    }
    if (b && !line) {
        lay_out(b);
        status = LZS_EDEVICE;
        line = probe(b);
        if (!line) line = clear(b);
    }
    if (line) {
        if (problem) snprintf(problem, LZS_PROBLEM_SIZE, "%s", line);
        lzs_batch_free(b);
        return status;
    }
    *batch = b;
    return LZS_OK;
}

void lzs_batch_free(lzs_batch *b) {
    if (!b) return;
    if (b->memory) {
        lzs_machine_wait(b->shape.device);
        lzs_machine_free(b->shape.device, b->memory);
    }
    free(b->staged);
    free(b);
}

const char *lzs_batch_problem(const lzs_batch *b) {
    return b->problem;
}

size_t lzs_batch_memory(const lzs_batch *b) {
    return b->bytes;
}

/* ---- slots ---- */

/* Copies a slot to the device, with the `n_after` bytes that are staged after it. */
static lzs_status set_slot(lzs_batch *b, int32_t slot, const lzs_batch_slot *held, size_t n_after, void *stream) {
    memcpy(b->staged, held, sizeof *held);
    const char *line = lzs_machine_copy(b->shape.device, slot_at(b, slot), b->staged, sizeof *held + n_after, stream);
    return line ? fail(b, LZS_EDEVICE, line) : LZS_OK;
}

/* Stages a list behind the slot and the `*at` bytes that follow the slot. Returns the list's later address on the
 * device. */
static const void *stage(lzs_batch *b, int32_t slot, const void *items, size_t n, size_t size, size_t *at) {
    char *to = b->staged + sizeof(lzs_batch_slot) + *at;
    const char *there = slot_at(b, slot) + sizeof(lzs_batch_slot) + *at;
    if (n) memcpy(to, items, n * size);
    *at += n * size;
    return there;
}

static const int32_t *stage_tokens(lzs_batch *b, int32_t slot, const int32_t *tokens, size_t n, size_t *at) {
    int32_t *staged = (int32_t *)(void *)(b->staged + sizeof(lzs_batch_slot) + *at);
    const int32_t *there = stage(b, slot, tokens, n, sizeof *tokens, at);
    lzs_sort_tokens(staged, n);
    return there;
}

lzs_status lzs_batch_set_params(lzs_batch *b, int32_t slot, const lzs_params *params, void *stream) {
    lzs_params whole;
    lzs_plan plan;
    if (slot < 0 || slot >= b->shape.n_slots) return fail(b, LZS_EINVAL, "slot is not 0 to n_slots - 1");
    const char *invalid = lzs_params_invalid(params, b->shape.n_vocab);
    if (invalid) {
        snprintf(b->problem, sizeof b->problem, "%s is out of range", invalid);
        return LZS_EINVAL;
    }
    lzs_params_whole(params, &whole);
    for (const lzs_penalty *const *penalty = lzs_penalties; *penalty; penalty++) {
        if (!(*penalty)->on_gpu && (*penalty)->most && (*penalty)->most(&whole)) {
            return fail(b, LZS_EINVAL, "the kernels do not have one of these penalties");
        }
    }
    const size_t n_listed = whole.n_exempt + whole.n_logit_bias + whole.n_dry_breakers + whole.n_lz_separators + whole.n_lz_commas;
    if (n_listed > (size_t)b->shape.max_listed) {
        return fail(b, LZS_ESPACE, "exempt, logit_bias, dry_breakers, lz_separators and lz_commas have more than max_listed items together");
    }
    size_t at = 0;
    lzs_logit_bias *biases = (lzs_logit_bias *)(void *)(b->staged + sizeof(lzs_batch_slot));
    whole.logit_bias = stage(b, slot, whole.logit_bias, whole.n_logit_bias, sizeof *biases, &at);
    whole.n_logit_bias = lzs_merge_biases(biases, whole.n_logit_bias);
    whole.exempt = stage_tokens(b, slot, whole.exempt, whole.n_exempt, &at);
    whole.dry_breakers = stage_tokens(b, slot, whole.dry_breakers, whole.n_dry_breakers, &at);
    whole.lz_separators = stage(b, slot, whole.lz_separators, whole.n_lz_separators, sizeof *whole.lz_separators, &at);
    whole.lz_commas = stage(b, slot, whole.lz_commas, whole.n_lz_commas, sizeof *whole.lz_commas, &at);
    lzs_plan_settings(&plan, b->shape.n_vocab, &whole);
    const lzs_batch_slot held = {.pick = lzs_pick_settings_of(&plan),
                                 .fold = lzs_fold_settings_of(&whole, b->shape.n_vocab)};
    return set_slot(b, slot, &held, at, stream);
}

lzs_status lzs_batch_set_plan(lzs_batch *b, int32_t slot, const lzs_plan *plan, void *stream) {
    if (slot < 0 || slot >= b->shape.n_slots) return fail(b, LZS_EINVAL, "slot is not 0 to n_slots - 1");
    const char *invalid = lzs_plan_invalid(plan);
    if (!invalid && plan->n_vocab != b->shape.n_vocab) invalid = "n_vocab";
    if (invalid) {
        snprintf(b->problem, sizeof b->problem, "%s of the plan is out of range", invalid);
        return LZS_EINVAL;
    }
    if (plan->n_edits > b->launch.max_edits) return fail(b, LZS_ESPACE, "the plan has more than max_edits edits");
    const lzs_batch_slot held = {.pick = lzs_pick_settings_of(plan),
                                 .has_plan = 1,
                                 .n_edits = (int32_t)plan->n_edits,
                                 .position = plan->position};
    const size_t n_bytes = plan->n_edits * sizeof *plan->edits;
    if (n_bytes) memcpy(b->staged + sizeof held, plan->edits, n_bytes);
    return set_slot(b, slot, &held, n_bytes, stream);
}

/* ---- a step ---- */

static const char *step_invalid(const lzs_batch *b, const lzs_batch_step *step, int32_t n_rows) {
    if (step->size != sizeof *step) return "size is not that of this version's lzs_batch_step";
    if (n_rows < 1 || n_rows > b->shape.max_rows) return "n_rows is not 1 to max_rows";
    if (step->dtype < LZS_F32 || step->dtype > LZS_F16) return "dtype is not one of lzs_dtype";
    if (!step->logits) return "logits is NULL";
    if ((uintptr_t)step->logits % (step->dtype == LZS_F32 ? 4 : 2)) return "logits are not at a multiple of their own size";
    if (step->row_stride < b->shape.n_vocab && n_rows > 1) return "row_stride is below n_vocab";
    if (!step->slots && n_rows > b->shape.n_slots) return "slots is NULL, and there are fewer slots than rows";
    if (step->histories && !step->lengths) return "lengths is NULL, though there are histories";
    if (step->history_stride < 0) return "history_stride is below 0";
    if (step->masks && n_rows > 1 && step->mask_stride < (int64_t)lzs_mask_words(b->shape.n_vocab)) {
        return "mask_stride is below (n_vocab + 31) / 32";
    }
    return step->tokens && step->statuses ? NULL : "tokens or statuses is NULL";
}

lzs_status lzs_batch_sample(lzs_batch *b, const lzs_batch_step *step, int32_t n_rows, void *stream) {
    const char *line = step_invalid(b, step, n_rows);
    if (line) return fail(b, LZS_EINVAL, line);
    lzs_launch launch = b->launch;
    launch.step = *step;
    const int32_t rows_at_once = divide(b, &launch, n_rows);
    line = lzs_machine_launch(b->shape.device, &launch, n_rows, rows_at_once, stream);
    return line ? fail(b, LZS_EDEVICE, line) : LZS_OK;
}
