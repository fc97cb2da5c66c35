/** Which seed found a mutant: written by `npm run simulate -- --mutants --write`. */
export const foundAt: Readonly<Record<string, number>> = {
  "a loss before anybody keeps the lease is forgotten": 6299,
};
