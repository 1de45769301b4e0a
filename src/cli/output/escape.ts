export { escapeText, toJsonLine } from '../../common/safe-text.js';
