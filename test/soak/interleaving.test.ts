// Lane: storm

import { join } from 'node:path';

import { itAsRoot } from '../support/privilege';
import { LineProcess, REPOSITORY } from '../support/programs';
import { ROUNDS } from '../support/rounds';

const REPEATS = 100 * ROUNDS;

itAsRoot(
  `in ${REPEATS} rounds of stopping a process that ends at the same time, the stranger that gets its pid at once receives no signal`,
  async () => {
    const script = join(REPOSITORY, 'test', 'programs', 'interleaving.cjs');
    const inside = ['-pf', '--mount-proc', process.execPath, script, String(REPEATS)];
    const rounds = new LineProcess('unshare', inside);
    const [line = 'null'] = await rounds.rest();
    expect(JSON.parse(line)).toMatchObject({ rounds: REPEATS, wrong: [] });
    expect((JSON.parse(line) as { reused: number }).reused).toBeGreaterThan(REPEATS / 2);
    expect(await rounds.ended).toBe(0);
  },
  60_000 + REPEATS * 100,
);
