import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { DEFAULT_STATE_DIR } from './journal-dirs.js';

const NAME = 'exitwatch-record.service';
const FOLDER = '/etc/systemd/system';

/** Absolute paths. */
interface UnitFolders {
  stateDir: string;
  pinDir: string;
}

export interface UnitOptions extends UnitFolders {
  group: string | undefined;
  /** The options of `record`. */
  args: readonly string[];
}

/**
 * The unit that runs `record`. It starts before all that is not needed for booting, and so ends after it: it sees
 * who ended what at shutdown.
 */
export function recordUnit({ stateDir, pinDir, group, args }: UnitOptions): string {
  const main = realpathSync(join(__dirname, 'main.js'));
  const command = [process.execPath, main, 'record', ...args].map(quote).join(' ');
  const capabilities = ['CAP_BPF', 'CAP_PERFMON', 'CAP_NET_ADMIN', 'CAP_DAC_READ_SEARCH'];
  if (group !== undefined) capabilities.push('CAP_CHOWN');
  return [
    `# ${join(FOLDER, NAME)}`,
    '[Unit]',
    'Description=Which processes end, how, and who ended them',
    'DefaultDependencies=no',
    `RequiresMountsFor=${quote(stateDir)}`,
    'After=sysinit.target',
    'Before=basic.target shutdown.target',
    'Conflicts=shutdown.target',
    '# It is started again for as long as that takes.',
    'StartLimitIntervalSec=0',
    '',
    '[Service]',
    'Type=notify',
    `ExecStart=${command}`,
    ...(stateDir === DEFAULT_STATE_DIR
      ? ['StateDirectory=exitwatch', `StateDirectoryMode=${group === undefined ? '0700' : '0750'}`]
      : []),
    'Restart=always',
    'RestartSec=1',
    'WatchdogSec=30',
    'OOMScoreAdjust=-900',
    '# For kernels before 5.11.',
    'LimitMEMLOCK=infinity',
    '# Where there is no BPF file system, systemd keeps the recorder over a restart.',
    'FileDescriptorStoreMax=64',
    `CapabilityBoundingSet=${capabilities.join(' ')}`,
    'NoNewPrivileges=yes',
    '',
    '[Install]',
    'WantedBy=basic.target',
    '',
    '# What --uninstall needs to know.',
    '[X-Exitwatch]',
    `StateDir=${stateDir}`,
    `PinDir=${pinDir}`,
    '',
  ].join('\n');
}

/** Installs and starts it. Returns what went wrong; `null`: nothing. */
export function installUnit(options: UnitOptions): string | null {
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(join(FOLDER, NAME), recordUnit(options), { mode: 0o644 });
  return systemctl('daemon-reload') ?? systemctl('enable', NAME) ?? systemctl('restart', NAME);
}

/** Where the installed one keeps what it knows; `null`: there is none, or it does not say. */
export function installedFolders(): UnitFolders | null {
  const path = join(FOLDER, NAME);
  const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
  const [stateDir, pinDir] = ['StateDir', 'PinDir'].map(
    (key) => new RegExp(`^${key}=(/.*)$`, 'm').exec(text)?.[1],
  );
  return stateDir === undefined || pinDir === undefined ? null : { stateDir, pinDir };
}

/** Stops and removes it. Returns what went wrong; `null`: nothing. */
export function uninstallUnit(): string | null {
  const path = join(FOLDER, NAME);
  if (!existsSync(path)) return `${path} does not exist`;
  const failure = systemctl('disable', '--now', NAME);
  if (failure !== null) return failure;
  rmSync(path);
  return systemctl('daemon-reload');
}

function systemctl(...args: string[]): string | null {
  const { error, status, stderr } = spawnSync('systemctl', args, { encoding: 'utf8' });
  if (error !== undefined) return `cannot run systemctl: ${error.message}`;
  return status === 0 ? null : `systemctl ${args.join(' ')} failed: ${stderr.trim()}`;
}

/** A word of a command line in a unit: systemd.syntax(7), systemd.unit(5) for `%`. */
function quote(word: string): string {
  const escaped = word.replace(/[\\"]/g, '\\$&').replaceAll('%', '%%').replaceAll('$', '$$$$');
  return /^[\w./:=,@%+-]+$/.test(word) ? escaped : `"${escaped}"`;
}
