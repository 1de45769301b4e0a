// Part of npm run lint: every symbol of the API reference has an example, or a link to one: an `@example`,
// an `@see` with a link to a page of docs/, whose section has a code block, or a `{@link}` to a symbol that
// has one of these.
// A function or a class is named in that section. `check-examples.mjs --list` prints each symbol with its file.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

import ts from 'typescript';

const { entryPoints } = JSON.parse(readFileSync('typedoc.json', 'utf8'));
const { options } = ts.parseJsonConfigFileContent(
  ts.readConfigFile('tsconfig.build.json', ts.sys.readFile).config,
  ts.sys,
  '.',
);
const program = ts.createProgram(entryPoints, options);
const checker = program.getTypeChecker();

/** What is exported from the entry points, by name. */
const found = new Map();
for (const entry of entryPoints) {
  const module = checker.getSymbolAtLocation(program.getSourceFile(entry));
  for (const symbol of checker.getExportsOfModule(module)) {
    const isAlias = (symbol.flags & ts.SymbolFlags.Alias) !== 0;
    const target = isAlias ? checker.getAliasedSymbol(symbol) : symbol;
    const isValue = (target.flags & ts.SymbolFlags.Value) !== 0;
    found.set(symbol.name, { declarations: target.declarations ?? [], isValue });
  }
}

const LINK = /\]\(([^)#\s]+\.md)(?:#([^)\s]+))?\)/;

/** What is wrong with the links of a symbol; `null`: one of them leads to an example. */
function complaint(name, { declarations, isValue }) {
  let why = 'has neither an @example nor an @see with a link to a page of docs/';
  for (const declaration of declarations) {
    const folder = dirname(declaration.getSourceFile().fileName);
    for (const tag of ts.getJSDocTags(declaration)) {
      if (tag.tagName.text === 'example') return null;
      if (tag.tagName.text !== 'see') continue;
      const [, path, anchor] = LINK.exec(tag.getText()) ?? [];
      if (path === undefined) continue;
      why = problemOf(join(folder, path), anchor, isValue ? name : '');
      if (why === null) return null;
    }
  }
  return why;
}

function linksToExample({ declarations }) {
  return declarations.flatMap(linkedNames).some((name) => {
    const other = found.get(name);
    return other !== undefined && complaint(name, other) === null;
  });
}

/** The symbols that a doc comment links to by `{@link NAME}`. */
function linkedNames(declaration) {
  const comments = ts.getJSDocCommentsAndTags(declaration).map((each) => each.getText());
  return [...comments.join('\n').matchAll(/\{@link (\w+)\}/g)].map(([, name]) => name);
}

function problemOf(path, anchor, name) {
  const page = relative('.', path);
  if (!existsSync(path)) return `links to ${page}, which does not exist`;
  const section = sectionOf(readFileSync(path, 'utf8'), anchor);
  if (section === null) return `links to #${anchor}, which ${page} does not have`;
  if (!section.includes(name)) return `links to a section of ${page} that does not name it`;
  return section.includes('```') ? null : `links to a section of ${page} that has no example`;
}

/** From a heading to the next one of its level or above; `null`: there is no such heading. */
function sectionOf(text, anchor) {
  if (anchor === undefined) return text;
  const parts = text.split(/^(?=#+ )/m);
  const at = parts.findIndex((part) => slugOf(part.split('\n')[0]) === anchor);
  if (at === -1) return null;
  const levelOf = (part) => /^#*/.exec(part)[0].length;
  const end = parts.findIndex((part, i) => i > at && levelOf(part) <= levelOf(parts[at]));
  return parts.slice(at, end === -1 ? undefined : end).join('');
}

function slugOf(heading) {
  return heading
    .replace(/^#+ /, '')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-');
}

const lists = process.argv.includes('--list');
for (const [name, symbol] of [...found].sort(([a], [b]) => a.localeCompare(b))) {
  const file = relative('.', symbol.declarations[0]?.getSourceFile().fileName ?? '');
  if (lists) {
    console.log(`${name} ${file}`);
    continue;
  }
  const why = complaint(name, symbol);
  if (why === null || linksToExample(symbol)) continue;
  console.error(`${file}: ${name} ${why}`);
  process.exitCode = 1;
}
