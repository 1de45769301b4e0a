// counting LINES: prints so many numbered lines of 64 bytes, and exits with 0; with 1 if a write
// failed.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char** arguments) {
  char line[128];
  if (count != 2) return 2;
  const long lines = atol(arguments[1]);
  for (long i = 0; i < lines; i++) {
    const int size = snprintf(line, sizeof line, "%063ld\n", i);
    for (int at = 0; at < size;) {
      const ssize_t written = write(1, line + at, (size_t)(size - at));
      if (written <= 0) return 1;
      at += (int)written;
    }
  }
  return 0;
}
