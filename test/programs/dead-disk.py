# dead-disk FOLDER: mounts a file system there that never answers; whoever looks into it waits, until a
# line on our standard input or our end.
import ctypes, os, sys

folder = sys.argv[1].encode()
libc = ctypes.CDLL(None, use_errno=True)
device = os.open("/dev/fuse", os.O_RDWR)
data = b"fd=%d,rootmode=40000,user_id=0,group_id=0" % device
if libc.mount(b"dead", folder, b"fuse", 0, data) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
print("mounted", flush=True)
sys.stdin.readline()
libc.umount2(folder, 2)
