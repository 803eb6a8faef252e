// llama.cpp never ends its logger, so that the lines of the last moment, which have the figures, may not be written.
#include "log.h"

struct flush {
    ~flush() { common_log_flush(common_log_main()); }
};

static flush at_exit;
