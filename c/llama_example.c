/* llama_example.c - llama.cpp decodes greedily, with the LZ penalty as a sampler of its chain. This file is valid C11
 * and C++.
 *
 *     llama_example MODEL PROMPT [LZ_PENALTY]
 *
 * c/README.md says how to build it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <llama.h>
#include <lzsampler_llama.h>

enum { N_PREDICT = 256 }; /* greatest number of new tokens */

/* The objects that are freed at the end, also after an error. */
typedef struct state {
    struct llama_model *model;
    struct llama_context *context;
    struct llama_sampler *chain;
    llama_token *prompt;
} state;

static lzs_status add_lz_penalty(state *s, float strength, int32_t n_vocab, int32_t n_prompt,
                                 void **chain_sampler) {
    lzs_params params;
    lzs_params_init(&params);
    params.lz_penalty = strength;
    lzs_sampler *sampler;
    lzs_status status = lzs_sampler_new(n_vocab, &params, &sampler);
    /* llama.cpp gives a chain no prompt, so we give the prompt to lzs_prime. Penalties look at the prompt only with
     * params.history = LZS_HISTORY_ALL. */
    if (status == LZS_OK) status = lzs_prime(sampler, s->prompt, (size_t)n_prompt);
    if (status == LZS_OK) {
        status = lzs_chain_sampler_new(sampler, LZS_CHAIN_PENALTIES, (void *)llama_sampler_init, chain_sampler);
    }
    lzs_sampler_free(sampler); /* the chain sampler holds a clone */
    if (status != LZS_OK) return status;
    llama_sampler_chain_add(s->chain, (struct llama_sampler *)*chain_sampler); /* the chain owns it now */
    return LZS_OK;
}

/* Returns what went wrong, or NULL. */
static const char *generate(state *s, const char *path, const char *text, float lz_penalty) {
    s->model = llama_model_load_from_file(path, llama_model_default_params());
    if (!s->model) return "llama.cpp cannot load the model";
    if (!llama_model_has_decoder(s->model) || llama_model_has_encoder(s->model)) return "the model is an encoder";
    const struct llama_vocab *vocab = llama_model_get_vocab(s->model);

    int32_t n_text = (int32_t)strlen(text), n_prompt = -llama_tokenize(vocab, text, n_text, NULL, 0, true, true);
    if (n_prompt < 1) return "the prompt has no tokens";
    s->prompt = (llama_token *)malloc((size_t)n_prompt * sizeof *s->prompt);
    if (!s->prompt) return "out of memory";
    if (llama_tokenize(vocab, text, n_text, s->prompt, n_prompt, true, true) != n_prompt) return "tokenizing failed";

    struct llama_context_params sizes = llama_context_default_params();
    sizes.n_ctx = sizes.n_batch = (uint32_t)n_prompt + N_PREDICT;
    s->context = llama_init_from_model(s->model, sizes);
    if (!s->context) return "llama.cpp cannot make a context";

    void *chain_sampler;
    s->chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
    lzs_status status = add_lz_penalty(s, lz_penalty, llama_vocab_n_tokens(vocab), n_prompt, &chain_sampler);
    if (status != LZS_OK) return lzs_strerror(status);
    llama_sampler_chain_add(s->chain, llama_sampler_init_greedy()); /* or top-k, top-p, temperature and dist */

    llama_token token;
    struct llama_batch batch = llama_batch_get_one(s->prompt, n_prompt);
    for (int i = 0; i < N_PREDICT; i++) {
        if (llama_decode(s->context, batch) != 0) return "llama_decode failed";
        token = llama_sampler_sample(s->chain, s->context, -1); /* all samplers of the chain accept the token */
        if (llama_vocab_is_eog(vocab, token)) break;
        char piece[256];
        int32_t n_bytes = llama_token_to_piece(vocab, token, piece, sizeof piece, 0, false);
        if (n_bytes < 0) return "a token has more than 256 bytes";
        fwrite(piece, 1, (size_t)n_bytes, stdout);
        if (fflush(stdout) != 0) return "the text cannot be written";
        batch = llama_batch_get_one(&token, 1);
    }
    status = lzs_chain_sampler_status(chain_sampler);
    return status == LZS_OK ? NULL : lzs_strerror(status);
}

static void no_log(enum ggml_log_level level, const char *text, void *data) {
    (void)level, (void)text, (void)data;
}

int main(int argc, char **argv) {
    char *end = NULL;
    float lz_penalty = argc == 4 ? strtof(argv[3], &end) : 0.15f;
    if (argc < 3 || argc > 4 || (end && (end == argv[3] || *end)) || !(lz_penalty >= 0 && lz_penalty < 1000)) {
        fputs("usage: llama_example MODEL PROMPT [LZ_PENALTY], with LZ_PENALTY from 0 (off) to 1000\n", stderr);
        return 2;
    }
    llama_log_set(no_log, NULL); /* without this line llama.cpp writes a log to stderr */
    ggml_backend_load_all();
    state s = {NULL, NULL, NULL, NULL};
    const char *error = generate(&s, argv[1], argv[2], lz_penalty);
    if (error) fprintf(stderr, "llama_example: %s\n", error);
    llama_sampler_free(s.chain); /* frees also the samplers of the chain */
    llama_free(s.context);
    llama_model_free(s.model);
    free(s.prompt);
    return error != NULL;
}
