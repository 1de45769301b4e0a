// Lane: patient

import { execFileSync } from 'node:child_process';
import { mkdirSync, realpathSync, rmdirSync } from 'node:fs';
import { basename } from 'node:path';

import { ExitMonitor, type ExitEvent } from '../../../src';

import { CGROUP2, cgroupName, itWithCgroup } from '../../support/cgroup2';
import { describeForEachFilter } from '../../support/filters';
import { KERNEL } from '../../support/kernel';
import { itAsRootOfHost } from '../../support/privilege';
import { LineProcess } from '../../support/programs';
import { until } from '../../support/wait';

/** The longest name that containerd creates, below that of a pod. */
const POD = `kubepods-besteffort-pod${'0123456789ab'.repeat(3)}.slice`;
const CONTAINER = `cri-containerd-${'0123456789abcdef'.repeat(4)}.scope`;

/**
 * A process ends by a signal from another cgroup, whose sender was started in a third one. All of them
 * are removed at once.
 */
const SCRIPT = `
set -e
for i in $(seq 1 30); do
  target=$MOUNT/exitwatch-$$-$i.slice sender=$MOUNT/exitwatch-$$-$i.sender
  starter=$MOUNT/exitwatch-$$-$i.service
  mkdir -p $target/${POD}/${CONTAINER} $sender $starter
  sh -c "echo \\$\\$ > $target/${POD}/${CONTAINER}/cgroup.procs; exec sleep 1000" & pid=$!
  until [ "$(cat /proc/$pid/comm)" = sleep ]; do :; done
  kill="echo \\$\\$ > $sender/cgroup.procs; kill $pid"
  export kill starter
  sh -c 'echo $$ > $starter/cgroup.procs; sh -c "$kill"; exit'
  wait $pid || true
  rmdir $target/${POD}/${CONTAINER} $target/${POD} $target $sender $starter
  echo $pid
done`;

const SHELL = basename(realpathSync('/bin/sh'));

/** Runs while this event loop is blocked. */
function endSome(): number[] {
  const env = { ...process.env, MOUNT: CGROUP2 };
  const told = execFileSync('bash', ['-c', SCRIPT], { env, encoding: 'utf8' });
  return told.trim().split('\n').map(Number);
}

itAsRootOfHost('cgroups that are removed at once are reported, the sender’s included', async () => {
  expect(CGROUP2).toBeDefined();
  await using monitor = new ExitMonitor({ scope: 'all', trace: 'on' });
  const ended = new Map<number, ExitEvent>();
  monitor.on('exit', (event) => ended.set(event.pid, event));
  await monitor.start();
  const pids = endSome();
  const left = () => pids.filter((pid) => !ended.has(pid));
  await until(
    'all exits',
    () => left().length === 0,
    () => `missing: ${left().join(' ')}`,
  );
  expect(pids).toHaveLength(30);
  pids.forEach((pid, i) => {
    const { cgroup, sender } = ended.get(pid) ?? {};
    const [, run] = /^\/exitwatch-(\d+)-/.exec(cgroup ?? '') ?? [];
    expect(cgroup).toBe(`/exitwatch-${run}-${i + 1}.slice/${POD}/${CONTAINER}`);
    const starter = `exitwatch-${run}-${i + 1}.service`;
    expect(sender).toMatchObject({ cgroup: `/exitwatch-${run}-${i + 1}.sender`, program: SHELL });
    const parent = { name: 'sh', cgroup: `/${starter}`, unit: starter };
    expect(sender?.ancestors?.[0]).toMatchObject(parent);
  });
});

describeForEachFilter(() => {
  itWithCgroup.each(['connector', 'pidfd'] as const)(
    'source %s reports the cgroup of a watched process even if it is removed at once',
    async (source) => {
      const folder = cgroupName();
      mkdirSync(folder);
      const script = `echo $$ > ${folder}/cgroup.procs; echo there; exec sleep 1000`;
      const child = new LineProcess('sh', ['-c', script]);
      await using monitor = new ExitMonitor({ source });
      const watched = async () => {
        expect(await child.line()).toBe('there');
        const { filter } = await monitor.start();
        return { filter, watch: monitor.watch(child.pid) };
      };
      const { filter, watch } = await watched().finally(async () => {
        child.child.kill();
        await child.ended;
        rmdirSync(folder);
      });
      const isReported = filter === 'ebpf' || KERNEL.pidfdStatus;
      const name = `/${basename(folder)}`;
      expect((await watch.exited).cgroup).toBe(isReported ? name : null);
    },
  );
});
