/* preload.c - LD_PRELOAD=liblzsampler_preload.so puts lzsampler's penalties into an unmodified program that links to
 * libllama, such as llama-server: docs/servers.md.
 *
 * Every default chain of llama.cpp calls llama_sampler_init_dry, also if DRY is off. The dynamic linker finds the
 * function of this file first. It returns the real DRY sampler with the penalties after it. The real DRY sampler's
 * clone calls llama_sampler_init_dry too, from inside libllama: that call must get what it expects.
 *
 * Each child process inherits the library, so a program without llama.cpp must not notice it: the library needs libc
 * alone, and does nothing before the first call.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libllama.h"
#include "sampler.h"
#include "settings.h"
#include "vocabulary.h"

#define MARKER "lzs:"

/* A libllama that called this library. A process has one, or several if it loads plugins. Entries stay. */
typedef struct known_libllama {
    lzs_libllama functions;
    bool is_usable;
    struct known_libllama *next;
} known_libllama;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool was_called;
static bool has_begun, has_settings; /* guarded by `lock`, like all below */
static lzs_preload_settings process_settings;
static known_libllama *known;

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...) {
    char line[512];
    va_list values;
    va_start(values, format);
    vsnprintf(line, sizeof line, format, values);
    va_end(values);
    fprintf(stderr, "lzsampler: %s\n", line); /* one call, or lines of several threads mix */
}

static void say_what_is_on(const lzs_libllama *l) {
    lzs_params params;
    const bool penalizes = lzs_preload_params(&process_settings, &params);
    say("%s: preset %s, penalty %g, run penalty %g after %d tokens, history %s; llama.cpp %s",
        penalizes ? "on" : "off but for requests that say otherwise", process_settings.preset, params.lz_penalty,
        params.lz_run_penalty, (int)params.lz_run_allowance,
        params.history == LZS_HISTORY_ALL ? "all" : "generated", l->version ? l->version() : "of unknown version");
}

static void say_why_off(const char *why) {
    if (process_settings.is_strict) {
        say("%s; \"strict\" ends the program", why);
        _exit(1);
    }
    say("off: %s", why);
}

/* A child that fork makes while another thread is in here needs its own unlocked locks. */
static void before_fork(void) {
    pthread_mutex_lock(&lock);
    lzs_vocabulary_hold();
}

static void after_fork(void) {
    lzs_vocabulary_let_go();
    pthread_mutex_unlock(&lock);
}

/* Reads the settings, in the process's first call. */
static void begin(void) {
    char problem[LZS_PRELOAD_PROBLEM], why[LZS_PRELOAD_PROBLEM + 32];
    const char *json = getenv("LZSAMPLER");
    has_begun = true;
    process_settings = lzs_preload_defaults();
    pthread_atfork(before_fork, after_fork, after_fork);
    has_settings = !json || lzs_preload_read(json, false, &process_settings, problem);
    if (has_settings) return;
    process_settings.is_strict = strstr(json, "\"strict\"") != NULL; /* the rest of it cannot be trusted */
    snprintf(why, sizeof why, "LZSAMPLER: %s", problem);
    say_why_off(why);
}

/* Returns the functions of a libllama, or NULL if its samplers cannot have penalties. */
static const lzs_libllama *libllama_of(lzs_init_dry real) {
    if (!has_begun) begin();
    if (!has_settings) return NULL;
    known_libllama *k = known;
    while (k && k->functions.init_dry != real) k = k->next;
    if (!k) {
        k = malloc(sizeof *k);
        if (!k) return NULL;
        const char *why = lzs_libllama_find(real, &k->functions);
        k->is_usable = !why;
        k->next = known;
        known = k;
        if (why) {
            say_why_off(why);
        } else {
            say_what_is_on(&k->functions);
        }
    }
    return k->is_usable ? &k->functions : NULL;
}

/* Takes the markers out of the breakers, and reads them over `settings`, which are those of the process. */
static size_t read_markers(const char **breakers, size_t n, const char **left, lzs_preload_settings *settings) {
    size_t n_left = 0;
    for (size_t i = 0; i < n; i++) {
        if (!breakers[i] || strncmp(breakers[i], MARKER, strlen(MARKER)) != 0) {
            left[n_left++] = breakers[i];
            continue;
        }
        char problem[LZS_PRELOAD_PROBLEM];
        if (!settings->allows_markers) {
            say("a request's marker was ignored, since LZSAMPLER has \"markers\": false");
        } else if (!lzs_preload_read(breakers[i] + strlen(MARKER), true, settings, problem)) {
            say("a request's marker was ignored: %s", problem);
        }
    }
    return n_left;
}

/* Returns `dry` with the penalties after it. Penalties that are off are there too, since llama.cpp copies state between
 * samplers of one kind only. */
static lzs_llama_sampler *with_penalties(const lzs_libllama *l, lzs_llama_sampler *dry, const void *vocab,
                                         const lzs_preload_settings *settings) {
    lzs_params params;
    lzs_llama_sampler *made = NULL;
    lzs_known_vocabulary *vocabulary = NULL;
    lzs_preload_params(settings, &params);
    lzs_status status = lzs_vocabulary_take(l, vocab, &vocabulary);
    if (status == LZS_OK && params.lz_rule == LZS_RULE_DEFAULT && params.lz_penalty > 0) {
        params.lz_separators = vocabulary->separators;
        params.lz_commas = vocabulary->commas;
        params.n_lz_separators = params.n_lz_commas = vocabulary->n_words;
    }
    if (status == LZS_OK) status = lzs_preload_sampler_new(l, dry, vocabulary, &params, &made);
    if (status == LZS_OK) return made;
    say("a sampler has no penalties: %s", lzs_strerror(status));
    if (vocabulary) lzs_vocabulary_give_back(vocabulary);
    return dry;
}

/* llama.cpp's function, with void * for its llama_vocab *. */
__attribute__((visibility("default"))) lzs_llama_sampler *llama_sampler_init_dry(
    const void *vocab, float multiplier, float base, int32_t allowed_length, int32_t penalty_last_n,
    const char **breakers, size_t n_breakers) {
    const void *caller = __builtin_return_address(0);
    lzs_init_dry real = lzs_libllama_real(llama_sampler_init_dry, caller);
    if (!real) {
        say("this program calls llama_sampler_init_dry, but no library has it");
        abort();
    }
    if (!breakers) n_breakers = 0;
    const bool is_clone = n_breakers == 0 && lzs_libllama_holds(real, caller);
    if (is_clone || !vocab) { /* llama.cpp takes no vocabulary if DRY is off */
        return real(vocab, multiplier, base, allowed_length, penalty_last_n, breakers, n_breakers);
    }
    was_called = true;
    pthread_mutex_lock(&lock);
    const lzs_libllama *l = libllama_of(real);
    lzs_preload_settings settings = process_settings;
    pthread_mutex_unlock(&lock);

    const char **left = malloc((n_breakers + 1) * sizeof *left);
    if (!left) return real(vocab, multiplier, base, allowed_length, penalty_last_n, breakers, n_breakers);
    const size_t n_left = read_markers(breakers, n_breakers, left, &settings);
    lzs_llama_sampler *dry = real(vocab, multiplier, base, allowed_length, penalty_last_n, left, n_left);
    free(left);
    return l && dry && l->vocab_type(vocab) ? with_penalties(l, dry, vocab, &settings) : dry;
}

/* A process that samples without DRY in its chain has no penalties, and would not know. */
__attribute__((destructor)) static void say_if_never_called(void) {
    const int kept = errno;
    if (!was_called && lzs_libllama_is_loaded()) {
        say("no penalties: llama.cpp was loaded, but this process made no chain with DRY. Leave dry in --samplers");
    }
    errno = kept;
}
