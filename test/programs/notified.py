# python3 notified.py SOCKET: prints the notifications that sd_notify(3) would send to systemd.
import socket
import sys

receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind("\0" + sys.argv[1][1:] if sys.argv[1].startswith("@") else sys.argv[1])
print("bound", flush=True)
while True:
    for line in receiver.recv(4096).decode().splitlines():
        print(line, flush=True)
