/* lzsampler_status.h - what all headers of lzsampler share: the export of functions, and the status codes. */
#ifndef LZSAMPLER_STATUS_H
#define LZSAMPLER_STATUS_H

#if defined(_WIN32) && defined(LZS_SHARED)
#  ifdef LZS_BUILD
#    define LZS_API __declspec(dllexport)
#  else
#    define LZS_API __declspec(dllimport)
#  endif
#elif defined(__GNUC__) && defined(LZS_SHARED)
#  define LZS_API __attribute__((visibility("default")))
#else
#  define LZS_API
#endif

/* cdef-begin */

typedef enum lzs_status {
    LZS_OK = 0,
    LZS_EINVAL = -1,  /* An argument or a parameter is out of range. */
    LZS_ENOMEM = -2,  /* Memory ran out. The object is as it was, unless the function's comment says otherwise. */
    LZS_EMASKED = -3, /* No token is allowed: every logit is -inf or masked, or a rewind went back to a mask that is no
                       * longer known. */
    LZS_ENAN = -4,    /* An allowed logit is NaN; a NaN is never picked. */
    LZS_ESPACE = -5,  /* The caller's arrays, or the backend's arrays, are too small. */
    LZS_EFULL = -6,   /* The sequence is full: it has 2^31 - 1 tokens. */
    LZS_ELIMIT = -7,  /* A step of a grammar reached a limit: lzs_grammar_problem says which. */
    LZS_EDEVICE = -8, /* The CUDA device, its driver or its code failed: lzs_batch_problem says how. */
    LZS_EBUSY = -9    /* The sampler is held: see lzs_hold. */
} lzs_status;

/* cdef-end */

#endif
