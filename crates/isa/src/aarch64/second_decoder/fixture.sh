#!/bin/sh
# Writes fixture.txt beside it: what DynamoRIO's decoder says of one instruction word of each shape that occurs in the
# C library, in the programs and libraries given, and in a sweep over all encodings.
#
#   crates/sim/src/isa/aarch64/second_decoder/fixture.sh libpmem.so.1 PROGRAM…
#
# Needs gcc-aarch64-linux-gnu (its objdump, and the C library of AArch64), and what recorder/build needs. The decoder is
# built for AArch64, on this machine, from the sources that the recorder's engine is built from.
set -eu

here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
manifest=$here/../../../../../../recorder/engine/Cargo.toml
library=/usr/aarch64-linux-gnu/lib
objdump=aarch64-linux-gnu-objdump
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cargo fetch --quiet --locked --manifest-path "$manifest"
engine=$(cargo metadata --locked --offline --format-version 1 --manifest-path "$manifest" | tr ',' '\n' |
    sed -n 's|.*"manifest_path":"\(.*/dynamorio-sys-[0-9][^/]*\)/Cargo.toml".*|\1|p' | head -n 1)/dynamorio
version=$(printf '%s\n' "$engine" | sed 's|.*dynamorio-sys-\([^/]*\)/.*|\1|')

cmake -S "$engine" -B "$work/tree" -G Ninja -DTARGET_ARCH=aarch64 -DBUILD_CLIENTS=OFF -DBUILD_DOCS=OFF \
    -DBUILD_SAMPLES=OFF -DBUILD_TESTS=OFF -DBUILD_TOOLS=OFF -DDISABLE_WARNINGS=ON >"$work/log" 2>&1
ninja -C "$work/tree" drdecode gen_aarch64_opcodes >>"$work/log" 2>&1
cc -O2 -Wall -DLINUX -DARM_64 -DDR_HOST_X64 -DDR_HOST_NOT_TARGET -I"$work/tree/include" "$here/shapes.c" \
    -o "$work/shapes" "$work/tree/lib64/libdrdecode.a" "$work/tree/lib64/libdrlibc.a"

# Instruction words, without what the other disassembler takes for data or for unallocated.
words() { awk -F '\t' 'NF >= 3 && $3 !~ /undefined|^\./ { gsub(/ /, "", $2); print $2 }'; }

for file in "$library/libc.so.6" "$library/libm.so.6" "$library/ld-linux-aarch64.so.1" "$library/libgcc_s.so.1" \
    "$library/libatomic.so.1" "$library/libc.a" "$@"; do
    "$objdump" -d "$file"
done | words | sort -u >"$work/words"

# The sweep: all values of bits 10 to 31 with registers 1 and 2 below them, with 31 in the place of each, and all system
# instructions; without the reserved encodings, SME and SVE (bits 25 to 28 below 4).
python3 - "$work/sweep" <<'PYTHON'
import array
import sys

words = array.array("I")
for low in (2 << 5 | 1, 31 << 5 | 1, 2 << 5 | 31):
    words.extend(high << 10 | low for high in range(1 << 22) if high >> 15 & 15 >= 4)
words.extend(0xD5 << 24 | low for low in range(1 << 22))
with open(sys.argv[1], "wb") as file:
    words.tofile(file)
PYTHON
"$objdump" -D -b binary -m aarch64 "$work/sweep" | words >>"$work/words"

{
    echo "# What DynamoRIO $version decodes: instruction word, mnemonic, registers read > registers written."
    echo "# Written by fixture.sh from the C library of AArch64 ($("$objdump" -v | head -n 1)),"
    for file in "$@"; do echo "# $(basename "$file"),"; done
    echo "# and a sweep over all encodings."
    "$work/shapes" <"$work/words" | grep -v '^[0-9a-f]* xx '
} >"$work/fixture.txt"
mv "$work/fixture.txt" "$here/fixture.txt"
