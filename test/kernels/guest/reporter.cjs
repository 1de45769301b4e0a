const { basename } = require('node:path');

const nameOf = ({ path }) => basename(path, '.test.js');

/** Passes results to the parent process, which forwards them to the host. */
module.exports = class Reporter {
  onTestCaseStart(test, { fullName }) {
    process.send({ type: 'testing', file: nameOf(test), title: fullName });
  }

  onTestCaseResult(test, { fullName, status, failureMessages, duration }) {
    const failure = failureMessages.join('\n').slice(0, 4000);
    process.send({ type: 'test', file: nameOf(test), title: fullName, status, failure, duration });
  }

  onTestFileResult(test, result) {
    const { numPassingTests, numFailingTests, numPendingTests, testExecError } = result;
    // Jest announces no start for skipped tests.
    for (const { status, fullName } of result.testResults)
      if (status === 'pending')
        process.send({ type: 'test', file: nameOf(test), title: fullName, status });
    const counts = { passed: numPassingTests, failed: numFailingTests, skipped: numPendingTests };
    const error = testExecError == null ? null : String(result.failureMessage).slice(0, 4000);
    process.send({ type: 'file', file: nameOf(test), ...counts, error });
  }

  getLastError() {}
};
