// Lane: patient

import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

import type { ExitEvent, Ready } from '../../src';

import { call, exitwatch } from '../support/command';
import { itAsListener, itAsRootOfHost } from '../support/privilege';
import { LineProcess } from '../support/programs';
import { readerThreads } from '../support/readers';
import { until } from '../support/wait';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'exitwatch-exec-'));
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

const file = (name: string) => join(folder, name);
const read = (name: string) => readFileSync(file(name), 'utf8');

const ended = async (script: string) => {
  const shell = new LineProcess('sh', ['-c', script]);
  await shell.ended;
  return shell.pid;
};

/** Only children of this process. The hook's command is not one of them. */
const OURS = ['--parent', String(process.pid)];

/** The beginning of a hook that leaves out gaps: a flood beside the test may make some. */
const UNLESS_GAP = '[ "$EXITWATCH_EVENT" = gap ] && exit;';

const isGap = (line: string) => (JSON.parse(line) as { event: string }).event === 'gap';

// The cBPF filter, which an ordinary user gets, cannot name a process that is reaped at once.
const IS_NAMED = process.getuid?.() === 0;

/** Resolves when the watch is ready. */
async function watchWith(...args: string[]): Promise<LineProcess> {
  const watch = exitwatch('watch', '--json', ...args);
  expect(JSON.parse((await watch.line()) ?? 'null') as Ready).toMatchObject({ event: 'ready' });
  return watch;
}

itAsListener('the hook gets the event in its environment and on its stdin', async () => {
  const hook = `env > ${file('env')}; cat > ${file('json')}`;
  const watch = await watchWith(...OURS, '--count', '1', '--exec', hook);
  const pid = await ended('exit 7');
  expect(await watch.ended).toBe(0); // only after the hook has ended
  expect(JSON.parse(read('json')) as ExitEvent).toMatchObject({ event: 'exit', pid, exitCode: 7 });
  const environment = read('env').split('\n');
  for (const line of [
    'EXITWATCH_EVENT=exit',
    `EXITWATCH_PID=${pid}`,
    `EXITWATCH_PARENT_PID=${process.pid}`,
    'EXITWATCH_HOW=exited',
    'EXITWATCH_EXIT_CODE=7',
    'EXITWATCH_SIGNAL=',
    'EXITWATCH_SENDER_PID=',
  ]) {
    expect(environment).toContain(line);
  }
  const name = environment.find((line) => line.startsWith('EXITWATCH_NAME='));
  expect(name).toMatch(IS_NAMED ? /=sh$/ : /=(sh)?$/);
});

itAsListener('a name crafted to harm a shell reaches the hook as plain text', async () => {
  const hook = `printf %s "$EXITWATCH_NAME" > ${file('name')}; cat > ${file('json')}`;
  const victim = new LineProcess('python3', ['-c', HARMFUL], { cwd: folder });
  expect(await victim.line()).toBe('here');
  const watch = await watchWith('--pid', String(victim.pid), '--exec', hook);
  victim.child.kill();
  expect(await watch.ended).toBe(0);
  expect(read('name')).toBe('$(>x)`>x`\n>x\u202e');
  expect(read('json')).not.toContain('\u202e');
  expect((JSON.parse(read('json')) as ExitEvent).name).toBe('$(>x)`>x`\n>x\u202e');
  expect(existsSync(file('x'))).toBe(false);
});

const HARMFUL = `
import ctypes, time
ctypes.CDLL(None).prctl(15, b'$(>x)\`>x\`\\n>x\\xe2\\x80\\xae', 0, 0, 0)
print('here', flush=True)
time.sleep(1000)
`;

itAsListener('hooks run one at a time, in the order of the events', async () => {
  const hook = `${UNLESS_GAP} echo begin $EXITWATCH_EXIT_CODE >> ${file('log')}; sleep 0.2; echo end >> ${file('log')}`;
  const watch = await watchWith(...OURS, '--count', '3', '--exec', hook);
  for (const code of [3, 4, 5]) await ended(`exit ${code}`);
  expect(await watch.ended).toBe(0);
  expect(read('log')).toBe('begin 3\nend\nbegin 4\nend\nbegin 5\nend\n');
});

itAsListener('an interrupt waits for the running hook and drops the queued ones', async () => {
  const waitForGo = `until [ -e ${file('go')} ]; do sleep 0.05; done`;
  const hook = `${UNLESS_GAP} echo $EXITWATCH_EXIT_CODE >> ${file('log')}; ${waitForGo}`;
  const watch = await watchWith(...OURS, '--exec', hook);
  for (const code of [3, 4, 5]) await ended(`exit ${code}`);
  const lines: string[] = [];
  while (lines.filter((line) => !isGap(line)).length < 3) lines.push(...(await watch.take(1)));
  await until('the hook to run', () => existsSync(file('log')), watch.told);
  watch.child.kill('SIGINT');
  await until('the watch to end', () => readerThreads(watch.pid) === 0, watch.told);
  writeFileSync(file('go'), '');
  lines.push(...(await watch.rest()));
  await watch.ended;
  expect(read('log')).toBe('3\n');
  const skipped = Number(/was too slow; skipped (\d+) events/.exec(watch.stderr)?.[1]);
  expect(skipped).toBeGreaterThanOrEqual(2);
  expect(skipped).toBeLessThanOrEqual(2 + lines.filter(isGap).length);
});

itAsListener('a failing hook is reported, and the watch goes on', async () => {
  const hook = `${UNLESS_GAP} echo said; test "$EXITWATCH_EXIT_CODE" = 4 || kill -KILL $$; exit 9`;
  const watch = await watchWith(...OURS, '--count', '2', '--exec', hook);
  const pids = [await ended('exit 3'), await ended('exit 4')];
  const lines = await watch.rest(); // the hook's own output goes to stderr
  expect(lines.filter((line) => !isGap(line))).toHaveLength(2);
  expect(await watch.ended).toBe(0);
  const name = IS_NAMED ? 'sh' : '(sh|\\?)';
  for (const [i, failure] of ['was killed by SIGKILL', 'exited with 9'].entries()) {
    expect(watch.stderr).toMatch(
      new RegExp(`^exitwatch: the hook for the end of ${pids[i]} \\(${name}\\) ${failure}$`, 'm'),
    );
  }
  expect(watch.stderr).toContain('said\n');
});

itAsListener('a hook’s own processes are not reported and do not run it again', async () => {
  const hookling = file('hookling');
  copyFileSync('/bin/sh', hookling);
  const nested = `${hookling} -c '${hookling} -c "true; exit 3"; true' | cat`;
  const watch = await watchWith('--exec', `echo $EXITWATCH_NAME >> ${file('log')}; ${nested}; :`);
  const pid = await ended('exit 7');
  const told: ExitEvent[] = [];
  const isReported = async () => {
    told.push(JSON.parse((await watch.line()) ?? 'null') as ExitEvent);
    return told.at(-1)?.pid === pid;
  };
  await until(`the exit of process ${pid}`, isReported, watch.told);
  await until(`the hook to make ${file('log')}`, () => existsSync(file('log')), watch.told);
  await setTimeout(1000); // long enough for the hook to run for its own children
  watch.child.kill('SIGINT');
  for (const line of await watch.rest()) told.push(JSON.parse(line) as ExitEvent);
  await watch.ended;
  expect(told.filter(({ name }) => name === 'hookling')).toEqual([]);
  expect(told.filter(({ parentPid }) => parentPid === watch.pid)).toEqual([]);
  expect(read('log')).not.toContain('hookling');
});

test('--exec rejects an empty command', async () => {
  const { code, stderr } = await call('watch', '--exec', '');
  expect([code, stderr.split('\n')[0]]).toEqual([
    2,
    'exitwatch: --exec requires a value that is not empty',
  ]);
});

itAsRootOfHost('signals that the hook sends do not run it again', async () => {
  const log = file('signals');
  const named = `echo "$EXITWATCH_EVENT $EXITWATCH_NAME" >> ${log}`;
  const hook = `${UNLESS_GAP} ${named}; timeout 0.2 sleep 5; true`;
  const watch = await watchWith('--signals', '--killed', ...OURS, '--count', '1', '--exec', hook);
  await ended('kill -HUP $$');
  expect(await watch.ended).toBe(0);
  expect(read('signals').trimEnd().split('\n')).toEqual(['signal sh', 'exit sh']);
  const told = (await watch.rest()).map((line) => JSON.parse(line) as { name: string });
  expect(told.filter(({ name }) => name === 'sleep')).toEqual([]);
});

itAsRootOfHost('the hook is told who asked a process to exit before it did', async () => {
  const hook = `env > ${file('request')}`;
  const watch = await watchWith(...OURS, '--count', '1', '--exec', hook);
  const pid = await ended('trap "exit 0" TERM; kill -TERM $$; sleep 1');
  expect(await watch.ended).toBe(0);
  const environment = read('request').split('\n');
  for (const line of [
    ...['EXITWATCH_SIGNAL=', 'EXITWATCH_SENDER_SIGNAL=SIGTERM', `EXITWATCH_SENDER_PID=${pid}`],
  ]) {
    expect(environment).toContain(line);
  }
  expect(read('request')).toMatch(
    /^EXITWATCH_SUMMARY=.* exited 0, after .*s, after SIGTERM from itself$/m,
  );
});
