// Has a name that the kernel cuts: TASK_COMM_LEN leaves it 15 bytes. Says `here`, and stays.
#include <stdio.h>
#include <unistd.h>

int main(void) {
  puts("here");
  fflush(stdout);
  for (;;) pause();
}
