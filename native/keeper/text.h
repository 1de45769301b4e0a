// Messages are fields "key=value", each with a NUL at its end, after a length of 4 bytes.
#ifndef EXITWATCH_KEEPER_TEXT_H_
#define EXITWATCH_KEEPER_TEXT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
  char* bytes;
  size_t size;
  size_t room;
} Buffer;

void BufferAdd(Buffer* buffer, const void* bytes, size_t size);
void BufferDrop(Buffer* buffer, size_t size);
void BufferFree(Buffer* buffer);

// Begins a message, and returns where its length will be.
size_t MessageBegin(Buffer* buffer);
void MessageText(Buffer* buffer, const char* key, const char* value);
void MessageNumber(Buffer* buffer, const char* key, int64_t value);
void MessageEnd(Buffer* buffer, size_t begin);

// A request whose fields are all well-formed.
typedef struct {
  const char* bytes;
  size_t size;
} Request;

bool RequestIsWellFormed(Request request);
// The first value of a key; NULL if there is none.
const char* RequestText(Request request, const char* key);
// The number of a key, or `otherwise`; sets *bad if it is no number within the limits.
int64_t RequestNumber(Request request, const char* key, int64_t otherwise, int64_t most, bool* bad);
// All values of a key, with NULL at the end; they point into the request. Free it.
char** RequestTexts(Request request, const char* key);
// The first key that is not in the list, which ends with NULL.
const char* RequestUnknown(Request request, const char* const* known);
// The whole text as a number without sign.
bool ParseNumber(const char* text, int64_t* value);

#endif  // EXITWATCH_KEEPER_TEXT_H_
