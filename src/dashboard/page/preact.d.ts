/** The parts of Preact and htm that the page uses; `preact.js` is the file `htm/preact` brings. */
export interface Element {
  readonly type: unknown;
}

export type Child = Element | string | number | boolean | null | undefined | readonly Child[];

export function html(strings: TemplateStringsArray, ...values: readonly unknown[]): Element;
export function render(element: Element, parent: HTMLElement): void;
export function useState<T>(
  first: T | (() => T),
): [value: T, set: (next: T | ((value: T) => T)) => void];
export function useEffect(effect: () => undefined | (() => void), inputs: readonly unknown[]): void;
export function useRef<T>(first: T): { current: T };
