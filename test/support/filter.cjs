// Jest's filter for scripts/test.mjs: EXITWATCH_FILES names the test files to run, one a line.
const wanted = new Set(process.env.EXITWATCH_FILES.split('\n'));

module.exports = (paths) => ({ filtered: paths.filter((path) => wanted.has(path)) });
