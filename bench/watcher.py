# Like watcher.cjs, but with psutil. The pids come on stdin, one per line, up to an empty line.
import sys

import psutil

pids = [int(line) for line in iter(sys.stdin.readline, "\n")]
left = [psutil.Process(pid) for pid in pids]
print("ready", flush=True)
while left:
    # psutil may poll more often than once a second.
    _, left = psutil.wait_procs(left, timeout=1)
print("ended", flush=True)
