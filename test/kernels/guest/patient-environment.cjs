const { TestEnvironment } = require('/exitwatch/node_modules/jest-environment-node');

/** An emulated machine is slower than a real one; less than the host has patience (boot.mjs). */
const PATIENCE = 3;

module.exports = class PatientEnvironment extends TestEnvironment {
  handleTestEvent({ name }, state) {
    if (name !== 'run_start') return;
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
