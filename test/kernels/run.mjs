// npm run test:kernels: boots Debian's kernels, and runs tests inside; see docs/kernels.md.
//
//   node test/kernels/run.mjs [--package CHECKOUT] [--add PATH]... NAME --command 'COMMAND'
//
// runs a command as root in that kernel, with the package that was built in a checkout, and with files of
// yours in /job.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { boot } from './boot.mjs';
import { fetchKernel } from './debian-kernel.mjs';
import { buildImage, jobArchive, REPOSITORY } from './image.mjs';
import { KERNELS } from './kernels.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    add: { type: 'string', multiple: true, default: [] },
    command: { type: 'string' },
    package: { type: 'string', default: REPOSITORY },
  },
});
const names = positionals.length > 0 ? positionals : Object.keys(KERNELS);
const images = new Map();

function imageFor(arch) {
  if (!images.has(arch)) images.set(arch, buildImage({ arch, checkout: values.package }));
  return images.get(arch);
}

async function runCommand(name) {
  const { arch, file, version } = fetchKernel(name);
  const folder = mkdtempSync(join(tmpdir(), 'exitwatch-kernel-'));
  try {
    const initramfs = join(folder, 'initramfs');
    writeFileSync(
      initramfs,
      Buffer.concat([imageFor(arch), jobArchive({ command: values.command }, values.add)]),
    );
    const consoleFile = join(folder, 'console');
    let code;
    const onMessage = (message) => {
      if (message.type === 'kernel') console.error(`linux ${message.release} (${version})`);
      if (message.type === 'output') process.stdout.write(message.text);
      if (message.type === 'end') code = message.code;
    };
    await boot({ arch, kernel: file, initramfs, consoleFile, onMessage });
    if (code === undefined) {
      console.error(readFileSync(consoleFile, 'latin1').slice(-4000));
      console.error('the guest has ended without an answer');
    }
    return code ?? 'no answer';
  } finally {
    rmSync(folder, { recursive: true });
  }
}

for (const name of names) {
  const code = await runCommand(name);
  if (code !== 0) process.exitCode = 1;
}
