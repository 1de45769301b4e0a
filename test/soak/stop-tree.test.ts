// Lane: patient

import { join } from 'node:path';

import { cgroupName, itWithCgroup } from '../support/cgroup2';
import { itAsRoot } from '../support/privilege';
import { LineProcess, REPOSITORY } from '../support/programs';
import { ROUNDS } from '../support/rounds';

const REPEATS = 2 * ROUNDS;

const NOBODY = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];

describe('trees that fork, leave their parents, groups and sessions, and ignore SIGTERM', () => {
  const script = join(REPOSITORY, 'test', 'programs', 'tree-rounds.cjs');

  async function playRounds(before: readonly string[], ...args: string[]): Promise<void> {
    const [command = '', ...rest] = [...before, process.execPath, script, ...args];
    const rounds = new LineProcess(command, rest);
    const [line = 'null'] = await rounds.rest();
    expect(rounds.stderr).toBe('');
    expect(JSON.parse(line)).toMatchObject({ rounds: REPEATS, wrong: [] });
    expect((JSON.parse(line) as { members: number }).members).toBeGreaterThan(REPEATS);
    expect(await rounds.ended).toBe(0);
  }

  const timeoutMs = 60_000 + REPEATS * 3000;
  const rounds = String(REPEATS);

  test.each(['session', 'group', 'plain'])(
    `stops ${REPEATS} completely, and nothing else: %s`,
    (kind) => playRounds([], kind, rounds),
    timeoutMs,
  );

  for (const kind of ['cgroup', 'shared']) {
    itWithCgroup(
      `stops ${REPEATS} completely, and nothing else: ${kind === 'cgroup' ? 'in a cgroup of its own' : 'in a cgroup with a stranger'}`,
      () => playRounds([], kind, rounds, cgroupName()),
      timeoutMs,
    );
  }

  for (const kind of ['session', 'group', 'plain']) {
    itAsRoot(
      `stops ${REPEATS} completely, and nothing else, as a user without privileges: ${kind}`,
      () => playRounds(NOBODY, kind, rounds),
      timeoutMs,
    );
    itAsRoot(
      `stops ${REPEATS} completely, and nothing else, in a pid namespace: ${kind}`,
      () => playRounds(['unshare', '-pf', '--mount-proc'], kind, rounds),
      timeoutMs,
    );
  }

  itAsRoot(
    `in ${REPEATS} rounds a stranger that has the pid of a root, and leads a session with that number, receives no signal`,
    async () => {
      const reuse = join(REPOSITORY, 'test', 'programs', 'tree-reuse.cjs');
      const inside = ['-pf', '--mount-proc', process.execPath, reuse, rounds];
      const process_ = new LineProcess('unshare', inside);
      const [line = 'null'] = await process_.rest();
      expect(JSON.parse(line)).toMatchObject({ rounds: REPEATS, wrong: [] });
      expect((JSON.parse(line) as { reused: number }).reused).toBeGreaterThanOrEqual(REPEATS / 2);
    },
    timeoutMs,
  );
});
