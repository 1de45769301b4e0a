# The same by psutil: the processes whose pids come on stdin, a line each, the last one empty.
import sys

import psutil

pids = [int(line) for line in iter(sys.stdin.readline, "\n")]
left = [psutil.Process(pid) for pid in pids]
print("ready", flush=True)
while left:
    # It waits as often as it likes, and for a second at the most.
    _, left = psutil.wait_procs(left, timeout=1)
print("ended", flush=True)
