// One idea: a file of variables, read as systemd reads an EnvironmentFile=:
// parse_env_file_internal() of its src/basic/env-file.c.
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keeper.h"

enum { kMostBytes = 1 << 20 };

typedef enum {
  kBeforeName,
  kComment,
  kName,
  kBeforeValue,  // also behind a quoted part of it
  kValue,
  kEscaped,
  kSingleQuoted,
  kDoubleQuoted,
  kDoubleQuotedEscaped,
} Place;

typedef struct {
  Place place;
  char* text;      // "NAME=VALUE" so far
  size_t size;     // of it
  size_t trimmed;  // without the white space at its end that is not quoted
  char** all;
  size_t count;
} Parser;

static bool IsNewline(int c) { return c == '\n' || c == '\r'; }

static bool IsWhite(int c) { return c == ' ' || c == '\t' || IsNewline(c); }

// `text` has room for the whole file, for the one "=" of each line, and for a NUL.
static void Add(Parser* parser, int c, bool is_kept) {
  parser->text[parser->size++] = (char)c;
  if (is_kept || !IsWhite(c)) parser->trimmed = parser->size;
}

// systemd has no names with a dot or a hyphen, which programs of Java have.
static bool IsName(const char* text, size_t length) {
  if (length == 0 || isdigit((unsigned char)text[0])) return false;
  for (size_t i = 0; i < length; i++) {
    if (!isalnum((unsigned char)text[i]) && strchr("_.-", text[i]) == NULL) return false;
  }
  return true;
}

// One of the same name takes its place.
static void EndVariable(Parser* parser) {
  parser->text[parser->trimmed] = '\0';
  const char* const equals = strchr(parser->text, '=');
  if (equals != NULL && IsName(parser->text, (size_t)(equals - parser->text))) {
    const size_t name = (size_t)(equals - parser->text) + 1;
    size_t at = 0;
    while (at < parser->count && strncmp(parser->all[at], parser->text, name) != 0) at++;
    parser->all = Need(realloc(parser->all, (parser->count + 1) * sizeof *parser->all));
    parser->all[at] = Copy(parser->text);
    if (at == parser->count) parser->count++;
  }
  parser->size = parser->trimmed = 0;
  parser->place = kBeforeName;
}

static void TakeInName(Parser* parser, int c) {
  if (IsNewline(c)) {
    parser->size = parser->trimmed = 0;  // no assignment
    parser->place = kBeforeName;
  } else if (c == '=') {
    parser->size = parser->trimmed;
    Add(parser, c, true);
    parser->place = kBeforeValue;
  } else {
    Add(parser, c, false);
  }
}

static void TakeInValue(Parser* parser, int c) {
  const bool is_before = parser->place == kBeforeValue;
  if (IsNewline(c)) {
    EndVariable(parser);
  } else if (is_before && c == '\'') {
    parser->place = kSingleQuoted;
  } else if (is_before && c == '"') {
    parser->place = kDoubleQuoted;
  } else if (c == '\\') {
    parser->place = kEscaped;
  } else if (!is_before || !IsWhite(c)) {
    Add(parser, c, false);
    parser->place = kValue;
  }
}

static void Take(Parser* parser, int c) {
  switch (parser->place) {
    case kBeforeName:
      if (c == '#' || c == ';') {
        parser->place = kComment;
      } else if (!IsWhite(c)) {
        parser->place = kName;
        TakeInName(parser, c);
      }
      break;
    case kComment:
      if (IsNewline(c)) parser->place = kBeforeName;
      break;
    case kName:
      TakeInName(parser, c);
      break;
    case kBeforeValue:
    case kValue:
      TakeInValue(parser, c);
      break;
    case kEscaped:
      parser->place = kValue;
      if (!IsNewline(c)) Add(parser, c, true);  // otherwise the next line goes on with it
      break;
    case kSingleQuoted:
      if (c == '\'')
        parser->place = kBeforeValue;
      else
        Add(parser, c, true);
      break;
    case kDoubleQuoted:
      if (c == '"')
        parser->place = kBeforeValue;
      else if (c == '\\')
        parser->place = kDoubleQuotedEscaped;
      else
        Add(parser, c, true);
      break;
    case kDoubleQuotedEscaped:
      parser->place = kDoubleQuoted;
      if (c == '\n') break;
      if (strchr("\"\\`$", c) == NULL) Add(parser, '\\', true);
      Add(parser, c, true);
      break;
  }
}

// 0 or an errno.
static int Read(FILE* file, Parser* parser) {
  for (int c, count = 0; (c = getc(file)) != EOF;) {
    if (c == '\0') return EINVAL;
    if (++count > kMostBytes) return EFBIG;
    Take(parser, c);
  }
  if (parser->place >= kBeforeValue) EndVariable(parser);
  return ferror(file) ? EIO : 0;
}

char** AddEnvironmentFile(const char* path, char** environment) {
  FILE* const file = fopen(path, "re");
  if (file == NULL) return NULL;
  // An escape that is none may take two bytes for its one.
  Parser parser = {.text = Need(malloc(2 * kMostBytes + 1))};
  const int error = Read(file, &parser);
  fclose(file);
  free(parser.text);
  if (error != 0) {
    errno = error;
    return NULL;
  }
  size_t count = 0, kept = 0;
  while (environment[count] != NULL) count++;
  for (size_t i = 0; i < parser.count; i++) {
    const size_t name = strcspn(parser.all[i], "=") + 1;
    bool is_set = false;
    for (size_t j = 0; j < count; j++) is_set |= strncmp(environment[j], parser.all[i], name) == 0;
    if (!is_set) parser.all[kept++] = parser.all[i];
  }
  char** const all = Need(realloc(parser.all, (kept + count + 1) * sizeof *all));
  memcpy(all + kept, environment, (count + 1) * sizeof *all);
  return all;
}
