#!/usr/bin/env bash
# Instructions a token (accept + edits + sample, V = 32,000) by callgrind, against the committed table.
#   bench/instructions.sh            compares; fails where a case needs over 10 % more than instructions.txt says
#   bench/instructions.sh --update   writes instructions.txt
# Counts belong to a compiler: with another one than the table's they are printed and not judged. Needs valgrind.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v valgrind >/dev/null || { echo "instructions: needs valgrind (apt-get install valgrind)" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
compiler=$("${CC:-cc}" --version | head -n 1)
"${CC:-cc}" -std=c11 -O2 -g -Ic/include bench/instructions.c c/sampler.c c/state/*.c c/penalty/*.c c/constraint/*.c \
    c/plan/*.c c/backend/*.c c/verify/*.c -lm -o "$work/instructions"

cases="greedy greedy+lz chain chain+penalties+lz top_k_1000 top_p min_p temperature top_k_40+distribution
    accept accept+lz accept+lz+8192 accept+lz+8192+rewind accept+lz+default accept+dry accept+loops accept+stuck"

count() { # instructions of the whole program
    LZS_KERNELS=$1 valgrind --tool=callgrind --callgrind-out-file=/dev/null "$work/instructions" "$2" "$3" 2>&1 |
        sed -n 's/.*Collected : //p'
}

{
    echo "# instructions a token; $compiler"
    for kernels in scalar avx2; do
        for name in $cases; do
            few=$(count $kernels $name 20) many=$(count $kernels $name 60)
            echo "$kernels $name $(((many - few) / 40))"
        done
    done
} >"$work/table"

if [ "${1:-}" = --update ]; then
    cp "$work/table" bench/instructions.txt
    cat bench/instructions.txt
    exit
fi
judged=$([ "$(head -n 1 "$work/table")" = "$(head -n 1 bench/instructions.txt)" ] && echo 1 || echo 0)
[ "$judged" = 1 ] || echo "another compiler than the table's: not judged ($compiler)"
awk -v judged="$judged" '
    /^#/ { next }
    NR == FNR { expected[$1 " " $2] = $3; next }
    {
        was = expected[$1 " " $2]
        change = was ? 100 * ($3 / was - 1) : 0
        bad = judged && was && change > 10
        failed += bad
        printf "%-7s %-22s %9d  was %9d  %+6.1f %%%s\n", $1, $2, $3, was, change, bad ? "  MORE" : ""
    }
    END { exit failed > 0 }' bench/instructions.txt "$work/table"
