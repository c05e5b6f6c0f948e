/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of one event, put together as they stand in the record, and sent on their way. */
#ifndef FIELDS_H
#define FIELDS_H

#include "thread.h"
#include "varint.h"

#include <string.h>

#define FIELDS_BYTES_MAX 8192u
#define FIELDS_TEXT_MAX 4096u

struct fields {
  uint8_t *end;
  uint8_t bytes[FIELDS_BYTES_MAX];
};

static inline void fields_begin(struct fields *fields) { fields->end = fields->bytes; }

static inline void fields_number(struct fields *fields, uint64_t value) {
  fields->end = varint_write(fields->end, value);
}

static inline void fields_signed(struct fields *fields, int64_t value) {
  fields->end = svarint_write(fields->end, value);
}

static inline void fields_byte(struct fields *fields, uint8_t value) { *fields->end++ = value; }

static inline void fields_bytes(struct fields *fields, const void *bytes, size_t count) {
  if (count > FIELDS_TEXT_MAX)
    count = FIELDS_TEXT_MAX;
  fields->end = varint_write(fields->end, count);
  memcpy(fields->end, bytes, count);
  fields->end += count;
}

static inline void fields_text(struct fields *fields, const char *text) {
  fields_bytes(fields, text, strlen(text));
}

static inline void fields_send(const struct fields *fields, struct thread *thread, uint8_t type) {
  thread_event(thread, type, fields->bytes, (size_t)(fields->end - fields->bytes));
}

static inline void fields_send_clocked(const struct fields *fields, struct thread *thread,
                                       uint8_t type, uint64_t clock) {
  thread_event_clocked(thread, type, clock, fields->bytes, (size_t)(fields->end - fields->bytes));
}

#endif
