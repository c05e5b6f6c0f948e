/* SPDX-License-Identifier: Apache-2.0 */
#include "record_info.h"

#include "record_format.h"
#include "utf8.h"

struct text {
  char *out;
  size_t capacity, length;
};

static void put_byte(struct text *text, char byte) {
  if (text->length < text->capacity)
    text->out[text->length] = byte;
  text->length++;
}

static void put(struct text *text, const char *words) {
  for (; *words != '\0'; words++)
    put_byte(text, *words);
}

static void put_number(struct text *text, uint64_t value) {
  if (value >= 10)
    put_number(text, value / 10);
  put_byte(text, (char)('0' + value % 10));
}

static void put_hex(struct text *text, unsigned char byte) {
  static const char digits[] = "0123456789abcdef";
  put_byte(text, digits[byte >> 4]);
  put_byte(text, digits[byte & 15]);
}

static void put_escaped(struct text *text, unsigned char byte) {
  put(text, "\\u00");
  put_hex(text, byte);
}

/* The byte as \xNN, which JSON has to be told of. */
static void put_byte_escape(struct text *text, unsigned char byte) {
  put(text, "\\\\x");
  put_hex(text, byte);
}

/* A JSON string; bytes that are not UTF-8 become \xNN. NULL becomes null. */
static void put_string(struct text *text, const char *words) {
  if (words == NULL) {
    put(text, "null");
    return;
  }
  put_byte(text, '"');
  for (const unsigned char *at = (const unsigned char *)words; *at != '\0';) {
    int length = utf8_length(at);
    if (length == 0) {
      put_byte_escape(text, *at++);
    } else if (*at < 0x20 || *at == '"' || *at == '\\') {
      put_escaped(text, *at++);
    } else {
      for (; length > 0; length--)
        put_byte(text, (char)*at++);
    }
  }
  put_byte(text, '"');
}

static int is_utf8(const char *words) {
  const unsigned char *at = (const unsigned char *)words;
  while (*at != '\0') {
    int length = utf8_length(at);
    if (length == 0)
      return 0;
    at += length;
  }
  return 1;
}

static void put_bytes(struct text *text, const char *words) {
  put_byte(text, '"');
  for (; *words != '\0'; words++)
    put_hex(text, (unsigned char)*words);
  put_byte(text, '"');
}

/* What the strings before do not say exactly. */
static void put_exact(struct text *text, const struct info *info) {
  if (!is_utf8(info->program)) {
    put(text, ", \"program_bytes\": ");
    put_bytes(text, info->program);
  }
  const char *const *argument = info->arguments;
  while (*argument != NULL && is_utf8(*argument))
    argument++;
  if (*argument == NULL)
    return;
  put(text, ", \"arguments_bytes\": [");
  for (argument = info->arguments; *argument != NULL; argument++) {
    if (argument != info->arguments)
      put(text, ", ");
    put_bytes(text, *argument);
  }
  put_byte(text, ']');
}

size_t info_text(char *out, size_t capacity, const struct info *info) {
  struct text text = {.out = out, .capacity = capacity};
  put(&text, "{\"format_version\": ");
  put_number(&text, RECORD_VERSION);
  put(&text, ", \"isa\": ");
  put_string(&text, info->isa);
  put(&text, ", \"recorder\": \"fencepost-record " RECORDER_VERSION "\", \"engine\": ");
  put_string(&text, info->engine);
  put(&text, ", \"program\": ");
  put_string(&text, info->program);
  put(&text, ", \"arguments\": [");
  for (const char *const *argument = info->arguments; *argument != NULL; argument++) {
    if (argument != info->arguments)
      put(&text, ", ");
    put_string(&text, *argument);
  }
  put_byte(&text, ']');
  put_exact(&text, info);
  put(&text, ", \"page_size\": ");
  put_number(&text, info->page_size);
  put(&text, ", \"line_size\": ");
  put_number(&text, CACHE_LINE_BYTES);
  put(&text, info->has_values ? ", \"options\": {\"values\": true, \"pm\": "
                              : ", \"options\": {\"values\": false, \"pm\": ");
  put_string(&text, info->pm);
  put(&text, ", \"roi\": ");
  put_string(&text, info->roi);
  if (info->roi != NULL && info->warm != UINT64_MAX) {
    put(&text, ", \"warm\": ");
    put_number(&text, info->warm);
  }
  if (info->every != 0) {
    put(&text, ", \"every\": ");
    put_number(&text, info->every);
  }
  put_byte(&text, '}');
  if (info->process != 0) {
    put(&text, ", \"process\": ");
    put_number(&text, (uint64_t)info->process);
    if (info->parent >= 0) {
      put(&text, ", \"parent\": ");
      put_number(&text, (uint64_t)info->parent);
    }
  }
  put_byte(&text, '}');
  return text.length;
}
