import { join } from 'node:path';

import { itAsRoot } from './support/privilege';
import { LineProcess } from './support/programs';

/** 10,000 by `npm run test:soak`. */
const ROUNDS = Number(process.env['EXITWATCH_ROUNDS'] ?? 6) * 50;

itAsRoot(
  `in ${ROUNDS} rounds of stopping a process that ends anyhow, whose pid is a stranger’s at once, the stranger gets no signal`,
  async () => {
    const script = join(__dirname, 'programs', 'interleaving.cjs');
    const inside = ['-pf', '--mount-proc', process.execPath, script, String(ROUNDS)];
    const rounds = new LineProcess('unshare', inside);
    const [line = 'null'] = await rounds.rest();
    expect(JSON.parse(line)).toMatchObject({ rounds: ROUNDS, wrong: [] });
    expect((JSON.parse(line) as { reused: number }).reused).toBeGreaterThan(ROUNDS / 2);
    expect(await rounds.ended).toBe(0);
  },
  60_000 + ROUNDS * 100,
);
