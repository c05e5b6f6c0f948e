/* SPDX-License-Identifier: Apache-2.0 */
/* Frame headers and the footer, byte for byte. Both the client and the launcher write frames; this
 * is the one place that knows where a field stands. */
#include "record_format.h"

#include <string.h>

#define XXH_STATIC_LINKING_ONLY
#define XXH_INLINE_ALL
#define XXH_NO_XXH3
#include "common/xxhash.h"

static uint64_t frame_checksum(const uint8_t *header, const void *payload, uint32_t stored_bytes) {
  XXH64_state_t state;
  XXH64_reset(&state, 0);
  XXH64_update(&state, header, FRAME_CHECKSUM_OFFSET);
  XXH64_update(&state, payload, stored_bytes);
  return XXH64_digest(&state);
}

void frame_header_write(uint8_t header[FRAME_HEADER_BYTES], const struct frame_description *frame,
                        const void *payload) {
  memcpy(header, FRAME_MAGIC, 4);
  memcpy(header + 4, &frame->version, 2);
  header[6] = frame->kind;
  header[7] = frame->codec;
  memcpy(header + 8, &frame->thread, 4);
  memcpy(header + 12, &frame->sequence, 4);
  memcpy(header + 16, &frame->instructions, 8);
  memcpy(header + 24, &frame->position, 8);
  memcpy(header + 32, &frame->stored_bytes, 4);
  memcpy(header + 36, &frame->raw_bytes, 4);
  uint64_t checksum = frame_checksum(header, payload, frame->stored_bytes);
  memcpy(header + FRAME_CHECKSUM_OFFSET, &checksum, 8);
}

int frame_header_read(const uint8_t header[FRAME_HEADER_BYTES], struct frame_description *frame) {
  memcpy(&frame->version, header + 4, 2);
  if (memcmp(header, FRAME_MAGIC, 4) != 0 || frame->version != RECORD_VERSION)
    return 0;
  frame->kind = header[6];
  frame->codec = header[7];
  memcpy(&frame->thread, header + 8, 4);
  memcpy(&frame->sequence, header + 12, 4);
  memcpy(&frame->instructions, header + 16, 8);
  memcpy(&frame->position, header + 24, 8);
  memcpy(&frame->stored_bytes, header + 32, 4);
  memcpy(&frame->raw_bytes, header + 36, 4);
  return frame->kind >= FRAME_INFO && frame->kind <= FRAME_TREE_ORDER;
}

int frame_checksum_matches(const uint8_t header[FRAME_HEADER_BYTES], const void *payload,
                           uint32_t stored_bytes) {
  uint64_t stored;
  memcpy(&stored, header + FRAME_CHECKSUM_OFFSET, 8);
  return stored == frame_checksum(header, payload, stored_bytes);
}

void footer_write(uint8_t footer[FOOTER_BYTES], uint64_t seal_offset, uint64_t file_bytes) {
  memcpy(footer, FOOTER_MAGIC, 8);
  memcpy(footer + 8, &seal_offset, 8);
  memcpy(footer + 16, &file_bytes, 8);
  uint64_t checksum = XXH64(footer, 24, 0);
  memcpy(footer + 24, &checksum, 8);
}
