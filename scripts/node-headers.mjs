import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * The environment in which node-gyp finds Node's headers. They are beside this node if it was
 * installed with them, as Linux distributions do. Otherwise node-gyp downloads them, unless the
 * environment says where they are.
 */
export function environmentWithHeaders() {
  const prefix = dirname(dirname(process.execPath));
  const hasHeaders = existsSync(join(prefix, 'include', 'node', 'node_api.h'));
  return hasHeaders ? { npm_config_nodedir: prefix, ...process.env } : { ...process.env };
}
