"""A penalty is a file of its own, a name in c/penalty/penalty.h and fields in public headers.

The toy watches the text as the LZ penalty and DRY do: it has a window, a bit set of tokens that end a repetition, a
strength and fields in explanations. A program compares it with its definition, after rewinds, in clones and in copies.
"""

import shutil
from pathlib import Path

from native import ROOT, run, tool

TOY = r"""
/* toy.c - the length of the longest repetition that a token goes on with, up to toy_window, times toy_penalty. */
#include <float.h>

#include "../plan/ranges.h"
#include "penalty.h"

static void set_defaults(lzs_params *p) {
    p->toy_window = 30;
}

static const char *invalid(const lzs_params *p, int32_t n_vocab) {
    if (!lzs_within(p->toy_penalty, 0.0f, FLT_MAX)) return "toy_penalty";
    if (p->toy_window < 1 || p->toy_window > UINT16_MAX) return "toy_window";
    return lzs_token_set_valid(p->toy_stops, p->n_toy_stops, n_vocab) ? NULL : "toy_stops";
}

static const char *fixed(const lzs_params *a, const lzs_params *b) {
    if ((a->toy_penalty > 0.0f) != (b->toy_penalty > 0.0f)) return "toy_penalty";
    return a->toy_window != b->toy_window ? "toy_window" : NULL;
}

static size_t most(const lzs_params *p) {
    return p->toy_penalty > 0.0f ? (size_t)p->toy_window : 0;
}

static void watch(lzs_watch_shape *shape, const lzs_params *p) {
    if (!most(p)) return;
    *shape = (lzs_watch_shape){p->toy_window, p->toy_window, {.set = p->n_toy_stops ? p->toy_stops : NULL}};
}

static int32_t length_at(const lzs_watch *w, size_t n, int32_t distance) {
    const int32_t suffix = lzs_suffix_at(w, distance), unbroken = lzs_unbroken(w, n);
    return suffix < unbroken ? suffix : unbroken;
}

static void find(lzs_token_table *found, const lzs_history *h, const lzs_params *p, float log2_vocab) {
    const lzs_watch *w = &h->watches[LZS_WATCH_toy];
    (void)p;
    (void)log2_vocab;
    lzs_match_walk walk = {.reach = lzs_watched(h, w), .least = 1};
    while (lzs_match_walk_on(&walk, &w->index, h->kernels)) {
        for (int32_t i = walk.n - 1; i >= 0; i--) {
            const int32_t distance = walk.base - walk.found[i], length = length_at(w, h->n, distance);
            const int32_t token = h->tokens[h->n - (size_t)distance];
            lzs_token_entry *entry = &found->entries[lzs_token_table_take(found, token)];
            if (length > entry->count) entry->count = length;
        }
    }
}

static float price(const lzs_params *p, int32_t length) {
    return p->toy_penalty * (float)length;
}

static void explain(lzs_explanation *e, const lzs_history *h, const lzs_params *p, float log2_vocab) {
    const lzs_watch *w = &h->watches[LZS_WATCH_toy];
    (void)log2_vocab;
    for (int32_t distance = 1; distance <= lzs_watched(h, w); distance++) {
        if (h->tokens[h->n - (size_t)distance] != e->token) continue;
        const int32_t length = length_at(w, h->n, distance);
        if (length > e->toy_length) e->toy_length = length;
    }
    if (!e->exempt) e->toy_bias = -(p->toy_penalty * (float)e->toy_length);
}

const lzs_penalty lzs_penalty_toy = {
    .set_defaults = set_defaults,
    .invalid = invalid,
    .fixed = fixed,
    .watch = watch,
    .most = most,
    .find = find,
    .price = price,
    .explain = explain,
};
"""

FIELDS = """    float toy_penalty;
    int32_t toy_window;
    const uint32_t *toy_stops;
    size_t n_toy_stops;
} lzs_params;"""

EDITS = {  # what is written into files that are there: before what, and what
    "penalty/penalty.h": [("X(dry)", "X(dry) X(toy)"), ("X(lz_commas)", "X(lz_commas) X(toy_stops)")],
    "include/lzsampler.h": [
        ("} lzs_params;", FIELDS),
    ],
    "include/lzsampler_explain.h": [
        ("} lzs_explanation;", "    int32_t toy_length;\n    float toy_bias;\n} lzs_explanation;"),
    ],
}

PROGRAM = r"""
#include <stdio.h>
#include <string.h>
#include <lzsampler_explain.h>
#include <lzsampler_plan.h>

enum { N_VOCAB = 40, MOST = 400, WINDOW = 30 };

static const uint32_t stops[2] = {0x21, 0x80};
static int32_t text[MOST], n;

#define CHECK(x) if (!(x)) return fprintf(stderr, "line %d: %s\n", __LINE__, #x), 1

/* What each token goes on with, by the definition. */
static void define(int32_t *lengths) {
    int32_t unbroken = 0;
    while (unbroken < n && !(stops[text[n - 1 - unbroken] / 32] >> text[n - 1 - unbroken] % 32 & 1)) unbroken++;
    memset(lengths, 0, N_VOCAB * sizeof *lengths);
    for (int32_t d = 1; d <= WINDOW && d <= n; d++) {
        int32_t length = 0;
        const int32_t most = unbroken < WINDOW ? unbroken : WINDOW;
        while (length < most && length + d < n && text[n - 1 - length] == text[n - 1 - length - d]) length++;
        if (length > lengths[text[n - d]]) lengths[text[n - d]] = length;
    }
}

static int check(lzs_sampler *s, float strength) {
    static const float row[N_VOCAB];
    int32_t lengths[N_VOCAB], tokens[N_VOCAB], total = 0;
    float bias[N_VOCAB] = {0};
    size_t n_edits;
    lzs_explanation told[N_VOCAB];
    define(lengths);
    const lzs_edit *edits = lzs_edits(s, &n_edits);
    for (size_t i = 0; i < n_edits; i++) bias[edits[i].token] = edits[i].bias;
    for (int32_t t = 0; t < N_VOCAB; t++) tokens[t] = t;
    CHECK(lzs_explain(s, row, tokens, N_VOCAB, told) == LZS_OK);
    for (int32_t t = 0; t < N_VOCAB; t++) {
        CHECK(bias[t] == -(strength * (float)lengths[t]));
        CHECK(told[t].toy_length == lengths[t] && told[t].toy_bias == bias[t]);
        total += lengths[t];
    }
    return total ? 0 : -1;
}

int main(void) {
    uint32_t state = 12345, priced = 0;
    lzs_params p;
    lzs_params_init(&p);
    CHECK(p.toy_window == WINDOW && !lzs_params_invalid(&p, N_VOCAB));
    p.toy_stops = stops;
    p.n_toy_stops = 1;
    CHECK(strcmp(lzs_params_invalid(&p, N_VOCAB), "toy_stops") == 0);
    p.n_toy_stops = 2;
    lzs_params on = p;
    on.toy_penalty = 0.5f;
    lzs_sampler *s, *copy, *clone;
    CHECK(lzs_sampler_new(N_VOCAB, &on, &s) == LZS_OK && lzs_sampler_new(N_VOCAB, &on, &copy) == LZS_OK);
    CHECK(lzs_sampler_set_params(s, &p) == LZS_EINVAL); /* it cannot be switched off */
    size_t memory = lzs_memory(s);
    float strength = 0.5f;
    for (int i = 0; i < 3000; i++) {
        const uint32_t action = (state = state * 1664525u + 1013904223u) >> 24, drawn = (state * 2654435761u) >> 20;
        if (action < 200 && n < MOST) {
            text[n] = n > 7 && drawn % 9 ? text[n - 7] : (int32_t)(drawn % N_VOCAB);
            CHECK(lzs_accept(s, text[n++]) == LZS_OK);
        } else if (action < 235) {
            const int32_t most = (int32_t)(drawn % (n < MOST ? 8 : 200)), back = most < n ? most : n;
            CHECK(lzs_rewind(s, (size_t)back) == LZS_OK);
            n -= back;
        } else if (action < 242) {
            CHECK(lzs_sampler_clone(s, &clone) == LZS_OK && lzs_accept(s, 1) == LZS_OK);
            lzs_sampler_free(s);
            s = clone;
        } else if (action < 249) {
            CHECK(lzs_sampler_copy(copy, s) == LZS_OK && lzs_accept(s, 1) == LZS_OK);
            clone = s, s = copy, copy = clone;
        } else {
            on.toy_penalty = strength = strength == 0.5f ? 0.25f : 0.5f;
            CHECK(lzs_sampler_set_params(s, &on) == LZS_OK);
        }
        const int found = check(s, strength);
        if (found > 0) return 1;
        priced += found == 0;
    }
    CHECK(priced > 1000 && lzs_memory(s) > memory);
    lzs_sampler_free(s);
    lzs_sampler_free(copy);
    puts("as defined");
    return 0;
}
"""

PROJECT = """
cmake_minimum_required(VERSION 3.21)
project(toy VERSION 1.0 LANGUAGES C)
add_subdirectory(c)
add_executable(toy toy.c)
target_link_libraries(toy PRIVATE lzsampler_static lzsampler_options)
"""


def test_toy_penalty(tmp_path: Path) -> None:
    cmake = tool("cmake")
    tool("cc", "gcc", "clang")
    shutil.copytree(ROOT / "c", tmp_path / "c")
    for name, changes in EDITS.items():
        path = tmp_path / "c" / name
        text = path.read_text()
        for old, new in changes:
            assert text.count(old) == 1, (name, old)
            text = text.replace(old, new)
        path.write_text(text)
    (tmp_path / "c" / "penalty" / "toy.c").write_text(TOY)
    assert len(EDITS) + 1 <= 4  # files that a penalty with an index and a token class touches
    (tmp_path / "toy.c").write_text(PROGRAM)
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    run([cmake, "-S", ".", "-B", "build", "-DCMAKE_BUILD_TYPE=Debug", "-DLZS_WERROR=ON", "-DLZS_SANITIZE=ON"], tmp_path)
    run([cmake, "--build", "build", "--parallel", "2", "--target", "toy"], tmp_path)
    assert run([tmp_path / "build" / "toy"], tmp_path) == "as defined\n"
