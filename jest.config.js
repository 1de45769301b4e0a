/** @type {import('jest').Config} */
module.exports = {
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  modulePathIgnorePatterns: ['<rootDir>/build/'],
  transform: { '\\.ts$': ['ts-jest', { tsconfig: 'tsconfig.json', diagnostics: false }] },
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  testEnvironment: '<rootDir>/test/support/environment.ts',
  globalSetup: '<rootDir>/test/support/compile-programs.ts',
  setupFilesAfterEnv: ['<rootDir>/test/support/after-each-file.ts'],
  testTimeout: 120_000,
  // A monitor that a failed test left open must not keep the run from ending.
  forceExit: true,
  // One file at a time: storms want the machine, and reused pids are easier to tell apart.
  maxWorkers: 1,
};
