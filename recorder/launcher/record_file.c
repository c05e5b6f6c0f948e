/* SPDX-License-Identifier: Apache-2.0 */
#include "record_file.h"

#include "complaint.h"
#include "order.h"
#include "record_format.h"
#include "record_info.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINKS_MAX = 40 }; /* that are followed, as by the kernel */

static bool write_whole(int descriptor, const void *bytes, size_t count) {
  const char *at = bytes;
  while (count != 0) {
    ssize_t written = write(descriptor, at, count);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return false;
    at += written;
    count -= (size_t)written;
  }
  return true;
}

static bool append_frame(int descriptor, enum frame_kind kind, const void *payload,
                         uint32_t bytes) {
  uint8_t header[FRAME_HEADER_BYTES];
  struct frame_description frame = {.version = RECORD_VERSION,
                                    .kind = (uint8_t)kind,
                                    .codec = CODEC_STORED,
                                    .stored_bytes = bytes,
                                    .raw_bytes = bytes};
  frame_header_write(header, &frame, payload);
  return write_whole(descriptor, header, sizeof(header)) && write_whole(descriptor, payload, bytes);
}

static char *absolute_path(const char *output, const char *command) {
  char *path, *folder;
  const char *slash = strrchr(command, '/');
  int length = output != NULL && output[0] == '/'
                   ? asprintf(&path, "%s", output)
                   : ((folder = getcwd(NULL, 0)) == NULL
                          ? -1
                          : (output != NULL ? asprintf(&path, "%s/%s", folder, output)
                                            : asprintf(&path, "%s/%s.fencepost", folder,
                                                       slash == NULL ? command : slash + 1)));
  if (length < 0)
    fail(EXIT_OURS, "the current folder has no name: %s", strerror(errno));
  return path;
}

/* What a symbolic link leads to, whether or not that is there: a record that is renamed to the link
 * would take its place. */
static char *behind_links(char *path) {
  char target[PATH_MAX];
  for (int links = 0;; links++) {
    ssize_t length = readlink(path, target, sizeof(target) - 1);
    if (length < 0)
      return path;
    if (links == LINKS_MAX)
      fail(EXIT_OURS, "%s: %s", path, strerror(ELOOP));
    target[length] = '\0';
    char *next;
    int folder_length = target[0] == '/' ? 0 : (int)(strrchr(path, '/') + 1 - path);
    if (asprintf(&next, "%.*s%s", folder_length, path, target) < 0)
      fail(EXIT_OURS, "out of memory");
    free(path);
    path = next;
  }
}

static char *info_of(const struct arguments *arguments, const struct program *program,
                     const struct control_area *control, uint32_t *bytes) {
  char *path = realpath(program->path, NULL);
  struct info info = {.isa = control->isa,
                      .engine = control->engine,
                      .program = path == NULL ? program->path : path,
                      .arguments = (const char *const *)program->arguments,
                      .page_size = (uint64_t)sysconf(_SC_PAGESIZE),
                      .has_values = arguments->values,
                      .pm = arguments->pm,
                      .roi = arguments->roi,
                      .every = control->every,
                      .warm = control->warm};
  *bytes = (uint32_t)info_text(NULL, 0, &info);
  char *text = malloc(*bytes);
  if (text == NULL)
    fail(EXIT_OURS, "out of memory");
  info_text(text, *bytes, &info);
  free(path);
  return text;
}

void record_file_create(struct record_file *file, const struct arguments *arguments,
                        const struct program *program, const struct control_area *control) {
  file->takes_turns = control->one_order != 0;
  file->processes = 0;
  file->instructions = 0;
  file->sharers = NULL;
  file->is_listed = control->lists != 0;
  file->path = behind_links(absolute_path(arguments->output, arguments->program[0]));
  struct stat status;
  if (stat(file->path, &status) == 0 && !S_ISREG(status.st_mode))
    fail(EXIT_OURS, "%s: not a file", file->path);
  if (asprintf(&file->partial_path, "%s" PARTIAL_SUFFIX, file->path) < 0)
    fail(EXIT_OURS, "out of memory");
  file->descriptor = open(file->partial_path, O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND, 0666);
  if (file->descriptor < 0)
    fail(EXIT_OURS, "%s: %s", file->partial_path, strerror(errno));
  if (flock(file->descriptor, LOCK_EX | LOCK_NB) != 0)
    fail(EXIT_OURS, "%s: another recording is writing it", file->partial_path);
  uint32_t bytes;
  char *info = info_of(arguments, program, control, &bytes);
  if (ftruncate(file->descriptor, 0) != 0 ||
      !append_frame(file->descriptor, FRAME_INFO, info, bytes)) {
    complain("%s: %s", file->partial_path, strerror(errno));
    record_file_discard(file);
    exit(EXIT_OURS);
  }
  free(info);
}

bool record_file_open(struct record_file *file, const struct control_area *area, unsigned number) {
  if (asprintf(&file->path, "%s.%u%s", area->child_prefix, number, area->child_suffix) < 0 ||
      asprintf(&file->partial_path, "%s" PARTIAL_SUFFIX, file->path) < 0)
    fail(EXIT_OURS, "out of memory");
  file->takes_turns = area->one_order != 0;
  file->processes = 0;
  file->instructions = 0;
  file->sharers = NULL;
  file->is_listed = area->lists != 0;
  file->descriptor = open(file->partial_path, O_RDWR | O_CLOEXEC | O_APPEND);
  return file->descriptor >= 0;
}

void record_file_discard(struct record_file *file) {
  unlink(file->partial_path);
  close(file->descriptor);
}

void record_file_remove_folder(const struct record_file *file) {
  char *folder = strndup(file->path, (size_t)(strrchr(file->path, '/') - file->path));
  if (folder != NULL)
    rmdir(folder);
  free(folder);
}

struct growing_bytes {
  uint8_t *bytes;
  size_t count;
  size_t capacity;
};

static void grow_by(struct growing_bytes *growing, size_t bytes) {
  if (growing->count + bytes <= growing->capacity)
    return;
  growing->capacity = (growing->count + bytes) * 2;
  growing->bytes = realloc(growing->bytes, growing->capacity);
  if (growing->bytes == NULL)
    fail(EXIT_OURS, "out of memory");
}

static void put_varint(struct growing_bytes *growing, uint64_t value) {
  grow_by(growing, 10);
  for (; value >= 0x80; value >>= 7)
    growing->bytes[growing->count++] = (uint8_t)(value | 0x80);
  growing->bytes[growing->count++] = (uint8_t)value;
}

static void put_text(struct growing_bytes *growing, const char *text) {
  size_t length = strlen(text);
  put_varint(growing, length);
  grow_by(growing, length);
  memcpy(growing->bytes + growing->count, text, length);
  growing->count += length;
}

/* Whether the frame whose header stands at `offset` is whole and undamaged. */
static bool frame_is_sound(int descriptor, uint64_t offset, uint64_t file_bytes,
                           const uint8_t *header, const struct frame_description *frame) {
  if (offset + FRAME_HEADER_BYTES + frame->stored_bytes > file_bytes)
    return false;
  static uint8_t *payload;
  static uint32_t capacity;
  if (frame->stored_bytes > capacity) {
    capacity = frame->stored_bytes;
    payload = realloc(payload, capacity);
    if (payload == NULL)
      fail(EXIT_OURS, "out of memory");
  }
  ssize_t count =
      pread(descriptor, payload, frame->stored_bytes, (off_t)(offset + FRAME_HEADER_BYTES));
  return count == (ssize_t)frame->stored_bytes &&
         frame_checksum_matches(header, payload, frame->stored_bytes);
}

/* Walks the frames and fills the index; the offset behind the last sound one. A process that is
 * killed while several of its threads write can leave a torn frame before a whole one, so each is
 * looked at. */
static uint64_t index_frames(int descriptor, uint64_t file_bytes, struct growing_bytes *index,
                             uint64_t *frames) {
  uint64_t offset = 0, previous = 0;
  uint8_t header[FRAME_HEADER_BYTES];
  struct frame_description frame;
  while (pread(descriptor, header, sizeof(header), (off_t)offset) == (ssize_t)sizeof(header) &&
         frame_header_read(header, &frame) &&
         frame_is_sound(descriptor, offset, file_bytes, header, &frame)) {
    grow_by(index, 1);
    index->bytes[index->count++] = frame.kind;
    put_varint(index, frame.thread);
    put_varint(index, offset - previous);
    put_varint(index, frame.instructions);
    ++*frames;
    previous = offset;
    offset += FRAME_HEADER_BYTES + frame.stored_bytes;
  }
  return offset;
}

/* Takes away what a killed process has half written. */
static bool cut_torn_end(int descriptor) {
  struct stat status;
  struct growing_bytes index = {0};
  uint64_t frames = 0;
  if (fstat(descriptor, &status) != 0)
    return false;
  uint64_t end = index_frames(descriptor, (uint64_t)status.st_size, &index, &frames);
  free(index.bytes);
  return end == (uint64_t)status.st_size || ftruncate(descriptor, (off_t)end) == 0;
}

/* What is known of the whole recording, where there is anything. */
static void put_recording(struct growing_bytes *seal, const struct record_file *file) {
  unsigned sharers = file->sharers == NULL ? 0 : file->sharers->count;
  if (file->processes == 0 && sharers == 0 && file->instructions == 0)
    return;
  put_varint(seal, file->processes);
  put_varint(seal, sharers);
  for (unsigned i = 0; i < sharers; i++)
    put_text(seal, file->sharers->name[i]);
  if (file->instructions != 0)
    put_varint(seal, file->instructions);
}

static bool write_seal(const struct record_file *file, const char *ended,
                       const struct process_control *control) {
  int descriptor = file->descriptor;
  struct stat status;
  struct growing_bytes index = {0}, seal = {0};
  uint64_t frames = 0;
  if (fstat(descriptor, &status) != 0)
    return false;
  uint64_t end = index_frames(descriptor, (uint64_t)status.st_size, &index, &frames);
  if (end != (uint64_t)status.st_size && ftruncate(descriptor, (off_t)end) != 0)
    return false;
  put_text(&seal, ended);
  put_varint(&seal, control->live_threads);
  put_varint(&seal, frames);
  grow_by(&seal, index.count);
  memcpy(seal.bytes + seal.count, index.bytes, index.count);
  seal.count += index.count;
  put_recording(&seal, file);
  uint8_t footer[FOOTER_BYTES];
  footer_write(footer, end, end + FRAME_HEADER_BYTES + seal.count + FOOTER_BYTES);
  bool is_written = append_frame(descriptor, FRAME_SEAL, seal.bytes, (uint32_t)seal.count) &&
                    write_whole(descriptor, footer, sizeof(footer));
  free(index.bytes);
  free(seal.bytes);
  return is_written;
}

bool record_file_seal(struct record_file *file, const char *ended,
                      const struct process_control *control) {
  bool is_whole = control->live_threads == 0 || cut_torn_end(file->descriptor);
  if (is_whole && file->takes_turns)
    order_add(file->partial_path, file->processes > 0 ? file->path : NULL, file->processes);
  if (!is_whole || !write_seal(file, ended, control) ||
      rename(file->partial_path, file->path) != 0) {
    complain("%s could not be sealed: %s", file->path, strerror(errno));
    record_file_discard(file);
    return false;
  }
  close(file->descriptor);
  if (file->is_listed)
    complain("%s: %s", file->path, control->program);
  return true;
}
