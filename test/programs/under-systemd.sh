#!/bin/sh
# under-systemd.sh MANAGER FOLDER UNIT...: runs systemd with these units of FOLDER, until one of them
# makes it exit. FOLDER/bin becomes /usr/local/bin. It gets a cgroup of its own in each hierarchy,
# which is removed afterwards. MANAGER is "system", for the first process of namespaces of its own, or
# "user", for a manager in the host's pid namespace, whose services may have users of their own.
set -eu
manager=$1 folder=$2
shift 2
if [ "$(id -u)" != 0 ]; then echo "needs root" >&2; exit 125; fi

if [ "${EXITWATCH_INSIDE:-}" != yes ]; then
  if mountpoint -q /sys/fs/cgroup/systemd; then root=/sys/fs/cgroup/systemd; else root=/sys/fs/cgroup; fi
  # In each hierarchy, below the current cgroup: systemd makes cgroups in every hierarchy it finds.
  all=$(
    while IFS=: read -r _ controllers path; do
      case $controllers in
        '') if [ -d /sys/fs/cgroup/unified ]; then base=/sys/fs/cgroup/unified; else base=/sys/fs/cgroup; fi ;;
        *) base=/sys/fs/cgroup/${controllers#name=} ;;
      esac
      [ ! -e "$base/cgroup.procs" ] || echo "$base${path%/}/exitwatch-test-$$"
    done </proc/self/cgroup
  )
  for own in $all; do mkdir "$own"; done
  status=0
  (
    # A cpuset cgroup accepts no process before it has CPUs.
    for own in $all; do sh -c 'echo $PPID' 2>/dev/null >"$own/cgroup.procs" || :; done
    pids=
    [ "$manager" = user ] || pids='--pid --mount-proc'
    EXITWATCH_INSIDE=yes EXITWATCH_ROOT=$root exec unshare --mount $pids --fork --kill-child \
      --uts --ipc --cgroup "$0" "$manager" "$folder" "$@"
  ) || status=$?
  for own in $all; do
    # Services outlive a user's manager that is made to exit.
    find "$own" -name cgroup.procs -exec cat {} + | xargs -r kill -KILL 2>/dev/null || :
    # Its processes ended with the namespace, but the kernel may take a moment.
    for _ in 1 2 3 4 5 6 7 8 9 10; do
      find "$own" -depth -type d -exec rmdir {} + 2>/dev/null && break
      sleep 0.1
    done
  done
  exit "$status"
fi

mount --make-rprivate /
# Neither systemd nor anything that comes with it may write to the host.
mount --bind -o ro /proc/sys /proc/sys
for path in /etc/systemd /usr/lib/systemd/system /usr/lib/systemd/system-generators /run /var; do
  mount -t tmpfs tmpfs "$path"
done
mkdir -p /run/systemd/system /run/test /run/repository /var/lib /var/tmp
mount --rbind "$folder" /run/test
mount --bind "$(dirname "$0")/../.." /run/repository
mount -t tmpfs tmpfs /tmp
mount --bind /run/test/bin /usr/local/bin
if [ "$EXITWATCH_ROOT" = /sys/fs/cgroup ]; then
  umount --recursive --lazy /sys/fs/cgroup # mounting over it fails (EBUSY)
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
else
  # A hierarchy of its own, without controllers.
  mount -t tmpfs tmpfs /sys/fs/cgroup
  mkdir /sys/fs/cgroup/systemd
  mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
fi
mount -o remount,bind,ro /
units=/run/systemd/$manager
mkdir -p "$units"
# The only units.
for target in sysinit basic shutdown; do
  printf '[Unit]\nDescription=%s\nDefaultDependencies=no\n' "$target" >"$units/$target.target"
done
for unit in "$@"; do cp "/run/test/$unit" "$units/"; done
cd /run/test
exec env -u EXITWATCH_INSIDE container=test SYSTEMD_LOG_TARGET=console SYSTEMD_LOG_LEVEL=warning \
  XDG_RUNTIME_DIR=/run/manager /lib/systemd/systemd "--$manager" --unit="$1"
