/* settings.h - what a preloaded lzsampler does: settings of the process and of one request, as JSON. */
#ifndef LZS_PRELOAD_SETTINGS_H
#define LZS_PRELOAD_SETTINGS_H

#include <stdbool.h>

#include "../include/lzsampler.h"

typedef struct lzs_preload_settings {
    const char *preset;    /* "default", "guard" or "paper" */
    float penalty;         /* logits per bit, 0 to 100; 0 is off; below 0: that of the preset */
    int32_t run_allowance; /* tokens; below 0: that of the preset */
    int32_t history;       /* lzs_history_scope */
    bool allows_markers;   /* requests may change the settings */
    bool is_strict;        /* if penalties cannot be applied, the process ends */
} lzs_preload_settings;

enum { LZS_PRELOAD_PROBLEM = 160 }; /* bytes of a message */

/* The settings of a process without JSON. */
lzs_preload_settings lzs_preload_defaults(void);

/* Reads a JSON object over `settings`. A preset drops the penalty and the run allowance that were set before.
 * of_request: the object belongs to a request, and cannot have "markers" and "strict". Returns false,
 * with one line in `problem` and nothing changed, if the text is not such an object. */
bool lzs_preload_read(const char *json, bool of_request, lzs_preload_settings *settings,
                      char problem[LZS_PRELOAD_PROBLEM]);

/* The settings of a sampler, without separators. Returns false if they switch all penalties off. */
bool lzs_preload_params(const lzs_preload_settings *settings, lzs_params *params);

#endif
