const { default: TimedEnvironment } = require('/exitwatch/test/support/environment.js');

/** An emulated machine is slower than a real one. Keep this below the host's limit (boot.mjs). */
const PATIENCE = process.arch === 'arm64' ? 12 : 6;

module.exports = class PatientEnvironment extends TimedEnvironment {
  async handleTestEvent(event, state) {
    await super.handleTestEvent(event, state);
    if (event.name !== 'run_start') return;
    state.testTimeout *= PATIENCE;
    const visit = (block) => {
      for (const child of block.children) {
        if (child.type === 'describeBlock') visit(child);
        else if (child.timeout !== undefined) child.timeout *= PATIENCE;
      }
    };
    visit(state.rootDescribeBlock);
  }
};
