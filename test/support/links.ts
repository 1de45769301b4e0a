import { dirname, join, normalize } from 'node:path';

/** The files of pages and of their links: a clone, or a package. */
export interface LinkedFiles {
  read(page: string): string;
  /** Whether a file or folder with this path exists. */
  has(path: string): boolean;
  /** The prefix of URLs that link to the repository itself. */
  repository: string;
}

/** Removes code, in which text may look like a link. */
const withoutCode = (text: string) => text.replace(/^```.*?^```$/gms, '').replace(/`[^`]*`/g, '');

/** The targets of a page's links, inline and by reference. */
export function linksOf(text: string): string[] {
  const prose = withoutCode(text);
  const inline = [...prose.matchAll(/\]\(([^)\s]+)\)/g)];
  const references = [...prose.matchAll(/^\[[^\]]+\]: (\S+)$/gm)];
  return [...inline, ...references].map(([, target = '']) => target);
}

/** The anchors that GitHub makes of a page's headings. */
export function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading = ''] of text.replace(/^```.*?^```$/gms, '').matchAll(/^#+ (.*)$/gm)) {
    const slug = heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-');
    let anchor = slug;
    for (let i = 1; anchors.has(anchor); i++) anchor = `${slug}-${i}`;
    anchors.add(anchor);
  }
  return anchors;
}

/** The broken links of these pages, each as "page: target". */
export function brokenLinks(pages: readonly string[], files: LinkedFiles): string[] {
  return pages.flatMap((page) =>
    linksOf(files.read(page))
      .filter((target) => !leadsSomewhere(page, target, files))
      .map((target) => `${page}: ${target}`),
  );
}

function leadsSomewhere(page: string, target: string, files: LinkedFiles): boolean {
  if (target.startsWith(files.repository)) {
    const [, path] = /^\/blob\/[^/]+\/([^#]+)/.exec(target.slice(files.repository.length)) ?? [];
    return path === undefined || files.has(path);
  }
  if (/^https?:/.test(target)) return true; // another site
  const [path = '', anchor] = target.split('#');
  const file = path === '' ? page : normalize(join(dirname(page), path)).replace(/\/$/, '');
  if (file.startsWith('..') || !files.has(file)) return false;
  return anchor === undefined || (file.endsWith('.md') && anchorsOf(files.read(file)).has(anchor));
}
