/** @type {import('jest').Config} */
module.exports = {
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  modulePathIgnorePatterns: ['<rootDir>/build/'],
  transform: { '\\.ts$': '<rootDir>/test/support/transform.cjs' },
  // The tests run what `npm run build` has compiled.
  moduleNameMapper: { '^(?:\\.\\./)+src(/.*)?$': '<rootDir>/dist$1' },
  testEnvironment: '<rootDir>/test/support/environment.ts',
  reporters: ['default', '<rootDir>/test/support/reporter.cjs'],
  globalSetup: '<rootDir>/test/support/global-setup.ts',
  globalTeardown: '<rootDir>/test/support/global-teardown.ts',
  testTimeout: 120_000,
  // One file at a time: storms want the machine, and reused pids are easier to tell apart.
  maxWorkers: 1,
};
