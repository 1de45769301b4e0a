import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import * as supervisorFace from '../../../src/supervisor/index';
import { REPOSITORY } from '../../support/programs';
import { SupervisorHost } from '../../support/supervisor';

type Run = (face: object, log: (line: unknown) => void) => Promise<supervisorFace.Supervisor>;

/** A program of the page as a function, in another directory. */
function snippet(number: number, stateDir: string): Run {
  const page = readFileSync(join(REPOSITORY, 'docs', 'services.md'), 'utf8');
  const text = [...page.matchAll(/^```ts\n([\s\S]*?)^```/gm)][number]?.[1] ?? '';
  const body = text
    .replace(/^import .*$/gm, '')
    .replaceAll('/var/lib/my-app', stateDir)
    .replaceAll('console.log', 'log')
    .replaceAll('new Supervisor', 'new face.Supervisor');
  // eslint-disable-next-line @typescript-eslint/no-implied-eval
  return new Function(
    'face',
    'log',
    `return (async () => {${body}\nreturn supervisor;})()`,
  ) as unknown as Run;
}

it('the programs of the page do what it says', async () => {
  await using host = await SupervisorHost.open();
  await host.supervisor.close();
  const lines: unknown[] = [];
  const log = (line: unknown) => lines.push(line);
  const first = await snippet(0, host.stateDir)(supervisorFace, log);
  await new Promise((resolve) => first.once('stopped', resolve));
  expect(lines).toEqual(['job: 0; restart: false, because it exited with 0, which is a success']);
  await first.close();
  lines.length = 0;
  await snippet(1, host.stateDir)(supervisorFace, log);
  expect(lines).toEqual(['running', true]);
});
