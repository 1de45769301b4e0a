// Compiles the keeper into build/Release. Arguments are flags for the compiler, instead of those for a static program.
import { join } from 'node:path';

import { compileKeeper } from './toolchain.mjs';

const flags = process.argv.slice(2);
const target = join('build', 'Release', 'exitwatch-keeper');
if (!compileKeeper('.', target, flags.length > 0 ? { flags } : {})) {
  console.error('exitwatch: the build failed at the keeper');
  process.exit(1);
}
