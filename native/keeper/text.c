#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keeper.h"

void BufferAdd(Buffer* buffer, const void* bytes, size_t size) {
  if (buffer->size + size > buffer->room) {
    size_t room = buffer->room == 0 ? 256 : buffer->room;
    while (room < buffer->size + size) room *= 2;
    buffer->bytes = Need(realloc(buffer->bytes, room));
    buffer->room = room;
  }
  if (size > 0) memcpy(buffer->bytes + buffer->size, bytes, size);
  buffer->size += size;
}

void BufferDrop(Buffer* buffer, size_t size) {
  buffer->size -= size;
  if (buffer->size == 0)
    BufferFree(buffer);
  else
    memmove(buffer->bytes, buffer->bytes + size, buffer->size);
}

void BufferFree(Buffer* buffer) {
  free(buffer->bytes);
  *buffer = (Buffer){0};
}

size_t MessageBegin(Buffer* buffer) {
  const size_t begin = buffer->size;
  BufferAdd(buffer, "\0\0\0\0", 4);
  return begin;
}

void MessageText(Buffer* buffer, const char* key, const char* value) {
  BufferAdd(buffer, key, strlen(key));
  BufferAdd(buffer, "=", 1);
  BufferAdd(buffer, value, strlen(value) + 1);
}

void MessageNumber(Buffer* buffer, const char* key, int64_t value) {
  char text[24];
  snprintf(text, sizeof text, "%lld", (long long)value);
  MessageText(buffer, key, text);
}

void MessageEnd(Buffer* buffer, size_t begin) {
  const uint32_t size = (uint32_t)(buffer->size - begin - 4);
  memcpy(buffer->bytes + begin, &size, sizeof size);
}

static const char* NextField(Request request, const char* field) {
  const char* next = field + strlen(field) + 1;
  return next < request.bytes + request.size ? next : NULL;
}

static const char* FirstField(Request request) { return request.size == 0 ? NULL : request.bytes; }

bool RequestIsWellFormed(Request request) {
  if (request.size == 0 || request.bytes[request.size - 1] != '\0') return false;
  for (const char* at = FirstField(request); at != NULL; at = NextField(request, at)) {
    if (strchr(at, '=') == NULL || *at == '=') return false;
  }
  return true;
}

static const char* ValueOf(const char* field, const char* key) {
  const size_t size = strlen(key);
  return strncmp(field, key, size) == 0 && field[size] == '=' ? field + size + 1 : NULL;
}

const char* RequestText(Request request, const char* key) {
  for (const char* at = FirstField(request); at != NULL; at = NextField(request, at)) {
    const char* value = ValueOf(at, key);
    if (value != NULL) return value;
  }
  return NULL;
}

bool ParseNumber(const char* text, int64_t* value) {
  if (*text < '0' || *text > '9') return false;
  char* end;
  errno = 0;
  *value = strtoll(text, &end, 10);
  return *end == '\0' && errno == 0;
}

int64_t RequestNumber(Request request, const char* key, int64_t otherwise, int64_t most,
                      bool* bad) {
  const char* text = RequestText(request, key);
  if (text == NULL) return otherwise;
  int64_t value;
  if (ParseNumber(text, &value) && value <= most) return value;
  *bad = true;
  return otherwise;
}

char** RequestTexts(Request request, const char* key) {
  size_t count = 0;
  for (const char* at = FirstField(request); at != NULL; at = NextField(request, at)) {
    if (ValueOf(at, key) != NULL) count++;
  }
  char** values = Need(calloc(count + 1, sizeof *values));
  count = 0;
  for (const char* at = FirstField(request); at != NULL; at = NextField(request, at)) {
    const char* value = ValueOf(at, key);
    if (value != NULL) values[count++] = (char*)value;
  }
  return values;
}

const char* RequestUnknown(Request request, const char* const* known) {
  for (const char* at = FirstField(request); at != NULL; at = NextField(request, at)) {
    bool is_known = false;
    for (size_t i = 0; known[i] != NULL; i++) is_known |= ValueOf(at, known[i]) != NULL;
    if (!is_known) return at;
  }
  return NULL;
}
