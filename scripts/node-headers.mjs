import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * The environment in which node-gyp finds Node's headers: beside this node where it has them, as
 * Linux distributions install them. Otherwise, unless it is told, node-gyp downloads them.
 */
export function environmentWithHeaders() {
  const prefix = dirname(dirname(process.execPath));
  const hasHeaders = existsSync(join(prefix, 'include', 'node', 'node_api.h'));
  return hasHeaders ? { npm_config_nodedir: prefix, ...process.env } : { ...process.env };
}
