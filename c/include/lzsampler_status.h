/* lzsampler_status.h - what all public headers share: the status that functions return, and LZS_API.
 *
 * A program that links one of the shared libraries on Windows defines LZS_SHARED; the build of a shared library defines
 * LZS_BUILD as well. The CMake targets define both where they are needed.
 */
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

/* The section between the marks is also read by the Python binding (lzsampler/_ffi_build.py). */
/* cdef-begin */

typedef enum lzs_status {
    LZS_OK = 0,
    LZS_EINVAL = -1,  /* An argument or a parameter is out of range. */
    LZS_ENOMEM = -2,  /* There is not enough memory. The object is as it was before the call. */
    LZS_EMASKED = -3, /* No token is allowed: every logit is -inf or masked out. */
    LZS_ENAN = -4,    /* The logit of an allowed token is NaN. A NaN is never picked. */
    LZS_ESPACE = -5   /* The caller's arrays are too small. */
} lzs_status;

/* cdef-end */

#endif
