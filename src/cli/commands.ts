/** A command of the command line. */
export interface Command {
  run: (args: readonly string[]) => Promise<number>;
  help: string;
}

/** Each is loaded when it is used, so that none waits for the modules of the others. */
export const COMMANDS = new Map<string, () => Promise<Command>>([
  [
    'watch',
    async () => {
      const { watchCommand: run, WATCH_HELP: help } = await import('./commands/watch.js');
      return { run, help };
    },
  ],
  [
    'wait',
    async () => {
      const { waitCommand: run, WAIT_HELP: help } = await import('./commands/wait.js');
      return { run, help };
    },
  ],
  [
    'stop',
    async () => {
      const { stopCommand: run, STOP_HELP: help } = await import('./commands/stop.js');
      return { run, help };
    },
  ],
  [
    'alive',
    async () => {
      const { aliveCommand: run, ALIVE_HELP: help } = await import('./commands/alive.js');
      return { run, help };
    },
  ],
  [
    'record',
    async () => {
      const { recordCommand: run, RECORD_HELP: help } = await import('./commands/record.js');
      return { run, help };
    },
  ],
  [
    'why',
    async () => {
      const { whyCommand: run, WHY_HELP: help } = await import('./commands/why.js');
      return { run, help };
    },
  ],
  [
    'history',
    async () => {
      const { historyCommand: run, HISTORY_HELP: help } = await import('./commands/history.js');
      return { run, help };
    },
  ],
  [
    'supervise',
    async () => {
      const { superviseCommand: run, SUPERVISE_HELP: help } =
        await import('./commands/supervise.js');
      return { run, help };
    },
  ],
  [
    'service list',
    async () => {
      const { serviceListCommand: run, SERVICE_LIST_HELP: help } =
        await import('./commands/service-list.js');
      return { run, help };
    },
  ],
  [
    'service start',
    async () => {
      const { serviceStartCommand: run, SERVICE_START_HELP: help } =
        await import('./commands/service-act.js');
      return { run, help };
    },
  ],
  [
    'service stop',
    async () => {
      const { serviceStopCommand: run, SERVICE_STOP_HELP: help } =
        await import('./commands/service-act.js');
      return { run, help };
    },
  ],
  [
    'service restart',
    async () => {
      const { serviceRestartCommand: run, SERVICE_RESTART_HELP: help } =
        await import('./commands/service-act.js');
      return { run, help };
    },
  ],
  [
    'service logs',
    async () => {
      const { serviceLogsCommand: run, SERVICE_LOGS_HELP: help } =
        await import('./commands/service-logs.js');
      return { run, help };
    },
  ],
  [
    'service why',
    async () => {
      const { serviceWhyCommand: run, SERVICE_WHY_HELP: help } =
        await import('./commands/service-why.js');
      return { run, help };
    },
  ],
  [
    'service apply',
    async () => {
      const { serviceApplyCommand: run, SERVICE_APPLY_HELP: help } =
        await import('./commands/service-apply.js');
      return { run, help };
    },
  ],
  [
    'service import',
    async () => {
      const { serviceImportCommand: run, SERVICE_IMPORT_HELP: help } =
        await import('./commands/service-import.js');
      return { run, help };
    },
  ],
  [
    'service upgrade-keeper',
    async () => {
      const { serviceUpgradeKeeperCommand: run, SERVICE_UPGRADE_KEEPER_HELP: help } =
        await import('./commands/service-apply.js');
      return { run, help };
    },
  ],
  [
    'vm watch',
    async () => {
      const { vmWatchCommand: run, VM_WATCH_HELP: help } = await import('./commands/vm-watch.js');
      return { run, help };
    },
  ],
  [
    'vm daemon',
    async () => {
      const { vmDaemonCommand: run, VM_DAEMON_HELP: help } =
        await import('./commands/vm-daemon.js');
      return { run, help };
    },
  ],
  [
    'vm status',
    async () => {
      const { vmStatusCommand: run, VM_STATUS_HELP: help } =
        await import('./commands/vm-status.js');
      return { run, help };
    },
  ],
  [
    'vm powerdown',
    async () => {
      const { vmPowerdownCommand: run, VM_POWERDOWN_HELP: help } =
        await import('./commands/vm-request.js');
      return { run, help };
    },
  ],
  [
    'vm quit',
    async () => {
      const { vmQuitCommand: run, VM_QUIT_HELP: help } = await import('./commands/vm-request.js');
      return { run, help };
    },
  ],
  [
    'vm stop',
    async () => {
      const { vmStopCommand: run, VM_STOP_HELP: help } = await import('./commands/vm-request.js');
      return { run, help };
    },
  ],
  [
    'vm kill',
    async () => {
      const { vmKillCommand: run, VM_KILL_HELP: help } = await import('./commands/vm-request.js');
      return { run, help };
    },
  ],
  [
    'vm migrate',
    async () => {
      const { vmMigrateCommand: run, VM_MIGRATE_HELP: help } =
        await import('./commands/vm-migrate.js');
      return { run, help };
    },
  ],
  [
    'intent add',
    async () => {
      const { intentAddCommand: run, INTENT_ADD_HELP: help } = await import('./commands/intent.js');
      return { run, help };
    },
  ],
  [
    'intent settle',
    async () => {
      const { intentSettleCommand: run, INTENT_SETTLE_HELP: help } =
        await import('./commands/intent.js');
      return { run, help };
    },
  ],
  [
    'memory',
    async () => {
      const { memoryCommand: run, MEMORY_HELP: help } = await import('./commands/memory.js');
      return { run, help };
    },
  ],
  [
    'doctor',
    async () => {
      const { doctorCommand: run, DOCTOR_HELP: help } = await import('./commands/doctor.js');
      return { run, help };
    },
  ],
  [
    'build-native',
    async () => {
      const { buildNativeCommand: run, BUILD_NATIVE_HELP: help } =
        await import('./commands/build-native.js');
      return { run, help };
    },
  ],
]);
