// Checks the C and C++ sources against .clang-format; --write reformats them.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

const TOOLS = ['clang-format-19', 'clang-format'];
const tool = TOOLS.find(
  (name) => / version 19\./.exec(spawnSync(name, ['--version']).stdout ?? '') !== null,
);
if (tool === undefined) {
  const message = 'clang-format 19 is missing (Debian: clang-format-19): the native code';
  if (process.env.CI) {
    console.error(`${message} cannot be checked`);
    process.exit(1);
  }
  console.warn(`${message} was not checked`);
  process.exit(0);
}
const files = ['bench', 'native', 'test'].flatMap((folder) =>
  readdirSync(folder, { recursive: true })
    .filter((name) => /\.(cc|h|c)$/.test(name))
    .map((name) => join(folder, name)),
);
const mode = process.argv.includes('--write') ? ['-i'] : ['--dry-run', '--Werror'];
process.exit(spawnSync(tool, [...mode, ...files], { stdio: 'inherit' }).status ?? 1);
