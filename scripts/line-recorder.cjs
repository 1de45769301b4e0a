// What scripts/line-probes.mjs puts into the code calls this: each probe's number is appended to a file
// once per process, before the probe's statement runs. It is on disk even if the process is killed next.
const { closeSync, constants, openSync, readlinkSync, writeSync } = require('node:fs');

const seen = new Set();
let file;

/** `now` is a link to the folder of the test file that runs; a process keeps the one it began with. */
module.exports = (now) => {
  try {
    file ??= `${readlinkSync(now)}/hits`;
  } catch {
    file = ''; // a file system of its own
  }
  return (id) => {
    if (seen.has(id)) return;
    try {
      // Not kept open: tests count open files. Not created: another user may own the file.
      const hits = openSync(file, constants.O_WRONLY | constants.O_APPEND);
      try {
        writeSync(hits, `${id}\n`);
      } finally {
        closeSync(hits);
      }
      seen.add(id);
    } catch {
      // No descriptor is left, or the test file has ended: the code must not notice.
    }
  };
};
