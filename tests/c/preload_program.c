/* preload_program.c - samples as llama-server does, for tests/test_preload.py.
 *
 * preload_program VOCABULARY.gguf COMMAND...
 *
 *   dry=0.8            the multiplier of the samplers that are made from here on
 *   new=BREAKER;...    frees the chain, and makes one of DRY and greedy; a breaker may be a marker
 *   accept=1,2,3       lets the chain accept tokens
 *   apply              applies the chain to logits of 0, and prints each token with another logit
 *   clone, reset       replaces the chain by its clone; resets the chain
 *   copy               makes a second chain, copies the state of the first one to it, and goes on with it
 *   name               prints the name of the chain's first sampler
 *   model=FILE         frees the chain and the model, and loads another one
 *   threads=N          N threads make, use and free 20 chains each
 *   forks=N            makes N children, which make a chain each, while another thread makes chains
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "llama.h"

static struct llama_model *model;
static const struct llama_vocab *vocab;
static float multiplier;

static void load(const char *path) {
    struct llama_model_params params = llama_model_default_params();
    params.vocab_only = true;
    if (model) llama_model_free(model);
    model = llama_model_load_from_file(path, params);
    if (!model) exit(3);
    vocab = llama_model_get_vocab(model);
}

static struct llama_sampler *make(const char *list) {
    char *text = strdup(list), *rest = text;
    const char *breakers[8];
    size_t n = 0;
    for (char *one; (one = strsep(&rest, ";")) && n < 8;) {
        if (*one) breakers[n++] = one;
    }
    struct llama_sampler *chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
    llama_sampler_chain_add(chain, llama_sampler_init_dry(vocab, multiplier, 1.75f, 2, -1, breakers, n));
    llama_sampler_chain_add(chain, llama_sampler_init_greedy());
    free(text);
    return chain;
}

static llama_token_data_array zeros(void) {
    const int32_t n = llama_vocab_n_tokens(vocab);
    llama_token_data *data = calloc((size_t)n, sizeof *data);
    for (int32_t i = 0; i < n; i++) data[i].id = i;
    return (llama_token_data_array){data, (size_t)n, -1, false};
}

static void accept(struct llama_sampler *chain, const char *list) {
    for (char *end; *list; list = *end ? end + 1 : end) {
        llama_sampler_accept(chain, (llama_token)strtol(list, &end, 10));
    }
}

static void apply(struct llama_sampler *chain, int prints) {
    llama_token_data_array candidates = zeros();
    llama_sampler_apply(chain, &candidates);
    for (size_t i = 0; prints && i < candidates.size; i++) {
        if (candidates.data[i].logit != 0) printf("%d:%.17g ", candidates.data[i].id, candidates.data[i].logit);
    }
    if (prints) printf("\n");
    free(candidates.data);
}

static void *use(void *unused) {
    (void)unused;
    for (int i = 0; i < 20; i++) {
        struct llama_sampler *chain = make(i % 2 ? "\n" : "\n;lzs:{\"penalty\": 1}"), *clone;
        accept(chain, "7,8,9,10,11,12,13,7,8,9,10,11,12,13,7,8,9,10,11,12");
        clone = llama_sampler_clone(chain);
        llama_sampler_free(chain);
        apply(clone, 0);
        llama_sampler_free(clone);
    }
    return NULL;
}

static void *busy(void *is_over) {
    while (!*(atomic_bool *)is_over) llama_sampler_free(make("\n"));
    return NULL;
}

/* A child has only the thread that forked. Returns whether none of the children waits for another thread. */
static int all_children_end(int n) {
    pthread_t thread;
    atomic_bool is_over = false;
    int status, ended = 0;
    llama_sampler_free(make("\n"));
    pthread_create(&thread, NULL, busy, &is_over);
    for (int i = 0; i < n; i++) {
        pid_t child = fork();
        if (!child) {
            alarm(20);
            llama_sampler_free(make("\n"));
            _exit(0);
        }
        waitpid(child, &status, 0);
        ended += WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    is_over = true;
    pthread_join(thread, NULL);
    return ended == n;
}

static void quiet(enum ggml_log_level level, const char *text, void *user) {
    (void)level, (void)text, (void)user;
}

int main(int argc, char **argv) {
    llama_log_set(quiet, NULL);
    load(argv[1]);
    struct llama_sampler *chain = NULL;
    for (int i = 2; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (value) *value++ = 0;
        const char *command = argv[i];
        if (!strcmp(command, "dry")) {
            multiplier = strtof(value, NULL);
        } else if (!strcmp(command, "new")) {
            if (chain) llama_sampler_free(chain);
            chain = make(value);
        } else if (!strcmp(command, "accept")) {
            accept(chain, value);
        } else if (!strcmp(command, "apply")) {
            apply(chain, 1);
        } else if (!strcmp(command, "reset")) {
            llama_sampler_reset(chain);
        } else if (!strcmp(command, "name")) {
            printf("%s\n", llama_sampler_name(llama_sampler_chain_get(chain, 0)));
        } else if (!strcmp(command, "clone")) {
            struct llama_sampler *clone = llama_sampler_clone(chain);
            llama_sampler_free(chain);
            chain = clone;
        } else if (!strcmp(command, "copy")) {
            struct llama_sampler *other = make("\n");
            llama_sampler_copy(chain, other);
            llama_sampler_free(chain);
            chain = other;
        } else if (!strcmp(command, "model")) {
            if (chain) llama_sampler_free(chain);
            chain = NULL;
            load(value);
        } else if (!strcmp(command, "threads")) {
            pthread_t threads[16];
            const int n = atoi(value);
            for (int t = 0; t < n; t++) pthread_create(&threads[t], NULL, use, NULL);
            for (int t = 0; t < n; t++) pthread_join(threads[t], NULL);
        } else if (!strcmp(command, "forks")) {
            if (!all_children_end(atoi(value))) return 4;
        } else {
            return 2;
        }
    }
    if (chain) llama_sampler_free(chain);
    llama_model_free(model);
    printf("done\n");
    return 0;
}
