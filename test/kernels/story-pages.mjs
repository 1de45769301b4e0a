// What the docs show of the stories of a guest.

/** What was done, by the name of the service. */
const WAYS = {
  scripted: 'a script sends SIGTERM',
  restarted: '`systemctl restart`',
  'hung-up': '`systemctl kill --signal=HUP`',
  hungry: 'its cgroup is out of memory',
  faulty: 'it overflows its stack',
  leaving: 'it exits with 3',
  recovered: 'it is killed, started again, and runs',
  victim: 'another unit kills it',
  contained: '`runc kill`, as `docker stop` does',
  crowded: '`kill -9 -1` in a container',
  last: 'the host shuts down',
};

const SCENES = {
  deploy: 'A deploy script kills it',
  restart: 'systemctl restart',
  container: 'It runs in a container, which is killed',
  memory: 'Its cgroup is out of memory',
};

/** The sections of the pages, each with its page and its name. */
export function sectionsOf(messages) {
  const ways = messages.filter(({ type }) => type === 'way');
  const scenes = messages.filter(({ type }) => type === 'scene');
  return [
    { path: 'docs/journal.md', name: 'ways', text: tableOf(ways) },
    ...scenes.map((scene) => ({
      ...{ path: 'docs/post-mortem.md', name: scene.name, text: blocksOf(scene) },
    })),
  ];
}

function tableOf(ways) {
  const rows = ways.map(({ name, why, journalctl }) => [
    WAYS[name],
    inWhy(why).map(code).join('<br>'),
    inLog(journalctl, name).map(code).join('<br>') || 'nothing',
  ]);
  const head = ['what was done', '`exitwatch why`', '`journalctl -u`'];
  const line = (cells) => `| ${cells.join(' | ')} |\n`;
  return `\n${[head, head.map(() => '---'), ...rows].map(line).join('')}\n`;
}

/** How it ended, who did it, who that was, and who may have asked for it. */
function inWhy([first, ...lines]) {
  const at = (name) => lines.findIndex((line) => line.startsWith(name.padEnd(9)));
  const by = at('by');
  const oom = lines.find((line) => line.startsWith('memory   killed'));
  return [
    first.replace(/^\d+ \(.*?\) /, '').replace(/ from .*|; .*/, ''),
    ...(oom === undefined
      ? [lines[by]?.slice(9).replace(/(, [\d.]+m?s before the end)? \(.*/, '')]
      : []),
    ...(oom === undefined ? [] : [oom.slice(9).replace(/ \(sure\)/, '')]),
    ...(lines[by + 1]?.startsWith(' ') && oom === undefined
      ? [lines[by + 1].trim().replace(/ < .*/, '')]
      : []),
    ...(at('for') < 0 ? [] : [lines[at('for')].slice(9).replace(/, uid.*/, ' (likely)')]),
    ...(at('now') < 0 ? [] : [lines[at('now')].slice(9).replace(/ since .*/, '')]),
  ].filter((text) => text !== undefined && text !== '');
}

/** Without the name of the unit, and without its start and stop. */
function inLog(lines, name) {
  return lines
    .map((line) => line.replace(`${name}.service: `, ''))
    .filter((line) => !/^(Started|Stopping|Stopped) |^Consumed /.test(line));
}

const code = (text) => `\`${text.replaceAll('|', '\\|')}\``;

function blocksOf({ name, act, seen }) {
  const blocks = seen.map(({ columns, command, lines }) => {
    const shown = lines.filter((line) => line !== 'END' && !line.startsWith('waiting for'));
    return `\`\`\`console\n$ ${command}   # ${columns} columns\n${shown.join('\n')}\n\`\`\`\n`;
  });
  return `\n### ${SCENES[name]}\n\n\`${act}\`\n\n${blocks.join('\n')}\n`;
}
