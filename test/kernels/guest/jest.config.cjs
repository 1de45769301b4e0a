/** @type {import('jest').Config} */
module.exports = {
  rootDir: '/exitwatch',
  roots: ['<rootDir>/test'],
  testMatch: ['**/*.test.js'],
  transform: {},
  haste: { enableSymlinks: false },
  testEnvironment: '/guest/patient-environment.cjs',
  reporters: ['/guest/reporter.cjs'],
  testTimeout: 60_000,
  forceExit: true,
  maxWorkers: 1,
};
