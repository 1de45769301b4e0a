/** For the files here, each of which leaves something: see test/leaks.test.ts. */
module.exports = {
  ...require('../../../jest.config.js'),
  rootDir: '../../..',
  testMatch: ['<rootDir>/test/support/leaks/*.leak.ts'],
  globalSetup: '<rootDir>/test/support/leaks/begin-run.ts',
  testEnvironmentOptions: { patienceMs: 300 },
};
