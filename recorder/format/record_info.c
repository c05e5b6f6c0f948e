/* SPDX-License-Identifier: Apache-2.0 */
#include "record_info.h"

#include "record_format.h"

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

/* Length of the UTF-8 sequence at `text`, or 0 where there is none. */
static int utf8_length(const unsigned char *text) {
  int length = text[0] < 0x80                       ? 1
               : text[0] >= 0xc2 && text[0] <= 0xdf ? 2
               : (text[0] & 0xf0) == 0xe0           ? 3
               : text[0] >= 0xf0 && text[0] <= 0xf4 ? 4
                                                    : 0;
  for (int i = 1; i < length; i++) {
    if ((text[i] & 0xc0) != 0x80)
      return 0;
  }
  if (length > 1) { /* overlong forms, surrogates, beyond the last character */
    if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
        (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f))
      return 0;
  }
  return length;
}

static void put_escaped(struct text *text, unsigned char byte) {
  static const char digits[] = "0123456789abcdef";
  put(text, "\\u00");
  put_byte(text, digits[byte >> 4]);
  put_byte(text, digits[byte & 15]);
}

/* A JSON string; bytes that are not UTF-8 become U+FFFD. NULL becomes null. */
static void put_string(struct text *text, const char *words) {
  if (words == NULL) {
    put(text, "null");
    return;
  }
  put_byte(text, '"');
  for (const unsigned char *at = (const unsigned char *)words; *at != '\0';) {
    int length = utf8_length(at);
    if (length == 0) {
      put(text, "\\ufffd");
      at++;
    } else if (*at < 0x20 || *at == '"' || *at == '\\') {
      put_escaped(text, *at++);
    } else {
      for (; length > 0; length--)
        put_byte(text, (char)*at++);
    }
  }
  put_byte(text, '"');
}

size_t info_text(char *out, size_t capacity, const struct info *info) {
  struct text text = {.out = out, .capacity = capacity};
  put(&text, "{\"format_version\": ");
  put_number(&text, info->has_values ? RECORD_VERSION_WITH_VALUES : RECORD_VERSION);
  put(&text, ", \"isa\": \"x86-64\", \"recorder\": \"fencepost-record " RECORDER_VERSION
             "\", \"engine\": \"DynamoRIO " ENGINE_VERSION "\", \"program\": ");
  put_string(&text, info->program);
  put(&text, ", \"arguments\": [");
  for (const char *const *argument = info->arguments; *argument != NULL; argument++) {
    if (argument != info->arguments)
      put(&text, ", ");
    put_string(&text, *argument);
  }
  put(&text, "], \"page_size\": ");
  put_number(&text, info->page_size);
  put(&text, ", \"line_size\": ");
  put_number(&text, CACHE_LINE_BYTES);
  put(&text, info->has_values ? ", \"options\": {\"values\": true, \"pm\": "
                              : ", \"options\": {\"values\": false, \"pm\": ");
  put_string(&text, info->pm);
  put(&text, ", \"roi\": ");
  put_string(&text, info->roi);
  put_byte(&text, '}');
  if (info->process != 0) {
    put(&text, ", \"process\": ");
    put_number(&text, (uint64_t)info->process);
    put(&text, ", \"parent\": ");
    put_number(&text, (uint64_t)info->parent);
  }
  put_byte(&text, '}');
  return text.length;
}
