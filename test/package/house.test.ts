// Lane: patient

import { spawnSync } from 'node:child_process';
import { appendFileSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ROOT = join(__dirname, '..', '..');

let copy: string;

beforeEach(() => {
  copy = mkdtempSync(join(tmpdir(), 'exitwatch-house-'));
  for (const folder of ['src', 'native']) {
    cpSync(join(ROOT, folder), join(copy, folder), { recursive: true });
  }
});

afterEach(() => {
  rmSync(copy, { recursive: true });
});

/** Runs a check of scripts/ on the copy. Returns its messages and exit code. */
function check(script: string): { code: number | null; says: string } {
  const { status, stderr } = spawnSync(process.execPath, [join(ROOT, 'scripts', script), copy], {
    encoding: 'utf8',
  });
  return { code: status, says: stderr };
}

const append = (file: string, text: string) => {
  appendFileSync(join(copy, file), text);
};

const write = (file: string, text: string) => {
  mkdirSync(join(copy, file, '..'), { recursive: true });
  writeFileSync(join(copy, file), text);
};

const imports = () => check('check-imports.mjs');

test('every file imports only from its own floor or from lower ones', () => {
  expect(imports()).toEqual({ code: 0, says: '' });
});

test('an import from a higher floor is refused', () => {
  append('src/trace/siginfo.ts', "import type { Ready } from '../monitor/options.js';\n");
  const { code, says } = imports();
  expect(code).toBe(1);
  expect(says).toContain('src/trace/siginfo.ts imports upwards: src/monitor/options.ts\n');
});

test('an #include from a higher floor is refused', () => {
  append('native/core/btf.cc', '#include "napi/values.h"\n');
  const { code, says } = imports();
  expect(code).toBe(1);
  expect(says).toContain('native/core/btf.cc imports upwards: native/napi/values.h\n');
});

test('two files that import each other are refused as a cycle', () => {
  write('src/common/one.ts', "import { two } from './two.js';\nexport const one = () => two;\n");
  write('src/common/two.ts', "export { one as two } from './one.js';\n");
  expect(imports()).toEqual({
    code: 1,
    says: 'files import in a circle: src/common/one.ts → src/common/two.ts → src/common/one.ts\n',
  });
});

test('imports of types count as a cycle, too', () => {
  write('src/common/one.ts', "export type One = import('./two.js').Two[];\n");
  write('src/common/two.ts', "import type { One } from './one.js';\nexport type Two = One | 2;\n");
  expect(imports().says).toMatch(/^files import in a circle: /);
});

test('two headers that include each other are refused as a cycle', () => {
  write('native/core/one.h', '#include "core/two.h"\n');
  write('native/core/two.h', '#include "core/one.h"\n');
  expect(imports().says).toMatch(/^files import in a circle: native\/core\/one\.h → /);
});

test('two folders of one floor that import from each other are refused as a cycle', () => {
  write('src/cli/a/one.ts', "export { four } from '../b/four.js';\n");
  write('src/cli/a/two.ts', 'export const two = 2;\n');
  write('src/cli/b/three.ts', "export { two } from '../a/two.js';\n");
  write('src/cli/b/four.ts', 'export const four = 4;\n');
  expect(imports().says).toBe('folders import in a circle: src/cli/a → src/cli/b → src/cli/a\n');
});

test('rooms of one floor may not import each other', () => {
  write('src/journal/row.ts', "export { VmMonitor } from '../vm/index.js';\n");
  expect(imports().says).toBe(
    'src/journal/row.ts imports from another folder on its own floor: src/vm/index.ts\n',
  );
});

test('a file in no room is refused', () => {
  write('src/misc/thing.ts', 'export {};\n');
  expect(imports().says).toMatch(/^src\/misc\/thing\.ts is in no known folder; /);
});

const SIZES = 'check-sizes.mjs';
const long = (top: string) => `${top}\n${'//\n'.repeat(300)}`;

test('a file of more than 300 lines must say at its top why it is one idea', () => {
  write('src/common/long.ts', long('/** A list. */'));
  write('native/core/long.h', long('// Says nothing of it.'));
  write(
    'native/core/table.h',
    long('// One idea: the table of what the kernel may refuse, in one order.'),
  );
  const { code, says } = check(SIZES);
  expect(code).toBe(1);
  expect(says).toContain('src/common/long.ts has 301 lines, but no "One idea: …"');
  expect(says).toContain('native/core/long.h has 301 lines, but no "One idea: …"');
  expect(says).not.toContain('table.h');
});

test('a class of more than 20 fields is refused in either language', () => {
  const numbers = Array.from({ length: 21 }, (_, index) => index);
  const fields = (line: (index: number) => string) => numbers.map(line).join('\n');
  write('src/common/wide.ts', `export class Wide {\n${fields((n) => `  #f${n} = ${n};`)}\n}\n`);
  write(
    'native/core/wide.h',
    `class Wide {\n private:\n${fields((n) => `  int f${n}_ = 0;`)}\n};\n`,
  );
  const { code, says } = check(SIZES);
  expect(code).toBe(1);
  expect(says).toContain('src/common/wide.ts: class Wide has 21 fields');
  expect(says).toContain('native/core/wide.h: class Wide has 21 fields');
});
