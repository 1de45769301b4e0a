// A program whose name the kernel truncates to 15 bytes (TASK_COMM_LEN). Prints `here` and stays.
#include <stdio.h>
#include <unistd.h>

int main(void) {
  puts("here");
  fflush(stdout);
  for (;;) pause();
}
