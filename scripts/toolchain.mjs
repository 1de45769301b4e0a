// What the package itself has for compiling the addon and the keeper, before there is a dist/.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

import ts from 'typescript';

const require = createRequire(import.meta.url);
const compilerOptions = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.CommonJS };

/** Loads a file of src/, and what it imports. */
function loadSource(path) {
  const { outputText } = ts.transpileModule(readFileSync(path, 'utf8'), { compilerOptions });
  const load = (name) =>
    name.startsWith('.')
      ? loadSource(join(dirname(path), name.replace(/\.js$/, '.ts')))
      : require(name);
  const exports = {};
  new Function('require', 'exports', outputText)(load, exports);
  return exports;
}

export const { missingTools } = loadSource(join('src', 'cli', 'toolchain.ts'));
export const { compileKeeper } = loadSource(join('src', 'cli', 'compile-keeper.ts'));
