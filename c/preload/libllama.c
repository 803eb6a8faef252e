/* libllama.c - finds the functions of llama.cpp, and tries them. */
#define _GNU_SOURCE /* dladdr, RTLD_NEXT, dl_iterate_phdr */
#include "libllama.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

static const char INIT_DRY[] = "llama_sampler_init_dry";

/* ISO C has no cast between object and function pointers. */
static void *object_of(lzs_init_dry function) {
    void *object;
    memcpy(&object, &function, sizeof object);
    return object;
}

/* The program or library that holds an address, without loading it a second time. */
static void *holder_of(const void *address) {
    Dl_info info;
    if (!dladdr(address, &info) || !info.dli_fname) return NULL;
    void *holder = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    return holder ? holder : dlopen(NULL, RTLD_LAZY); /* a program that was started by another name */
}

lzs_init_dry lzs_libllama_real(lzs_init_dry ours, const void *caller) {
    void *found = dlsym(RTLD_NEXT, INIT_DRY);
    if (!found) { /* the program loaded llama.cpp later, for itself */
        void *holder = holder_of(caller);
        if (holder) {
            found = dlsym(holder, INIT_DRY);
            dlclose(holder);
        }
    }
    lzs_init_dry real;
    memcpy(&real, &found, sizeof real);
    return real == ours ? NULL : real;
}

bool lzs_libllama_holds(lzs_init_dry real, const void *address) {
    Dl_info of_real, of_address;
    if (!dladdr(object_of(real), &of_real) || !dladdr(address, &of_address)) return false;
    return of_real.dli_fbase == of_address.dli_fbase;
}

/* ---- a sampler that counts its calls, to see how llama.cpp calls samplers ---- */

typedef struct trial {
    int names, accepts, applies, resets, clones, frees;
    int32_t token;
    const lzs_llama_token_data_array *candidates;
} trial;

static const char *trial_name(const lzs_llama_sampler *sampler) {
    ((trial *)sampler->ctx)->names++;
    return "lzsampler";
}

static void trial_accept(lzs_llama_sampler *sampler, int32_t token) {
    trial *t = sampler->ctx;
    t->accepts++;
    t->token = token;
}

static void trial_apply(lzs_llama_sampler *sampler, lzs_llama_token_data_array *candidates) {
    trial *t = sampler->ctx;
    t->applies++;
    t->candidates = candidates;
}

static void trial_reset(lzs_llama_sampler *sampler) {
    ((trial *)sampler->ctx)->resets++;
}

static lzs_llama_sampler *trial_clone(const lzs_llama_sampler *sampler) {
    ((trial *)sampler->ctx)->clones++;
    return NULL;
}

static void trial_free(lzs_llama_sampler *sampler) {
    ((trial *)sampler->ctx)->frees++;
}

static const lzs_llama_sampler_i trial_interface = {
    .name = trial_name,
    .accept = trial_accept,
    .apply = trial_apply,
    .reset = trial_reset,
    .clone = trial_clone,
    .free = trial_free,
};

static bool calls_ours(const lzs_libllama *l) {
    trial t = {0};
    lzs_llama_token_data data[] = {{3, 1.0f, 0.0f}};
    lzs_llama_token_data_array candidates = {data, 1, -1, false};
    lzs_llama_sampler *sampler = l->init(&trial_interface, &t);
    if (!sampler || sampler->iface != &trial_interface || sampler->ctx != &t) return false;
    const char *name = l->name(sampler);
    l->accept(sampler, 7);
    l->apply(sampler, &candidates);
    l->reset(sampler);
    l->clone(sampler);
    l->free(sampler);
    const bool once = t.names == 1 && t.accepts == 1 && t.applies == 1 && t.resets == 1 && t.clones == 1 && t.frees == 1;
    const bool same = name && strcmp(name, "lzsampler") == 0 && t.token == 7 && t.candidates == &candidates;
    return once && same;
}

static bool calls_theirs(const lzs_libllama *l) {
    lzs_llama_token_data data[] = {{3, 1.0f, 0.0f}, {9, 4.0f, 0.0f}, {5, 2.0f, 0.0f}};
    lzs_llama_token_data_array candidates = {data, 3, -1, false};
    lzs_llama_sampler *greedy = l->init_greedy();
    if (!greedy || !greedy->iface || !greedy->iface->name || !greedy->iface->apply) return false;
    const bool same_name = greedy->iface->name(greedy) == l->name(greedy);
    greedy->iface->apply(greedy, &candidates);
    l->free(greedy);
    return same_name && candidates.data == data && candidates.size == 3 && candidates.selected == 1;
}

const char *lzs_libllama_find(lzs_init_dry real, lzs_libllama *found) {
    static const struct {
        const char *name;
        size_t at;
        bool is_optional;
    } functions[] = {
#define FUNCTION(member, name, is_optional) {name, offsetof(lzs_libllama, member), is_optional}
        FUNCTION(init, "llama_sampler_init", false),
        FUNCTION(init_greedy, "llama_sampler_init_greedy", false),
        FUNCTION(name, "llama_sampler_name", false),
        FUNCTION(accept, "llama_sampler_accept", false),
        FUNCTION(apply, "llama_sampler_apply", false),
        FUNCTION(reset, "llama_sampler_reset", false),
        FUNCTION(clone, "llama_sampler_clone", false),
        FUNCTION(free, "llama_sampler_free", false),
        FUNCTION(vocab_type, "llama_vocab_type", false),
        FUNCTION(vocab_n_tokens, "llama_vocab_n_tokens", false),
        FUNCTION(token_to_piece, "llama_token_to_piece", false),
        FUNCTION(copy, "llama_sampler_copy", true),
        FUNCTION(version, "llama_version", true),
    };
    *found = (lzs_libllama){.init_dry = real};
    void *holder = holder_of(object_of(real));
    if (!holder) return "the library that holds llama_sampler_init_dry cannot be found";
    const char *problem = NULL;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *function = dlsym(holder, functions[i].name);
        memcpy((char *)found + functions[i].at, &function, sizeof function);
        if (!function && !functions[i].is_optional) {
            problem = "this llama.cpp lacks functions that lzsampler needs: it is too old or too new";
        }
    }
    dlclose(holder);
    if (problem || (calls_theirs(found) && calls_ours(found))) return problem;
    return "this llama.cpp has samplers that lzsampler does not know: it is too old or too new";
}

/* ---- whether llama.cpp is loaded ---- */

static int is_libllama(struct dl_phdr_info *info, size_t size, void *found) {
    (void)size;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *name = slash ? slash + 1 : info->dlpi_name;
    *(bool *)found |= strncmp(name, "libllama.so", strlen("libllama.so")) == 0;
    return 0;
}

bool lzs_libllama_is_loaded(void) {
    bool found = false;
    dl_iterate_phdr(is_libllama, &found);
    return found;
}
