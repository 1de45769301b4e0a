// A reporter of Jest that appends what a file's tests said to the file that EXITWATCH_RESULTS names, one JSON
// object per test file: see scripts/test.mjs and scripts/test-map.mjs.
const { appendFileSync } = require('node:fs');
const { relative } = require('node:path');

module.exports = class ResultsReporter {
  onTestFileResult({ path }, { testResults, testExecError, failureMessage, perfStats }) {
    const target = process.env.EXITWATCH_RESULTS;
    if (target === undefined) return;
    const count = (wanted) => testResults.filter(({ status }) => status === wanted).length;
    const result = {
      path: relative('', path),
      seconds: perfStats.runtime / 1000,
      passed: count('passed'),
      skipped: count('pending'),
      failed: count('failed') + (testExecError == null ? 0 : 1),
      message: failureMessage ?? '',
    };
    appendFileSync(target, `${JSON.stringify(result)}\n`);
  }
};
