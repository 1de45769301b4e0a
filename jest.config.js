/** @type {import('jest').Config} */
module.exports = {
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  modulePathIgnorePatterns: ['<rootDir>/build/'],
  transform: { '\\.ts$': '<rootDir>/test/support/transform.cjs' },
  // The tests run what `npm run build` has compiled.
  moduleNameMapper: { '^(?:\\.\\./)+src(/.*)?$': '<rootDir>/dist$1' },
  testEnvironment: '<rootDir>/test/support/environment.ts',
  globalSetup: '<rootDir>/test/support/compile-programs.ts',
  reporters: ['default', '<rootDir>/test/support/reporter.cjs'],
  setupFilesAfterEnv: ['<rootDir>/test/support/after-each-file.ts'],
  testTimeout: 120_000,
  // A monitor that a failed test left open must not keep the run from ending.
  forceExit: true,
  // One file at a time: storms want the machine, and reused pids are easier to tell apart.
  maxWorkers: 1,
};
