/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of docs/record-format.md, shared by the encoding, which writes frames of code and
 * trace, and by the launcher, which opens and seals the record. */
#ifndef RECORD_FORMAT_H
#define RECORD_FORMAT_H

#include <stdint.h>

#define RECORD_VERSION 5
#define FRAME_MAGIC "FPFR"
#define FOOTER_MAGIC "FPRECEND"
#define FRAME_HEADER_BYTES 48
#define FRAME_CHECKSUM_OFFSET 40
#define FOOTER_BYTES 32
#define CACHE_LINE_BYTES 64

enum frame_kind {
  FRAME_INFO = 1,
  FRAME_CODE = 2,
  FRAME_TRACE = 3,
  FRAME_SEAL = 4,
  FRAME_ORDER = 5,
  FRAME_TREE_ORDER = 6
};
enum frame_codec { CODEC_STORED = 0, CODEC_ZSTD = 1 };

/* Bounds that a reader relies on. */
#define FRAME_RAW_BYTES_MAX (64u << 20)
#define FRAME_INSTRUCTIONS_MAX (1u << 24)
#define FRAME_SLOTS_MAX (1u << 25)
#define FRAME_EVENTS_MAX (1u << 20)
#define RECORD_BLOCKS_MAX (1u << 23)
#define RECORD_CODE_BYTES_MAX (512u << 20)
#define RECORD_CODE_RATIO_MAX 16u /* to what is stored of it */
#define RECORD_THREADS_MAX (1u << 20)

enum trace_stream {
  STREAM_CONTROL = 1,
  STREAM_SLOTS = 2,
  STREAM_EVENTS = 3,
  STREAM_CLOCK = 4,
  STREAM_VALUES = 5,
};

enum slot_kind {
  SLOT_LOAD = 0,
  SLOT_STORE = 1,
  SLOT_UPDATE = 2,
  SLOT_FLUSH = 3,
  SLOT_PREFETCH = 4,
  SLOT_STRING_SOURCE = 5,
  SLOT_STRING_DESTINATION = 6,
  SLOT_GATHER = 7,
  SLOT_SCATTER = 8,
  SLOT_VALUE = 9, /* not an address: what an atomic update found, and its operands */
};

/* 21 and 38 were of earlier versions; 35, 39 and 40 are in no frame that is written here. */
enum event_type {
  EVENT_THREAD_START = 1,
  EVENT_THREAD_EXIT = 2,
  EVENT_THREAD_CREATE = 3,
  EVENT_THREAD_JOIN = 4,
  EVENT_MUTEX_LOCK = 5,
  EVENT_MUTEX_UNLOCK = 6,
  EVENT_SPIN_LOCK = 7,
  EVENT_SPIN_UNLOCK = 8,
  EVENT_READ_LOCK = 9,
  EVENT_WRITE_LOCK = 10,
  EVENT_RW_UNLOCK = 11,
  EVENT_ATTEMPT_FAILED = 12,
  EVENT_CONDITION_WAIT = 13,
  EVENT_CONDITION_SIGNAL = 14,
  EVENT_CONDITION_BROADCAST = 15,
  EVENT_SEMAPHORE_POST = 16,
  EVENT_SEMAPHORE_WAIT = 17,
  EVENT_BARRIER_WAIT = 18,
  EVENT_FUTEX_WAIT = 19,
  EVENT_FUTEX_WAKE = 20,
  EVENT_SYSTEM_CALL = 22,
  EVENT_MAP = 23,
  EVENT_UNMAP = 24,
  EVENT_MODULE = 25,
  EVENT_ROI = 26,
  EVENT_INTERRUPTED = 27,
  EVENT_SIGNAL = 28,
  EVENT_EXEC = 29,
  EVENT_FORK = 30,
  EVENT_KERNEL_WRITE = 31,
  EVENT_PERSIST_CALL = 32,
  EVENT_INITIAL_BYTES = 33,
  EVENT_ORDER = 34,
  EVENT_CALL_BEGIN = 36,
  EVENT_CALL_END = 37,
  EVENT_TURN = 41,
  EVENT_SUPPLY = 42,
  EVENT_CONSUME = 43,
  EVENT_DROPPED_EDGES = 47,
  EVENT_SHARED_MAPPING = 48,
  EVENT_CHILD_WAIT = 49,
  EVENT_MARK = 50,
};

enum mark_kind { MARK_BEGIN = 1, MARK_END = 2, MARK_ACKNOWLEDGED = 3 };

enum map_kind {
  MAP_KIND_ANONYMOUS,
  MAP_KIND_FILE,
  MAP_KIND_STACK,
  MAP_KIND_BREAK,
  MAP_KIND_SPECIAL
};

struct frame_description {
  uint16_t version;
  uint8_t kind;
  uint8_t codec;
  uint32_t thread;
  uint32_t sequence;
  uint64_t instructions;
  uint64_t position;
  uint32_t stored_bytes;
  uint32_t raw_bytes;
};

/* Writes the 48 bytes of the header of `frame`, checksum over them and `payload` included. */
void frame_header_write(uint8_t header[FRAME_HEADER_BYTES], const struct frame_description *frame,
                        const void *payload);

/* Reads a header; returns 0 where the magic, version or kind is not one of ours. The checksum is
 * not looked at. */
int frame_header_read(const uint8_t header[FRAME_HEADER_BYTES], struct frame_description *frame);

/* Whether the checksum in `header` is that of the header and its stored payload. */
int frame_checksum_matches(const uint8_t header[FRAME_HEADER_BYTES], const void *payload,
                           uint32_t stored_bytes);

/* Writes the 32 bytes that end a sealed record. */
void footer_write(uint8_t footer[FOOTER_BYTES], uint64_t seal_offset, uint64_t file_bytes);

#endif
