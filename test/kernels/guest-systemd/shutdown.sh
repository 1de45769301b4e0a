#!/bin/sh
# Run by systemd-shutdown, when nothing runs any more: tells of the service that the shutdown ended.
exec >/tmp/last.json
/usr/bin/node -e '
const { spawnSync } = require("node:child_process");
const said = (...words) => {
  const { stdout, stderr } = spawnSync(words[0], words.slice(1), { encoding: "utf8" });
  return (stdout + stderr).trimEnd().split("\n");
};
const why = said(process.execPath, "/exitwatch/dist/cli/main.js", "why", "last.service");
const journalctl = said("journalctl", "--no-pager", "--output=cat", "--unit=last.service");
const line = JSON.stringify({ type: "way", name: "last", act: "systemctl poweroff", why, journalctl });
require("node:fs").writeFileSync("/dev/ttyS1", line + "\n" + JSON.stringify({ type: "end" }) + "\n");
'
