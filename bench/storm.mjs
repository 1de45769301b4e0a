import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const HERE = dirname(fileURLToPath(import.meta.url));

/** Exits before the measurement, to warm up: half at once, half paced. */
export const WARM_UP = 8000;

/** Compiles a program into a folder, which exists. */
export function compile(folder, name, source) {
  const program = join(folder, name);
  execFileSync(process.env.CC ?? 'cc', ['-O2', source, '-o', program], { stdio: 'inherit' });
  return program;
}

/** What ends processes: the generator. */
export function compileStorm(folder) {
  return compile(folder, 'storm', join(HERE, '..', 'test', 'programs', 'storm.c'));
}

/** Runs the generator. Resolves with how long it took, by its own clock, and when it began. */
export async function generate(storm, args) {
  const child = spawn(storm, args);
  child.stdout.setEncoding('latin1');
  let text = '';
  child.stdout.on('data', (chunk) => (text += chunk));
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`the generator exited with ${code}`);
  const times = text
    .trim()
    .split('\n')
    .map((line) => Number(line.split(' ')[1]));
  return { firstNs: times[0], tookNs: times.at(-1) - times[0], exits: times.length };
}

/** Until V8 has compiled what it needs. */
export async function warmUp(storm) {
  await generate(storm, [String(WARM_UP / 2)]);
  await generate(storm, [String(WARM_UP / 2), '4000']);
  await setTimeout(300);
}
