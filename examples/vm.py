#!/usr/bin/env python3
"""Lists virtual machines, waits for the end of one, or quits it: exitwatch from Python.

  vm.py list          reads the daemon's files, and needs no command
  vm.py wait NAME     uses `exitwatch vm watch`
  vm.py quit NAME     uses QMP, and records an intent first

The files are in $VMS if that is set, otherwise in /run/vms and /var/lib/vms. docs/formats.md
describes them.
"""

import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import uuid
from datetime import datetime, timedelta, timezone

VMS = os.environ.get("VMS")
RUN = pathlib.Path(VMS, "run") if VMS else pathlib.Path("/run/vms")
STATE = pathlib.Path(VMS, "state") if VMS else pathlib.Path("/var/lib/vms")


def utc(seconds=0):
    time = datetime.now(timezone.utc) + timedelta(seconds=seconds)
    return time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{time.microsecond // 1000:03}Z"


def marked(record):
    """Whether the user shut down the last run in the record."""
    try:
        mark = json.loads((STATE / f"{record['name']}.shutdown").read_text())
    except FileNotFoundError:
        return False
    # A mark belongs to a process, not to a name.
    return mark["identity"] == record["lastStopped"] and mark["host"] == record["host"]


def describe(stop):
    user = {True: "by its user", False: "not by its user", None: "by its user or not"}[stop["userShutdown"]]
    return f"{stop['cause']} ({stop['certainty']}), {user}"


def list_machines():
    for path in sorted(STATE.glob("*.json")):
        record = json.loads(path.read_text())
        stop = record["lastStop"]
        last = "has not ended yet" if stop is None else describe(stop)
        mark = ", marked" if record["state"] == "stopped" and marked(record) else ""
        print(f"{record['name']}: {record['state']}; {last}{mark}")


def wait(name):
    # No QMP socket: that one is the daemon's, and QEMU serves one client at a time.
    watch = ["exitwatch", "vm", "watch", "--json", "--pidfile", RUN / f"{name}.pid"]
    witnesses = ["--event-log", RUN / f"{name}.events", "--intent-log", STATE / "intents"]
    with subprocess.Popen(watch + witnesses, stdout=subprocess.PIPE, text=True) as lines:
        for event in map(json.loads, lines.stdout):
            if event["event"] == "found":
                print(f"{name}: watching", flush=True)
            elif event["event"] == "stopped":
                print(f"{name}: {describe(event)}")
            elif event["event"] == "warning":
                print(f"{name}: {event['message']}", file=sys.stderr)


def write_down(entry):
    """Writes an entry to the disk. If this fails, do not carry out the intent."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
    log = os.open(STATE / "intents", flags, 0o600)
    try:
        line = f"\n{json.dumps(entry)}\n".encode()
        if os.write(log, line) != len(line):
            raise OSError("the disk is full")
        os.fdatasync(log)
    finally:
        os.close(log)


def quit_machine(name):
    record = json.loads((STATE / f"{name}.json").read_text())
    intent = str(uuid.uuid4())
    with socket.socket(socket.AF_UNIX) as qmp:
        qmp.connect(str(RUN / f"{name}.control"))
        peer = qmp.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        if struct.unpack("3i", peer)[0] != record["identity"]["pid"]:
            sys.exit(f"the daemon has not found the current process of {name} yet")
        replies = qmp.makefile()
        replies.readline()  # the greeting
        qmp.sendall(b'{"execute": "qmp_capabilities"}\n')
        replies.readline()
        write_down({
            "event": "intent", "id": intent, "at": utc(), "identity": record["identity"],
            "what": "quit", "why": "vm.py quit", "who": {"identity": None, "uid": os.geteuid()},
            "deadline": utc(5),
        })
        qmp.sendall(b'{"execute": "quit"}\n')
        outcome = "delivered" if replies.readline() else "uncertain"
    write_down({"event": "settled", "id": intent, "at": utc(), "outcome": outcome})


match sys.argv[1:]:
    case ["list"]:
        list_machines()
    case ["wait", name]:
        wait(name)
    case ["quit", name]:
        quit_machine(name)
    case _:
        sys.exit(__doc__)
