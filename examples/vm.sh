#!/bin/sh
# Starts, stops and explains virtual machines: exitwatch from a shell.
#
#   vm.sh start NAME [QEMU OPTION]…
#   vm.sh stop NAME
#   vm.sh why NAME
#   vm.sh wanted NAME     exits with 0, unless its user has shut it down
#
# Files are in $VMS if that is set, otherwise in /run/vms and /var/lib/vms. It needs this service:
#
#   exitwatch vm daemon --control-dir /run/vms --state-dir /var/lib/vms
set -eu

run=${VMS:+$VMS/run}
run=${run:-/run/vms}
state=${VMS:+$VMS/state}
state=${state:-/var/lib/vms}
qemu=${QEMU:-qemu-system-x86_64}

usage() {
  echo "vm.sh: usage: vm.sh start|stop|why|wanted NAME [QEMU OPTION]…" >&2
  exit 2
}

status() {
  exitwatch vm status "$name" --state-dir "$state" "$@"
}

[ $# -ge 2 ] || usage
command=$1 name=$2
shift 2
case $name in *[!A-Za-z0-9-]* | -*) usage ;; esac

case $command in
  start)
    # The first socket is for the daemon alone. QEMU itself writes the event log.
    exec "$qemu" "$@" -daemonize -pidfile "$run/$name.pid" -D "$run/$name.log" \
      -qmp "unix:$run/$name.qmp,server=on,wait=off" \
      -qmp "unix:$run/$name.control,server=on,wait=off" \
      -chardev "null,id=exitwatch-events,logfile=$run/$name.events,logappend=on" \
      -mon chardev=exitwatch-events,mode=control
    ;;
  stop)
    # The stop is on record first, so the daemon knows that it was us. Exits when QEMU has exited.
    exec exitwatch stop "$run/$name.pid" --executable "$(basename "$qemu")" \
      --intent-log "$state/intents" --reason "vm.sh stop"
    ;;
  why)
    status
    ;;
  wanted)
    if status --json | grep -q '"isMarked":true'; then
      echo "$name: its user shut it down"
      exit 1
    fi
    ;;
  *) usage ;;
esac
