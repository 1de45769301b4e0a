// Jest's transform of the tests: takes the types out of one file at a time, and leaves the check of types to
// `npm run lint`. The product's code is not transformed: tests run what the package contains, in dist/.
const { createHash } = require('node:crypto');
const { readFileSync } = require('node:fs');

const ts = require('typescript');

const compilerOptions = {
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.CommonJS,
  esModuleInterop: true,
  // Jest reads these maps, so that the stack of a failure has the lines of the test.
  inlineSourceMap: true,
  inlineSources: true,
};

const OWN_TEXT = readFileSync(__filename);

module.exports = {
  getCacheKey: (text, fileName) =>
    createHash('sha256')
      .update(`${ts.version}\0${fileName}\0${text}\0`)
      .update(OWN_TEXT)
      .digest('hex'),
  process: (text, fileName) => ({
    code: ts.transpileModule(text, { fileName, compilerOptions }).outputText,
  }),
};
