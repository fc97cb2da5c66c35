// A reporter for vitest that tells the test run what happens: see vitest-job.mjs.
import { relative } from "node:path";

/**
 * @typedef {{ file: string, test: string | null, text: string }} Failure `test`: null for the file
 * @typedef {{ type: "planned", files: string[], patienceMs: number }
 *   | { type: "started", file: string }
 *   | { type: "collected", file: string, patienceMs: number }
 *   | { type: "test started", file: string, test: string }
 *   | { type: "test ended", file: string, test: string }
 *   | { type: "progress" }
 *   | { type: "failed", failure: Failure }
 *   | { type: "ended", file: string, passed: number, skipped: number, ms: number }} Event
 * `patienceMs`: how long a test, with a hook, may take before vitest itself ends it.
 */

export class VitestEvents {
  /** @type {Set<string>} files that have not ended */
  #running = new Set();

  /** @param {readonly import("vitest/node").TestSpecification[]} specifications */
  onTestRunStart(specifications) {
    const patiences = specifications.map(({ project }) => {
      return project.config.testTimeout + project.config.hookTimeout;
    });
    tell({
      type: "planned",
      files: specifications.map(({ moduleId }) => nameOf(moduleId)),
      patienceMs: Math.max(0, ...patiences.filter(Number.isFinite)),
    });
  }

  /** @param {import("vitest/node").TestModule} module */
  onTestModuleStart({ moduleId }) {
    this.#running.add(moduleId);
    tell({ type: "started", file: nameOf(moduleId) });
  }

  /** @param {import("vitest/node").TestModule} module */
  onTestModuleCollected({ moduleId, children, project }) {
    const timeouts = [...children.allTests()].map(({ options }) => options.timeout ?? 0);
    const longestMs = Math.max(0, ...timeouts.filter(Number.isFinite));
    const patienceMs = longestMs + project.config.hookTimeout;
    tell({ type: "collected", file: nameOf(moduleId), patienceMs });
  }

  /** @param {import("vitest/node").TestCase} test */
  onTestCaseReady(test) {
    tell({ type: "test started", file: nameOf(test.module.moduleId), test: pathOf(test) });
  }

  /** @param {import("vitest/node").TestCase} test */
  onTestCaseResult(test) {
    tell({ type: "test ended", file: nameOf(test.module.moduleId), test: pathOf(test) });
  }

  onHookStart() {
    tell({ type: "progress" });
  }

  onHookEnd() {
    tell({ type: "progress" });
  }

  /** @param {import("vitest/node").TestModule} module */
  onTestModuleEnd(module) {
    this.#running.delete(module.moduleId);
    this.#end(module);
  }

  /**
   * @param {readonly import("vitest/node").TestModule[]} modules
   * @param {readonly import("vitest/node").SerializedError[]} errors that belong to no test
   */
  onTestRunEnd(modules, errors) {
    // Their workers ended before them.
    for (const module of modules) if (this.#running.has(module.moduleId)) this.#end(module);
    for (const error of errors) {
      tell({
        type: "failed",
        failure: { file: "outside all tests", test: null, text: textOf(error) },
      });
    }
  }

  /** @param {import("vitest/node").TestModule} module */
  #end(module) {
    const file = nameOf(module.moduleId);
    let [passed, skipped, unfinished] = [0, 0, 0];
    for (const test of module.children.allTests()) {
      const { state, errors } = test.result();
      if (state === "passed") passed += 1;
      else if (state === "skipped") skipped += 1;
      else if (state === "pending") unfinished += 1;
      else {
        const text = (errors ?? []).map(textOf).join("\n");
        tell({ type: "failed", failure: { file, test: pathOf(test), text } });
      }
    }
    const broken = module.errors().map(textOf);
    for (const suite of module.children.allSuites()) broken.push(...suite.errors().map(textOf));
    if (unfinished > 0) broken.push(`${unfinished} tests did not end`);
    if (broken.length > 0) {
      tell({ type: "failed", failure: { file, test: null, text: broken.join("\n") } });
    }
    tell({ type: "ended", file, passed, skipped, ms: module.diagnostic().duration });
  }
}

/** @param {Event} event */
function tell(event) {
  process.send?.(event);
}

/** @param {string} path */
function nameOf(path) {
  return relative(process.cwd(), path);
}

/**
 * The name of a test with those of its suites, as `-t` takes it.
 *
 * @param {import("vitest/node").TestCase | import("vitest/node").TestSuite} test
 * @returns {string}
 */
function pathOf({ name, parent }) {
  return parent.type === "module" ? name : `${pathOf(parent)} ${name}`;
}

/** @param {{ message?: string, stack?: string, diff?: string }} error */
function textOf({ message = "", stack = message, diff }) {
  return [stack.includes(message) ? stack : `${message}\n${stack}`, diff]
    .filter(Boolean)
    .join("\n");
}
